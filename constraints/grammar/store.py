"""The store of a grammar's nodes: one array of rows, and pools of bytes, lists and edges that rows point into.

Nodes are named by small integers and made after their parts. `Kind` says what the three operands of a row mean;
`expression.py` builds grammars of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final, NewType, Self

from ..base.ids import NodeId
from ..base.kinds import NOT_PLANNED, ONLY_PLANNED, CoverRow, Event, Kind, Supply
from ..base.utf8 import ByteTree, Ranges, byte_tree
from ..numba_support.divisors import MULTIPLE_ROW_WORDS
from .stopwatch import NODE_BYTES, hold, look

Node = NodeId
Rule = NewType("Rule", int)
Edges = tuple[tuple[int, int, Node], ...]  # low and high byte, what follows

FAIL: Final[Node] = 0  # type: ignore[assignment]  # machine code has it as a number then, and looks nothing up
EMPTY: Final[Node] = 1  # type: ignore[assignment]
_BETWEEN_LOOKS: Final = 1023  # nodes, a few milliseconds
_KINDS: Final = tuple(Kind)  # by value; calling the enumeration is ten times slower
_ALT: Final = int(Kind.ALT)  # reading a member is slow too
_CALL: Final = int(Kind.CALL)
_CLASS: Final = int(Kind.CLASS)


class NodeStore:
    """Nodes and rules: it reads those that are there, and adds rows, equal ones once where that is worth while."""

    def __init__(self) -> None:
        self.rows = array("i")  # kind, a, b, c of every node
        self.pool = bytearray()  # the bytes of all literals, one after the other
        # alternatives of ALT nodes; steps of MULTIPLE and FRACTION nodes; words of WORDS nodes, as (offset, length); rows of
        # DECISION nodes
        self.lists = array("i")
        self.edges = array("i")  # of CLASS nodes: low, high, follow, one edge after the other
        self.events: set[Event] = set()  # that some CLASS node carries
        self.rule_names: list[str] = []
        self.rule_bodies: list[Node | None] = []
        self.empties: dict[Node, bool] = {}  # what `shows_empty` has found
        self._interned: dict[tuple[int, int, int, int], Node] = {}
        self._classes: dict[tuple[Edges, Event], Node] = {}
        self._wide: dict[Ranges, Edges] = {}
        self._held = 0  # bytes that a compile knows of
        self._new((Kind.FAIL, 0, 0, 0))
        self._new((Kind.EMPTY, 0, 0, 0))

    def __len__(self) -> int:
        return len(self.rows) // 4

    @classmethod
    def after(cls, beginning: Self) -> Self:
        """A new store that begins with all that `beginning` holds; its nodes keep their numbers."""
        new = cls()
        new.take(beginning)
        return new

    def take(self, other: Self) -> None:
        """Hold copies of all that another store holds, and nothing else."""
        self.rows, self.pool, self.lists, self.edges = other.rows[:], other.pool[:], other.lists[:], other.edges[:]
        self.events, self.empties = other.events.copy(), other.empties.copy()
        self.rule_names, self.rule_bodies = other.rule_names.copy(), other.rule_bodies.copy()
        self._interned, self._classes, self._wide = other._interned.copy(), other._classes.copy(), other._wide.copy()

    def complete(self) -> None:
        """Forget by what equal nodes are found, which takes more memory than they do. What is made in spite of that is right, and
        may be there twice."""
        self._interned, self._classes, self._wide, self.empties = {}, {}, {}, {}

    # -- reading ----------------------------------------------------------------------------------------------------

    def kind(self, node: Node) -> Kind:
        return _KINDS[self.rows[4 * node]]

    @property
    def has_calls(self) -> bool:
        """Whether some rule is called."""
        return _CALL in self.rows[::4]

    def operands(self, node: Node) -> tuple[int, int, int]:
        rows, start = self.rows, 4 * node
        return rows[start + 1], rows[start + 2], rows[start + 3]

    def row(self, node: Node) -> tuple[int, int, int, int]:
        """The kind of a node, and its operands."""
        rows, start = self.rows, 4 * node
        return rows[start], rows[start + 1], rows[start + 2], rows[start + 3]

    def literal_bytes(self, node: Node) -> bytes:
        start, length, _ = self.operands(node)
        return bytes(self.pool[start : start + length])

    def alternatives(self, node: Node) -> list[Node]:
        start, count, _ = self.operands(node)
        return self.lists[start : start + count].tolist()  # type: ignore[return-value]

    def bag_parts(self, node: Node) -> list[tuple[Node, int, int]]:
        """(body, low, high or UNBOUNDED) of every part of a BAG."""
        parts: list[tuple[Node, int, int]] = []
        tally = Node(self.operands(node)[0])
        while tally != FAIL:
            part, following, _ = self.operands(tally)
            body, low, high = self.operands(Node(part))
            parts.append((Node(body), low, high))
            tally = Node(following)
        return parts

    def listed_parts(self, tally: Node) -> list[Node]:
        """The parts of a list of TALLY nodes."""
        parts: list[Node] = []
        while tally != FAIL:
            part, following, _ = self.operands(tally)
            parts.append(Node(part))
            tally = Node(following)
        return parts

    def cases_of(self, node: Node) -> tuple[int, list[tuple[Node, list[Node]]]]:
        """The position of a DECISION, and its cases: each member with the parts that are left behind it."""
        start, count, _ = self.operands(node)
        cases = self.lists[start + 2 : start + 2 + 2 * count].tolist()
        pairs = zip(cases[::2], cases[1::2], strict=True)
        return self.lists[start + 1], [(Node(member), self.listed_parts(Node(left))) for member, left in pairs]

    def parts_of_decision(self, node: Node) -> list[Node]:
        """The nodes that a DECISION is made of."""
        _, cases = self.cases_of(node)
        return [Node(self.operands(node)[2]), *(part for member, left in cases for part in (member, *left))]

    def wanted_of(self, cover: Node) -> dict[int, tuple[int, int]]:
        """(low, high or UNBOUNDED) of each counter of a COVER that wants or bounds something."""
        wanted: dict[int, tuple[int, int]] = {}
        tally = self.operands(cover)[0]
        while tally != FAIL:
            part, following, counter = self.operands(Node(tally))
            _, low, high = self.operands(Node(part))
            wanted[counter], tally = (low, high), following
        return wanted

    def sorts_of(self, cover: Node) -> list[tuple[Node, list[int]]]:
        """The sorts of a COVER: the text of each, and its counters."""
        start = self.operands(cover)[1]
        first, end = start + CoverRow.FIRST, start + CoverRow.FIRST + CoverRow.OF_SORT * self.lists[start + CoverRow.SORTS]
        rows = (self.lists[at : at + CoverRow.WATCHERS] for at in range(first, end, CoverRow.OF_SORT))
        return [(Node(text), self.lists[start + where : start + where + count].tolist()) for text, _, where, count in rows]

    def plan_of(self, cover: Node) -> list[int]:
        """Where in the list pool the sorts of a COVER begin that are planned, or come in its cores."""
        lists, start = self.lists, self.operands(cover)[1]
        first, end = start + CoverRow.FIRST, start + CoverRow.FIRST + CoverRow.OF_SORT * lists[start + CoverRow.SORTS]
        found = [at for at in range(first, end, CoverRow.OF_SORT) if lists[at + CoverRow.TIMES] != NOT_PLANNED]
        cores = start + lists[start + CoverRow.CORES]
        core = cores + 2
        for _ in range(lists[cores] if cores > start else 0):
            table = core + 2 + 2 * lists[core]
            core = table + lists[core + 1]
            found += [first + CoverRow.OF_SORT * sort for sort in set(lists[table + 1 : core])]
        return found

    def watchers_of(self, cover: Node) -> list[list[int] | None]:
        """For each sort of a COVER the numbers of those that its items may turn out to be; None of a sort that is only planned."""
        start = self.operands(cover)[1]
        out: list[list[int] | None] = []
        for sort in range(self.lists[start + CoverRow.SORTS]):
            where, count = self.lists[(at := start + CoverRow.FIRST + CoverRow.OF_SORT * sort + CoverRow.WATCHERS) : at + 2]
            pairs = self.lists[start + where + 2 : start + where + 2 + 2 * count : 2]
            out.append(None if where == ONLY_PLANNED else pairs.tolist() if count else [])
        return out

    def parts_of_cover(self, cover: Node) -> list[Node]:
        """The nodes that a COVER is made of: the separator, the next one, what follows in the end, and the texts of sorts."""
        start = self.operands(cover)[1]
        others = self.lists[start + CoverRow.SEPARATOR : start + CoverRow.SETTLED + 1]
        return [*(Node(each) for each in others if each != FAIL), *(text for text, _ in self.sorts_of(cover))]

    def next_cover(self, cover: Node) -> Node:
        """The COVER whose row says what comes behind an item of a COVER."""
        following = Node(self.lists[self.operands(cover)[1] + CoverRow.NEXT])
        return cover if following == FAIL else following

    def step_of(self, node: Node) -> list[int]:
        """The row of the list pool that describes the step of a MULTIPLE or a FRACTION, see divisors.py."""
        start = self.operands(node)[0]
        return self.lists[start : start + MULTIPLE_ROW_WORDS].tolist()

    def unlisted_words(self, node: Node) -> list[bytes]:
        """The rests of the words that an UNLISTED node excludes, in order."""
        start, count, read = self.operands(Node(self.operands(node)[0]))
        row = self.lists[start : start + 2 * count]
        return [bytes(self.pool[first + read : first + length]) for first, length in zip(row[::2], row[1::2], strict=True)]

    def class_edges(self, node: Node) -> list[tuple[int, int, int]]:
        start, count, _ = self.operands(node)
        flat = self.edges[3 * start : 3 * (start + count)]
        return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))

    # -- adding -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Say what is held by now, and look at the clock."""
        held = NODE_BYTES * len(self) + len(self.pool) + 4 * (len(self.lists) + len(self.edges))
        hold(held - self._held)
        self._held = held
        look()

    def _new(self, row: tuple[int, int, int, int]) -> Node:
        node = len(self.rows) // 4
        self.rows.fromlist(list(row))  # `extend` asks a tuple for each number
        if not node & _BETWEEN_LOOKS:
            self._look()
        return node  # type: ignore[return-value]  # calling Node takes as long as all of this

    def _union(self, options: tuple[Node, ...], supply: Supply = Supply.CERTAIN) -> Node:
        start = len(self.lists)
        self.lists.extend(options)
        return self._new((_ALT, start, len(options), supply))

    def intern(self, row: tuple[int, int, int, int]) -> Node:
        """The node of a row: kind, a, b, c."""
        node = self._interned.get(row)
        if node is None:  # as `_new`: most nodes are made here
            rows = self.rows
            number = len(rows) // 4
            node = self._interned[row] = number  # type: ignore[assignment]
            rows.fromlist(list(row))
            if not number & _BETWEEN_LOOKS:
                self._look()
        return node  # type: ignore[return-value]

    def _class(self, edges: Edges, event: Event) -> Node:
        if not edges:
            return FAIL
        key = edges, event
        node = self._classes.get(key)
        if node is None:
            self.events.add(event)
            node = self._classes[key] = self._new((_CLASS, len(self.edges) // 3, len(edges), event))
            for edge in edges:
                self.edges.extend(edge)
        return node

    def readers(self, edges: bytes, counts: Iterable[int]) -> list[Node]:
        """New CLASS nodes of so many edges each; `edges` is the array of all of them: low, high, follow, one after the other."""
        start, nodes = len(self.edges) // 3, []
        self.edges.frombytes(edges)
        self.events.add(Event.NONE)
        for count in counts:
            nodes.append(self._new((_CLASS, start, count, Event.NONE)) if count else FAIL)
            start += count
        return nodes

    def _wide_edges(self, ranges: Ranges) -> Edges:
        """The edges of the first bytes of characters beyond ASCII. Most sets have all of these characters or none."""
        known = self._wide.get(ranges)
        if known is None:
            known = self._wide[ranges] = self._edges_of_tree(byte_tree(ranges)) if ranges else ()
        return known

    def _edges_of_tree(self, tree: ByteTree) -> Edges:
        return tuple(
            (low, high, EMPTY if follow is None else self._class(self._edges_of_tree(follow), Event.NONE))
            for low, high, follow in tree
        )
