"""The byte trie of a vocabulary in flat depth-first arrays: what the mask walk reads.

Recursively a trie is `node -> {byte: child}` with the tokens that end at each node. Laid out depth first, children in
byte order, a walk needs no recursion and no stack of nodes: node i + 1 is the first child of node i if it has any, and a
walk that dies at node i goes on at `skip[i]`. Tokens appear in the order of their bytes, so those of a whole subtree are
adjacent in `order`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .byte_order import concatenated
from .vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class TokenTrie:
    """All tokens of a vocabulary that automata read, as a byte trie of n nodes, root excluded. Arrays are read-only.

    Memory: 13 bytes a node, 4 + length bytes a token. For 262k tokens about 0.6 M nodes.
    """

    byte: NDArray[np.uint8]  # [n]  the byte on the edge into the node; nodes depth first, children in byte order
    depth: NDArray[np.int32]  # [n]  1 = first byte of a token
    skip: NDArray[np.int32]  # [n]  the first node after the node's subtree; n at the end
    first: NDArray[np.int32]  # [n + 1]  tokens ending at node i: order[first[i]:first[i + 1]]; below: to first[skip[i]]
    order: NDArray[np.int32]  # [tokens]  ids by their bytes, duplicates adjacent
    max_depth: int  # the length of the longest token in bytes, 0 without tokens
    token_offsets: NDArray[np.int32]  # [V + 1]  bytes of id t: token_bytes[token_offsets[t]:token_offsets[t + 1]]
    token_bytes: NDArray[np.uint8]  # empty for ids that are not read

    @classmethod
    def build(cls, vocabulary: Vocabulary) -> TokenTrie:
        """The trie of the spellings of `vocabulary`."""
        return cls.of_spellings(vocabulary.spelled_ids, *concatenated(vocabulary.spellings))

    @classmethod
    def of_spellings(cls, order: NDArray[np.int32], offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> TokenTrie:
        """The trie of the tokens `order`, sorted by their bytes; the other arguments as the fields `token_offsets` and
        `token_bytes`. O(total bytes) array operations, no Python loop over tokens."""
        lengths = np.diff(offsets)[order]  # [tokens]
        shared = _shared_prefix_lengths(data, offsets[order], lengths)
        is_new = (shared < lengths) | (np.arange(order.size) == 0)  # not a duplicate of the token before
        unique = np.flatnonzero(is_new)
        nodes_of_token = (lengths - shared)[unique]  # nodes on the path that the token before did not have
        end = np.cumsum(nodes_of_token)  # [unique]  one past the last node of the token's own path
        num_nodes = int(end[-1]) if end.size else 0
        owner = np.repeat(np.arange(unique.size), nodes_of_token)  # node -> unique token that created it
        within = np.arange(num_nodes) - np.repeat(end - nodes_of_token, nodes_of_token)
        depth = (within + np.repeat(shared[unique], nodes_of_token) + 1).astype(np.int32)
        byte = data[offsets[order[unique]][owner] + depth - 1]
        ending = np.zeros(num_nodes, np.int64)
        np.add.at(ending, (end - 1)[np.cumsum(is_new) - 1], 1)
        first = np.concatenate([[0], np.cumsum(ending)]).astype(np.int32)
        max_depth = int(lengths.max(initial=0))
        return cls(
            byte=_read_only(byte),
            depth=_read_only(depth),
            skip=_read_only(_skips(depth, max_depth)),
            first=_read_only(first),
            order=_read_only(order),
            max_depth=max_depth,
            token_offsets=_read_only(offsets),
            token_bytes=_read_only(data),
        )

    @property
    def num_nodes(self) -> int:
        return int(self.byte.size)

    def validate(self) -> None:
        """Check the layout described above; AssertionError names what is broken. O(n)."""
        n = self.num_nodes
        assert self.depth.shape == self.skip.shape == (n,) and self.first.shape == (n + 1,)
        assert self.first[0] == 0 and self.first[n] == self.order.size and bool((np.diff(self.first) >= 0).all())
        assert self.max_depth == int(self.depth.max(initial=0))
        assert np.array_equal(np.sort(self.order), np.flatnonzero(np.diff(self.token_offsets)))
        path: list[int] = []  # open nodes, root side first
        for i in range(n):
            while path and self.skip[path[-1]] == i:
                path.pop()
            assert self.depth[i] == len(path) + 1, f"node {i} has depth {self.depth[i]} under {len(path)} open nodes"
            assert i < self.skip[i] <= (self.skip[path[-1]] if path else n), (
                f"the subtree of node {i} leaves its parent"
            )
            assert self.skip[i] > i + 1 or self.first[i] < self.first[i + 1], f"leaf {i} ends no token"
            sibling = self.skip[i]
            if sibling < n and self.depth[sibling] == self.depth[i]:
                assert self.byte[i] < self.byte[sibling], f"nodes {i} and {sibling} are not in byte order"
            path.append(i)
            self._validate_tokens(i, bytes(self.byte[path].tolist()))

    def _validate_tokens(self, node: int, path: bytes) -> None:
        for token_id in self.order[self.first[node] : self.first[node + 1]].tolist():
            assert self.bytes_of(token_id) == path, f"token {token_id} does not spell the path to node {node}"

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes of a token; b"" when it is never text."""
        return self.token_bytes[self.token_offsets[token_id] : self.token_offsets[token_id + 1]].tobytes()


def _shared_prefix_lengths(
    data: NDArray[np.uint8], start: NDArray[np.int32], length: NDArray[np.int32]
) -> NDArray[np.int32]:
    """How many leading bytes each token shares with the one before it (0 for the first). int32 [tokens]."""
    shared = np.zeros(length.size, np.int32)
    equal_so_far = np.arange(1, length.size)
    limit = np.minimum(length[1:], length[:-1])
    position = 0
    while equal_so_far.size:
        equal_so_far = equal_so_far[limit[equal_so_far - 1] > position]
        same = data[start[equal_so_far] + position] == data[start[equal_so_far - 1] + position]
        equal_so_far = equal_so_far[same]
        position += 1
        shared[equal_so_far] = position
    return shared


def _skips(depth: NDArray[np.int32], max_depth: int) -> NDArray[np.int32]:
    """The next node that is not deeper, level by level from the root: the next on the same level under the same parent,
    else where the parent's subtree ends."""
    n = depth.size
    skip = np.empty(n, np.int32)
    by_level = np.argsort(depth, kind="stable").astype(np.int32)
    ends = np.searchsorted(depth[by_level], np.arange(1, max_depth + 1), side="right")
    parents, parent_skip = np.array([-1], np.int32), np.array([n], np.int32)
    begin = 0
    for end in ends.tolist():
        nodes = by_level[begin:end]
        parent = np.searchsorted(parents, nodes, side="right") - 1
        after = np.append(nodes[1:], n)
        skip[nodes] = np.minimum(after, parent_skip[parent])
        parents, parent_skip, begin = nodes, skip[nodes], end
    return skip


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
