"""The decorators of the core's loops: `entry` for those that Python calls, `inner` for those that only loops call.

Only entry points are kept. Each holds the machine code of everything it reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...foundation.compiled_loops.declarations import Loops

LOOPS = Loops("constraints")
entry = LOOPS.entry


def inner(function: Callable[..., Any]) -> Any:
    """A function that only loops call. It is compiled for numbers, not once more for each constant that it is called with."""
    made = LOOPS.inner(function)
    if not LOOPS.is_compiled and hasattr(made, "get_call_template"):  # compilation may be switched off
        from .signatures import take_numbers

        take_numbers(made)
    return made
