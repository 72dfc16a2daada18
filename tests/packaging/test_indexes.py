"""Where packages come from is the user's choice: no file names the address of a package index."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = r"""https?://[^[:space:]"']*/(simple|whl)([^a-z]|$)|index(-url|_url)?["'[:space:]=:]+https?://"""


def test_no_tracked_file_names_an_index() -> None:
    found = subprocess.run(["git", "grep", "-nIiE", ADDRESS], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode > 1:
        pytest.skip("needs a checkout")
    assert found.stdout == ""
