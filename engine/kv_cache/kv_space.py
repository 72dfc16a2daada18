"""Where the keys and values of every sequence are: in blocks of their own, in shared ones, or waiting in host memory.

A sequence is admitted with the longest prefix that is known already, so that only the rest is computed. Whole blocks are shared;
of the block in which the prefix ends a copy is made. A block is known from the moment in which its computation is planned: all keys
and values of a step are written before any is read, so sequences of the same step may share it. What a finished or preempted
sequence leaves stays known until the room is needed; then it moves to host memory, if there is any, and comes back when asked for.
So preemption means recomputing only what found no place.

Invariants: whoever uses a known block uses the blocks before it, and gives them back after it. Blocks that others use too are never
written, but copied first (`grow`).

Transfers (`take_transfers`) are to be carried out in their order before the step's forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..limits import Limits
from .block_pool import BlockPool
from .host_slots import HostSlots
from .prefix_cache import PrefixCache, Restored, SpaceStatistics, Transfer
from .prefix_tree import Node, Tokens


@dataclass(frozen=True, slots=True)
class Brought:
    """Keys and values that a sequence brings from elsewhere: of its first `num_tokens` tokens, block by block."""

    blocks: tuple[Any, ...]
    num_tokens: int
    is_trusted: bool = False  # others may share them; they cannot be told from wrong ones without computing them


class Occupant(Protocol):
    """What the space sees of a sequence."""

    token_ids: list[int]  # prompt and output so far
    block_table: list[int]
    num_computed: int  # leading tokens whose keys and values are in the cache, at most all but one
    num_cached: int | None  # prompt tokens that were known when it was admitted first; None before

    @property
    def cache_key(self) -> str | None: ...  # blocks are shared by those with the same key

    @property
    def num_tokens(self) -> int: ...  # len(token_ids)

    @property
    def num_pinned(self) -> int: ...  # leading tokens that others will begin with too

    @property
    def reads_all(self) -> bool: ...  # every token of the prompt is to be computed, known or not


class KVSpace:
    """Gives sequences their blocks. `reuses` = False: every sequence has blocks of its own, and nothing is remembered."""

    def __init__(self, limits: Limits, *, reuses: bool = True, num_host_blocks: int = 0) -> None:
        self.block_size = limits.block_size
        self.reuses = reuses
        self.statistics = SpaceStatistics()
        self._num_blocks_in_all, self._num_host_blocks = limits.num_blocks, num_host_blocks
        self._transfers: list[Transfer | Restored] = []
        self._min_copied = max(1, limits.block_size // 4)  # fewer tokens are computed sooner than copied
        self.clear()

    def clear(self) -> None:
        """Begin anew: no block has a user, and nothing is known. Sequences are to be given to `admit` again, without blocks."""
        self._transfers = [transfer for transfer in self._transfers if transfer.kind == "wipe"]
        self._known = PrefixCache(
            self._num_blocks_in_all, self.block_size, self._num_host_blocks, self._transfers, self.statistics
        )
        self._is_planned: set[int] = set()  # blocks whose content is computed in this step only
        self._forked: set[int] = set()  # blocks in which a fork began, while they have several users
        self._brought: dict[Occupant, Brought] = {}  # of sequences that were not admitted yet
        self._private: set[Occupant] = set()  # whose blocks nobody is to share, but for forks

    @property
    def pool(self) -> BlockPool:
        return self._known.pool

    @property
    def host(self) -> HostSlots:
        return self._known.host

    # ---- a sequence's blocks

    def num_needed(self, sequence: Occupant, num_more: int = 0) -> int:
        """Blocks that admitting a waiting sequence takes, and its next `num_more` tokens."""
        path, taken = self._match(sequence)
        whole = _whole(path, taken, self.block_size)
        in_use = sum(1 for node in whole if node.block is not None and self.pool.num_users(node.block))
        return self._num_blocks(sequence.num_tokens + num_more) - in_use

    def admit(self, sequence: Occupant) -> None:
        """Give a waiting sequence its blocks; `num_computed` says how much of it is known. The caller has checked `num_needed`."""
        path, taken = self._match(sequence)
        whole = _whole(path, taken, self.block_size)
        self._known.hold(whole)
        part = self._known.copy_of(path[-1]) if len(whole) < len(path) else None
        for node in whole:
            if node.block is None:
                self._known.load(node)
            self._take(sequence, node)
        if part is not None:
            sequence.block_table.append(part)
            sequence.num_computed += taken
        if (brought := self._brought.pop(sequence, None) if self._brought else None) is not None:
            self._unpack(sequence, brought)
        if sequence.num_cached is None:
            sequence.num_cached = sequence.num_computed
            self.statistics.num_prompt_tokens += sequence.num_tokens
            self.statistics.num_cached_tokens += sequence.num_computed
        self.grow(sequence, sequence.num_tokens)

    def num_missing(self, sequence: Occupant, num_tokens: int) -> int:
        """Blocks to be allocated before the tokens from num_computed up to num_tokens can be written."""
        missing = -(-num_tokens // self.block_size) - len(sequence.block_table)
        shared = 1 if self._forked and self._writes_shared(sequence) else 0
        return (missing if missing > 0 else 0) + shared

    def grow(self, sequence: Occupant, num_tokens: int) -> None:
        """Let a sequence write up to `num_tokens` tokens: more blocks, and a copy of the next one if others use it."""
        if self._forked and self._writes_shared(sequence):
            place = sequence.num_computed // self.block_size
            (own,) = self.pool.allocate(1)
            self._transfers.append(Transfer("copy", sequence.block_table[place], own))
            self.statistics.num_copies += 1
            self.pool.release([sequence.block_table[place]])
            sequence.block_table[place] = own
        if missing := self.num_missing(sequence, num_tokens):
            sequence.block_table += self.pool.allocate(missing)

    def release(self, sequence: Occupant) -> None:
        """Take a sequence's blocks; what they hold stays known while there is room."""
        path = self._remember_all(sequence) if self._shares(sequence) else []
        self.pool.release(reversed(sequence.block_table))
        for node in reversed(path):
            self._known.touch(node)
        if self._forked:
            self._forked = {block for block in self._forked if self.pool.num_users(block) > 1}
        sequence.block_table.clear()
        sequence.num_computed = 0
        self._brought.pop(sequence, None)
        self._private.discard(sequence)

    @property
    def has_forks(self) -> bool:
        """Some sequences share a block that one of them will write to."""
        return bool(self._forked)

    def bring(self, sequence: Occupant, brought: Brought) -> None:
        """This waiting sequence is to be admitted with what it brings, which is laid down before the next forward pass."""
        self._brought[sequence] = brought

    def fork(self, parent: Occupant, child: Occupant) -> None:
        """The child, which has the parent's tokens, shares all blocks in which something was computed."""
        child.block_table[:] = parent.block_table[: self._num_blocks(parent.num_computed)]
        child.num_computed = parent.num_computed
        self.pool.share(child.block_table)
        if parent in self._private:
            self._private.add(child)
        if parent.num_computed % self.block_size:
            self._forked.add(child.block_table[-1])

    # ---- what is known

    def begin_step(self) -> None:
        self._is_planned.clear()

    def plan(self, sequence: Occupant, num_tokens: int) -> None:
        """The sequence's tokens up to `num_tokens` are computed in this step: its full blocks are known from now on.

        A block that ends with a token nobody has read yet becomes known on release.
        """
        begin, end = sequence.num_computed // self.block_size, min(num_tokens, len(sequence.token_ids)) // self.block_size
        if self._shares(sequence) and begin < end:
            for place in range(max(begin - 1, 0), end):  # accepted drafts may have filled the one before
                self._remember(sequence, place)

    def skip_known(self, sequence: Occupant) -> None:
        """Pass over what others have computed, or compute in this step, since the sequence was admitted."""
        size = self.block_size
        if not self.reuses or sequence.reads_all:
            return
        while sequence.num_computed % size == 0 and sequence.num_computed + size < sequence.num_tokens:
            place = sequence.num_computed // size
            parent = self._node_before(sequence, place)
            known = None if parent is None else parent.children.get(self._tokens(sequence, place))
            if known is None or known.block is None or known.block == sequence.block_table[place]:
                return
            self.pool.share([known.block])
            self.pool.release([sequence.block_table[place]])
            sequence.block_table[place] = known.block
            sequence.num_computed += size
            self._pin(sequence, place)

    def disown(self, sequence: Occupant, num_trusted: int) -> set[int]:
        """Forget what a sequence's blocks hold behind its first `num_trusted` tokens: it was not computed.

        Returns those blocks. Others that share one of them are to begin anew where it begins.
        """
        size = self.block_size
        sequence.num_computed = min(sequence.num_computed, num_trusted)
        for place in range(num_trusted // size, len(sequence.block_table)):
            node = self._known.node_of(sequence.block_table[place])
            if node is not None and place * size + len(node.tokens) > num_trusted:
                self._known.unlearn(node)
        return set(sequence.block_table[num_trusted // size :])

    def wipe(self, sequence: Occupant) -> None:
        """Forget all that a sequence's blocks hold, and clear those of its own: NaN in them harms even with a weight of 0."""
        self.disown(sequence, 0)
        own = [block for block in sequence.block_table if self.pool.num_users(block) == 1]
        self._transfers += [Transfer("wipe", block, block) for block in own]

    def forget(self) -> None:
        """Forget all that is known; between steps. Who runs keeps its blocks, and what those hold is known again when it ends."""
        for node in self._known.tree.first_blocks():
            self._known.unlearn(node)

    def num_known(self, token_ids: Sequence[int], cache_key: str | None) -> int:
        """How many leading tokens have their keys and values in the cache or in host memory."""
        if not self.reuses:
            return 0
        path, taken = self._known.tree.match(token_ids, len(token_ids), cache_key)
        return (len(path) - 1) * self.block_size + taken if path else 0

    def take_transfers(self) -> list[Transfer | Restored]:
        taken = list(self._transfers)
        self._transfers.clear()
        return taken

    def validate(self) -> None:
        """Check the invariants; for tests."""
        self._known.validate()

    # ---- inside

    def _match(self, sequence: Occupant) -> tuple[list[Node], int]:
        """The known prefix, at most all tokens but one: the last one's logits are wanted."""
        if not self.reuses or sequence.reads_all or sequence in self._brought:
            return [], 0
        path, taken = self._known.tree.match(sequence.token_ids, sequence.num_tokens - 1, sequence.cache_key)
        if path and taken < self.block_size and (taken < self._min_copied or path[-1].block in self._is_planned):
            path, taken = path[:-1], self.block_size
        return path, taken

    def _shares(self, sequence: Occupant) -> bool:
        """Whether what is computed for this sequence may be remembered."""
        return self.reuses and sequence not in self._private

    def _unpack(self, sequence: Occupant, brought: Brought) -> None:
        blocks = self.pool.allocate(len(brought.blocks))
        self._transfers += [Restored("restore", *pair) for pair in zip(brought.blocks, blocks, strict=True)]
        sequence.block_table += blocks
        sequence.num_computed = brought.num_tokens
        if not brought.is_trusted:
            self._private.add(sequence)
        elif self.reuses:
            for place in range(brought.num_tokens // self.block_size):
                self._remember(sequence, place)

    def _take(self, sequence: Occupant, node: Node) -> None:
        """A whole known block becomes the sequence's next one."""
        assert node.block is not None
        sequence.block_table.append(node.block)
        sequence.num_computed += self.block_size
        self._pin(sequence, len(sequence.block_table) - 1)

    def _remember(self, sequence: Occupant, place: int) -> None:
        """Make the sequence's full block at `place` known, unless another one is in its stead."""
        parent, block = self._node_before(sequence, place), sequence.block_table[place]
        self._known.unlearn_part(block)
        if parent is None or block in self._known:
            return
        tokens = self._tokens(sequence, place)
        node = parent.children.get(tokens) or parent.add(tokens)
        if node.block is None:
            self._known.learn(node, block)
            self._pin(sequence, place)
            self._is_planned.add(block)

    def _remember_all(self, sequence: Occupant) -> list[Node]:
        """Make all that was computed known, also the block it ends in; the nodes on its path."""
        node, path, on_own_blocks = self._known.tree.root(sequence.cache_key), list[Node](), True
        for place in range(self._num_blocks(sequence.num_computed)):
            tokens = self._tokens(sequence, place)[: sequence.num_computed - place * self.block_size]
            if len(tokens) < self.block_size and (len(tokens) < self._min_copied or node.nearest(tokens)[1] == len(tokens)):
                break
            block, known = sequence.block_table[place], node.children.get(tokens)
            if known is None or known.block is None:
                is_forks_too = not on_own_blocks and self.pool.num_users(block) > 1  # which does not use the blocks before
                if block in self._known or is_forks_too:
                    break
                known = self._known.learn(known or node.add(tokens), block)
            node, on_own_blocks = known, on_own_blocks and known.block == block
            if (place + 1) * self.block_size <= sequence.num_pinned and node.block is not None:
                self.pool.pin(node.block)
            path.append(node)
        return path

    def _pin(self, sequence: Occupant, place: int) -> None:
        if (place + 1) * self.block_size <= sequence.num_pinned:
            self.pool.pin(sequence.block_table[place])

    def _writes_shared(self, sequence: Occupant) -> bool:
        """The block into which the next token goes has other users; but those wait for it when it is computed in this step."""
        place, offset = divmod(sequence.num_computed, self.block_size)
        if not offset or place >= len(sequence.block_table):
            return False
        block = sequence.block_table[place]
        return self.pool.num_users(block) > 1 and block not in self._is_planned

    def _node_before(self, sequence: Occupant, place: int) -> Node | None:
        return self._known.node_of(sequence.block_table[place - 1]) if place else self._known.tree.root(sequence.cache_key)

    def _tokens(self, sequence: Occupant, place: int) -> Tokens:
        return tuple(sequence.token_ids[place * self.block_size : (place + 1) * self.block_size])

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)


def _whole(path: list[Node], taken: int, block_size: int) -> list[Node]:
    """The nodes that a prefix takes whole."""
    return path if taken in (0, block_size) else path[:-1]
