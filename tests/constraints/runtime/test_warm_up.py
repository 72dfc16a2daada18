"""Warming up compiles everything that a constraint may call, so that no output waits for the compiler later."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numba
from numba.core.dispatcher import Dispatcher
from maskwright.constraints import warm_up

warm_up()
modules = [module for name, module in sys.modules.items() if name.startswith("maskwright.constraints.")]
entries = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
kept = [entry for entry in entries if entry.targetoptions.get("nogil")]
assert len(kept) > 10
print(sorted(f"{entry.__module__}.{entry.__name__}" for entry in kept if not entry.signatures))
"""


def test_every_entry_point_is_compiled_by_warming_up() -> None:
    if _is_interpreted():
        pytest.skip("compilation is switched off")
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def _is_interpreted() -> bool:
    import numba

    return bool(numba.config.DISABLE_JIT)
