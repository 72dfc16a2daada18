"""The pool of KV-cache blocks: who uses which block, never what is in it.

Properties: every block is free, idle, or has at least one user. An idle block has no user, but its content is remembered (by the
prefix tree) and may be shared again; it is handed out like a free one when no free one is left, least recently used first,
pinned ones last. `allocate` and `share` add one user to each block they return, `release` removes one. All operations cost
O(blocks named).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence


class BlockPool:
    """`num_blocks` blocks with reference counts. The most recently freed block is handed out first: it may be in cache.

    on_evict: called with an idle block before it is handed out; whoever remembered it must forget it.
    max_pinned: idle blocks that are kept as pinned; the least recently used beyond that are idle like all others.
    """

    def __init__(
        self, num_blocks: int, on_evict: Callable[[int], None] | None = None, max_pinned: int | None = None
    ) -> None:
        self._free = list(range(num_blocks - 1, -1, -1))
        self._num_users = [0] * num_blocks
        self._is_pinned: dict[int, bool] = {}  # of the remembered blocks
        self._idle: OrderedDict[int, None] = OrderedDict()  # least recently used first
        self._idle_pinned: OrderedDict[int, None] = OrderedDict()
        self._on_evict = on_evict
        self._max_pinned = num_blocks // 4 if max_pinned is None else max_pinned

    @property
    def num_free(self) -> int:
        """Blocks that can be allocated: the free and the idle ones."""
        return len(self._free) + self.num_idle

    @property
    def num_idle(self) -> int:
        return len(self._idle) + len(self._idle_pinned)

    @property
    def num_blocks(self) -> int:
        return len(self._num_users)

    def allocate(self, count: int) -> list[int]:
        """`count` blocks, each now with one user. The caller has checked `num_free`."""
        assert count <= self.num_free, f"{count} blocks wanted, {self.num_free} free"
        blocks = [self._take() for _ in range(count)]
        for block in blocks:
            self._num_users[block] = 1
        return blocks

    def share(self, blocks: Sequence[int]) -> None:
        """Add one user to each of these blocks, which are in use or idle."""
        for block in blocks:
            if self._num_users[block] == 0:
                self._queue_of(block).pop(block)
            self._num_users[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """Take one user from each of these blocks; blocks without users become idle when remembered, else free."""
        for block in blocks:
            assert self._num_users[block] > 0, f"block {block} is free already"
            self._num_users[block] -= 1
            if self._num_users[block] == 0:
                self._retire(block)

    def remember(self, block: int) -> None:
        """From now on this block, which is in use, becomes idle instead of free."""
        assert self._num_users[block] > 0, f"block {block} has no user"
        self._is_pinned[block] = False

    def forget(self, block: int) -> None:
        """The content of this block is not wanted any more."""
        if self._num_users[block] == 0:
            self._queue_of(block).pop(block)
            self._free.append(block)
        del self._is_pinned[block]

    def pin(self, block: int) -> None:
        """A remembered block is handed out after all that are not pinned."""
        is_idle = self._num_users[block] == 0
        if is_idle:
            self._queue_of(block).pop(block)
        self._is_pinned[block] = True
        if is_idle:
            self._idle_pinned[block] = None

    def touch(self, block: int) -> None:
        """An idle block becomes the one used last; nothing happens to others."""
        if self._num_users[block] == 0:
            self._queue_of(block).move_to_end(block)

    def num_users(self, block: int) -> int:
        return self._num_users[block]

    def idle_blocks(self) -> list[int]:
        """The idle blocks in the order in which they will be handed out."""
        return [*self._idle, *self._idle_pinned]

    def validate(self) -> None:
        """Check the invariants; for tests."""
        without_users = {block for block, users in enumerate(self._num_users) if users == 0}
        assert sorted([*self._free, *self.idle_blocks()]) == sorted(without_users)
        assert set(self.idle_blocks()) == without_users & set(self._is_pinned)
        assert all(self._is_pinned[block] for block in self._idle_pinned)

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        block = next(iter(self._idle or self._idle_pinned))
        if self._on_evict is not None:
            self._on_evict(block)
        self.forget(block)
        return self._free.pop()

    def _retire(self, block: int) -> None:
        if block not in self._is_pinned:
            self._free.append(block)
            return
        self._queue_of(block)[block] = None
        if len(self._idle_pinned) > self._max_pinned:
            demoted, _ = self._idle_pinned.popitem(last=False)
            self._is_pinned[demoted] = False
            self._idle[demoted] = None

    def _queue_of(self, block: int) -> OrderedDict[int, None]:
        assert block in self._is_pinned, f"block {block} is free"
        return self._idle_pinned if self._is_pinned[block] else self._idle
