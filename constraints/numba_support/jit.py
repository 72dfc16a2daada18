"""The two decorators of compiled functions: `entry` for those that Python calls, `inner` for those that only compiled
code calls.

Only entry points are kept on disk. Each holds the machine code of everything it reaches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba as nb
from numba.core import types
from numba.extending import intrinsic

from .linking import PartCompiler, WholeCompiler

# The rooms that hold compiled code, and what it takes constants from. More is hashed than compiled: nothing can be forgotten.
_ROOMS = ("base", "numba_support", "vocabulary", "automaton", "masks", "uniqueness", "token_automaton")


def stamped_sources() -> list[Path]:
    """The sources of compiled code."""
    folder = Path(__file__).parents[1]
    return sorted(path for room in _ROOMS for path in (folder / room).glob("*.py"))


def _stamp() -> str:
    """A digest that changes with any source of compiled code."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in stamped_sources())).hexdigest()


_STAMP = _stamp()

inner: Callable[[Callable[..., Any]], Any] = nb.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=PartCompiler)


@intrinsic
def words_at(typing_context, address):  # type: ignore[no-untyped-def]
    """An int32 array in compiled code, given by its address, which costs a call a tenth of what an array does.

    Indexing it is one instruction; indexing an array looks whether the index is negative, and passing one on counts
    references. The caller keeps the memory alive.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int32)(types.int64), generate


@intrinsic
def pointer(typing_context, array):  # type: ignore[no-untyped-def]
    """The memory of an array, as `words_at` gives it, for an array that is an argument of the entry point."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


def entry(function: Callable[..., Any]) -> Any:
    """Compile an entry point, which releases the GIL while it runs.

    Numba looks at the file of the function alone to see whether what it kept is stale. An entry point holds the code of
    other files too, and running old code on a new layout of tables would crash, so it is stamped with all of them.
    """
    compiled = nb.njit(cache=True, nogil=True, no_cfunc_wrapper=True, pipeline_class=WholeCompiler)(function)
    cache = getattr(compiled, "_cache", None)  # absent when compilation is switched off
    if cache is not None:
        cache._cache_file._source_stamp = _STAMP
    return compiled
