"""A reply that is one JSON object, which calls a tool, or text that cannot be taken for it.

In: the schema of the calls. Out: a source.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...grammar.expression import Grammar, Node
from ...grammar.source import Limits
from ..json_schema.json_schema import JsonSchema

CHARACTERS = [(0, 0x10FFFF)]
BEFORE_BRACE, AFTER_BRACE = (0, ord("{") - 1), (ord("{") + 1, 0x10FFFF)


@dataclass(frozen=True, slots=True)
class CallOrText:
    """A front end: a call that satisfies a schema, or any text that does not begin with "{"."""

    calls: JsonSchema

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        first = grammar.chars([BEFORE_BRACE, AFTER_BRACE])
        text = grammar.optional(grammar.seq(first, grammar.repeat(grammar.chars(CHARACTERS))))
        return grammar.alt(self.calls.lower(grammar, limits), text)
