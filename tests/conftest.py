"""Shared test configuration: how kernels run, one hypothesis profile, and where the optional data lives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# Without a GPU, Triton kernels run in Triton's interpreter. Triton decides when it is imported, which nothing above does.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

os.environ["MASKWRIGHT_VOCABULARIES"] = "never"  # no test reads what another one has kept

settings.register_profile(
    "maskwright", deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck), print_blob=True
)
settings.load_profile("maskwright")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published tokenizers, schemas and grammars; tests that need it are skipped without it."""
    beside_checkout = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MASKWRIGHT_DATA", beside_checkout))
    if not folder.is_dir():
        pytest.skip("needs the test data: set MASKWRIGHT_DATA to its folder")
    return folder
