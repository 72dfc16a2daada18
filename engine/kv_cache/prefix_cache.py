"""Which prefixes are known and where: in blocks of the cache, or in host memory, to which they move when the room is needed.

Invariants: a block's parent is in the cache too, and is used whenever the block is, given back after it; so what is least recently
used is a leaf. A node of the tree has a block or a slot of host memory, never both.

What is to be copied, saved and loaded is noted in `transfers`, in the order in which it is to be carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .block_pool import BlockPool
from .host_slots import HostSlots
from .prefix_tree import Node, PrefixTree


class Transfer(NamedTuple):
    """copy: block -> block; save: block -> slot of host memory; load: slot -> block; wipe: the target block becomes zeros."""

    kind: Literal["copy", "save", "load", "wipe"]
    source: int
    target: int


class Restored(NamedTuple):
    """Lay keys and values that a sequence brought with it down in a block."""

    kind: Literal["restore"]
    content: Any  # see `kept_blocks.py`
    target: int


@dataclass(slots=True)
class SpaceStatistics:
    """What was found, copied, evicted and moved since the engine started, in tokens and blocks."""

    num_prompt_tokens: int = 0  # of admitted sequences
    num_cached_tokens: int = 0  # of these, those whose keys and values were known
    num_copies: int = 0  # blocks copied before somebody wrote into them
    num_evicted: int = 0  # known blocks that made room
    num_saved: int = 0  # of these, those that moved to host memory
    num_loaded: int = 0  # blocks that came back from there

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were not computed again."""
        return self.num_cached_tokens / self.num_prompt_tokens if self.num_prompt_tokens else 0.0


class PrefixCache:
    """The known prefixes: a tree over their tokens, the pool of blocks, and slots of host memory."""

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        num_host_blocks: int,
        transfers: list[Transfer | Restored],
        statistics: SpaceStatistics,
    ) -> None:
        self.block_size = block_size
        self.pool = BlockPool(num_blocks, self._evict)
        self.tree = PrefixTree(block_size)
        self.host = HostSlots(num_host_blocks)
        self._node_of: dict[int, Node] = {}  # block -> node
        self._transfers, self._statistics = transfers, statistics

    def __contains__(self, block: int) -> bool:
        """Whether what is in this block is known."""
        return block in self._node_of

    def node_of(self, block: int) -> Node | None:
        return self._node_of.get(block)

    # ---- used by a sequence

    def hold(self, nodes: list[Node]) -> None:
        """Keep these nodes from being evicted; those in host memory have to be loaded, or kept again."""
        for node in nodes:
            if node.block is not None:
                self.pool.share([node.block])
            else:
                self.host.hold(node)

    def load(self, node: Node) -> None:
        """Bring back what is in host memory, into a block with one user."""
        (block,) = self.pool.allocate(1)
        assert node.slot is not None
        self._transfers.append(Transfer("load", node.slot, block))
        self._statistics.num_loaded += 1
        self.learn(node, block)

    def copy_of(self, node: Node) -> int:
        """A block that begins with the tokens of a known one, which nobody shares.

        The known one may be evicted for it, even be handed out itself: its content is there until the transfers begin, and
        they keep their order.
        """
        block, slot = node.block, None if node.slot is None else self.host.hold(node)
        (own,) = self.pool.allocate(1)
        self._statistics.num_copies += 1
        if slot is not None:
            self._transfers.append(Transfer("load", slot, own))
            self.host.keep(node)
        elif block is not None and block != own:
            self._transfers.append(Transfer("copy", block, own))
        return own

    def touch(self, node: Node) -> None:
        if node.block is not None:
            self.pool.touch(node.block)

    # ---- what is known

    def learn(self, node: Node, block: int) -> Node:
        """Note that a node's keys and values are in this block; they need not be in host memory any more."""
        if node.slot is not None:
            self.host.drop(node)
        node.block = block
        self._node_of[block] = node
        self.pool.remember(block)
        return node

    def unlearn(self, node: Node) -> None:
        """Forget a node and all that continues it, whoever uses their blocks."""
        for each in [node, *node.descendants()]:
            if each.block is not None:
                self.pool.forget(each.block)
                del self._node_of[each.block]
            if each.slot is not None:
                self.host.drop(each)
        node.remove()

    def unlearn_part(self, block: int) -> None:
        """Forget this block if it was remembered before it was full: a fork that left it did that."""
        node = self._node_of.get(block)
        if node is not None and len(node.tokens) < self.block_size:
            self.unlearn(node)

    def validate(self) -> None:
        """Check the invariants; for tests."""
        self.pool.validate()
        self.host.validate()
        order = {block: turn for turn, block in enumerate(self.pool.idle_blocks())}
        for node in self.tree:
            assert (node.block is None) != (node.slot is None)
            assert not node.children or len(node.tokens) == self.block_size
            assert node.keys == sorted(node.children)
            if node.block is not None:
                assert self._node_of[node.block] is node
            if node.parent is not None and node.parent.parent is not None:
                assert node.block is None or node.parent.block is not None, "a block's parent is in the cache too"
                _validate_order(node, node.parent, order)
        assert len(self._node_of) == sum(node.block is not None for node in self.tree)

    # ---- inside

    def _evict(self, block: int) -> None:
        """Move what an idle block holds to host memory, or forget it: the pool hands the block out."""
        node = self._node_of.pop(block)
        node.block = None
        self._statistics.num_evicted += 1
        if self.host.is_full and self.host.oldest is not None:
            self._forget(self.host.oldest)
        if self.host.is_full:
            self._forget(node)
        else:
            self._transfers.append(Transfer("save", block, self.host.put(node)))
            self._statistics.num_saved += 1

    def _forget(self, node: Node) -> None:
        """Forget a node that is not in the cache, and all that continues it."""
        for each in [node, *node.descendants()]:
            if each.slot is not None:
                self.host.drop(each)
        node.remove()


def _validate_order(node: Node, parent: Node, order: dict[int, int]) -> None:
    if parent.block in order:
        assert node.block is None or order.get(node.block, len(order)) < order[parent.block], "leaves are evicted first"
