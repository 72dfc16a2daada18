"""A mixture of experts over a ragged batch: every token through the experts that were chosen for it.

`reference.py` says what that means in plain PyTorch, one expert after another.
"""

from .reference import grouped_mlp

__all__ = ["grouped_mlp"]
