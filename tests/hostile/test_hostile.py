"""Hostile input: it compiles or is refused by a typed error, within two seconds and half a gigabyte, and nothing else breaks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, ConstraintError, JsonSchema, Regex, Vocabulary
from maskwright.constraints.grammar.source import Limits

from .corpus import CASES, SECONDS
from .run import walk

SECONDS_OF_MOST = 2.0  # of processor time
MEGABYTES = 512
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b'":', None], eos_token_ids=[258])


@pytest.fixture(scope="module")
def results() -> dict[str, dict]:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.run"], cwd=root, capture_output=True, text=True, timeout=600, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(CASES), f"stopped after {[line['name'] for line in lines][-1:]}: {done.stderr[-2000:]}"
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_source_is_compiled_or_refused(name, results):
    result = results[name]
    assert result["outcome"] in ("ok", "limit", "error"), result
    assert result["outcome"] != "limit" or (hasattr(Limits(), result["limit"]) or result["limit"] in OTHER_LIMITS), (
        result
    )
    assert result["works"], "the compiler is still of use"
    assert result["seconds"] < SECONDS.get(name, SECONDS_OF_MOST), result
    assert result["megabytes"] < MEGABYTES, result


OTHER_LIMITS = ("alternatives", "conditions", "counts", "modulus", "name_classes")


def test_the_corpus_is_not_refused_wholesale(results):
    assert sum(result["outcome"] == "ok" for result in results.values()) > len(CASES) // 3


# -- random schemas and patterns ------------------------------------------------------------------------------------------

_numbers = st.one_of(st.integers(-3, 12), st.sampled_from([0.5, -1.5, 1e20, 10**12, -(10**30), 1e-9]))
_texts = st.one_of(
    st.sampled_from(["a", "b", "", "é", "\0", "\ud800", "^a", "(", "[a-c]+", "#", "#/$defs/x", "x"]),
    st.text(max_size=4),
)
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), _numbers, _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)),
    max_leaves=6,
)
_LARGE_COUNTS = st.sampled_from([2**29, 2**31 - 1, 2**31, 10**12, 10**30])
_TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def _schemas(inner: st.SearchStrategy) -> st.SearchStrategy:
    lists, maps = st.lists(inner, min_size=1, max_size=3), st.dictionaries(_texts, inner, max_size=3)
    counts, names = st.one_of(st.integers(0, 5), _LARGE_COUNTS), st.lists(_texts, max_size=3)
    right = {
        "type": st.one_of(_TYPES, st.lists(_TYPES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(_values, min_size=1, max_size=4), "const": _values, "not": inner, "if": inner, "then": inner, "else": inner,
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), lists),
        **dict.fromkeys(("properties", "patternProperties", "$defs", "dependentSchemas"), maps),
        **dict.fromkeys(("items", "additionalProperties", "propertyNames", "contains", "unevaluatedProperties", "unevaluatedItems"), inner),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), counts),
        **dict.fromkeys(("minContains", "maxContains"), counts),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _numbers),
        "required": names, "uniqueItems": st.booleans(), "pattern": _texts, "$ref": st.sampled_from(["#", "#/$defs/x", "#/items", "y"]),
        "format": st.sampled_from(["date", "email", "ipv4", "uuid", "nonsense"]), "$schema": _texts, "$id": _texts, "$anchor": _texts,
    }  # fmt: skip
    pairs = st.one_of(*(st.tuples(st.just(name), st.one_of(*[values] * 9, _values)) for name, values in right.items()))
    return st.one_of(st.booleans(), st.lists(pairs, max_size=5).map(dict))


SCHEMAS = st.recursive(st.booleans(), _schemas, max_leaves=8)


def compiled_or_refused(source) -> None:
    start = time.thread_time()
    try:
        walk(Compiler(BYTES, cache_bytes=1).compile(source()))
    except ConstraintError as error:
        assert str(error)
    assert time.thread_time() - start < SECONDS_OF_MOST


@settings(max_examples=150)
@given(SCHEMAS, st.sampled_from(["refuse", "relax"]), st.sampled_from([None, "4", "7", "2020-12"]))
def test_random_schemas_are_compiled_or_refused(schema, on_unsupported, draft):
    compiled_or_refused(lambda: JsonSchema(schema, on_unsupported=on_unsupported, draft=draft))


_PIECES = [
    "a", "b", ".", "[a-c]", "[^a]", "\\w", "\\b", "^", "$", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!a)", ")", ")*", ")+", "|", "*", "+?", "{2}",
    "{1,3}", "{0}", "{", "}", "[", "]", "\\", "\\1", "\\p{L}", "\\u{41}", "é", "\ud800", "\0", "(?i)", "-", "\\d{2,}", "(?<x>",
]  # fmt: skip


@settings(max_examples=150)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), st.sampled_from(["python", "ecma"]), st.booleans())
@example("(?=a)(?!b)" * 6, "ecma", False)
def test_random_patterns_are_compiled_or_refused(pattern, dialect, full):
    compiled_or_refused(lambda: Regex(pattern, dialect, full))


@settings(max_examples=60)
@given(st.one_of(st.text(max_size=20), st.text('{}[]",:0129eE+-."a\\u', max_size=20)))
def test_random_texts_of_schemas_are_compiled_or_refused(text):
    compiled_or_refused(lambda: JsonSchema(text))
