"""Warming up calls every entry point, so that no output waits for the compiler later."""

from __future__ import annotations

import subprocess
import sys

import pytest

from maskwright.constraints.numba_support.jit import LOOPS

PROGRAM = """
from maskwright.foundation.compiled_loops import library

called, real = set(), library.opened


class Told:
    def __init__(self, machine_code):
        self.levels, self._entry = machine_code.levels, machine_code.entry

    def entry(self, name, level):
        function = self._entry(name, level)

        def told(*arguments):
            called.add(name)
            return function(*arguments)

        return told


library.opened = lambda part, stamp: Told(real(part, stamp))
from maskwright.constraints.warm import call_every_entry

call_every_entry(lambda line: None)
names = {name for name in real("constraints", library.stamp("constraints")).names() if name.startswith("constraints.")}
assert len(names) > 10
print(sorted(names - called))
"""


@pytest.mark.skipif(not LOOPS.is_compiled, reason="loops are not machine code here")
def test_every_entry_point_is_called_by_warming_up() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
