"""Checks that arrays are a grammar: everything that compiled code relies on without looking.

`Grammar` makes nothing else, but a file may hold anything. Every operand is checked to be of the kind and in the range
that its node needs, and nodes to be made of nodes before them, so that all loops end. A grammar that passes is as
harmless as one that somebody has written: its language may be any, and the named limits hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import SavedConstraintError
from ..base.kinds import ANY_TIMES, ASKED, MOST, NOT_PLANNED, ONLY_PLANNED, CoverRow
from ..base.utf8 import MAX_CODE_POINT
from ..grammar.expression import EMPTY, FAIL, UNBOUNDED, Event, Grammar, Kind, Node, Supply
from ..numba_support.divisors import COUNTS, MAX_MODULUS, MULTIPLE_ROW_WORDS, MultipleRow

_SHAPES = {"nodes": (4, None), "literals": (None,), "lists": (None,), "edges": (None, 3), "rules": (None,), "units": (None, 3)}


def malformed(reason: str) -> SavedConstraintError:
    return SavedConstraintError(f"the file does not hold a constraint: {reason}", keyword="content", instead="save it anew")


def check_tables(arrays: Mapping[str, NDArray[Any]], root: Any) -> None:
    """Check nodes, literals, lists, edges and rules. Raises SavedConstraintError."""
    for name, shape in _SHAPES.items():
        dtype = np.uint8 if name == "literals" else np.int32
        sizes = arrays[name].shape
        fits = len(sizes) == len(shape) and all(wanted in (None, size) for wanted, size in zip(shape, sizes, strict=True))
        _need(fits and arrays[name].dtype == dtype, f"{name} of type {arrays[name].dtype} and shape {sizes}")
    kinds = arrays["nodes"][0]
    _need(kinds.size >= 2 and kinds[0] == Kind.FAIL and kinds[1] == Kind.EMPTY, "the first nodes are FAIL and EMPTY")
    are_others = np.isin(kinds[2:], (Kind.DECISION, Kind.FAMILY, Kind.PLACED, Kind.WALK, Kind.COVER, Kind.FRACTION))
    are_known = ((kinds[2:] >= Kind.CLASS) & (kinds[2:] <= Kind.UNLISTED)) | are_others
    _need(bool(are_known.all()), "a node of a kind that no grammar has")
    _need(isinstance(root, int) and 0 <= root < kinds.size, f"root {root!r}")
    _need(bool(_inside(arrays["rules"], 0, kinds.size).all()), "a rule has a body")
    nodes = _Nodes(arrays)
    leaves = (nodes.classes, nodes.literals, nodes.calls, nodes.multiples, nodes.words)
    counted = (nodes.repetitions, nodes.bags, nodes.families, nodes.decisions, nodes.walks, nodes.covers)
    for check in (*leaves, nodes.without_words, nodes.pairs, nodes.unions, *counted):
        _need(check(), f"operands of {check.__name__}")


class _Nodes:
    """The checks, one for each kind of node. Each kind has an array of its nodes: their numbers, then their operands."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._kinds, self._operands = arrays["nodes"][0], arrays["nodes"][1:].astype(np.int64)
        self._literals, self._lists, self._edges = arrays["literals"], arrays["lists"].astype(np.int64), arrays["edges"]
        self._num_rules = arrays["rules"].size

    def _of(self, *kinds: Kind) -> tuple[NDArray[np.int64], ...]:
        numbers = np.flatnonzero(np.isin(self._kinds, kinds))
        return numbers, *self._operands[:, numbers]

    def _are(self, numbers: NDArray[np.int64], *kinds: Kind) -> NDArray[np.bool_]:
        return np.isin(self._kinds[numbers], kinds)

    def classes(self) -> bool:
        """Check that edges are bytes, and lead to nodes before their class."""
        node, first, count, event = self._of(Kind.CLASS)
        low, high, follow = self._edges.T
        edges, owner = _members(first, count, len(self._edges), node)
        return bool(
            edges is not None
            and _inside(event, 0, len(Event)).all()
            and ((low >= 0) & (low <= high) & (high <= 255)).all()
            and _inside(follow, 0, self._kinds.size).all()
            and (follow[edges] < owner).all()
        )

    def literals(self) -> bool:
        """Check that literals lie in the pool in their order, and fill it."""
        _, start, length, _ = self._of(Kind.LITERAL)
        ends = np.cumsum(length)
        fills = int(length.sum()) == self._literals.size
        return bool((length > 0).all() and (start == ends - length).all() and fills)

    def pairs(self) -> bool:
        """Check sequences, intersections and complements."""
        node, first, second, _ = self._of(Kind.SEQ, Kind.BOTH)
        negated, inner, _, _ = self._of(Kind.NEGATE)
        return bool(_inside(first, 0, node).all() and _inside(second, 0, node).all() and _inside(inner, 0, negated).all())

    def unions(self) -> bool:
        node, first, count, supply = self._of(Kind.ALT)
        members, owner = _members(first, count, self._lists.size, node)
        return bool(members is not None and _inside(self._lists[members], 0, owner).all() and _inside(supply, 0, len(Supply)).all())

    def repetitions(self) -> bool:
        node, body, low, high = self._of(Kind.REPEAT)
        return bool(_inside(body, 0, node).all() and _bounds(low, high).all() and (high != 0).all())

    def calls(self) -> bool:
        node, rule, free, _ = self._of(Kind.CALL)
        are_right = _inside(rule, 0, self._num_rules).all() and _inside(free, 0, node).all()
        return bool(are_right and (self._are(free, Kind.CLASS) | (free == FAIL)).all())

    def bags(self) -> bool:
        """Check that a bag begins a list of repetitions."""
        node, first, low, high = self._of(Kind.BAG)
        tally, part, following, _ = self._of(Kind.TALLY)
        if not (_inside(first, 0, node).all() and _inside(part, 0, tally).all() and _inside(following, 0, tally).all()):
            return False
        are_lists = self._are(first, Kind.TALLY).all() and (self._are(following, Kind.TALLY) | (following == FAIL)).all()
        are_counted = all(self._are_parts(tallies, Kind.REPEAT) for tallies in first.tolist())
        return bool(are_lists and are_counted and _bounds(low, high).all())

    def _are_parts(self, tally: int, *kinds: Kind) -> bool:
        """Whether all parts of a list of tallies are of some kinds."""
        return all(self._kinds[part] in kinds for part in self._listed(tally))

    def _listed(self, tally: int) -> Iterator[int]:
        while tally != FAIL:
            part, tally, _ = self._operands[:, tally].tolist()
            yield part

    def walks(self) -> bool:
        """Check that a walk begins a list of repetitions, decisions and families, and that its members are counted."""
        node, first, members, must_follow = self._of(Kind.WALK)
        are_before = _inside(first, 0, node).all() and _inside(members, 0, node).all()
        are_right = are_before and self._are(first, Kind.TALLY).all() and self._are(members, Kind.REPEAT).all()
        are_parts = are_right and all(self._are_parts(each, Kind.REPEAT, Kind.DECISION, Kind.FAMILY) for each in first.tolist())
        return bool(are_parts and _inside(must_follow, 0, 2).all())

    def families(self) -> bool:
        """Check that members of families are sequences, in some place or in none, and that families end in EMPTY or FAIL; that all
        members of one are asked about, each at a level, or none is."""
        node, member, with_it, without = self._of(Kind.FAMILY)
        placed, text, position, _ = self._of(Kind.PLACED)
        are_before = all(_inside(each, 0, node).all() for each in (member, with_it, without)) and _inside(text, 0, placed).all()
        are_members = are_before and self._are(member, Kind.SEQ, Kind.PLACED).all() and self._are(text, Kind.SEQ).all()
        are_right = are_members and _inside(position, 1, ASKED + self._kinds.size).all()
        asks = np.zeros(self._kinds.size, bool)
        asks[node] = self._are(member, Kind.PLACED) & (self._operands[1, member] >= ASKED) if are_right else False
        return bool(are_right) and all(
            self._are(each, Kind.FAIL, Kind.EMPTY, Kind.FAMILY).all() and ((each <= EMPTY) | (asks[each] == asks[node])).all()
            for each in (with_it, without)
        )

    def decisions(self) -> bool:
        """Check the rows of decisions: members are sequences, what is left behind them are lists, tables have room."""
        most: dict[int, int] = {FAIL: 0, EMPTY: 0}
        for node, row, count, lower in np.transpose(self._of(Kind.DECISION, Kind.FAMILY)).tolist():
            if self._kinds[node] == Kind.FAMILY:
                most[node] = max(1 + most[count], most[lower])
                continue
            end = row + 2 + 2 * count
            if not (row >= 0 and count > 0 and end <= self._lists.size and lower in most):
                return False
            counted, position, *cases = self._lists[row:end].tolist()
            members, left = cases[::2], cases[1::2]
            if position < 1 or not all(EMPTY < each < node and self._kinds[each] == Kind.SEQ for each in members):
                return False
            if not all(0 <= each < node and (each == FAIL or self._kinds[each] == Kind.TALLY) for each in left):
                return False
            if not all(self._are_parts(tallies, Kind.REPEAT, Kind.DECISION, Kind.FAMILY) for tallies in left):
                return False
            behind = [sum(most.get(part) or self._high(part) for part in self._listed(tallies)) for tallies in left]
            most[node] = max(most[lower], 1 + max(behind))
            if counted != -1 and (counted != most[node] or end + 2 * (counted + 1) > self._lists.size):
                return False
        return True

    def _high(self, part: int) -> int:
        high = int(self._operands[2, part])
        return MOST if high == UNBOUNDED else high

    def covers(self) -> bool:
        """Check the rows of covers: texts come before, counters are those that there are, plans speak of counters of their own."""
        for node, first, row, must_follow in np.transpose(self._of(Kind.COVER)).tolist():
            head = row + CoverRow.FIRST
            if row < 0 or head > self._lists.size or must_follow not in (0, 1) or not 0 <= first < node:
                return False
            num_sorts, num_counters, cores, separator, following, settled = self._lists[row:head].tolist()
            end = head + CoverRow.OF_SORT * num_sorts
            are_parts = EMPTY <= separator < node and EMPTY <= settled < node and self._is_next_cover(node, following, num_counters)
            if num_sorts <= 0 or num_counters <= 0 or end > self._lists.size or not are_parts:
                return False
            if cores != 0 and not self._are_cores(row, cores, num_sorts, num_counters):
                return False
            sorts = self._lists[head:end].reshape(-1, CoverRow.OF_SORT).tolist()
            for number, (text, times, where, count, watchers, num_watchers) in enumerate(sorts):
                if watchers != ONLY_PLANNED and not self._are_watchers(sorts, number, row, watchers, num_watchers):
                    return False
                counted = self._lists[row + where : row + where + count].tolist() if where >= 0 and count >= 0 else []
                are_counters = len(counted) == count and all(0 <= i < num_counters for i in counted)
                if not (are_counters and EMPTY < text < node and times in (ANY_TIMES, NOT_PLANNED, *counted)):
                    return False
            if not self._are_counters(first, num_counters):
                return False
        return True

    def _is_next_cover(self, node: int, following: int, num_counters: int) -> bool:
        """Whether a COVER goes on with one that comes before it and has the same counters, or with none."""
        if following == FAIL:
            return True
        if not EMPTY < following < node or self._kinds[following] != Kind.COVER:
            return False
        return bool(self._lists[int(self._operands[1, following]) + CoverRow.COUNTERS] == num_counters)

    def _are_cores(self, row: int, place: int, num_sorts: int, num_counters: int) -> bool:
        """Whether the tables of cores lie in the list pool, name counters and sorts, and lead on."""
        head = row + place
        if place < 0 or head + 2 > self._lists.size:
            return False
        count, core = int(self._lists[head]), head + 2
        for _ in range(count):
            if core + 2 > self._lists.size:
                return False
            of_core, size = self._lists[core : core + 2].tolist()
            table = core + 2 + 2 * of_core
            if of_core <= 0 or size <= 0 or table + size > self._lists.size:
                return False
            pairs = self._lists[core + 2 : table].reshape(-1, 2)
            sorts = self._lists[table : table + size]
            if pairs.min() < 0 or pairs[:, 0].max() >= num_counters or sorts.min() < 0 or sorts.max() >= num_sorts:
                return False
            core = table + size
        return count >= 0

    def _are_watchers(self, sorts: list[list[int]], number: int, row: int, where: int, count: int) -> bool:
        """Whether a list of watchers begins with its own sort, and goes on with some that are only planned and counted."""
        if count == 0 or where <= 0:
            return count == where == 0
        first = row + where
        if not (0 < count < len(sorts) and first <= self._lists.size - 2 * count - 2):
            return False
        own, *others = self._lists[first : first + 2 * count + 2 : 2].tolist()
        are_planned = all(0 <= each < len(sorts) and sorts[each][4] == ONLY_PLANNED and sorts[each][3] > 0 for each in others)
        return own == number and are_planned

    def _are_counters(self, tally: int, num_counters: int) -> bool:
        """Whether a list of tallies has counters, each of them once, in order, with bounds."""
        last = -1
        while tally != FAIL:
            if self._kinds[tally] != Kind.TALLY:
                return False
            part, tally, counter = self._operands[:, tally].tolist()
            if self._kinds[part] != Kind.REPEAT or not last < counter < num_counters:
                return False
            last = counter
        return True

    def multiples(self) -> bool:
        """Check that a step is a modulus, a number of places, and the literals of the point and the ten digits."""
        node, row, remainder, to_come = self._of(Kind.MULTIPLE, Kind.FRACTION)
        if not _inside(row, 0, self._lists.size - MULTIPLE_ROW_WORDS + 1).all():
            return False
        modulus, places = self._lists[row + MultipleRow.MODULUS], self._lists[row + MultipleRow.PLACES]
        is_whole = self._are(node, Kind.MULTIPLE)
        texts = self._lists[row[:, None] + np.arange(MultipleRow.POINT, MultipleRow.DIGIT + 10)]
        return bool(
            _inside(modulus, 1, MAX_MODULUS + 1).all()
            and _inside(places, 0, COUNTS).all()
            and _inside(remainder, 0, modulus).all()
            and np.where(is_whole, _inside(to_come, 0, COUNTS * COUNTS), _inside(to_come, 1, places + 1)).all()
            and _inside(texts, EMPTY + 1, node[:, None]).all()
            and self._are(texts, Kind.LITERAL).all()
        )

    def words(self) -> bool:
        """Check that words are places and lengths of texts in the pool, of which some bytes have been read."""
        _, first, count, read = self._of(Kind.WORDS)
        rows, owner = _members(first, 2 * count, self._lists.size, np.arange(first.size))
        if rows is None or not ((read >= 0).all() and (count > 0).all()):
            return False
        start, length = self._lists[rows].reshape(-1, 2).T
        left = self._literals.size - start
        return bool(_inside(start, 0, self._literals.size).all() and _inside(length, read[owner[::2]], left + 1).all())

    def without_words(self) -> bool:
        node, words, body, _ = self._of(Kind.UNLISTED)
        are_before = _inside(words, 0, node).all() and _inside(body, 0, node).all()
        return bool(are_before and self._are(words, Kind.WORDS).all())


