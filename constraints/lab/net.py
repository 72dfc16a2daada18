"""An outline as numbered nodes, and what is still to be read as chains of them.

A chain is a number too: (node, chain behind it), hash-consed, 0 the empty one. `expand` replaces its first node by what that
may stand for, each time with the choice that was made; what is left are *leaves*: chains whose first node reads a character.
Sets of characters are bits over an alphabet that holds one character of every non-empty intersection of sets of the grammar.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from ..base.utf8 import Ranges
from ..runtime.constraint import State
from .facts import NO_TEXT, least_lengths
from .language import Languages
from .outline import Call, Chars, Choice, Outline, OutlineRule, Part, Pattern, Repeat, Text, fold, walk

Node = int
Chain = int
DONE: Chain = 0
ENDING = "end"  # a choice: this repetition or pattern ends here
MORE = "more"

_NICE = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ+-*/=.,:;()[]{}<>!?_'\"&|#%@$^~\\` \n\t"
_PROBES = "éß€中😀\u00a0\u2028"  # for patterns, whose sets are not known


class Move(NamedTuple):
    """What a choice makes of a chain."""

    choice: Hashable
    chain: Chain


class Net:
    """The nodes and chains of one outline. more: characters that the alphabet must have."""

    def __init__(self, outline: Outline, languages: Languages, more: Iterable[str] = ()) -> None:
        self.outline, self.languages = outline, languages
        self.least_of_rule = least_lengths(outline, languages)
        self._effort_of_rule = least_lengths(outline, languages, toll=1)
        self.nodes: list[tuple[Any, ...]] = [("empty",)]
        self.chains: list[tuple[Node, Chain]] = [(0, DONE)]
        self._numbers: dict[tuple[Any, ...], Node] = {("empty",): 0}
        self._chain_numbers: dict[tuple[Node, Chain], Chain] = {}
        self._least: list[int] = [0]  # characters, by node
        self.chain_least: list[int] = [0]
        self._effort: list[int] = [0]  # characters and calls, by node: less with every step of a derivation that ends
        self.chain_effort: list[int] = [0]
        self.spelling: dict[Node, str] = {}
        self.alphabet = _alphabet(outline, more)
        self._index = sorted(range(len(self.alphabet)), key=self.alphabet.__getitem__)
        self._sorted = [self.alphabet[i] for i in self._index]
        self._masks: dict[Ranges, int] = {}
        self._pattern_moves: dict[Node, list[tuple[int, Node]]] = {}
        self._reads: dict[Chain, list[tuple[int, Chain, Hashable]]] = {}
        self._patterns: dict[int, Pattern] = {}
        self._skip = None if outline.skip is None else self._pattern(outline.skip)
        self._bodies = {name: self._rule(rule) for name, rule in outline.rules.items()}

    # -- nodes --------------------------------------------------------------------------------------------------------

    def body(self, rule: str) -> Node:
        return self._bodies[rule]

    def chain(self, node: Node, then: Chain = DONE) -> Chain:
        """A node, and what comes behind it."""
        if node == 0:
            return then
        key = node, then
        found = self._chain_numbers.get(key)
        if found is None:
            found = self._chain_numbers[key] = len(self.chains)
            self.chains.append(key)
            self.chain_least.append(min(NO_TEXT, self._least[node] + self.chain_least[then]))
            self.chain_effort.append(min(NO_TEXT, self._effort[node] + self.chain_effort[then]))
        return found

    def _rule(self, rule: OutlineRule) -> Node:
        return self._lexeme(self._pattern(rule.terminal)) if rule.terminal else fold(rule.body, self._node)

    def _node(self, part: Part, below: list[Node]) -> Node:
        if isinstance(part, Text):
            return self._lexeme(self._text(part.text)) if part.text else 0
        if isinstance(part, Chars):
            node = self._new(("chars", part.ranges), 1 if part.ranges else NO_TEXT)
            self.spelling.setdefault(node, part.spelling)
            return self._lexeme(node)
        if isinstance(part, Pattern):
            return self._lexeme(self._pattern(part))
        if isinstance(part, Call):
            return self._new(("call", part.name), self.least_of_rule[part.name])
        if isinstance(part, Repeat):
            return self._repeat(below[0], part.low, part.high)
        least = [self._least[node] for node in below]
        if isinstance(part, Choice):
            return self._new(("alt", tuple(below)), min(least, default=NO_TEXT))
        return self._series(tuple(below))

    def _series(self, nodes: tuple[Node, ...]) -> Node:
        nodes = tuple(node for node in nodes if node)
        if len(nodes) < 2:
            return nodes[0] if nodes else 0
        return self._new(("seq", nodes), min(NO_TEXT, sum(self._least[node] for node in nodes)))

    def _lexeme(self, node: Node) -> Node:
        return node if self._skip is None else self._series((node, self._skip))

    def _text(self, text: str) -> Node:
        return self._new(("text", text), len(text)) if text else 0

    def _pattern(self, pattern: Pattern) -> Node:
        language = self.languages.of(pattern)
        self._patterns[id(pattern)] = pattern
        if not language.is_text:
            return self._new(("token", pattern.spelling), 1)
        return self._new(("pattern", id(pattern), language.start), language.least_length)

    def _repeat(self, body: Node, low: int, high: int | None) -> Node:
        if high == 0 or body == 0:  # copies of nothing
            return 0
        return self._new(("repeat", body, low, high), min(NO_TEXT, self._least[body] * low))

    def _new(self, row: tuple[Any, ...], least: int) -> Node:
        node = self._numbers.get(row)
        if node is None:
            node = self._numbers[row] = len(self.nodes)
            self.nodes.append(row)
            self._least.append(least)
            self._effort.append(min(NO_TEXT, self._effort_of(row, least)))
        return node

    def _effort_of(self, row: tuple[Any, ...], least: int) -> int:
        match row[0]:
            case "call":
                return self._effort_of_rule[row[1]] + 1
            case "seq":
                return sum(self._effort[node] for node in row[1])
            case "alt":
                return min((self._effort[node] for node in row[1]), default=NO_TEXT)
            case "repeat":
                return self._effort[row[1]] * int(row[2])
        return least

    # -- reading ------------------------------------------------------------------------------------------------------

    def expand(self, chain: Chain) -> list[Move] | None:
        """The moves of the first node of a chain; None when it is a leaf, or there is none. A call is expanded to the
        body of its rule."""
        node, then = self.chains[chain]
        row = self.nodes[node]
        match row[0]:
            case "call":
                return [Move(None, self.chain(self._bodies[row[1]], then))]
            case "seq":
                for part in reversed(row[1]):
                    then = self.chain(part, then)
                return [Move(None, then)]
            case "alt":
                return [Move(i, self.chain(option, then)) for i, option in enumerate(row[1])]
            case "repeat":
                return self._unrolled(row, then)
        return None

    def _unrolled(self, row: tuple[Any, ...], then: Chain) -> list[Move]:
        _, body, low, high = row
        less = self._repeat(body, max(low - 1, 0), None if high is None else high - 1)
        more = Move(MORE, self.chain(body, self.chain(less, then)))
        return [Move(None, more.chain)] if low else [Move(ENDING, then), more]

    def reads(self, chain: Chain) -> list[tuple[int, Chain, Hashable]]:
        """(characters as bits, chain behind them) of a leaf; the choice is told where a pattern might end instead."""
        known = self._reads.get(chain)
        if known is None:
            known = self._reads[chain] = self._found_reads(chain)
        return known

    def _found_reads(self, chain: Chain) -> list[tuple[int, Chain, Hashable]]:
        node, then = self.chains[chain]
        row = self.nodes[node]
        match row[0]:
            case "text":
                text = str(row[1])
                return [(self.bit(text[0]), self.chain(self._text(text[1:]), then), None)]
            case "chars":
                return [(self.mask(row[1]), then, None)]
            case "pattern":
                choice = MORE if self.ends(chain) is not None else None
                return [(mask, self.chain(after, then), choice) for mask, after in self._moves_of_pattern(node)]
        return []

    def ends(self, chain: Chain) -> Chain | None:
        """The chain behind a pattern that may end here; None otherwise."""
        node, then = self.chains[chain]
        row = self.nodes[node]
        if row[0] != "pattern" or not self.languages.of(self._patterns[row[1]]).is_accepting(row[2]):
            return None
        return then

    def language_ending(self, chain: Chain) -> str:
        """A short text that completes the pattern which a chain begins with."""
        row = self.nodes[self.chains[chain][0]]
        return self.languages.of(self._patterns[row[1]]).ending(row[2])

    def name_of_leaf(self, chain: Chain) -> str | Pattern | None:
        """A text as it is, or a pattern; None for a set of characters, which `spelling` spells."""
        row = self.nodes[self.chains[chain][0]]
        return str(row[1]) if row[0] == "text" else self._patterns[row[1]] if row[0] == "pattern" else None

    def _moves_of_pattern(self, node: Node) -> list[tuple[int, Node]]:
        known = self._pattern_moves.get(node)
        if known is None:
            _, pattern, state = self.nodes[node]
            language, groups = self.languages.of(self._patterns[pattern]), dict[State, int]()
            for i, char in enumerate(self.alphabet):
                after = language.step(state, char)
                if after is not None:
                    groups[after] = groups.get(after, 0) | 1 << i
            known = self._pattern_moves[node] = [
                (mask, self._new(("pattern", pattern, after), 0 if language.is_accepting(after) else 1))
                for after, mask in groups.items()
            ]
        return known

    # -- characters ---------------------------------------------------------------------------------------------------

    def bit(self, char: str) -> int:
        return self.mask(((ord(char), ord(char)),))

    def mask(self, ranges: Ranges) -> int:
        """The characters of a set, as bits over the alphabet."""
        known = self._masks.get(ranges)
        if known is None:
            known = 0
            for low, high in ranges:
                at = bisect_left(self._sorted, chr(low))
                while at < len(self._sorted) and ord(self._sorted[at]) <= high:
                    known |= 1 << self._index[at]
                    at += 1
            self._masks[ranges] = known
        return known

    def nicest(self, mask: int) -> str:
        """The most readable character of a set that is not empty."""
        return self.alphabet[(mask & -mask).bit_length() - 1]


def replay(net: Net, rule: str, choices: Iterable[Hashable], text: str, on: Callable[[str, object], None]) -> str:
    """Derives a text from a rule with given choices, those behind the last one so that it ends soon, and tells what it does:

    on("open", rule), on("close", None), on("choice", choice), on("char", char). Returns the text, completed.
    """
    made, at = iter(choices), 0
    stack: list[tuple[Chain, bool]] = [(net.chain(net._new(("call", rule), 0)), False)]
    spelled: list[str] = []
    while stack:
        chain, closes = stack.pop()
        if closes:
            on("close", None)
        if chain == DONE:
            continue
        node, then = net.chains[chain]
        row = net.nodes[node]
        if row[0] == "call":
            on("open", row[1])
            stack += [(then, True), (net.chain(net.body(str(row[1]))), False)]
            continue
        moves = net.expand(chain)
        if moves is not None:
            if len(moves) > 1 or moves[0].choice is not None:
                shortest = min(moves, key=lambda move: net.chain_effort[move.chain])
                choice = next(made, shortest.choice)
                on("choice", choice)
                moves = [move for move in moves if move.choice == choice]
            stack.append((moves[0].chain, False))
            continue
        behind = net.ends(chain)
        if behind is not None and next(made, ENDING) == ENDING:
            on("choice", ENDING)
            stack.append((behind, False))
            continue
        char = text[at] if at < len(text) else _shortest_char(net, chain)
        after = next(chain for mask, chain, _ in net.reads(chain) if mask & net.bit(char))
        on("char", char)
        spelled.append(char)
        stack.append((after, False))
        at += 1
    return "".join(spelled)


def _shortest_char(net: Net, chain: Chain) -> str:
    row = net.nodes[net.chains[chain][0]]
    return net.language_ending(chain)[0] if row[0] == "pattern" else net.nicest(net.reads(chain)[0][0])


def _alphabet(outline: Outline, more: Iterable[str]) -> list[str]:
    """Nice characters first: one of the lowest of every set is in each intersection that is not empty."""
    found = dict.fromkeys(_NICE)
    has_patterns = outline.skip is not None
    for rule in outline.rules.values():
        for part in walk(rule.body):
            if isinstance(part, Text):
                found.update(dict.fromkeys(part.text))
            elif isinstance(part, Chars):
                found.update((chr(low), None) for low, _ in part.ranges)
            has_patterns = has_patterns or isinstance(part, Pattern)
    if has_patterns:
        found.update(dict.fromkeys([*_PROBES, *map(chr, range(128))]))
    found.update(dict.fromkeys(more))
    return list(found)


