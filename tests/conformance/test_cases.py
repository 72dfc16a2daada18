"""Verdicts of the cases by slow, independent oracles: jsonschema, `re`, lark's Earley parser, all short strings."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from lark import Lark
from lark.exceptions import LarkError

from maskwright.conformance.cases import SUITES, Case, Text, load, token_ways
from maskwright.conformance.checks import CHECKS
from maskwright.conformance.protocol import KINDS
from maskwright.conformance.vocabularies import EOS, SPECIAL, cuts, vocabulary

CASES = [pytest.param(case, id=f"{suite}-{case.id}") for suite in SUITES for case in load(suite)]
ASSERTED_ELSEWHERE = {"email", "duration", "hostname", "idn-email", "uri", "json-pointer", "date-time", "time"}  # jsonschema needs more packages for them
NOT_PYTHON = {"unicode-class"}


def as_bytes(text: Text) -> bytes | None:
    """The bytes of a text; None if it holds a special token inside of it."""
    parts = [text] if isinstance(text, str) else list(text)
    if parts and not isinstance(parts[-1], str) and parts[-1].get("special") == "EOS":
        parts.pop()
    if any(not isinstance(part, str) and "special" in part for part in parts):
        return None
    return b"".join(part.encode() if isinstance(part, str) else bytes.fromhex(part["bytes"]) for part in parts)


def judge(case: Case, data: bytes | None) -> bool | None:
    """Whether a text is of the language; None where the oracle cannot tell."""
    try:
        text = None if data is None else data.decode()
    except UnicodeDecodeError:
        return False
    if text is None:
        return False
    if case.kind == "json_schema":
        return judge_json(case.source, text)
    if case.kind == "regex":
        return None if case.id in NOT_PYTHON else bool(re.fullmatch(case.source, text))
    if "pattern" in case.judge:
        return bool(re.fullmatch(case.judge["pattern"], text))
    if case.kind == "structural_tag":
        return None
    try:
        earley(case.source["lark"]).parse(text)
    except LarkError:
        return False
    return True


@cache
def earley(grammar: str) -> Lark:
    return Lark(grammar, parser="earley", lexer="dynamic_complete")


def judge_json(schema: Any, text: str) -> bool | None:
    try:
        value = json.loads(text, parse_constant=lambda name: pytest.fail(name) if name not in ("NaN", "Infinity", "-Infinity") else [name] * 2)
    except ValueError:
        return False
    if text in ("NaN", "Infinity"):
        return False
    if isinstance(schema, dict) and schema.get("format") in ASSERTED_ELSEWHERE:
        return None
    return bool(Draft202012Validator(schema, format_checker=FormatChecker()).is_valid(value))


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_well_formed_and_its_verdicts_are_right(case: Case) -> None:
    assert case.check in CHECKS and case.kind in KINDS and case.origin
    for texts, expected in ((case.accept, True), (case.reject, False)):
        for text in texts:
            assert judge(case, as_bytes(text)) in (expected, None), text
    for text in case.strings:
        assert judge(case, text.encode()) in (True, None)
    for text, complete in case.ends.items():
        for length in range(len(text) + 1):
            assert judge(case, text[:length].encode()) in (length in complete, None), text[:length]
    if case.kind == "json_schema":
        Draft202012Validator.check_schema(case.source)
    for text in [*case.accept, *case.reject, *case.strings, *case.ends]:
        data = as_bytes(text)
        for way in token_ways(text, vocabulary(case.vocabulary), case.id):
            spelled = b"".join(vocabulary(case.vocabulary).text_tokens[token] or b"" for token in way)
            assert data is None or spelled == data


def all_strings(alphabet: str, most: int) -> Iterator[str]:
    for length in range(most + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in load("masks") if case.kind != "structural_tag"])
def test_finite_languages_are_complete(case: Case) -> None:
    """Every string of their characters that is no longer than the longest is judged; of long ones those with an edit."""
    longest = max(map(len, case.strings))
    alphabet = "".join(sorted(set("".join(case.strings))))
    if len(alphabet) ** longest <= 2_000:
        candidates: set[str] = set(all_strings(alphabet, longest))
    else:
        candidates = {text[:k] + middle + text[k + cut :] for text in case.strings for k in range(len(text) + 1) for cut in (0, 1, 2) for middle in all_strings(alphabet, 1)}
    found = {text for text in candidates if judge(case, text.encode())}
    assert found == set(case.strings)


def test_the_page_counts_the_cases() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    counted = {name: int(count) for name, count in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)}
    assert counted == {suite: len(load(suite)) for suite in SUITES}
    assert f"{sum(counted.values())} cases with known verdicts" in page


def test_identifiers_are_unique_and_every_check_is_used() -> None:
    for suite in SUITES:
        names = [case.id for case in load(suite)]
        assert len(set(names)) == len(names)
    assert {case.check for suite in SUITES for case in load(suite)} == set(CHECKS)


def test_the_vocabulary_has_what_the_cases_are_about() -> None:
    tokens = vocabulary("merged")
    assert {bytes([byte]) for byte in range(256)} <= set(tokens.text_tokens)
    assert [tokens.tokens[tokens.special_tokens[name]] for name in SPECIAL] == [name.encode() for name in SPECIAL]
    assert tokens.tokens[tokens.eos_token_ids[0]] == EOS.encode() and None in tokens.tokens
    ways = cuts('{"name": "日本"}'.encode(), tokens, "x")
    assert len(ways) >= 4 and len({len(way) for way in ways}) > 2
