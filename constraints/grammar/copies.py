"""Repetitions as nodes: `low` to `high` copies of an expression; equal repetitions are one node."""

from __future__ import annotations

from typing import Final

from ..base.kinds import UNBOUNDED, Kind
from .store import Node, NodeStore

_MOST_COPIES: Final = 1 << 30  # that a repetition of a repetition is written with
_REPEAT: Final = int(Kind.REPEAT)  # reading a member is slow


def repeated(store: NodeStore, body: Node, low: int, high: int | None) -> Node:
    """`low` to `high` copies, at least one of them possible, of a body that is neither EMPTY nor FAIL; see `Grammar.repeat`."""
    if (low, high) == (1, 1):
        return body
    if store.rows[4 * body] == _REPEAT:
        part, least, most = store.operands(body)
        if (bounds := _product((least, None if most == UNBOUNDED else most), (low, high))) is not None:
            return repeated(store, Node(part), *bounds)
    return store.intern((_REPEAT, body, low, UNBOUNDED if high is None else high))


def _product(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> tuple[int, int | None] | None:
    """The bounds of `outer` copies of `inner` copies, when every number between the two bounds can be had; else None.

    If both were counted, every way to split the copies among the two counters would be another continuation.
    """
    (least, most), (low, high) = inner, outer
    has_no_gap = low == high or (least <= 1 if low == 0 else most is None or (low + 1) * least <= low * most + 1)
    bounds = low * least, None if most is None or high is None else high * most
    return bounds if has_no_gap and max(bounds[0], bounds[1] or 0) <= _MOST_COPIES else None
