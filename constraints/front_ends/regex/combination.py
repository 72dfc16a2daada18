"""`&`, `|` and `~` between regular constraints: texts in both, in one of them, in none.

>>> Regex("[a-z]+") & ~Regex(".*(foo|bar).*")

`~` is everything else that is valid UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import ALL
from ...grammar.expression import Grammar, Kind, Node
from ...grammar.recursion import reachable
from ...grammar.source import Limits, is_source
from ...runtime.front_end import FrontEnd


class Combinable(FrontEnd):
    """What the operators need: front ends derived from this can be combined."""

    __slots__ = ()

    def __and__(self, other: Any) -> Combination:
        return Combination("&", (self, other)) if is_source(other) else NotImplemented

    def __or__(self, other: Any) -> Combination:
        return Combination("|", (self, other)) if is_source(other) else NotImplemented

    def __invert__(self) -> Combination:
        return Combination("~", (self,))


@dataclass(frozen=True, slots=True)
class Combination(Combinable):
    """Sources under an operator."""

    operator: str
    parts: tuple[Any, ...]

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The texts. Raises what the parts raise, and `UnsupportedKeyword` where a part calls itself."""
        nodes: list[Node] = []
        work: list[tuple[Any, bool]] = [(self, False)]
        while work:
            source, has_parts = work.pop()
            if not isinstance(source, Combination):
                nodes.append(source.lower(grammar, limits))
            elif not has_parts:
                work.append((source, True))
                work.extend((part, False) for part in reversed(source.parts))
            else:
                parts = [nodes.pop() for _ in source.parts][::-1]
                nodes.append(_combined(grammar, source.operator, parts))
        return nodes[0]


def _combined(grammar: Grammar, operator: str, parts: list[Node]) -> Node:
    if operator == "|":
        return grammar.alt(*parts)
    for part in parts:
        if any(grammar.kind(node) is Kind.CALL for node in reachable(grammar, part)):
            reason = "it is enforced between constraints that do not call themselves only"
            raise UnsupportedKeyword(reason, keyword=operator, instead="the same with a regular expression")
    if operator == "&":
        return grammar.both(*parts)
    return grammar.without(grammar.repeat(grammar.chars(ALL)), parts[0])
