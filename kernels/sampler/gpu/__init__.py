"""The sampler as Triton kernels: the same operation as `reference.sample`, on a GPU (or, in tests, in Triton's interpreter)."""

from __future__ import annotations

from .launch import sample

__all__ = ["sample"]
