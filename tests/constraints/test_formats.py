"""Formats: nothing invalid is accepted; what is left out is what the table says."""

from __future__ import annotations

import ipaddress
import json
import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.expression import Grammar
from maskwright.constraints.formats import FORMATS, format_node, formats_page
from maskwright.constraints.reference import Reference
from maskwright.constraints.source import Limits

# the published valid strings that a narrower format leaves out, as a pattern over their descriptions
LEFT_OUT = {
    "date-time": "leap second",
    "time": "leap second",
    "hostname": "in Hangul|PVALID|MIDDLE DOT|KERAIA|GERESH|GERSHAYIM|digits not mixed|JOINER|punycode|consecutive hyphens",
    "idn-email": "quoted local part|NFC|C1 control|noncharacter|supplementary",
    "idn-hostname": "Punycode|PVALID|MIDDLE DOT|KERAIA|GERESH|GERSHAYIM|digits not mixed|JOINER|full stop",
    "regex": r"named|lookbehind|character class|\\cA",
}


@lru_cache(maxsize=64)
def format_reference(name: str) -> Reference:
    grammar = Grammar()
    node = format_node(grammar, name, grammar.chars, Limits())
    assert node is not None
    return Reference(grammar, node)


def accepts(name: str, text: str) -> bool:
    return format_reference(name).accepts(text.encode())


def published_cases(shared_data: Path) -> list[tuple[str, str, str, bool]]:
    """Format, string, description, and whether it is valid, in the latest draft."""
    cases = []
    folder = shared_data / "json_schema_test_suite" / "tests" / "draft2020-12" / "optional" / "format"
    for file in sorted(folder.glob("*.json")):
        for group in json.loads(file.read_text("utf-8")):
            name = group["schema"].get("format")
            cases += [
                (name, test["data"], test["description"], test["valid"])
                for test in group["tests"]
                if name in FORMATS and isinstance(test["data"], str) and not re.search("[\ud800-\udfff]", test["data"])
            ]
    return cases


def test_no_invalid_string_of_the_published_suite_is_accepted(shared_data):
    cases = published_cases(shared_data)
    assert len(cases) > 500
    assert [case for case in cases if not case[3] and accepts(*case[:2])] == []


def test_every_valid_string_of_the_published_suite_is_accepted_or_said_to_be_left_out(shared_data):
    missed = [case for case in published_cases(shared_data) if case[3] and not accepts(*case[:2])]
    assert [case for case in missed if not re.search(LEFT_OUT.get(case[0], "$^"), case[2])] == []
    assert all(FORMATS[name].narrower for name, *_ in missed)


def test_dates_are_those_of_the_calendar():
    day = date(1896, 1, 1)
    valid = {(day + timedelta(days=offset)).isoformat() for offset in range(9 * 366)}
    for year in (1896, 1900, 1904):
        for month in range(14):
            for number in (0, 1, 28, 29, 30, 31, 32):
                text = f"{year}-{month:02d}-{number:02d}"
                assert accepts("date", text) == (text in valid), text
    for year, is_leap in ((4, True), (100, False), (400, True), (2000, True), (2023, False), (9996, True)):
        assert accepts("date", f"{year:04d}-02-29") == is_leap


def texts_of(name: str) -> st.SearchStrategy[str]:
    return st.from_regex(re.compile(FORMATS[name].pattern, re.ASCII), fullmatch=True)


@settings(max_examples=40)
@given(texts_of("ipv4"), texts_of("ipv6"), texts_of("date-time"), texts_of("regex"))
def test_generated_texts_are_accepted_and_read_by_other_libraries(ipv4, ipv6, moment, pattern):
    assert ipaddress.IPv4Address(ipv4) and accepts("ipv4", ipv4)
    assert ipaddress.IPv6Address(ipv6) and accepts("ipv6", ipv6)
    assert datetime.fromisoformat(moment.upper()) and accepts("date-time", moment)
    assert re.compile(pattern) and accepts("regex", pattern)


@settings(max_examples=60)
@given(st.text("01:f.25", max_size=16), st.ip_addresses(v=6), st.sampled_from(["", ":", "::", "1", ":0"]))
def test_addresses_agree_with_ipaddress(text, address, noise):
    for candidate in (text, str(address), address.exploded, str(address) + noise):
        for name, reader in (("ipv4", ipaddress.IPv4Address), ("ipv6", ipaddress.IPv6Address)):
            assert accepts(name, candidate) == _reads(reader, candidate), candidate


def _reads(reader, text: str) -> bool:
    try:
        reader(text)
    except ValueError:
        return False
    return True


