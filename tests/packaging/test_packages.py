"""Every folder of the package ships, with its data."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS = {name: ROOT / folder for name, folder in SETUPTOOLS["package-dir"].items()}


def test_every_package_of_python_files_has_an_init() -> None:
    for name, folder in FOLDERS.items():
        for source in folder.rglob("*.py"):
            assert (source.parent / "__init__.py").is_file(), f"{source.parent} of {name}"


def test_the_pins_cover_every_direct_dependency() -> None:
    pins = {_name(line) for line in (ROOT / ".ci" / "pins.txt").read_text().splitlines() if "==" in line}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = {_name(line) for line in [*PROJECT["project"]["dependencies"], *extras["server"], *extras["test"], *extras["bench"]]}
    unpinned_on_purpose = {"triton"}  # its version follows from torch's
    assert wanted - pins <= unpinned_on_purpose


def test_only_source_is_tracked() -> None:
    """Neither test data nor build results are committed, and nothing is larger than a checkout should carry."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository, not an exported tree")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    too_large = [str(file) for file in files if file.is_file() and file.stat().st_size > 25_000_000]
    assert not too_large
    assert not [str(file) for file in files if file.suffix in (".pyc", ".nbi", ".nbc", ".whl")]


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert match is not None, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()
