"""Formats: nothing invalid is accepted; what is left out is what the table says."""

from __future__ import annotations

import ipaddress
import json
import random
import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.constraints.front_ends.json_schema.strings.formats import (
    FORMATS,
    _idn_letters,
    format_length,
    format_node,
    formats_page,
    wider_node,
)
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.matcher import Steps
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits

from ..json_texts import matcher

# the published valid strings that a narrower format leaves out, as a pattern over their descriptions
LEFT_OUT = {
    "date-time": "leap second, with minus offset",
    "hostname": "in Hangul|PVALID|MIDDLE DOT|KERAIA|GERESH|GERSHAYIM|digits not mixed|JOINER|punycode|consecutive hyphens",
    "idn-email": "domain label that is not in Unicode NFC",
    "idn-hostname": "Punycode|PVALID|MIDDLE DOT|KERAIA|GERESH|GERSHAYIM|digits not mixed|JOINER|full stop",
    "regex": "named",
}


SINGLE_BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


@lru_cache(maxsize=64)
def format_reference(name: str) -> Reference:
    grammar = Grammar()
    node = format_node(grammar, name, grammar.chars, Limits())
    assert node is not None
    return Reference(grammar, node)


def accepts(name: str, text: str) -> bool:
    return format_reference(name).accepts(text.encode())


def published_cases(shared_data: Path) -> list[tuple[str, str, str, bool]]:
    """Format, string, description, and whether it is valid, in any draft; each string once unless drafts differ about it."""
    cases: dict[tuple[str, str, bool], str] = {}
    folder = shared_data / "json_schema_test_suite" / "tests"
    for file in sorted(folder.glob("draft*/optional/format/*.json")):
        for group in json.loads(file.read_text("utf-8")):
            name = group["schema"].get("format")
            for test in group["tests"]:
                if name in FORMATS and isinstance(test["data"], str) and not re.search("[\ud800-\udfff]", test["data"]):
                    cases[name, test["data"], test["valid"]] = test["description"]
    return [(name, text, description, valid) for (name, text, valid), description in cases.items()]


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
@given(texts_of("ipv4"), texts_of("ipv6"), texts_of("date-time"))
def test_generated_texts_are_accepted_and_read_by_other_libraries(ipv4, ipv6, moment):
    assert ipaddress.IPv4Address(ipv4) and accepts("ipv4", ipv4)
    assert ipaddress.IPv6Address(ipv6) and accepts("ipv6", ipv6)
    assert datetime.fromisoformat(moment.upper().replace(":60", ":59")) and accepts("date-time", moment)


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
        [
            "12:00:00Z",
            "23:59:59.999999999999+23:59",
            "23:59:60Z",
            "23:59:60.5-00:00",
            "01:29:60+01:30",
            "20:29:60-03:30",
        ],
        [
            "12:00:60Z",
            "23:59:60+01:00",
            "00:59:60-01:00",
            "12:00:00",
            "24:00:00Z",
            "12:60:00Z",
            "12:00:00.Z",
            "12:00:00+24:00",
        ],
    ),
    ("duration", ["P1Y2M3DT4H5M6S", "PT0S", "P4W", "P1D"], ["P", "PT", "P1W2D", "P1YT", "P1S", "1D", "P1Y3D"]),
    (
        "email",
        ["a.b+c@example.org", '"a b"@x.yz', "a@[127.0.0.1]", "a@[IPv6:::1]", "a@b", "a@b.123"],
        ["a..b@c.de", ".a@c.de", "a.@c.de", "a@c.de.", "a@xn--a.b", "@c.de", "a@-c.de", "a b@c.de"],
    ),
    (
        "hostname",
        ["a", "a-b.example", "1a.b2"],
        ["", "-a", "a-", "a..b", "a.", "a_b", "ab--c", f"{'a' * 64}.b", ".".join(["a" * 63] * 4)],
    ),
    (
        "idn-hostname",
        ["münchen.example", "日本.example", "a.b.c.d.e", "čeština.a.日本.b.c"],
        ["Ünter", "a\u0301", "\u0640a", "-ü", "ü-"],
    ),
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
    (
        "regex",
        ["", r"^a|(b(?:c[^\]x0-9]+?){2,})*$", r"\d{3}\.", "^/a/[-a-z_.-]{3,16}$", "(?=a)(?<!b)[]|[^]", r"\cA\u00e9"],
        ["(", "a**", "[a", r"\q", "{1}", ")", "[z-a]", "a{16,3}", "a{3,2}", "(?=a)*", r"\b*", r"[\w-z]", "[--]"],
    ),
]


