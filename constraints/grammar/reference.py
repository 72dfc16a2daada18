"""The slow obvious twin of the machine: which byte strings does an expression contain?

Set-of-continuations derivatives (Antimirov, "Partial derivatives of regular expressions and finite automata constructions",
1996), in plain Python on tuples, with nothing shared, lazy or compiled. Tests compare everything with this; front ends can be
developed against it alone. A continuation is a tuple of parts still to be matched, first part first.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..base.kinds import ASKED, LAST
from ..numba_support.divisors import COUNTS
from .expression import EMPTY, FAIL, UNBOUNDED, Event, Grammar, Kind, Node

P = TypeVar("P")
Part = tuple[object, ...]
Continuation = tuple[Part, ...]


@dataclass(frozen=True)
class Frame:
    """An open object whose keys are remembered, or an open array whose items must differ."""

    seen: frozenset[str]  # its keys; its items, as text in one spelling
    item: bytes | None  # the bytes of the item being read, None of an object

    def with_value(self, value: str) -> Frame:
        return Frame(self.seen | {value}, None if self.item is None else b"")

    def with_byte(self, byte: int) -> Frame:
        return self if self.item is None else Frame(self.seen, self.item + bytes([byte]))


Memory = tuple[tuple[Frame, ...], bytes | None]  # the frames, and the bytes of the key being read
Position = frozenset[tuple[Continuation, Memory]]  # what may still come

_EMPTY_MEMORY: Memory = ((), None)


class Unfolding(Generic[P]):
    """The ways in which the parts of a continuation unfold. P: positions in the operands of intersections and
    complements."""

    grammar: Grammar

    def before(self, node: Node) -> P:
        """The position before a string of `node`."""
        raise NotImplementedError

    def is_accepting(self, position: P) -> bool:
        """Whether a string may end at a position."""
        raise NotImplementedError

    def _is_leaf(self, part: Part) -> bool:
        if part[0] == "node":
            return self.grammar.kind(part[1]) in (Kind.CLASS, Kind.LITERAL)  # type: ignore[arg-type]
        if part[0] == "unlisted":
            return bool(part[2]) and self._is_leaf(part[2][0])  # type: ignore[index]
        return part[0] in ("product", "watch")

    def _free(self, part: Part) -> Iterable[Continuation]:
        """What `part` may be replaced with without crossing a byte."""
        if part[0] == "product":
            _, kind, operands = part
            accepting = [self.is_accepting(operand) for operand in operands]  # type: ignore[attr-defined]
            if (kind == Kind.NEGATE and not accepting[0]) or (kind == Kind.BOTH and all(accepting)):
                yield ()
            return
        if part[0] == "watch":
            _, item, watched, wanted, cover, counted = part
            if self.is_accepting(item):  # type: ignore[arg-type]
                met = [counter for counter, position in watched if self.is_accepting(position)]  # type: ignore[attr-defined]
                following = self.grammar.next_cover(cover)  # type: ignore[arg-type]
                yield (("cover", _less_counted(wanted, [*counted, *met]), following, False),)  # type: ignore[arg-type, misc]
            return
        if part[0] == "unlisted":
            _, words, inside = part
            if not inside:
                yield from [()] if b"" not in words else []  # type: ignore[operator]
                return
            for free in self._free(inside[0]):  # type: ignore[index]
                yield (("unlisted", words, free + inside[1:]),)  # type: ignore[index]
            return
        if part[0] == "repeat":
            _, body, low, high = part
            yield from self._unroll(body, low, high)  # type: ignore[arg-type]
            return
        if part[0] == "bag":
            _, parts, low, high = part
            yield from self._take(parts, low, high)  # type: ignore[arg-type]
            return
        if part[0] == "walk":
            yield from self._walk(*part[1:])  # type: ignore[arg-type]
            return
        if part[0] == "cover":
            yield from self._cover(*part[1:])  # type: ignore[arg-type]
            return
        if part[0] == "multiple":
            yield from self._read_digit(*part[1:])  # type: ignore[arg-type]
            return
        node: Node = part[1]  # type: ignore[assignment]
        kind, (a, b, c) = self.grammar.kind(node), self.grammar.operands(node)
        if kind is Kind.EMPTY:
            yield ()
        elif kind is Kind.SEQ:
            yield (("node", a), ("node", b))
        elif kind is Kind.ALT:
            yield from ((("node", option),) for option in self.grammar.alternatives(node))
        elif kind is Kind.REPEAT:
            yield from self._unroll(a, b, c)
        elif kind is Kind.BAG:
            yield from self._take(tuple(self.grammar.bag_parts(node)), b, c)
        elif kind is Kind.WALK:
            separator, low, high = self.grammar.operands(Node(b))
            parts = (self._open_part(each) for each in self.grammar.listed_parts(Node(a)))
            yield (("walk", tuple(parts), separator, low, high, bool(c)),)
        elif kind is Kind.COVER:
            wanted = tuple((i, low, high) for i, (low, high) in self.grammar.wanted_of(node).items())
            yield (("cover", wanted, node, bool(c)),)
        elif kind in (Kind.MULTIPLE, Kind.FRACTION):
            (modulus, places), is_whole = self.grammar.step_of(node)[:2], kind is Kind.MULTIPLE
            whole = divmod(c, COUNTS) if is_whole else None
            yield (("multiple", modulus, b, places if is_whole else c, whole, False, *self.grammar.step_of(node)[2:]),)
        elif kind is Kind.UNLISTED:
            yield (("unlisted", tuple(self.grammar.unlisted_words(node)), (("node", b),)),)
        elif kind is Kind.CALL:
            yield (("node", self.grammar.rule_bodies[a]),)
        elif kind in (Kind.BOTH, Kind.NEGATE):
            operands = (a, b) if kind is Kind.BOTH else (a,)
            yield (("product", kind, tuple(self.before(Node(x)) for x in operands)),)

    def _unroll(self, body: int, low: int, high: int) -> Iterable[Continuation]:
        if low == 0:
            yield ()
        if high != 0:
            yield (("node", body), ("repeat", body, *_one_less(low, high)))

    def _take(self, parts: tuple[tuple[int, int, int], ...], low: int, high: int) -> Iterable[Continuation]:
        if low == 0 and all(least == 0 for _, least, _ in parts):
            yield ()
        for i, (body, least, most) in enumerate(parts):
            if high != 0 and most != 0:
                rest = (*parts[:i], (body, *_one_less(least, most)), *parts[i + 1 :])
                yield (("node", body), ("bag", rest, *_one_less(low, high)))

    def _open_part(self, node: Node) -> Part:
        """A part of a walk: ("decision", node), ("sets", sets of members), ("asked", node, members that came), or
        ("repeat", body, low, high)."""
        if self.grammar.kind(node) is Kind.DECISION:
            return ("decision", node)
        if self.grammar.kind(node) is Kind.FAMILY:
            member = Node(self.grammar.operands(node)[0])
            is_asked = self._place(member)[0] >= ASKED
            return ("asked", node, frozenset[Node]()) if is_asked else ("sets", self._sets(node))
        return ("repeat", *self.grammar.operands(node))

    def _place(self, member: Node) -> tuple[int, Node]:
        """The position of a member of a family, and the member."""
        node, position, _ = self.grammar.operands(member)
        return (position, Node(node)) if self.grammar.kind(member) is Kind.PLACED else (LAST, member)

    def _sets(self, family: Node) -> frozenset[frozenset[Node]]:
        """All sets of members of a family."""
        if family in (FAIL, EMPTY):
            return frozenset([frozenset[Node]()] if family == EMPTY else [])
        member, with_it, without = map(Node, self.grammar.operands(family))
        return frozenset(each | {member} for each in self._sets(with_it)) | self._sets(without)

    def _walk(
        self, parts: tuple[Part, ...], separator: Node, low: int, high: int, must_follow: bool
    ) -> Iterable[Continuation]:
        """Members of the parts, each of which is at its position, and all that are before it cannot come any more."""
        if not must_follow:
            if low == 0 and None not in (ends := [self._at(part, None) for part in parts]) and not any(ends):
                yield ()
            yield (("node", separator), ("walk", parts, separator, low, high, True))
            return
        for i, part in enumerate(parts if high != 0 else ()):
            for position, member, left in self._members(part):
                others = [self._at(self._told(each, member), position) for each in (*parts[:i], *parts[i + 1 :])]
                if None not in others:
                    rest = (*left, *(each for each in others if each))
                    after = ("walk", rest, separator, *_one_less(low, high), False)
                    yield (("node", self.grammar.operands(member)[1]), after)

    def _cover(self, wanted: tuple[tuple[int, int, int], ...], cover: Node, must_follow: bool) -> Iterable[Continuation]:
        """Items of a COVER, of whose counters each wants some and allows some."""
        if not must_follow:
            if all(low == 0 for _, low, _ in wanted):
                yield ()
            yield (("node", self.grammar.parts_of_cover(cover)[0]), ("cover", wanted, cover, True))
            return
        sorts, following = self.grammar.sorts_of(cover), self.grammar.next_cover(cover)
        for (text, counted), watchers in zip(sorts, self.grammar.watchers_of(cover), strict=True):
            if watchers is None or any(high == 0 for i, _, high in wanted if i in counted):
                continue
            if not watchers:
                yield (("node", text), ("cover", _less_counted(wanted, counted), following, False))
                continue
            watched = tuple((sorts[i][1][0], self.before(sorts[i][0])) for i in watchers)
            yield (("watch", self.before(text), watched, wanted, cover, tuple(counted)),)

    def _members(self, part: Part) -> Iterable[tuple[int, Node, list[Part]]]:
        """The position of each member that may come first, the member, and what is left of the part behind it."""
        if part[0] == "repeat":
            _, body, low, high = part
            if high != 0:
                yield LAST, body, [("repeat", body, *_one_less(low, high))]  # type: ignore[arg-type, misc]
            return
        if part[0] == "asked":
            return
        if part[0] == "sets":
            sets: frozenset[frozenset[Node]] = part[1]  # type: ignore[assignment]
            for some in frozenset[Node]().union(*sets):
                left = frozenset(each - {some} for each in sets if some in each)
                place, member = self._place(some)
                if behind := self._at(("sets", left), place):
                    yield place, member, [behind]
                elif behind == ():
                    yield place, member, []
            return
        node: Node = part[1]  # type: ignore[assignment]
        while self.grammar.kind(node) is Kind.DECISION:
            position, cases = self.grammar.cases_of(node)
            yield from ((position, member, list(map(self._open_part, left))) for member, left in cases)
            node = Node(self.grammar.operands(node)[2])
        if self.grammar.kind(node) is Kind.FAMILY:
            yield from self._members(self._open_part(node))

    def _told(self, part: Part, member: Node) -> Part:
        """A part behind a member of another one."""
        return ("asked", part[1], part[2] | {member}) if part[0] == "asked" else part  # type: ignore[operator]

    def _is_met(self, asked: Node, came: frozenset[Node]) -> bool:
        """Whether members that came are what is asked for."""
        while asked > EMPTY:
            placed, with_it, without = map(Node, self.grammar.operands(asked))
            asked = with_it if self._place(placed)[1] in came else without
        return asked == EMPTY

    def _at(self, part: Part, position: int | None) -> Part | None:
        """A part without the members before a position (None: without any); () where it is done, None where it lacks one."""
        if part[0] == "repeat":
            return part if position is not None else () if part[2] == 0 else None
        if part[0] == "sets":
            sets: frozenset[frozenset[Node]] = part[1]  # type: ignore[assignment]
            least = LAST + 1 if position is None else position
            left = frozenset(each for each in sets if all(self._place(some)[0] >= least for some in each))
            return ("sets", left) if left - {frozenset()} else () if left else None
        node: Node = part[1]  # type: ignore[assignment]
        if part[0] == "asked":
            return part if position is not None else () if self._is_met(node, part[2]) else None  # type: ignore[arg-type]
        while self.grammar.kind(node) is Kind.DECISION and (position is None or self.grammar.cases_of(node)[0] < position):
            node = Node(self.grammar.operands(node)[2])
        if self.grammar.kind(node) is Kind.FAMILY:
            return self._at(self._open_part(node), position)
        return ("decision", node) if self.grammar.kind(node) is Kind.DECISION else () if node == EMPTY else None

    def _read_digit(
        self, modulus: int, read: int, places: int, whole: tuple[int, int] | None, may_end: bool, point: int, *digits: int
    ) -> Iterable[Continuation]:
        """`read`: remainder of the digits so far. whole: digits to come before a point, None behind it, where `may_end` counts."""
        if (may_end or (whole is not None and whole[0] == 0)) and read * 10**places % modulus == 0:
            yield ()
        if whole is not None and whole[0] == 0 and places > 0:
            yield (("node", point), ("multiple", modulus, read, places, None, False, point, *digits))
        if (whole is None and places == 0) or (whole is not None and whole[1] == 0):
            return
        for digit, node in enumerate(digits):
            after, is_fraction = (10 * read + digit) % modulus, whole is None
            rest = (places - 1, None, digit > 0) if is_fraction else (places, _one_less(*whole), False)  # type: ignore[misc]
            yield (("node", node), ("multiple", modulus, after, *rest, point, *digits))


@dataclass
class Reference(Unfolding[Position]):
    """Matches byte strings against `node` of `grammar`, one byte at a time.

    >>> reference = Reference(grammar, root)
    >>> reference.accepts(b'{"a":1}'), reference.can_continue(b'{"a"')
    """

    grammar: Grammar
    node: Node
    _productive: dict[Position, bool] = field(default_factory=dict)

    def accepts(self, text: bytes) -> bool:
        """Whether `text` as a whole is in the language."""
        return self.is_accepting(self.run(text))

    def can_continue(self, text: bytes, alphabet: Iterable[int] = range(256), max_bytes: int = 40) -> bool:
        """Whether `text` followed by at most `max_bytes` more bytes can be in the language (a search, so small cases only)."""
        return self.reaches_acceptance(self.run(text), alphabet, max_bytes)

    def start(self) -> Position:
        return self.before(self.node)

    def before(self, node: Node) -> Position:
        return self._expand([((("node", node),), _EMPTY_MEMORY)])

    def run(self, text: bytes, position: Position | None = None) -> Position:
        position = self.start() if position is None else position
        for byte in text:
            position = self.step(position, byte)
        return position

    def is_accepting(self, position: Position) -> bool:
        return any(not continuation for continuation, _ in position)

    def step(self, position: Position, byte: int) -> Position:
        """The position behind one more byte; the empty set when there is none."""
        out: list[tuple[Continuation, Memory]] = []
        for continuation, memory in position:
            if continuation:
                out.extend(self._cross(continuation[0], continuation[1:], memory, byte))
        return self._expand(out)

    def reaches_acceptance(self, position: Position, alphabet: Iterable[int], max_bytes: int) -> bool:
        seen, frontier = {position}, [position]
        for _ in range(max_bytes + 1):
            if any(map(self.is_accepting, frontier)):
                return True
            successors = {self.step(at, byte) for at in frontier for byte in alphabet}
            frontier = [at for at in successors - seen if at]
            seen.update(frontier)
        return False

    def edges(self, position: Position) -> Collection[int]:
        """Bytes at which the answer of `step` may change: from one of them to before the next it is the same."""
        out = {0}
        for continuation, _ in position:
            if not continuation:
                continue
            part = continuation[0]
            if part[0] == "product":
                for operand in part[2]:  # type: ignore[attr-defined]
                    out.update(self.edges(operand))
                continue
            if part[0] == "watch":
                for operand in (part[1], *(position for _, position in part[2])):  # type: ignore[attr-defined]
                    out.update(self.edges(operand))
                continue
            if part[0] == "unlisted":
                _, words, inside = part
                out.update(bound for word in words for byte in word[:1] for bound in (byte, byte + 1))  # type: ignore[attr-defined]
                out.update(self.edges(frozenset([(inside, _EMPTY_MEMORY)])))  # type: ignore[list-item]
                continue
            node: Node = part[1]  # type: ignore[assignment]
            kind = self.grammar.kind(node)
            if kind is Kind.LITERAL:
                byte = self.grammar.literal_bytes(node)[part[2] if len(part) > 2 else 0]  # type: ignore[call-overload]
                out.update((byte, byte + 1))
            elif kind in (Kind.MULTIPLE, Kind.FRACTION):
                out.update(range(ord("."), ord("9") + 2))
            else:
                out.update(self._bounds_of(node))
        return out - {256}

    def _edges_of(self, node: Node) -> Sequence[tuple[int, int, int]]:
        return self.grammar.class_edges(node)

    def _bounds_of(self, node: Node) -> Iterable[int]:
        return (bound for low, high, _ in self._edges_of(node) for bound in (low, high + 1))

    def _cross(
        self, part: Part, rest: Continuation, memory: Memory, byte: int
    ) -> Iterable[tuple[Continuation, Memory]]:
        if part[0] == "product":
            after = _remember(memory, Event.NONE, byte)
            assert after is not None, "only the end of a key can be refused"
            yield from ((continuation, after) for continuation in self._cross_product(part, rest, byte))
            return
        if part[0] == "watch":
            _, item, watched, *others = part
            stepped = tuple((i, self.step(position, byte)) for i, position in watched)  # type: ignore[attr-defined]
            if here := self.step(item, byte):  # type: ignore[arg-type]
                after = _remember(memory, Event.NONE, byte)
                assert after is not None, "only the end of a key can be refused"
                yield (("watch", here, tuple(each for each in stepped if each[1]), *others), *rest), after
            return
        if part[0] == "unlisted":
            _, words, inside = part
            left = tuple(word[1:] for word in words if word[:1] == bytes([byte]))  # type: ignore[attr-defined]
            for inner, after in self._cross(inside[0], inside[1:], memory, byte):  # type: ignore[index]
                yield (("unlisted", left, inner), *rest), after
            return
        node = part[1]
        assert isinstance(node, int)
        if self.grammar.kind(Node(node)) is Kind.LITERAL:
            text, index = self.grammar.literal_bytes(Node(node)), part[2] if len(part) > 2 else 0
            assert isinstance(index, int)
            if text[index] == byte:
                tail = ((("node", node, index + 1),) if index + 1 < len(text) else ()) + rest
                after = _remember(memory, Event.NONE, byte)
                assert after is not None, "only marked bytes can be refused"
                yield tail, after
            return
        event = Event(self.grammar.operands(Node(node))[2])
        for low, high, follow in self._edges_of(Node(node)):
            if low <= byte <= high and (after := _remember(memory, event, byte)) is not None:
                yield (("node", follow), *rest), after

    def _cross_product(self, part: Part, rest: Continuation, byte: int) -> Iterable[Continuation]:
        _, kind, operands = part
        stepped = tuple(self.step(operand, byte) for operand in operands)  # type: ignore[attr-defined]
        if kind == Kind.NEGATE or all(stepped):
            yield (("product", kind, stepped), *rest)

    def _expand(self, seeds: Sequence[tuple[Continuation, Memory]]) -> Position:
        """All continuations that begin with a byte to be matched, or are finished, reachable from `seeds` for free."""
        work, seen, out = [seed for seed in seeds if seed[1] is not None], set(), set()
        while work:
            item = work.pop()
            if item in seen:
                continue
            seen.add(item)
            continuation, memory = item
            if not continuation or self._is_leaf(continuation[0]):
                out.add(item)
            if continuation:
                work.extend((free + continuation[1:], memory) for free in self._free(continuation[0]))
        return frozenset(out)


def _less_counted(wanted: tuple[tuple[int, int, int], ...], counted: Iterable[int]) -> tuple[tuple[int, int, int], ...]:
    """What counters want and allow behind an item that some of them count."""
    return tuple((i, *_one_less(low, high)) if i in counted else (i, low, high) for i, low, high in wanted)


def _one_less(low: int, high: int) -> tuple[int, int]:
    return max(low - 1, 0), high if high == UNBOUNDED else high - 1


def _remember(memory: Memory, event: Event, byte: int) -> Memory | None:
    """The memory after a byte with an event; None when a key or an item repeats. Both are compared as JSON values, decoded."""
    frames, key = memory
    if event is Event.KEY_OPEN:
        key = b""
    elif event is Event.KEY_CLOSE:
        assert key is not None
        name = json.loads(b'"' + key + b'"')
        if name in frames[-1].seen:
            return None
        frames, key = (*frames[:-1], frames[-1].with_value(name)), None
    elif key is not None:
        key += bytes([byte])
    if event in (Event.ITEM_CLOSE, Event.ARRAY_CLOSE):
        array = frames[-1]
        assert array.item is not None
        if array.item.strip() or event is Event.ITEM_CLOSE:
            value = json.dumps(json.loads(array.item), sort_keys=True)
            if value in array.seen:
                return None
            array = array.with_value(value)
        frames = (*frames[:-1], array)
    if event in (Event.OBJECT_CLOSE, Event.ARRAY_CLOSE):
        frames = frames[:-1]
    stays = frames[:-1] if event is Event.ITEM_CLOSE else frames
    frames = (*(frame.with_byte(byte) for frame in stays), *frames[len(stays) :])
    if event is Event.OBJECT_OPEN:
        frames = (*frames, Frame(frozenset(), None))
    if event is Event.ARRAY_OPEN:
        frames = (*frames, Frame(frozenset(), b""))
    return frames, key
