"""Ambiguity, found by a bounded search: two leftmost derivations of one text.

Every rule is searched by itself, from those that call nothing: all texts of a rule are derived breadth first, in pairs of
derivations that have made different choices and read the same characters. When two of them have the same left to read, any
completion is a text with two derivations. What is not found within the bound may still be there: whether a grammar is ambiguous is
undecidable. Source of the idea: S. Schmitz, "Conservative ambiguity detection in context-free grammars" (2007), pairs of paths.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..grammar.components import components
from .facts import NO_TEXT, reached
from .net import DONE, ENDING, Chain, Net, replay
from .outline import calls, quoted

Choices = tuple[Hashable, ...]

LONGEST = 24  # characters of a text that is searched
_MOST_LEAVES = 600  # of one chain
_DEEPEST = 150  # expansions before a character is read


class Leaf(NamedTuple):
    """A chain that reads a character next, or DONE, and the choices that led to it."""

    chain: Chain
    choices: Choices


@dataclass(frozen=True)
class Derivation:
    """One derivation of a text: its events (rule, choice or character), and the derivation as people read it."""

    events: tuple[tuple[str, object], ...]

    def __str__(self) -> str:
        return _shown(self.events)


@dataclass(frozen=True)
class Ambiguity:
    """A text of a rule that has two derivations."""

    rule: str
    text: str
    first: Derivation
    second: Derivation


@dataclass
class Search:
    """The search in one grammar. steps: pairs of leaves that may be looked at, in all."""

    net: Net
    steps: int = 400_000
    is_complete: bool = True  # all texts of up to LONGEST characters were looked at
    _leaves: dict[Chain, list[Leaf]] = field(default_factory=dict)
    _loops: dict[Chain, list[tuple[Choices, Choices]]] = field(default_factory=dict)

    def ambiguities(self) -> list[Ambiguity]:
        """One ambiguity of each rule that has some of its own, as far as they are found."""
        net, found = self.net, dict[str, Ambiguity]()
        useful = reached(net.outline)
        order = [name for group in components({n: calls(r) for n, r in net.outline.rules.items()}) for name in group]
        rules = [n for n in order if n in useful and net.least_of_rule[n] < NO_TEXT and net.outline.rules[n].terminal is None]
        for i, rule in enumerate(rules):
            share = self.steps // (len(rules) - i)
            for one in self._of_rule(rule, share):
                found.setdefault(one.rule, one)
                if one.rule == rule:
                    break
        return list(found.values())

    def _of_rule(self, rule: str, share: int) -> Iterator[Ambiguity]:
        """Ambiguities of the texts of a rule; `Ambiguity.rule` is the innermost one that has both derivations."""
        walk = _Walk(self, rule, self.steps - share)
        for prefix, first, second in walk.pairs():
            yield self._told(rule, prefix, first, second)

    def _told(self, rule: str, prefix: str, first: Choices, second: Choices) -> Ambiguity:
        trees, texts = [], []
        for choices in (first, second):
            events: list[tuple[str, object]] = []

            def note(kind: str, value: object, to: list[tuple[str, object]] = events) -> None:
                to.append((kind, value))

            texts.append(replay(self.net, rule, choices, prefix, note))
            trees.append(tuple(events))
        assert texts[0] == texts[1]
        name, one, other = _innermost(trees[0], trees[1])
        text = "".join(str(value) for kind, value in one if kind == "char")
        return Ambiguity(name, text, Derivation(one), Derivation(other))

    def leaves(self, chain: Chain, room: int) -> list[Leaf]:
        """The leaves of a chain that can be completed within `room` characters."""
        known = self._leaves.get(chain)
        if known is None:
            known = self._leaves[chain] = list(self._expanded(chain))
        return [leaf for leaf in known if self.net.chain_least[leaf.chain] <= room]

    def loops(self, chain: Chain) -> list[tuple[Choices, Choices]]:
        """Choices that lead from a chain to another one, and longer ones that lead there too and read nothing."""
        return self._loops.get(chain, [])

    def _expanded(self, chain: Chain) -> Iterator[Leaf]:
        net, found = self.net, 0
        work: list[tuple[Chain, Choices, dict[Chain, Choices]]] = [(chain, (), {})]
        tried = 0
        while work:
            at, choices, path = work.pop()
            tried += 1
            if net.chain_least[at] > LONGEST:
                continue
            if at in path:
                if choices != path[at]:
                    self._loops.setdefault(chain, []).append((path[at], choices))
                continue
            if len(path) > _DEEPEST or found > _MOST_LEAVES or tried > 8 * _MOST_LEAVES:
                self.is_complete = False
                continue
            moves = net.expand(at) if at != DONE else None
            behind = net.ends(at) if at != DONE else None
            if behind is not None:
                work.append((behind, (*choices, ENDING), {**path, at: choices}))
            if moves is None:
                found += 1
                yield Leaf(at, choices)
                continue
            for choice, then in reversed(moves):
                work.append((then, choices if choice is None else (*choices, choice), {**path, at: choices}))


class _Walk:
    """Breadth first through the texts of one rule. A step back: (step before, character, choices of the one, of the other)."""

    def __init__(self, search: Search, rule: str, floor: int) -> None:
        self.search, self.net, self.floor = search, search.net, floor
        self.start = self.net.chain(self.net.body(rule))
        self.back: list[tuple[int, str, Choices, Choices]] = [(-1, "", (), ())]

    def pairs(self) -> Iterator[tuple[str, Choices, Choices]]:
        """(text so far, choices of one derivation, of another) that have the same left to read."""
        together: dict[Chain, int] = {self.start: 0}
        apart: dict[tuple[Chain, Chain], int] = {}
        seen: set[Hashable] = {self.start}
        for length in range(LONGEST):
            if not together and not apart:
                return
            room = LONGEST - length
            next_together: dict[Chain, int] = {}
            next_apart: dict[tuple[Chain, Chain], int] = {}
            for chain, step in together.items():
                leaves = self.search.leaves(chain, room)
                for first, second in self.search.loops(chain):
                    yield self._found(step, "", first, second)
                for i, one in enumerate(leaves):
                    if self._is_over():
                        return
                    for after, char, choice in self._reads(one.chain):
                        if after not in seen and self.net.chain_least[after] < room:
                            seen.add(after)
                            choices = (*one.choices, choice) if choice is not None else one.choices
                            next_together[after] = self._step(step, char, choices, choices)
                    yield from self._both(step, [one], leaves[i + 1 :], room, seen, next_apart)
            for (left, right), step in apart.items():
                if self._is_over():
                    return
                yield from self._both(step, self.search.leaves(left, room), self.search.leaves(right, room), room, seen, next_apart)
            together, apart = next_together, next_apart

    def _both(
        self, step: int, ones: list[Leaf], others: list[Leaf], room: int, seen: set[Hashable], apart: dict[tuple[Chain, Chain], int]
    ) -> Iterator[tuple[str, Choices, Choices]]:
        """One character more in two derivations that differ."""
        for one in ones:
            for other in others:
                self.search.steps -= 1
                if one.chain == other.chain:
                    yield self._found(step, "", one.choices, other.choices)
                    continue
                for char, left, right, first, second in self._common(one, other):
                    if left == right:
                        if self.net.chain_least[left] < room:
                            yield self._found(step, char, first, second)
                    elif (left, right) not in seen and max(self.net.chain_least[left], self.net.chain_least[right]) < room:
                        seen.update(((left, right), (right, left)))
                        apart[left, right] = self._step(step, char, first, second)

    def _common(self, one: Leaf, other: Leaf) -> Iterator[tuple[str, Chain, Chain, Choices, Choices]]:
        if one.chain == DONE or other.chain == DONE:
            return
        for mask, left, choice in self.net.reads(one.chain):
            for also, right, its in self.net.reads(other.chain):
                if mask & also:
                    first = one.choices if choice is None else (*one.choices, choice)
                    second = other.choices if its is None else (*other.choices, its)
                    yield self.net.nicest(mask & also), left, right, first, second

    def _reads(self, chain: Chain) -> Iterator[tuple[Chain, str, Hashable]]:
        if chain != DONE:
            for mask, after, choice in self.net.reads(chain):
                if mask:
                    yield after, self.net.nicest(mask), choice

    def _is_over(self) -> bool:
        self.search.steps -= 1
        if self.search.steps <= self.floor:
            self.search.is_complete = False
        return self.search.steps <= self.floor

    def _step(self, before: int, char: str, first: Choices, second: Choices) -> int:
        self.back.append((before, char, first, second))
        return len(self.back) - 1

    def _found(self, step: int, char: str, first: Choices, second: Choices) -> tuple[str, Choices, Choices]:
        texts, ones, others = [char], [first], [second]
        while step > 0:
            step, char, first, second = self.back[step]
            texts.append(char)
            ones.append(first)
            others.append(second)
        joined = (tuple(choice for choices in reversed(each) for choice in choices) for each in (ones, others))
        return "".join(reversed(texts)), *joined  # type: ignore[return-value]


# -- derivations for people -----------------------------------------------------------------------------------------------

Events = tuple[tuple[str, object], ...]


def _innermost(first: Events, second: Events) -> tuple[str, Events, Events]:
    """The innermost rule in which two derivations of one text differ, with its part of each: all around it is alike."""
    while True:
        head, tail = _alike(first, second), _alike(first[::-1], second[::-1])
        opened: list[int] = []
        for i in range(head):
            if first[i][0] == "open":
                opened.append(i)
            elif first[i][0] == "close":
                opened.pop()
        for at in reversed(opened):
            ends = _closing(first, at), _closing(second, at)
            if len(first) - ends[0] == len(second) - ends[1] and len(first) - ends[0] <= tail + 1:
                return str(first[at][1]), first[at : ends[0]], second[at : ends[1]]
        return str(first[0][1]), first, second


def _alike(first: Events, second: Events) -> int:
    """How many events two derivations have in common at their beginning."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _closing(events: Events, at: int) -> int:
    """The index behind the event that closes the rule opened at `at`."""
    depth = 0
    for i in range(at, len(events)):
        depth += (events[i][0] == "open") - (events[i][0] == "close")
        if depth == 0:
            return i + 1
    return len(events)


def _shown(events: Events) -> str:
    """A derivation for people: `sum("1" "+" sum("2"))`; `#2` before what the second alternative made, `,` where a
    repetition goes on, `;` where it ends."""
    pieces: list[str] = []
    run = ""
    for kind, value in events:
        if kind == "char":
            run += str(value)
            continue
        if run:
            pieces.append(quoted(run))
            run = ""
        if kind == "open":
            pieces.append(f"{value}(")
        elif kind == "close":
            pieces.append(")")
        elif kind == "choice" and isinstance(value, int):
            pieces.append(f"#{value + 1}")
        elif kind == "choice":
            pieces.append("," if value == "more" else ";")
    if run:
        pieces.append(quoted(run))
    return " ".join(pieces).replace("( ", "(").replace(" )", ")").replace(" ;", ";").replace(" ,", ",")
