"""The decorators of the core's loops: `entry` for those that Python calls, `inner` for those that only loops call.

Only entry points are kept. Each holds the machine code of everything it reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ...foundation.compiled_loops.declarations import Loops

LOOPS = Loops("constraints")
F = TypeVar("F", bound=Callable[..., Any])


if TYPE_CHECKING:  # functions of loops are what they are written as

    @overload
    def entry(function: F, /) -> F: ...
    @overload
    def entry(**types: str) -> Callable[[F], F]: ...
    def entry(function: Any = None, /, **types: str) -> Any: ...
else:
    entry = LOOPS.entry


def inner(function: F) -> F:
    """A function that only loops call. It is compiled for numbers, not once more for each constant that it is called with."""
    made: Any = LOOPS.inner(function)
    if not LOOPS.is_compiled and hasattr(made, "get_call_template"):  # compilation may be switched off
        from .signatures import take_numbers

        take_numbers(made)
    return cast("F", made)
