"""The pool of KV-cache blocks: who uses which block, never what is in it.

Properties: every block is either free or has at least one user; `allocate` and `share` add one user to each block they
return, `release` removes one. A prefix tree holds blocks as one more user. All operations cost O(blocks named).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class BlockPool:
    """`num_blocks` blocks with reference counts. The most recently freed block is handed out first: it may be in cache."""

    def __init__(self, num_blocks: int) -> None:
        self._free = list(range(num_blocks - 1, -1, -1))
        self._num_users = [0] * num_blocks

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_blocks(self) -> int:
        return len(self._num_users)

    def allocate(self, count: int) -> list[int]:
        """`count` free blocks, each now with one user. The caller has checked `num_free`."""
        assert count <= self.num_free, f"{count} blocks wanted, {self.num_free} free"
        blocks = [self._free.pop() for _ in range(count)]
        for block in blocks:
            self._num_users[block] = 1
        return blocks

    def share(self, blocks: Sequence[int]) -> None:
        """One more user for each of these blocks, which are in use."""
        for block in blocks:
            assert self._num_users[block] > 0, f"block {block} is free"
            self._num_users[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """One user less for each of these blocks; those without users become free."""
        for block in blocks:
            assert self._num_users[block] > 0, f"block {block} is free already"
            self._num_users[block] -= 1
            if self._num_users[block] == 0:
                self._free.append(block)

    def num_users(self, block: int) -> int:
        return self._num_users[block]

    def validate(self) -> None:
        """Check the invariants; for tests."""
        assert sorted(self._free) == [block for block, users in enumerate(self._num_users) if users == 0]
