"""What loops call to get at records (records.py): the view at an address, the record at some words, words at an address.

Numba knows these functions from record_lowering.py. Where the loops are compiled already, nothing calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from .jit import LOOPS
from .records import Record, View, Word, Words, words_of_address

R = TypeVar("R", bound=Record)
V = TypeVar("V", bound=View)


def view(cls: type[V], words: Mapping[str, Word]) -> Callable[[int], V]:
    """A function of loops: the view at an address. None where the loops are compiled already. words: where its attributes are."""
    hints = get_type_hints(cls)
    cls.WORDS, cls.KINDS = words, {name: hints[name] for name in words}
    if LOOPS.is_compiled:
        return None  # type: ignore[return-value]
    from .record_lowering import view_at

    made: Callable[[int], V] = view_at(cls)
    return made


def record(cls: type[R]) -> Callable[[Words], R]:
    """A function of loops: the record that begins with the first of some words. None where the loops are compiled already."""
    if LOOPS.is_compiled:
        return None  # type: ignore[return-value]
    from .record_lowering import record_at

    made: Callable[[Words], R] = record_at(cls)
    return made


words_at: Callable[[int], Words]
pointer: Any
if LOOPS.is_compiled:
    words_at = words_of_address  # nothing in Python calls them
    pointer = None
else:
    from .record_lowering import pointer, words_at  # noqa: F401
