"""Mask rows on the device: each distinct mask once, shared by all constraints, counted by who uses it."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import torch
from numpy.typing import NDArray

from ..device.uploads import Uploads


class MaskPool:
    """A fixed array of rows. A row that nobody uses stays until its place is needed, the longest unused first."""

    def __init__(self, *, rows: int, reserved: int, words: int, uploads: Uploads) -> None:
        """reserved: the first rows, which are written by others. rows counts them."""
        if rows <= reserved:
            raise ValueError(f"a mask pool needs more rows than the {reserved} that are reserved, got {rows}")
        self.rows = torch.zeros(rows, words, dtype=torch.int32, device=uploads.device)  # [rows, words]
        self._uploads = uploads
        self._row_of: dict[bytes, int] = {}
        self._content: dict[int, bytes] = {}
        self._users: dict[int, int] = {}
        self._unused: OrderedDict[int, None] = OrderedDict()
        self._free = list(range(rows - 1, reserved - 1, -1))

    def __len__(self) -> int:
        """Rows in use."""
        return len(self._users)

    def keep(self, mask: NDArray[np.uint32]) -> int | None:
        """The row that holds this mask, written if it is new, with one more user; None when every row is in use."""
        content = mask.tobytes()
        row = self._row_of.get(content)
        if row is None:
            row = self._place()
            if row is None:
                return None
            self._row_of[content], self._content[row] = row, content
            self._uploads.write_row(self.rows, row, mask.view(np.int32))
        self._unused.pop(row, None)
        self._users[row] = self._users.get(row, 0) + 1
        return row

    def take(self, count: int) -> list[int]:
        """Rows for masks that others write, with one user each; none where there are not so many."""
        rows: list[int] = []
        while len(rows) < count and (row := self._place()) is not None:
            rows.append(row)
        for row in rows:
            self._users[row] = 1
        if len(rows) < count:
            for row in rows:
                self.drop(row)
            return []
        return rows

    def use(self, row: int) -> None:
        """Add one user to a row that is in use."""
        self._users[row] += 1

    def drop(self, row: int) -> None:
        """Take one user from a row; without users it is kept until its place is needed."""
        self._users[row] -= 1
        if not self._users[row]:
            del self._users[row]
            if row in self._content:
                self._unused[row] = None
            else:
                self._free.append(row)

    def _place(self) -> int | None:
        if self._free:
            return self._free.pop()
        if not self._unused:
            return None
        row, _ = self._unused.popitem(last=False)
        del self._row_of[self._content.pop(row)]
        return row
