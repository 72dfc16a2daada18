"""A chart: all ways to read a text as a grammar, in which captures are told from what lies between them.

A chart says for each part and place where the part may end; parsers of context-free grammars call it so (Scott and
Johnstone, "GLL Parsing", 2010; here with cells for parts in place of descriptors). Only what holds a capture, what is
ignored or a budget is taken apart; everything else is a leaf, which an automaton reads. A place is a position, and with
lazy terminals that end others the state of the automaton over lexemes beside it (`lark_lexemes.py`), so the text is
read as a path through both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..automaton.tables import DEAD
from ..base.ids import StateId
from ..grammar.capture_marks import Marks, refused_captures
from ..grammar.expression import EMPTY, FAIL, UNBOUNDED, Grammar, Kind, Node, Rule
from ..grammar.left_factoring import left_factored
from ..grammar.left_recursion import without_left_recursion
from ..grammar.recursion import children, reachable
from ..grammar.source import Limits
from ..grammar.stages import Budgets, holding
from ..grammar.stopwatch import Stopwatch
from ..token_automaton.token_automaton import TokenAutomaton
from ..uniqueness.seen_values import NO_REGISTER
from ..vocabulary.shared_vocabulary import SharedVocabulary

Place = int  # position + (bytes of the text + 1) * state over lexemes
Span = tuple[Node, Place, Place]
_Key = tuple[Node, Place]
_Edges = dict[Node, tuple[Node, int]]  # by the call of a lexeme: those of its texts that may come, the state behind it


class Parts:
    """A grammar with captures, ready to read texts. Not thread-safe."""

    def __init__(
        self, grammar: Grammar, root: Node, budgets: Budgets, marks: Marks, shared_vocabulary: SharedVocabulary, limits: Limits
    ) -> None:
        self.grammar, self.root, self.budgets, self.marks, self.limits = grammar, root, budgets, marks, limits
        self.bodies = list(grammar.rule_bodies)
        self.lexeme_calls: set[Node] = set()
        self.edges: list[_Edges] = []
        self._leaves = self._found_leaves()
        leaves = grammar.alt(*self._leaves, EMPTY)
        without_left_recursion(grammar, leaves, limits)
        left_factored(grammar, leaves, limits)
        self._forget_structure()
        self._automaton = TokenAutomaton(grammar, leaves, shared_vocabulary, limits)
        self._starts: dict[Node, StateId] = {}
        self._moves: dict[tuple[StateId, int], StateId] = {}

    def is_leaf(self, node: Node) -> bool:
        return node in self._leaves

    def matches(self, leaf: Node, data: bytes, begin: int) -> list[int]:
        """Where a leaf that begins at `begin` may end, in order."""
        automaton = self._automaton
        state = self._starts.get(leaf)
        if state is None:
            state = self._starts[leaf] = automaton.start_of(leaf)
        if state == DEAD:
            return []
        ends = [begin] if automaton.is_accepting(state) else []
        held = automaton.empty_memory if automaton.remembers else NO_REGISTER
        for at in range(begin, len(data)):
            if automaton.remembers:
                state, held, _ = automaton.run_remembering(state, held, data[at : at + 1])
            else:
                state = self._after(state, data[at])
            if state == DEAD:
                break
            if automaton.is_accepting(state):
                ends.append(at + 1)
        return ends

    def _after(self, state: StateId, byte: int) -> StateId:
        after = self._moves.get((state, byte))
        if after is None:
            after = self._moves[state, byte] = self._automaton.run(state, bytes([byte]))[0]
        return after

    def _found_leaves(self) -> set[Node]:
        """The greatest parts that need not be taken apart."""
        grammar, marks = self.grammar, self.marks
        leaves: set[Node] = set()
        for mark in marks.of_rule.values():
            leaves |= {mark.body, mark.end}
        if marks.lexeme_states is not None:
            self._add_lexemes(leaves)
        skips = {grammar.call(rule) for rule in marks.skips}
        captured = {grammar.call(rule) for rule in marks.of_rule}
        holds = holding(grammar, self.root, {*captured, *skips, *self.budgets, *self.lexeme_calls})
        seen: set[Node] = set()
        work = [self.root]
        while work:
            node = work.pop()
            if node in seen or node in (EMPTY, FAIL) or node in self.lexeme_calls:
                continue
            seen.add(node)
            if node in skips or not holds[node] or grammar.kind(node) in (Kind.NEGATE, Kind.BAG, Kind.WALK, Kind.COVER):
                leaves.add(node)
            else:
                work += children(grammar, node)
        return leaves

    def _add_lexemes(self, leaves: set[Node]) -> None:
        calls = {lexeme: self.grammar.call(Rule(rule)) for rule, lexeme in self.marks.lexemes.items()}
        inside = [self.grammar.call(rule) for rule in self.marks.of_rule]
        leaves.add(self.marks.skip)
        for state in self.marks.lexeme_states or ():
            self.edges.append({})
            for lexeme, (cut, after) in state.following.items():
                if any(holding(self.grammar, cut, inside).values()):
                    raise refused_captures("inside of a part that is read as one lexeme, beside lazy terminals that end others")
                leaves.add(cut)
                self.edges[-1][calls.get(lexeme, lexeme.node)] = cut, after
        self.lexeme_calls = {*calls.values(), *(call for edges in self.edges for call in edges)}

    def _forget_structure(self) -> None:
        """Leave the rules to the automaton that leaves call: other left-recursive rules do not concern it."""
        called = {
            self.grammar.operands(node)[0] for leaf in self._leaves
            for node in reachable(self.grammar, leaf) if self.grammar.kind(node) is Kind.CALL
        }  # fmt: skip
        for rule in range(len(self.grammar.rule_bodies)):
            if rule not in called:
                self.grammar.define(Rule(rule), EMPTY)


@dataclass
class _Cell:
    ends: set[Place] = field(default_factory=set)
    waiting: list[tuple[_Key, Node]] = field(default_factory=list)  # whose part this is, and what it goes on with, if not EMPTY


class Chart:
    """Where the parts of one text may begin and end. num_tokens: how many tokens have bytes between two positions,
    where that is known."""

    def __init__(self, parts: Parts, data: bytes, num_tokens: Callable[[int, int], int] | None) -> None:
        self.parts, self.data, self.num_tokens = parts, data, num_tokens
        self.grammar, self.size = parts.grammar, len(data) + 1
        self._cells: dict[_Key, _Cell] = {}
        self._matches: dict[tuple[Node, int], list[int]] = {}
        self._ways: dict[tuple[Node, Place], set[Place]] = {}
        self._fresh: list[_Key] = []
        self._news: list[tuple[_Key, Node, Place]] = []
        self._fill()

    def readings(self) -> list[Place]:
        """The places where the whole text may end as a text of the grammar."""
        return sorted(end for end in self.ends(self.parts.root, 0) if self.position(end) == len(self.data))

    def position(self, place: Place) -> int:
        return place % self.size

    def ends(self, node: Node, place: Place) -> set[Place]:
        if node == EMPTY:
            return {place}
        cell = self._cells.get((node, place))
        return set() if cell is None else cell.ends

    def matches(self, leaf: Node, begin: int) -> list[int]:
        """Where a leaf may end, as positions, in order."""
        found = self._matches.get((leaf, begin))
        if found is None:
            found = self._matches[leaf, begin] = [begin] if leaf == EMPTY else self.parts.matches(leaf, self.data, begin)
        return found

    def text_end(self, node: Node, begin: Place, end: Place) -> int:
        """The position behind a leaf's or lexeme's text, where what is ignored begins."""
        if node not in self.parts.lexeme_calls:
            return self.position(end)
        cut, _ = self.parts.edges[begin // self.size][node]
        wanted = self.position(end)
        return max(m for m in self.matches(cut, self.position(begin)) if wanted in self.matches(self.parts.marks.skip, m))

    def is_whole(self, node: Node) -> bool:
        """Whether a part is not taken apart."""
        return node == EMPTY or self.parts.is_leaf(node) or node in self.parts.lexeme_calls

    def options(self, span: Span) -> Iterator[tuple[Span, ...]]:
        """The ways to take a span of the text apart, the preferred ones first: the longest first part, the first alternative."""
        node, begin, end = span
        grammar = self.grammar
        kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
        if self.is_whole(node):
            yield ()
        elif kind is Kind.SEQ:
            for middle in self._longest_first(Node(a), begin):
                if end in self.ends(Node(b), middle):
                    yield (Node(a), begin, middle), (Node(b), middle, end)
        elif kind is Kind.ALT:
            for option in grammar.alternatives(node):
                if end in self.ends(option, begin):
                    yield ((option, begin, end),)
        elif kind is Kind.REPEAT:
            again = self._again(node)
            reaching = self._reaching(span) if again == node else None
            for middle in self._longest_first(Node(a), begin):
                is_on_the_way = end in self.ends(again, middle) if reaching is None else middle in reaching
                if self.position(middle) > self.position(begin) and is_on_the_way:
                    yield (Node(a), begin, middle), (again, middle, end)
            if end == begin and b == 0:
                yield ()
            elif self.position(end) == self.position(begin) and end in self.ends(Node(a), begin):
                yield ((Node(a), begin, end),)
        elif kind is Kind.CALL:
            yield ((self._body(node), begin, end),)
        else:  # BOTH: captures are those of one side
            side = Node(b) if self.is_whole(Node(a)) else Node(a)
            yield ((side, begin, end),)

    def _reaching(self, span: Span) -> set[Place]:
        """The places from which copies of a repetition without bounds lead to the end of a span."""
        node, begin, end = span
        known = self._ways.setdefault((node, end), {end})
        if begin not in known:
            body, seen = Node(self.grammar.operands(node)[0]), {begin}
            work = [begin]
            while work:
                fresh = {m for m in self.ends(body, work.pop()) if self.position(m) <= self.position(end)} - seen
                seen |= fresh
                work += fresh
            for place in sorted(seen, key=self.position, reverse=True):
                if not known.isdisjoint(self.ends(body, place)):
                    known.add(place)
        return known

    def _longest_first(self, node: Node, begin: Place) -> list[Place]:
        return sorted(self.ends(node, begin), key=lambda place: (self.position(place), place), reverse=True)

    # -- filling ----------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        stopwatch = Stopwatch(self.parts.limits, "reading captures")
        self._cell((self.parts.root, 0))
        while self._fresh or self._news:
            stopwatch.check()
            if self._fresh:
                self._begin(self._fresh.pop())
            else:
                self._go_on(*self._news.pop())

    def _cell(self, key: _Key) -> _Cell:
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _Cell()
            self._fresh.append(key)
        return cell

    def _await(self, part: _Key, whose: _Key, rest: Node = EMPTY) -> None:
        cell = self._cell(part)
        cell.waiting.append((whose, rest))
        self._news += [(whose, rest, end) for end in cell.ends]

    def _end(self, key: _Key, end: Place) -> None:
        cell = self._cells[key]
        if end not in cell.ends:
            cell.ends.add(end)
            self._news += [(whose, rest, end) for whose, rest in cell.waiting]

    def _begin(self, key: _Key) -> None:
        """The parts of what may stand somewhere."""
        node, place = key
        grammar = self.grammar
        kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
        if node == EMPTY:
            self._end(key, place)
        elif self.is_whole(node):
            for end in self._whole(node, place):
                self._end(key, end)
        elif kind is Kind.SEQ:
            self._await((Node(a), place), key, Node(b))
        elif kind is Kind.ALT:
            for option in grammar.alternatives(node):
                self._await((option, place), key)
        elif kind is Kind.REPEAT:
            if b == 0:
                self._end(key, place)
            self._await((Node(a), place), key, self._again(node))
        elif kind is Kind.CALL:
            self._await((self._body(node), place), key)
        elif kind is Kind.BOTH:
            self._await((Node(a), place), key)
            self._await((Node(b), place), key)

    def _whole(self, node: Node, place: Place) -> list[Place]:
        state, position = divmod(place, self.size)
        if node not in self.parts.lexeme_calls:
            return [end + state * self.size for end in self.matches(node, position)]
        if node not in self.parts.edges[state]:  # its texts cannot be told from others here
            return []
        cut, after = self.parts.edges[state][node]
        ends = {end for middle in self.matches(cut, position) for end in self.matches(self.parts.marks.skip, middle)}
        return [end + after * self.size for end in sorted(ends)]

    def _go_on(self, key: _Key, rest: Node, end: Place) -> None:
        """Note that a part has been found to end; the parts that it belongs to go on behind it."""
        node, place = key
        kind = self.grammar.kind(node)
        if kind is Kind.SEQ:
            self._await((rest, end), key) if rest != EMPTY else self._end(key, end)
        elif kind is Kind.REPEAT and rest == node:  # without bounds: another copy, not another repetition in it
            body = Node(self.grammar.operands(node)[0])
            if self.position(end) > self.position(place) and end not in self._cells[key].ends:
                self._await((body, end), key, node)
            self._end(key, end)
        elif kind is Kind.REPEAT and rest != EMPTY and self.position(end) > self.position(place):
            self._await((rest, end), key)
        elif kind is Kind.BOTH:
            a, b, _ = self.grammar.operands(node)
            if end in self.ends(Node(a), place) and end in self.ends(Node(b), place):
                self._end(key, end)
        elif kind is not Kind.CALL or self._affords(node, place, end):
            self._end(key, end)

    def _affords(self, call: Node, begin: Place, end: Place) -> bool:
        """Whether a rule's budget of tokens suffices for a span, where tokens are known."""
        budget = self.parts.budgets.get(call)
        if budget is None or self.num_tokens is None:
            return True
        start, stop = self.position(begin), self.position(end)
        if budget.is_whole:
            starts_token = start == 0 or self.num_tokens(start - 1, stop) == 2
            ends_token = stop == len(self.data) or self.num_tokens(start, stop + 1) == 2
            return self.num_tokens(start, stop) == 1 and starts_token and ends_token
        return self.num_tokens(start, stop) <= budget.max_tokens

    def _again(self, node: Node) -> Node:
        """The copies behind the first one."""
        body, low, high = self.grammar.operands(node)
        return self.grammar.repeat(Node(body), max(low - 1, 0), None if high == UNBOUNDED else high - 1)

    def _body(self, call: Node) -> Node:
        body = self.parts.bodies[self.grammar.operands(call)[0]]
        return FAIL if body is None else body
