"""Shared test configuration: how kernels run, one hypothesis profile, and where the optional data lives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
import torch
from hypothesis import HealthCheck, settings

# Without a GPU, Triton kernels run in Triton's interpreter. Triton decides when it is imported, which nothing above does.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

os.environ["MASKWRIGHT_VOCABULARIES"] = "never"  # no test reads what another one has kept

from maskwright.constraints import Compiler  # which reads what is set above

settings.register_profile(
    "maskwright", deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck), print_blob=True
)
settings.load_profile("maskwright")

_compilers: WeakSet[Compiler] = WeakSet()  # all that there are, of modules and of fixtures
_make_compiler = Compiler.__init__


@wraps(_make_compiler)
def _noted(self: Compiler, *arguments: Any, **options: Any) -> None:
    _make_compiler(self, *arguments, **options)
    _compilers.add(self)


Compiler.__init__ = _noted  # type: ignore[method-assign]


@pytest.fixture(scope="module", autouse=True)
def what_a_file_compiles_goes_with_it() -> Iterator[None]:
    """Caches of 1 GiB in each of hundreds of modules would be full of constraints that nobody asks for again."""
    yield
    for compiler in list(_compilers):
        compiler.clear()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published tokenizers, schemas and grammars; tests that need it are skipped without it."""
    beside_checkout = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MASKWRIGHT_DATA", beside_checkout))
    if not folder.is_dir():
        pytest.skip("needs the test data: set MASKWRIGHT_DATA to its folder")
    return folder