CASES = [  # format, valid, invalid
    (
        "time",
        ["12:00:00Z", "23:59:59.999999999999+23:59"],
        ["12:00:00", "24:00:00Z", "12:60:00Z", "12:00:00.Z", "12:00:00+24:00"],
    ),
    ("duration", ["P1Y2M3DT4H5M6S", "PT0S", "P4W", "P1D"], ["P", "PT", "P1W2D", "P1YT", "P1S", "1D", "P1Y3D"]),
    (
        "email",
        ["a.b+c@example.org", '"a b"@x.yz', "a@[127.0.0.1]", "a@[IPv6:::1]"],
        ["a@b", "a..b@c.de", "@c.de", "a@-c.de", "a b@c.de"],
    ),
    (
        "hostname",
        ["a", "a-b.example", "1a.b2"],
        ["", "-a", "a-", "a..b", "a.", "a_b", "ab--c", f"{'a' * 64}.b", ".".join(["a" * 63] * 4)],
    ),
    ("idn-hostname", ["münchen.example", "日本.example", "a.b.c.d.e"], ["Ünter", "a\u0301", "\u0640a", "-ü", "ü-"]),
    (
        "uuid",
        ["123e4567-E89B-12d3-a456-426655440000"],
        ["123e4567-e89b-12d3-a456-42665544000", "{123e4567-e89b-12d3-a456-426655440000}"],
    ),
    (
        "uuid4",
        ["123e4567-e89b-42d3-a456-426655440000"],
        ["123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-42d3-c456-426655440000"],
    ),
    (
        "uri",
        ["http://a@[::1]:80/b/%20?c=/#d", "urn:a:b", "mailto:a@b.c", "x:"],
        ["//a", "/a", "1:a", "a b:", "http://[::g]", "http://a/%2", "a:é"],
    ),
    ("uri-reference", ["", "/a", "//a", "?b", "#c", "a/b:c", "../x"], ["a:b c", "\\\\a", "%", "a\u00e9"]),
    ("iri", ["http://ex.org/é?\ue000", "a:中"], ["http://ex.org/\u202e", "é", "a:\ue000"]),
    ("iri-reference", ["é/b", "#日"], ["\ue000", "<é>"]),
    ("uri-template", ["/a/{b}{?c,d*,e:3}", "{+x.y}"], ["{", "{}", "{a:0}", "{a,}", "{!a}", "a b", "}"]),
    ("json-pointer", ["", "/", "/a~0b/~1//c"], ["a", "/~", "/~2", "#/a"]),
    ("relative-json-pointer", ["0", "1/a", "2#"], ["", "/a", "01", "-1/a", "1#/a", "0+01"]),
    ("regex", ["", r"^a|(b(?:c[^\]x0-9]+?){2,})*$", r"\d{3}\."], ["(", "a**", "[a", r"\q", "{1}", ")", "[z-a]"]),
]


@pytest.mark.parametrize("name, valid, invalid", CASES, ids=[case[0] for case in CASES])
def test_examples(name, valid, invalid):
    assert [text for text in valid if not accepts(name, text)] == []
    assert [text for text in invalid if accepts(name, text)] == []


def test_a_host_name_has_at_most_253_characters():
    labels = ".".join(["a" * 63] * 3)
    assert accepts("hostname", f"{labels}.{'b' * 61}") and not accepts("hostname", f"{labels}.{'b' * 62}")


def test_a_local_part_has_at_most_64_octets():
    assert accepts("email", f"{'a' * 64}@x.yz") and not accepts("email", f"{'a' * 65}@x.yz")


def test_labels_of_idn_letters_fit_in_ascii():
    """RFC 5890, 2.3.2.1: 63 octets in Punycode; RFC 5892: lower-case letters that no normalisation changes."""
    from unicodedata import category, normalize

    letters = re.compile("[" + FORMATS["idn-hostname"].pattern.rpartition("a-z0-9")[2].partition("]")[0] + "]")
    accepted = letters.findall("".join(map(chr, range(0x10000))))
    assert len(accepted) > 30_000
    assert all(
        category(letter) in ("Ll", "Lo") and normalize("NFKC", letter).casefold() == letter for letter in accepted
    )
    for extreme in ("힣가" * 5 + "힣", "à" + "힣" * 10, "힣" * 11):
        assert accepts("idn-hostname", extreme) and len(extreme.encode("punycode")) + 4 <= 63


def test_an_unknown_format_is_none_and_a_narrower_one_leaves_one_note():
    grammar = Grammar()
    for name in ("password", "binary", "path", "file-path", "directory-path", "no-such-format"):
        assert format_node(grammar, name, grammar.chars, Limits()) is None
    for _ in range(2):
        format_node(grammar, "date", grammar.chars, Limits())
        format_node(grammar, "ipv4", grammar.chars, Limits())
    assert grammar.notes == ["format 'date' is narrower than RFC 3339, 5.6 (full-date): no year 0000"]


def test_the_documentation_is_up_to_date():
    page = Path(__file__).parents[2] / "docs" / "formats.md"
    assert page.read_text("utf-8") == formats_page()
