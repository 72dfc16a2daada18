"""The decorators of the core's loops: `entry` for those that Python calls, `inner` for those that only loops call; and what makes
arrays of addresses inside of them.

Only entry points are kept. Each holds the machine code of everything it reaches.
"""

from __future__ import annotations

from typing import Any

from ...foundation.compiled_loops.declarations import Loops

LOOPS = Loops("constraints")
entry, inner = LOOPS.entry, LOOPS.inner

words_at: Any
pointer: Any
if LOOPS.is_compiled:
    words_at = pointer = None  # nothing in Python calls them
else:
    from .intrinsics import pointer, words_at  # noqa: F401
