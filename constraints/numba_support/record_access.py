"""What loops call to get at records (records.py): the view at an address, the record at some words, words at an address.

Numba knows these functions from record_lowering.py. Where the loops are compiled already, nothing calls them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from numpy.typing import NDArray

from .jit import LOOPS
from .records import Record, View, Word, Words, words_of_address

IN_PYTHON = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")  # loops run as they are written, for a look at them
P = TypeVar("P", bound=Record | View)
V = TypeVar("V", bound=View)


def lay_out(cls: type[View], words: Mapping[str, Word] | None = None) -> None:
    """Say where the attributes of a view are: by default each is told by a word, in their order."""
    hints = get_type_hints(cls)
    cls.WORDS = words or {name: Word(i) for i, name in enumerate(cls.__annotations__)}
    cls.KINDS = {name: _plain(hints[name]) for name in cls.WORDS}


def view(cls: type[V], words: Mapping[str, Word] | None = None) -> Callable[[int], V]:
    """A function of loops: the view at an address. None where the loops are compiled already. words: see `lay_out`."""
    lay_out(cls, words)
    if LOOPS.is_compiled:
        return None  # type: ignore[return-value]
    if IN_PYTHON:
        return lambda address: cls(words_of_address(address))
    from .record_lowering import view_at

    made: Callable[[int], V] = view_at(cls)
    return made


def _plain(hint: Any) -> Any:
    """A type as loops know it: ids are numbers."""
    while hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    return hint


def part(cls: type[P]) -> Callable[[Words], P]:
    """A function of loops: the record or view that begins with the first of some words. None where the loops are compiled
    already."""
    if LOOPS.is_compiled:
        return None  # type: ignore[return-value]
    if IN_PYTHON:
        return cls
    from .record_lowering import part_at

    made: Callable[[Words], P] = part_at(cls)
    return made


def _pointer(array: NDArray[Any]) -> Words:
    """As in compiled code: the memory of an array."""
    return Words(array.reshape(-1))


words_at: Callable[[int], Words]
pointer: Any
if LOOPS.is_compiled or IN_PYTHON:
    words_at, pointer = words_of_address, _pointer
else:
    from .record_lowering import pointer, words_at  # noqa: F401
