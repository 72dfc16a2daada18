"""Where rows are unpacked."""

from __future__ import annotations

import threading

import torch
from torch import Tensor


class Scratch(threading.local):
    """Each thread's own: memory that is asked for at every product costs as much as what is done in it."""

    weights = torch.empty(0)

    def of(self, num_rows: int, num_columns: int) -> Tensor:
        """float32 [num_rows, num_columns], of no particular content, until this thread asks again."""
        if self.weights.numel() < num_rows * num_columns:
            with torch.inference_mode(False):  # what is made in it may not be written outside of it
                self.weights = torch.empty(num_rows * num_columns)
        return self.weights[: num_rows * num_columns].view(num_rows, num_columns)


scratch = Scratch()
