"""A read-only installation keeps compiled loops in a user folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.foundation.compile_cache import choose_cache_folder, is_writable


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    """A folder in which nothing can be made, whoever runs the tests: its name is taken by a file."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    return blocker / "package"


def test_a_writable_package_keeps_numbas_own_place(tmp_path: Path) -> None:
    assert choose_cache_folder(tmp_path, {}, tmp_path) is None


def test_the_users_choice_is_left_alone(read_only: Path, tmp_path: Path) -> None:
    assert choose_cache_folder(read_only, {"NUMBA_CACHE_DIR": "anything"}, tmp_path) is None


def test_a_read_only_package_uses_the_xdg_cache_first(read_only: Path, tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path / "home")}
    assert choose_cache_folder(read_only, environment, tmp_path) == tmp_path / "xdg" / "maskwright" / "numba"


def test_a_read_only_package_uses_the_home_folder_without_xdg(read_only: Path, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home")}
    assert choose_cache_folder(read_only, environment, tmp_path) == tmp_path / "home/.cache/maskwright/numba"


def test_a_read_only_home_falls_back_to_temporary_files(read_only: Path, tmp_path: Path) -> None:
    folder = choose_cache_folder(read_only, {"HOME": str(read_only)}, tmp_path)
    assert folder is not None and folder.is_relative_to(tmp_path) and is_writable(folder)


def test_nothing_writable_at_all_is_left_to_numba(read_only: Path) -> None:
    assert choose_cache_folder(read_only, {}, read_only) is None


def test_numba_caches_in_the_chosen_folder(tmp_path: Path) -> None:
    """A function whose source folder is closed compiles once and is found again, in a process of its own."""
    program = """
import sys
from pathlib import Path
from maskwright.foundation import compile_cache
compile_cache._tell_numba(Path(sys.argv[1]))
sys.path.insert(0, sys.argv[2])
import loops
assert loops.double(2) == 4
print(sum(loops.double.stats.cache_hits.values()))
"""
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    (source / "loops.py").write_text("from numba import njit\n\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n")
    hits = [_run(program, str(cache), str(source)) for _ in range(2)]
    assert hits == ["0", "1"]
    assert list(cache.rglob("*.nbi"))


def _run(program: str, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
