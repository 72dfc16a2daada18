"""Views: values of compiled code whose attributes are words of an array, loaded where they are used.

`layout` (tables.py) is such a view: `t.next` is the word of the arena that says where the table `next` begins. A named
tuple of a hundred offsets would be copied for every call of a function that is not inlined, which takes longer than
what most of them do. A view is one address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .jit import LOOPS


@dataclass(frozen=True)
class Word:
    """The value of an attribute: a word of the array plus a constant; or its distance from another word, in units of
    2^shift."""

    index: int
    plus: int = 0
    since: int | None = None
    shift: int = 0


def view(name: str, words: dict[str, Word]) -> Any:
    """A compiled function of an array of int32 words (its address, see `words_at`) that returns a view of it; None where the loops
    are compiled already.

    The words must not change while compiled code runs.
    """
    if LOOPS.is_compiled:
        return None
    from .view_lowering import lowered

    return lowered(name, words)