def check_units(grammar: Grammar) -> None:
    """Check that the characters that nodes stand for are those that the nodes have."""
    classes = Grammar()
    classes.rows, classes.edges = grammar.rows, grammar.edges
    for number in map(Node, np.flatnonzero(np.array(grammar.rows[::4]) == Kind.CLASS).tolist()):
        edges = tuple((low, high, Node(follow)) for low, high, follow in classes.class_edges(number))
        key = edges, Event(grammar.operands(number)[2])
        classes._classes.setdefault(key, number)
    count = len(classes)
    for node, ranges in grammar.units.items():
        least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
        _need(least >= 0 and most <= MAX_CODE_POINT, "characters are code points")
        is_read = classes.chars(ranges) == node and len(classes) == count
        _need(is_read and classes.units[node] == ranges, "a node stands for other characters than it reads")


def check_labels(grammar: Grammar) -> None:
    _need(all(isinstance(node, int) and 0 <= node < len(grammar) for node in grammar.labels), "a label is of a node")


def _members(first: NDArray[Any], count: NDArray[Any], size: int, owner: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """(indices of all members of some lists, the list that each belongs to). (None, ...) when a list lies outside its
    pool, or when all lists together have more members than the pool, because lists do not overlap."""
    if not (_inside(first, 0, size + 1).all() and _inside(count, 1, size + 1).all() and int(count.sum()) <= size):
        return None, owner
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) if count.size else first
    indices = starts + np.arange(starts.size)
    return (indices, np.repeat(owner, count)) if (indices < size).all() else (None, owner)


def _bounds(low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.bool_]:
    return (low >= 0) & ((high == UNBOUNDED) | (high >= np.maximum(low, 0)))


def _inside(values: NDArray[Any], low: Any, end: Any) -> NDArray[np.bool_]:
    return (values >= low) & (values < end)


def _need(holds: Any, what: str) -> None:
    if not holds:
        raise malformed(what)