@pytest.mark.parametrize("name, valid, invalid", CASES, ids=[case[0] for case in CASES])
def test_examples(name, valid, invalid):
    assert [text for text in valid if not accepts(name, text)] == []
    assert [text for text in invalid if accepts(name, text)] == []


def test_lengths_of_labels_and_names():
    labels = ".".join(["a" * 63] * 3)
    assert accepts("hostname", f"{labels}.{'b' * 55}") and not accepts("hostname", f"{labels}.{'b' * 62}")
    assert accepts("hostname", ".".join(["abcdef7"] * 31)) and not accepts("hostname", ".".join("a" * 128))
    for length in range(1, 70):
        for label in ("a" * length, "a" * (length - 2) + "-b" if length > 2 and length != 4 else "a" * length):
            assert accepts("hostname", f"x.{label}.y") == (length <= 63), label


@pytest.mark.parametrize(
    "name, wide", [("email", ""), ("idn-email", "é"), ("idn-email", "日"), ("idn-email", "\U0001d54f")]
)
def test_a_local_part_has_at_most_64_octets(name, wide):
    octets = len(wide.encode())
    for text in (
        "a" * (64 - octets) + wide,
        (wide or "b") + "." + "a" * (61 - max(octets, 1)) + "bb",
        f'"{wide}' + "\\\\" * ((62 - octets) // 2) + '"',
    ):
        longer = text.replace("a", "aa", 1) if "a" in text else text[:-1] + '  "'
        assert accepts(name, f"{text}@x.yz") and not accepts(name, f"{longer}@x.yz"), text
    assert accepts(name, f"{'a' * (64 - octets)}{wide}@{'.'.join(['b' * 55] * 3)}.{'c' * 15}")


@settings(max_examples=300)
@given(
    st.sampled_from(["email", "idn-email", "hostname", "idn-hostname"]),
    st.text("a1-.é日", max_size=9),
    st.text('a.-@" \\é[\x00', max_size=7),
    st.booleans(),
)
def test_what_is_built_agrees_with_its_pattern_in_short_texts(name, host, local, has_host):
    text = f"{local}@{host}" if has_host and "email" in name else host if "host" in name else local
    pattern = re.sub(r"\\u\{(\w+)\}", lambda match: f"\\U{int(match[1], 16):08x}", FORMATS[name].pattern)
    assert accepts(name, text) == (re.fullmatch(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize("name, text", [("idn-email", "é.a@日本.ab"), ("idn-hostname", "ab.日本.xyz")])
def test_what_may_follow_a_label_is_known_behind_it(name, text):
    """No label has two weights: beside a pattern there would be more than a hundred thousand states."""
    compiler = Compiler(SINGLE_BYTES, Limits(search_states=20_000))
    constraint = compiler.compile(JsonSchema({"type": "string", "format": name, "pattern": "a"}))
    assert constraint.accepts(json.dumps(text, ensure_ascii=False).encode())
    assert not constraint.accepts(json.dumps(text.replace("a", "c"), ensure_ascii=False).encode())


def test_lengths_bound_the_texts():
    assert (
        format_length("email") == (3, 248)
        and format_length("hostname") == (1, 247)
        and format_length("uuid") == (36, 36)
    )
    assert format_length("date") == (10, 10) and format_length("uri") == (2, None)


def test_leap_seconds_are_those_that_have_been():
    years = {
        (year, half)
        for year in range(1970, 2030)
        for half in ("06-30", "12-31")
        if accepts("date-time", f"{year}-{half}T23:59:60Z")
    }
    assert {year for year, half in years if half == "06-30"} == {
        1972,
        1981,
        1982,
        1983,
        1985,
        1992,
        1993,
        1994,
        1997,
        2012,
        2015,
    }
    december = {*range(1972, 1980), 1987, 1989, 1990, 1995, 1998, 2005, 2008, 2016}
    assert {year for year, half in years if half == "12-31"} == december
    for text in ("1998-12-31T23:58:60Z", "1998-12-30T23:59:60Z", "1998-12-31T00:59:60+01:00", "1998-12-31T22:59:60Z"):
        assert not accepts("date-time", text), text


def test_labels_of_idn_letters_fit_in_ascii():
    """RFC 5890, 2.3.2.1: 63 octets in Punycode; RFC 5892: lower-case letters that no normalisation changes."""
    from unicodedata import category, normalize

    accepted = [chr(code) for low, high in _idn_letters() for code in range(low, high + 1)]
    assert len(accepted) > 30_000
    assert all(
        category(letter) in ("Ll", "Lo") and normalize("NFKC", letter).casefold() == letter for letter in accepted
    )
    for extreme in ("힣가" * 5 + "힣", "à" + "힣" * 10, "힣" * 11):
        assert accepts("idn-hostname", extreme) and len(extreme.encode("punycode")) + 4 <= 63


@lru_cache(maxsize=64)
def wider_reference(name: str) -> Reference:
    grammar = Grammar()
    return Reference(grammar, wider_node(grammar, name, grammar.chars, Limits()))


def test_what_a_format_leaves_out_is_not_taken_for_a_violation(shared_data):
    valid = [case for case in published_cases(shared_data) if case[3]]
    assert [case for case in valid if not wider_reference(case[0]).accepts(case[1].encode())] == []
    assert all(bool(one.wider) == bool(one.narrower) for one in FORMATS.values())


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if one.wider])
def test_the_wider_pattern_of_a_format_matches_its_texts(name):
    grammar, rng = Grammar(), random.Random(name)
    node = format_node(grammar, name, grammar.chars, Limits())
    assert node is not None
    steps, found = Steps(grammar), 0
    for _ in range(20):
        position, text = steps.before(node), bytearray()
        while len(text) < 60 and not (steps.is_accepting(position) and rng.random() < 0.2):
            ways = list(steps.intervals(position))
            if not ways:
                break
            low, high, position = rng.choice(ways)
            text.append(rng.randint(low, high))
        if steps.is_accepting(position):
            found += 1
            assert wider_reference(name).accepts(bytes(text)), text
    assert found


def test_formats_that_are_narrower_can_be_negated():
    schema = {"oneOf": [{"format": "hostname"}, {"format": "ipv4"}, {"enum": ["xn--a", "*"]}], "type": "string"}
    reference = matcher(schema)
    verdicts = {"a.b": True, "1.2.3.4": False, "xn--a": False, "*": True, "a b": False}
    assert {text: reference.accepts(json.dumps(text).encode()) for text in verdicts} == verdicts


def test_an_unknown_format_is_none_and_a_narrower_one_leaves_one_note():
    grammar = Grammar()
    for name in ("password", "binary", "path", "file-path", "directory-path", "no-such-format"):
        assert format_node(grammar, name, grammar.chars, Limits()) is None
    for _ in range(2):
        format_node(grammar, "date", grammar.chars, Limits())
        format_node(grammar, "ipv4", grammar.chars, Limits())
    assert grammar.notes == ["format 'date' is narrower than RFC 3339, 5.6 (full-date): no year 0000"]


def test_the_documentation_is_up_to_date():
    page = Path(__file__).parents[3] / "docs" / "formats.md"
    assert page.read_text("utf-8") == formats_page()
