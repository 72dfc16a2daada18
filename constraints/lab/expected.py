"""Where a text leaves a grammar, and what its rules would have liked to see there.

The constraint itself says at which byte a text dies; the rules that were being read, with their places, come from parsing the
text up to there. Source of the parser: J. Earley, "An efficient context-free parsing algorithm" (1970), with chains of nodes
(`net.py`) as the dotted rules.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from .net import DONE, Chain, Net
from .outline import Pattern, quoted

_MOST_ITEMS = 200_000  # of one text; then nothing is said about rules


class Item(NamedTuple):
    """A rule that is being read since `origin`, and the chain that is left of it."""

    rule: str
    left: Chain
    origin: int  # characters


class Expectation(NamedTuple):
    """What could stand somewhere: `what` for people, the rule it belongs to, and where that rule began."""

    what: str
    rule: str
    origin: int


@dataclass
class Parse:
    """The items of one text. `read`: characters that can be read."""

    net: Net
    text: str
    read: int = 0
    is_sentence: bool = False
    is_cut: bool = False
    _sets: list[dict[Item, None]] = field(default_factory=list)
    _callers: list[dict[str, list[Item]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        start = self.net.outline.start
        self._sets.append({Item(start, self.net.chain(self.net.body(start)), 0): None})
        self._callers.append({start: []})
        count = 0
        for at in range(len(self.text) + 1):
            following = self._complete(at, self.text[at] if at < len(self.text) else None)
            count += len(self._sets[at])
            self.is_cut = count > _MOST_ITEMS
            if not following or self.is_cut:
                break
            self._sets.append(dict.fromkeys(following))
            self._callers.append({})
            self.read = at + 1
        last = self._sets[-1]
        self.is_sentence = len(self._sets) > len(self.text) and any(item[:2] == (start, DONE) and item.origin == 0 for item in last)

    def _complete(self, at: int, char: str | None) -> list[Item]:
        """Find all items at a place; returns the items behind the character."""
        net, items, callers = self.net, self._sets[at], self._callers[at]
        bit = 0 if char is None else net.bit(char)
        empty: set[str] = set()  # rules that began and ended here
        following: list[Item] = []
        work = list(items)
        while work and len(items) <= _MOST_ITEMS:
            item = work.pop()
            new: list[Item] = []
            if item.left == DONE:
                if item.origin == at:
                    empty.add(item.rule)
                new = [one._replace(left=net.chains[one.left][1]) for one in self._callers[item.origin].get(item.rule, [])]
            elif (name := self._called(item.left)) is not None:
                callers.setdefault(name, []).append(item)
                new = [Item(name, net.chain(net.body(name)), at)]
                if name in empty:
                    new.append(item._replace(left=net.chains[item.left][1]))
            elif (moves := net.expand(item.left)) is not None:
                new = [item._replace(left=move.chain) for move in moves]
            else:
                behind = net.ends(item.left)
                new = [] if behind is None else [item._replace(left=behind)]
                following += [item._replace(left=after) for mask, after, _ in net.reads(item.left) if mask & bit]
            for one in new:
                if one not in items:
                    items[one] = None
                    work.append(one)
        return following

    def _called(self, chain: Chain) -> str | None:
        row = self.net.nodes[self.net.chains[chain][0]]
        return str(row[1]) if row[0] == "call" else None

    def expectations(self) -> list[Expectation]:
        """What could stand behind the characters that can be read, without duplicates; the rule that began last comes first."""
        found: dict[Hashable, Expectation] = {}
        for item in sorted(self._sets[-1], key=lambda item: -item.origin):
            if item.left != DONE and self.net.reads(item.left):
                one = Expectation(self._spelled(item.left), item.rule, item.origin)
                found.setdefault(one[:2], one)
        return list(found.values())

    def open_rules(self) -> list[tuple[str, int]]:
        """The rules that were being read, the outermost first, each with the character where it began: one way of several."""
        items = [item for item in self._sets[-1] if item.left != DONE and self.net.reads(item.left)]
        if not items:
            return []
        item = max(items, key=lambda item: item.origin)
        path, seen = [(item.rule, item.origin)], {(item.rule, item.origin)}
        while True:
            callers = [one for one in self._callers[item.origin].get(item.rule, []) if (one.rule, one.origin) not in seen]
            if not callers:
                return path[::-1]
            item = max(callers, key=lambda one: one.origin)
            path.append((item.rule, item.origin))
            seen.add(path[-1])

    def _spelled(self, leaf: Chain) -> str:
        found = self.net.name_of_leaf(leaf)
        if isinstance(found, Pattern):
            return found.spelling
        return quoted(found) if found is not None else self.net.spelling[self.net.chains[leaf][0]]
