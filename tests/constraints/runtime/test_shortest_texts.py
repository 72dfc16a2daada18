"""What has no text that is short enough to be ended within a limit of states is refused, and told where that lies."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.constraints import Compiler, ConstraintLimit, Gbnf, JsonSchema, Limits, Regex, Vocabulary
from maskwright.constraints.automaton.machine import ENDS_BEYOND, with_more
from maskwright.constraints.grammar.source import Source

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
LIMITS = Limits(states=1_000)
MOST = with_more(LIMITS.states, ENDS_BEYOND)  # bytes of a shortest text that may be
SHORT, LONG = {"type": "string"}, {"type": "string", "minLength": MOST}


def closed(members: dict[str, Any]) -> JsonSchema:
    return JsonSchema({"type": "object", "properties": members, "required": [*members], "additionalProperties": False})


OBJECT = {"type": "object"}
HALVES = {"type": "string", "minLength": MOST * 2 // 3}
ITEMS = {"type": "array", "items": {"type": "string", "minLength": 100}, "minItems": MOST // 100 + 1}
REFUSED: list[tuple[str, Source, str]] = [
    ("a string", JsonSchema(LONG), "#"),
    ("one member", closed({"a": SHORT, "b": LONG, "c": SHORT}), "#/properties/b"),
    ("an optional one beside it", JsonSchema({"properties": {"a": HALVES, "b": LONG}, "required": ["b"], **OBJECT}), "#/properties/b"),
    ("a member of a member", closed({"a": {"properties": {"b": LONG}, "required": ["b"], **OBJECT}}), "#/properties/a/properties/b"),
    ("two members", closed({"a": HALVES, "b": HALVES}), "#"),
    ("items", closed({"a": ITEMS}), "#/properties/a"),
    ("the least of several", closed({"a": {"anyOf": [{**LONG, "minLength": 2 * MOST}, LONG]}}), "#/properties/a"),
    ("a pattern", Regex(f"a{{{MOST + 1}}}"), "#"),
    ("a rule", Gbnf(f'root ::= "a" x\nx ::= "b"{{{MOST}}}'), "x"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "path"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_it_is_refused_where_it_lies(source: Source, path: str) -> None:
    with pytest.raises(ConstraintLimit, match="the shortest text has") as refused:
        Compiler(VOCABULARY, LIMITS).compile(source)
    assert (refused.value.limit, refused.value.path) == ("states", path)


@pytest.mark.parametrize("source", [JsonSchema({**LONG, "minLength": MOST - 2}), Regex(f"a{{{MOST}}}")], ids=["string", "pattern"])
def test_the_longest_that_may_be(source: Source) -> None:
    constraint = Compiler(VOCABULARY, LIMITS).compile(source)
    assert constraint.min_tokens(constraint.start()) == MOST
