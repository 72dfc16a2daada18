"""Members under conditions: the nodes of decision diagrams over members, and walks through several of them at a time.

What they mean, and how they are read, is told in `automaton/member_walks.py` and `automaton/families.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..base.kinds import ASKED, INFINITE, MOST, UNBOUNDED, Kind
from .store import EMPTY, FAIL, Node, NodeStore

Case = tuple[Node, tuple[Node, ...]]  # a member, and the parts that are left behind it


@dataclass(slots=True)
class MemberDiagrams:
    """Builds the parts of walks. `separator` stands between two members and `gap` behind each; if `is_counted`, walks may have
    bounds."""

    store: NodeStore
    separator: Node
    gap: Node
    is_counted: bool = False
    _known: dict[tuple[int, tuple[Case, ...], Node], Node] = field(default_factory=dict)
    _most: dict[Node, int] = field(default_factory=lambda: {EMPTY: 0, FAIL: 0})

    def member(self, text: Node) -> Node:
        """A member, with the separator before it."""
        behind = text if self.gap == EMPTY else self.store.intern((Kind.SEQ, text, self.gap, 0))
        return self.store.intern((Kind.SEQ, self.separator, behind, 0))

    def decision(self, position: int, cases: Iterable[Case], lower: Node) -> Node:
        """One member, by its cases, or none: `lower`."""
        told = tuple(cases)
        if not told:
            return lower
        known = self._known.get((position, told, lower))
        if known is None:
            known = self._known[position, told, lower] = self._new_decision(position, told, lower)
        return known

    def _new_decision(self, position: int, cases: tuple[Case, ...], lower: Node) -> Node:
        left = [(member, self._list(parts)) for member, parts in cases]
        most = self._most_of_cases(lower, cases) if self.is_counted else -1
        lists, start = self.store.lists, len(self.store.lists)
        lists.extend((most, position))
        for pair in left:
            lists.extend(pair)
        node = self.store.intern((Kind.DECISION, start, len(cases), lower))
        if self.is_counted:
            lists.extend([INFINITE] * (2 * most + 2))
            self._most[node] = most
        return node

    def _most_of_cases(self, lower: Node, cases: tuple[Case, ...]) -> int:
        """How many members a DECISION may have at the most."""
        most = self._most[lower]
        for _, parts in cases:
            most = max(most, 1 + sum([self.most(part) for part in parts]))
        return most

    def family(self, member: Node, with_it: Node, without: Node) -> Node:
        """The sets of members that have a member, and those that do not: families, EMPTY of no members, or FAIL of no set."""
        if with_it == FAIL:
            return without
        node = self.store.intern((Kind.FAMILY, member, with_it, without))
        if self.is_counted:
            self._most[node] = max(1 + self._most[with_it], self._most[without])
        return node

    def placed(self, member: Node, position: int) -> Node:
        """A member of a family that comes at a position. All members of a family have one, or none."""
        return self.store.intern((Kind.PLACED, member, position, 0))

    def choice(self, level: int, cases: dict[Node, Node], absent: Node) -> Node:
        """What is asked of a member of another part, which is asked about at a level: what each of its cases leads to, and its
        absence (see automaton/asked_members.py)."""
        node = absent
        for member, with_it in reversed(cases.items()):
            if with_it != absent:
                node = self.store.intern((Kind.FAMILY, self.placed(member, ASKED + level), with_it, node))
        return node

    def counted(self, member: Node, low: int, high: int | None) -> Node:
        """`low` to `high` members, as a part."""
        return self.store.intern((Kind.REPEAT, member, low, UNBOUNDED if high is None else high))

    def may_lack(self, part: Node) -> bool:
        """Whether a part is met where none of its members comes."""
        if self.store.kind(part) is Kind.REPEAT:
            return self.store.operands(part)[1] == 0
        while part > EMPTY:
            part = Node(self.store.operands(part)[2])
        return part == EMPTY

    def most(self, part: Node) -> int:
        """How many members a part may have at the most, where they are counted; MOST or more for any number."""
        if self.store.kind(part) is not Kind.REPEAT:
            return self._most[part]
        high = self.store.operands(part)[2]
        return MOST if high == UNBOUNDED else high

    def walk(self, parts: Sequence[Node], low: int, high: int | None) -> Node:
        """The texts of members that meet all parts, `low` to `high` of them, the first one without a separator; at least one."""
        if FAIL in parts or high == 0 or not parts:
            return FAIL
        most = sum(map(self.most, parts)) if self.is_counted else MOST
        if low > most or most == 0:
            return FAIL
        members = self.counted(self.separator, low, None if high is None or high >= most else high)
        return self.store.intern((Kind.WALK, self._list(parts), members, 1))

    def _list(self, parts: Iterable[Node]) -> Node:
        tally = FAIL
        for part in sorted(parts):  # what was made first stands last: lists share their ends
            tally = self.store.intern((Kind.TALLY, part, tally, 0))
        return tally
