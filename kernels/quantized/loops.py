"""The decorators of the loops that decode: see `foundation/compiled_loops`."""

from __future__ import annotations

from ...foundation.compiled_loops.declarations import Loops

LOOPS = Loops("kernels")
entry, inner = LOOPS.entry, LOOPS.inner
