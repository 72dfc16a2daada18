"""Arrays of compiled code that are addresses."""

from __future__ import annotations

from numba.core import types
from numba.extending import intrinsic


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
