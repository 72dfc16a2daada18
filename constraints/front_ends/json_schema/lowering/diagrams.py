"""Decision diagrams over members: which of them are there, by the case of each, and whether what is asked of them holds.

A member is a *level* with a child for its absence and one for each case. Diagrams are reduced and hash-consed, so equal functions
are one number: FALSE, TRUE, or a node. Source: R. E. Bryant, "Graph-based algorithms for Boolean function manipulation" (1986);
with many-valued levels as in A. Srinivasan et al., "Algorithms for discrete function manipulation" (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from ....base.errors import ConstraintLimit
from ....grammar.stopwatch import hold
from ..algebra.formulas import Formula, Has, Joined, Negated

FALSE, TRUE = 0, 1
MAX_NODES = 20_000  # of the diagrams of one object
MAX_WORK = 2_000_000  # steps to find them, half a second or less
WHOLE_NODES, WHOLE_WORK = 10_000, 700_000  # for one diagram, besides, before cases of a member are told apart
_PACE = 4096  # steps between two looks at the clock
_OF_ENTRY = 4  # steps that a node, or what two make together, is counted as
_STEP_BYTES = 64  # that are kept for a step, beside objects: an entry of a set


class TooLarge(ConstraintLimit):
    """Conditions whose diagram has too many nodes in the order in which members come."""

    def __init__(self) -> None:
        super().__init__(
            "conditions on which members are present", limit="conditions", value=MAX_NODES,
            instead="fewer conditions on the same members, or members declared in an order in which those that decide come first",
        )  # fmt: skip


class Diagrams:
    """Builds diagrams. `fact(has)` gives the level of a member, and for each of its children whether the fact is true; `check`
    raises an error when time is over."""

    def __init__(self, fact: Callable[[Has], tuple[int, Sequence[bool]]], check: Callable[[], None]) -> None:
        self._fact, self._check = fact, check
        self._rows: list[tuple[int, tuple[int, ...]]] = [(1 << 30, ()), (1 << 30, ())]
        self._interned: dict[tuple[int, tuple[int, ...]], int] = {}
        self._joined: dict[tuple[bool, int, int], int] = {}
        self._negated: dict[int, int] = {FALSE: TRUE, TRUE: FALSE}
        self._of_formula: dict[Formula, int] = {}
        self._work = self._looked = self._held = 0
        self._most_nodes, self._most_work = MAX_NODES + WHOLE_NODES, MAX_WORK + WHOLE_WORK

    def level(self, diagram: int) -> int:
        """The first level that a diagram depends on."""
        return self._rows[diagram][0]

    def children(self, diagram: int, level: int, count: int) -> Sequence[int]:
        """What a diagram becomes in each of the `count` cases of a level that is not behind its first."""
        own, children = self._rows[diagram]
        return children if own == level else (diagram,) * count

    def nodes_of(self, *diagrams: int) -> list[int]:
        """The nodes of some diagrams, each once."""
        found, waiting = set(diagrams), list(dict.fromkeys(diagrams))
        for below in waiting:
            fresh = set(self._rows[below][1]) - found
            found |= fresh
            waiting += fresh
        return [below for below in waiting if below > TRUE]

    def node(self, level: int, children: tuple[int, ...]) -> int:
        if len(set(children)) == 1:
            return children[0]
        known = self._interned.get((level, children))
        if known is None:
            self.spend(_OF_ENTRY)
            if len(self._rows) > self._most_nodes:
                raise TooLarge
            known = self._interned[level, children] = len(self._rows)
            self._rows.append((level, children))
        return known

    def spend(self, work: int) -> None:
        """Count steps, and look at the clock every so many."""
        self._work += work
        if self._work > self._most_work:
            raise TooLarge
        if self._work - self._looked >= _PACE:
            num_bytes = (self._work - self._looked) * _STEP_BYTES
            hold(num_bytes)
            self._held += num_bytes
            self._looked = self._work
            self._check()

    def give_back(self) -> None:
        """Hold none of it any more: nobody needs the diagrams."""
        hold(-self._held)
        self._held = 0

    def of(self, formula: Formula) -> int:
        """The diagram of a formula."""
        if isinstance(formula, bool):
            return TRUE if formula else FALSE
        known = self._of_formula.get(formula)
        if known is None:
            known = self._of_formula[formula] = self._new(formula)
        return known

    def _new(self, formula: Formula) -> int:
        if isinstance(formula, Has):
            level, truths = self._fact(formula)
            return self.node(level, tuple(map(int, truths)))
        if isinstance(formula, Negated):
            return self.negation(self.of(formula.part))
        assert isinstance(formula, Joined)
        if formula.how == "one":
            return self._exactly_one([_conjuncts(part) for part in formula.parts])[1]
        parts = list(map(self.of, formula.parts))
        return self.all(parts) if formula.how == "all" else self.any(parts)

    def all(self, diagrams: Iterable[int]) -> int:
        out = TRUE
        for diagram in self._last_first(diagrams):
            out = self._join(True, out, diagram)
        return out

    def any(self, diagrams: Iterable[int]) -> int:
        out = FALSE
        for diagram in self._last_first(diagrams):
            out = self._join(False, out, diagram)
        return out

    def _last_first(self, diagrams: Iterable[int]) -> list[int]:
        """Those that begin last are joined first: what is joined to them stands above them."""
        return sorted(diagrams, key=self.level, reverse=True)

    def _exactly_one(self, parts: list[frozenset[Formula]]) -> tuple[int, int]:
        """The diagrams of none, and of exactly one of some conjunctions; what all of a half have in common is joined once."""
        if len(parts) == 1:
            whole = self.all(map(self.of, parts[0]))
            return self.negation(whole), whole
        halves = []
        for half in (parts[: len(parts) // 2], parts[len(parts) // 2 :]):
            common = frozenset.intersection(*half)
            none, one = self._exactly_one([part - common for part in half])
            told = self.all(map(self.of, common))
            halves.append((self._join(False, self.negation(told), none), self._join(True, told, one)))
        (no_first, first), (no_second, second) = halves
        either = self._join(False, self._join(True, first, no_second), self._join(True, no_first, second))
        return self._join(True, no_first, no_second), either

    def negation(self, diagram: int) -> int:
        known = self._negated.get(diagram)
        if known is None:
            level, children = self._rows[diagram]
            known = self._negated[diagram] = self.node(level, tuple(map(self.negation, children)))
        return known

    def _join(self, is_all: bool, a: int, b: int) -> int:
        """Both diagrams hold, or either does."""
        decided, neutral = (FALSE, TRUE) if is_all else (TRUE, FALSE)
        if decided in (a, b):
            return decided
        if b in (a, neutral):
            return a
        if a == neutral:
            return b
        key = (is_all, a, b) if a < b else (is_all, b, a)
        known = self._joined.get(key)
        if known is None:
            self.spend(_OF_ENTRY)
            (level, children), (other_level, others) = self._rows[a], self._rows[b]
            if level == other_level:
                joined = [self._join(is_all, x, y) for x, y in zip(children, others, strict=True)]
            elif level < other_level:
                joined = [self._join(is_all, x, b) for x in children]
            else:
                level = other_level
                joined = [self._join(is_all, a, y) for y in others]
            known = self._joined[key] = self.node(level, tuple(joined))
        return known

    @contextmanager
    def limited(self, nodes: int, work: int) -> Iterator[None]:
        """Meanwhile, no more than so many new nodes are made, in no more than so many steps."""
        before = self._most_nodes, self._most_work
        self._most_nodes, self._most_work = min(before[0], len(self._rows) + nodes), min(before[1], self._work + work)
        try:
            yield
        finally:
            self._most_nodes, self._most_work = before


def _conjuncts(formula: Formula) -> frozenset[Formula]:
    """What a formula says, one by one."""
    return frozenset(formula.parts if isinstance(formula, Joined) and formula.how == "all" else (formula,))
