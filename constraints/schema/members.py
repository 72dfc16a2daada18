"""Arrays and objects as grammar nodes.

Objects are written in declared order: `first[i]` is what may follow "{" when the names before the i-th are absent, `later[i]`
the same after at least one member. Each is an alternative of "member i, then later[i + 1]" and, if that is optional, the next
one of its kind, so an object costs two nodes a member however many subsets of its members there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConstraintLimit
from ..expression import FAIL, Event, Grammar, Node
from .text import JsonText

MAX_UNORDERED = 10  # names that must occur, at any place among the undeclared ones: a state per subset


@dataclass(frozen=True, slots=True)
class Member:
    """A name known beforehand, and what its value may be."""

    name: str
    value: Node
    is_required: bool = True


class Members:
    """Builds arrays and objects out of the nodes of their parts."""

    def __init__(self, grammar: Grammar, text: JsonText) -> None:
        self._grammar, self._text = grammar, text
        self._comma = grammar.seq(grammar.literal(","), text.gap)
        self._colon = grammar.seq(text.gap, grammar.literal(":"), text.gap)

    # -- arrays -----------------------------------------------------------------------------------------------------

    def array(self, prefix: list[Node], rest: Node, low: int, high: int | None) -> Node:
        """`low` to `high` items: the first ones out of `prefix`, the others out of `rest`."""
        grammar, gap = self._grammar, self._text.gap
        if high is not None and low > high:
            return FAIL
        prefix = prefix[:high]
        end, count = grammar.literal("]"), len(prefix)
        if not prefix and high != 0:
            prefix, count = [rest], 1
        more = self._then(rest)
        after = grammar.seq(grammar.repeat(more, max(low - count, 0), None if high is None else high - count), end)
        for index in range(count - 1, 0, -1):
            after = grammar.alt(end if index >= low else FAIL, grammar.seq(self._then(prefix[index]), after))
        if prefix:
            after = grammar.alt(end if low == 0 else FAIL, grammar.seq(prefix[0], gap, after))
        return grammar.seq(grammar.literal("["), gap, after)

    def _then(self, item: Node) -> Node:
        """One more item or member behind another one."""
        return self._grammar.seq(self._comma, item, self._text.gap)

    # -- objects ----------------------------------------------------------------------------------------------------

    def object(self, declared: list[Member], unordered: list[Member], rest: Node) -> Node:
        """Members in declared order, then those of `unordered` (all required) and others, out of `rest`, in any order."""
        grammar = self._grammar
        if any(member.is_required and member.value == FAIL for member in declared + unordered):
            return FAIL
        opening = grammar.literal("{") if rest == FAIL else grammar.mark(b"{", Event.OBJECT_OPEN)
        first, later = self._tail(declared, unordered, rest)
        for member in reversed(declared):
            pair = self._pair(member)
            first = grammar.alt(
                grammar.seq(pair, self._text.gap, later), FAIL if member.is_required else first
            )
            later = grammar.alt(grammar.seq(self._then(pair), later), FAIL if member.is_required else later)
        return grammar.seq(opening, self._text.gap, first)

    def _tail(self, declared: list[Member], unordered: list[Member], rest: Node) -> tuple[Node, Node]:
        """What follows the declared members: when there were none, and after some."""
        grammar = self._grammar
        if len(unordered) > MAX_UNORDERED:
            raise ConstraintLimit(
                f"{len(unordered)} names are required but not declared", limit="unordered_names", value=MAX_UNORDERED,
                instead="declare required names under 'properties'",
            )  # fmt: skip
        end = grammar.literal("}") if rest == FAIL else grammar.mark(b"}", Event.OBJECT_CLOSE)
        other = FAIL
        if rest != FAIL:
            names = [member.name for member in declared + unordered]
            other = grammar.seq(self._text.other_name(names), self._colon, rest)
        others = grammar.repeat(self._then(other))
        everything = (1 << len(unordered)) - 1
        later: dict[int, Node] = {everything: grammar.seq(others, end)}  # by the subset of `unordered` that has occurred
        for seen in range(everything - 1, -1, -1):
            missing = [i for i in range(len(unordered)) if not seen >> i & 1]
            steps = (grammar.seq(self._then(self._pair(unordered[i])), later[seen | 1 << i]) for i in missing)
            later[seen] = grammar.seq(others, grammar.alt(*steps))
        starts = [grammar.seq(self._pair(member), self._text.gap, later[1 << i]) for i, member in enumerate(unordered)]
        first = grammar.alt(FAIL if unordered else end, grammar.seq(other, self._text.gap, later[0]), *starts)
        return first, later[0]

    def _pair(self, member: Member) -> Node:
        return self._grammar.seq(self._text.name(member.name), self._colon, member.value)
