"""The decorators of loops. An entry point declares its arguments once: numbers of 64 bits, but for those that are named.

    @entry(states="int32[:]", is_open="bool")
    def explore(arena_address, states, is_open): ...

An array is contiguous and aligned, "const" where it is only read. Results are numbers and truth values, alone or in a tuple.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import library

NUMBER, TRUTH = "int64", "bool"
_ARRAY = re.compile(r"(const )?(bool|u?int(?:8|16|32|64)|float(?:32|64))\[(:(?:,:)*)\]")


@dataclass(frozen=True)
class ArrayType:
    """Of an argument. item: as NumPy names it."""

    item: str
    dimensions: int
    is_const: bool


@dataclass(frozen=True)
class Declaration:
    """An entry point: its full name below the package, its function, and the types of its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[str | ArrayType, ...]


class Loops:
    """The loops of one part of the package (`library.PARTS`): from the library, or else compiled by Numba and kept on disk."""

    def __init__(self, part: str) -> None:
        self.stamp = library.stamp(part)
        self.machine_code = library.opened(part, self.stamp)
        self.declared: list[Declaration] = []

    @property
    def is_compiled(self) -> bool:
        """Whether the loops are machine code already, so that Numba is not needed."""
        return self.machine_code is not None

    @property
    def level(self) -> str:
        """Of the processors that the machine code is for: the best that this one has."""
        return str(self.machine_code.levels()[-1])

    def inner(self, function: Callable[..., Any]) -> Any:
        """A function that only loops call."""
        if self.is_compiled:
            return function
        return numba().njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_linking().PartCompiler)(function)

    def entry(self, function: Callable[..., Any] | None = None, /, **types: str) -> Any:
        """A function that Python calls, and that releases the GIL while it runs. types: of the arguments that are not numbers."""
        return self._entry(function, {}) if function is not None else lambda one: self._entry(one, types)

    def _entry(self, function: Callable[..., Any], types: dict[str, str]) -> Any:
        name = f"{function.__module__.removeprefix('maskwright.')}.{function.__name__}"
        if self.is_compiled:
            return self.machine_code.entry(name, self.level)
        code = function.__code__
        arguments = code.co_varnames[: code.co_argcount]
        assert types.keys() <= set(arguments), f"{name} has no such arguments: {types.keys() - set(arguments)}"
        self.declared.append(Declaration(name, function, tuple(type_of(types.get(one, NUMBER)) for one in arguments)))
        # Numba looks at the file of the function alone to see whether what it kept is stale. An entry point holds the code of
        # other files too, and running old code on a new layout of tables would crash, so it is stamped with all of them.
        linked = numba().njit(cache=True, nogil=True, no_cfunc_wrapper=True, pipeline_class=_linking().WholeCompiler)(function)
        cache = getattr(linked, "_cache", None)  # absent when compilation is switched off
        if cache is not None:
            cache._cache_file._source_stamp = self.stamp
        return linked


def call_each(
    entry: Callable[..., Any], words: NDArray[np.int64], results: NDArray[np.int64], starts: NDArray[np.int64], num_threads: int
) -> None:
    """Call an entry point that takes numbers alone once for each row of `words`, and write what it returns to the same row.

    words: int64 [calls, arguments]; results: int64 [calls, results]; starts: int64 [groups + 1]: the calls from starts[k] to
    starts[k + 1] are made one after the other, in one thread. Machine code makes them in several threads, without the GIL; what
    Numba has compiled, or what is Python, in this one.
    """
    if hasattr(entry, "each"):
        entry.each(words, results, starts, num_threads)
        return
    for k in range(starts[0], starts[-1]):
        results[k] = entry(*words[k].tolist())


def type_of(text: str) -> str | ArrayType:
    """A type as it is written."""
    if text in (NUMBER, TRUTH):
        return text
    match = _ARRAY.fullmatch(text)
    assert match is not None, f"{text!r} is not a type of an argument"
    return ArrayType(match[2], match[3].count(":"), match[1] is not None)


def numba() -> Any:
    """Numba, which compiles loops where there is no machine code of them."""
    try:
        import numba as found

        from .. import compile_cache as compile_cache  # before the first function that is kept on disk
    except ImportError as problem:
        raise ImportError(
            "the loops of this installation are not compiled for this machine, and numba, which would compile them now, "
            "is not installed: pip install numba"
        ) from problem
    return found


def _linking() -> Any:
    from . import linking

    return linking
