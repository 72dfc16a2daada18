"""A radix tree over token ids: which prefixes have their keys and values in a block of the cache, or in host memory.

There is a root for each key of a sequence: what its keys and values depend on beside its tokens, such as an adapter. Nothing is
shared between roots. Every node stands for one block: its tokens continue those of its parent. Inner nodes are full; a leaf may
have fewer tokens, when a sequence ended within a block. So the tokens on a path are a prefix of some sequence, and prefixes that
are equal up to a block's end are one path. Children are kept in the order of their tokens: the one that shares most of a given text
is a neighbour of the place where that text would stand (O(log children)).

The tree knows content only. Who uses a block is the pool's business (`block_pool.py`), which block goes where is that of
`kv_space.py`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Tokens = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Node:
    """One block's tokens; its keys and values are in `block` of the cache, or else in `slot` of host memory."""

    tokens: Tokens
    parent: Node | None
    block: int | None = None
    slot: int | None = None
    children: dict[Tokens, Node] = field(default_factory=dict)
    keys: list[Tokens] = field(default_factory=list)  # of the children, sorted

    def add(self, tokens: Tokens) -> Node:
        child = self.children[tokens] = Node(tokens, self)
        insort(self.keys, tokens)
        return child

    def remove(self) -> None:
        """Take this node, and with it all that continues it, out of the tree."""
        assert self.parent is not None, "the root stays"
        del self.parent.children[self.tokens]
        del self.parent.keys[bisect_left(self.parent.keys, self.tokens)]

    def nearest(self, tokens: Tokens) -> tuple[Node | None, int]:
        """The child that has most leading tokens in common with `tokens`, and how many."""
        if (same := self.children.get(tokens)) is not None:
            return same, len(tokens)
        place = bisect_left(self.keys, tokens)
        best, most = None, 0
        for key in self.keys[max(place - 1, 0) : place + 1]:
            common = common_length(key, tokens)
            if common > most:
                best, most = self.children[key], common
        return best, most

    def descendants(self) -> Iterator[Node]:
        """All nodes below this one, parents first."""
        stack = list(self.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())


class PrefixTree:
    """Prefixes in blocks of `block_size` tokens; see above."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._roots: dict[str | None, Node] = {}

    def root(self, key: str | None = None) -> Node:
        """The root of all prefixes of a key."""
        if key not in self._roots:
            self._roots = {known: root for known, root in self._roots.items() if root.children}  # those that are left go
            self._roots[key] = Node((), None)
        return self._roots[key]

    def first_blocks(self) -> list[Node]:
        """The nodes that have no parent but a root, of all keys."""
        return [node for root in self._roots.values() for node in root.children.values()]

    def match(self, token_ids: Sequence[int], num_tokens: int, key: str | None = None) -> tuple[list[Node], int]:
        """The longest known prefix of the first `num_tokens` tokens: its nodes, and how many tokens of the last one it takes.

        The second is block_size when the prefix ends with a block, 0 when nothing is known.
        """
        node, path, taken = self.root(key), list[Node](), 0
        for start in range(0, num_tokens, self.block_size):
            wanted = tuple(token_ids[start : min(start + self.block_size, num_tokens)])
            found, common = node.nearest(wanted)
            if found is None:
                break
            node, taken = found, common
            path.append(node)
            if taken < self.block_size:
                break
        return path, taken

    def __iter__(self) -> Iterator[Node]:
        for root in self._roots.values():
            yield from root.descendants()


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading elements are equal."""
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return place
    return min(len(left), len(right))
