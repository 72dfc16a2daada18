"""Entry points compiled ahead of time do what the same functions do in Python, for every level that this machine has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from maskwright.foundation.compiled_loops import library
from maskwright.foundation.compiled_loops.declarations import ArrayType, call_each, type_of

NATIVE = Path(library.__file__).with_name("native")
COMPILER = shutil.which(os.environ.get("CC", "cc"))
HEADER = Path(sysconfig.get_paths()["include"]) / "Python.h"
pytestmark = pytest.mark.skipif(COMPILER is None or not HEADER.is_file(), reason="needs a C compiler and the headers of Python")

# Functions of all kinds of arguments and results, with memory that is taken and freed, and errors.
LOOPS = '''
import numpy as np


def total(first, second):
    return first + second


def nothing(words):
    words[0] = 7


def is_all(is_wanted, truths):
    for i in range(truths.size):
        if is_wanted and not truths[i]:
            return False
    return True


def measures(matrix, scale):
    """(sum of the rows' greatest values, rows, whether any is negative)"""
    greatest = np.zeros(matrix.shape[0], np.int64)
    is_negative = False
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            greatest[i] = max(greatest[i], matrix[i, j])
            is_negative = is_negative or matrix[i, j] < 0
    return greatest.sum() * scale, np.int64(matrix.shape[0]), is_negative


def spread(cube, out):
    for i in range(cube.shape[0]):
        for j in range(cube.shape[1]):
            for k in range(cube.shape[2]):
                out[k] += np.float32(cube[i, j, k]) * np.float32(0.5)


def checked(value):
    if value > 20:
        raise ValueError("too large")
    return value


def room(count):
    return np.int64(np.ones(count, np.int64)[count - 1])
'''
TYPES = {
    "total": ("int64", "int64"),
    "nothing": ("int32[:]",),
    "is_all": ("bool", "const bool[:]"),
    "measures": ("const int16[:,:]", "int64"),
    "spread": ("const uint8[:,:,:]", "float32[:]"),
    "checked": ("int64",),
    "room": ("int64",),
}
EMIT = f"""
import sys
from pathlib import Path
from maskwright.foundation.compiled_loops import emission
from maskwright.foundation.compiled_loops.declarations import Declaration, type_of
sys.path.insert(0, sys.argv[1])
import loops
declared = [Declaration(name, getattr(loops, name), tuple(map(type_of, types))) for name, types in {TYPES!r}.items()]
emission.emit(declared, Path(sys.argv[1], "made"), emission.levels_here())
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("loops")
    (folder / "loops.py").write_text(LOOPS)
    subprocess.run([sys.executable, "-c", EMIT, str(folder)], check=True)
    path = folder / library.file_name()
    sources = [folder / "made" / "table.c", NATIVE / "entry_points.c", *(folder / "made").glob("*.o")]
    options = ["-O1", "-fPIC", "-shared", *(f"-I{place}" for place in (HEADER.parent, np.get_include(), NATIVE))]
    if sys.platform == "darwin":
        options += ["-undefined", "dynamic_lookup"]
    subprocess.run([str(COMPILER), *options, *map(str, sources), "-o", str(path)], check=True)
    spec = spec_from_file_location("entry_points", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def python() -> dict[str, Any]:
    """The same functions, as Python."""
    found: dict[str, Any] = {}
    exec(LOOPS, found)
    return found


def arguments(name: str, seed: int) -> tuple[Any, ...]:
    """Some that fit the types of an entry point."""
    draw = np.random.default_rng(seed)
    made: list[Any] = []
    for kind in map(type_of, TYPES[name]):
        if isinstance(kind, ArrayType):
            shape = tuple(draw.integers(1, 9, kind.dimensions)) if name != "spread" else (3, 4, 5)[: kind.dimensions]
            shape = (5,) if (name, kind.dimensions) == ("spread", 1) else shape
            made.append(draw.integers(0, 2 if kind.item == "bool" else 100, shape).astype(kind.item))
        else:
            made.append(bool(draw.integers(2)) if kind == "bool" else int(draw.integers(-1000, 20)))
    return tuple(made)


def test_every_level_computes_what_python_does(compiled: ModuleType, python: dict[str, Any]) -> None:
    levels = compiled.levels()
    assert levels
    for name in TYPES:
        if name == "room":
            continue
        for seed in range(20):
            given, wanted = arguments(name, seed), arguments(name, seed)
            expected = python[name](*wanted)
            for level in levels:
                used = tuple(part.copy() if isinstance(part, np.ndarray) else part for part in given)
                found = compiled.entry(name, level)(*used)
                assert found == expected
                assert all(np.array_equal(one, other) for one, other in zip(used, wanted, strict=True)), name


def test_results_are_numbers_truths_and_tuples(compiled: ModuleType) -> None:
    level = compiled.levels()[-1]
    assert compiled.entry("nothing", level)(np.zeros(1, np.int32)) is None
    assert compiled.entry("is_all", level)(True, np.array([True, False])) is False
    assert compiled.entry("measures", level)(np.array([[1, -2], [5, 3]], np.int16), 10) == (60, 2, True)
    assert compiled.entry("total", level)(np.int32(3), -(1 << 62)) == 3 - (1 << 62), "NumPy's numbers are numbers"


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("total", (1,), TypeError),
        ("total", (1, 2, 3), TypeError),
        ("total", (1.5, 2), TypeError),
        ("total", (1, "2"), TypeError),
        ("total", (1, 1 << 63), OverflowError),
        ("nothing", ([1, 2],), TypeError),
        ("nothing", (np.zeros(3, np.int64),), TypeError),
        ("nothing", (np.zeros(3, np.uint32),), TypeError),
        ("nothing", (np.zeros((3, 1), np.int32),), TypeError),
        ("nothing", (np.zeros(6, np.int32)[::2],), TypeError),
        ("nothing", (np.zeros(3, ">i4"),), TypeError),
        ("nothing", (np.frombuffer(b"12345678", np.int32),), TypeError),  # read-only
        ("nothing", (np.zeros(9, np.uint8)[1:].view(np.int32),), TypeError),  # not aligned
        ("spread", (np.zeros((2, 3, 4), np.uint8).transpose(), np.zeros(2, np.float32)), TypeError),
        ("checked", (21,), RuntimeError),
        ("room", (1 << 55,), MemoryError),
    ],
)
def test_what_does_not_fit_is_refused(compiled: ModuleType, name: str, given: tuple[Any, ...], error: type[Exception]) -> None:
    entry = compiled.entry(name, compiled.levels()[-1])
    with pytest.raises(error):
        entry(*given)
    assert entry.__name__ == name


def test_arguments_have_places_not_names(compiled: ModuleType) -> None:
    with pytest.raises(TypeError, match="total takes 2 arguments by their places"):
        compiled.entry("total", compiled.levels()[-1])(1, second=2)


def test_errors_leave_nothing_behind(compiled: ModuleType) -> None:
    checked, room = (compiled.entry(name, compiled.levels()[-1]) for name in ("checked", "room"))
    with pytest.raises(MemoryError):
        room(1 << 55)
    with pytest.raises(RuntimeError, match="checked raised an error"):
        checked(21)
    assert (checked(20), room(3)) == (20, 1)


@pytest.mark.parametrize("num_threads", [-1, 1, 2, 100])
def test_many_calls_are_made_in_groups(compiled: ModuleType, num_threads: int) -> None:
    entry = compiled.entry("total", compiled.levels()[-1])
    words = np.random.default_rng(num_threads + 1).integers(-1000, 1000, (500, 2))
    starts = np.array([1, 1, 4, *range(5, 400, 7), 499])
    results = np.full((500, 1), -5000)
    assert entry.each(words, results, starts, num_threads) is None
    assert (results[1:499, 0] == words[1:499].sum(1)).all()
    assert results[0, 0] == results[499, 0] == -5000, "no group has them"
    twin = np.full((500, 1), -5000)
    call_each(lambda first, second: first + second, words, twin, starts, num_threads)
    assert (twin == results).all()


def test_errors_of_one_call_among_many_are_told(compiled: ModuleType) -> None:
    results = np.zeros((3, 1), np.int64)
    for name, given, error in (("checked", [[1], [21], [2]], RuntimeError), ("room", [[1], [1 << 55], [1]], MemoryError)):
        with pytest.raises(error):
            compiled.entry(name, compiled.levels()[-1]).each(np.array(given), results, np.arange(4), 2)


@pytest.mark.parametrize(
    ("words", "results", "starts", "error"),
    [
        (np.zeros((3, 3), np.int64), np.zeros((3, 1), np.int64), np.arange(4), TypeError),
        (np.zeros((3, 2), np.int32), np.zeros((3, 1), np.int64), np.arange(4), TypeError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64), np.arange(4), TypeError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 1), np.int64)[::-1], np.arange(4), TypeError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 1), np.int64), np.arange(4)[:, None], TypeError),
        (np.zeros((3, 2), np.int64), np.zeros((2, 1), np.int64), np.arange(4), ValueError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 1), np.int64), np.arange(5), ValueError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 1), np.int64), np.array([2, 1]), ValueError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 1), np.int64), np.array([-1, 1]), ValueError),
        (np.zeros((3, 2), np.int64), np.zeros((3, 1), np.int64), np.zeros(0, np.int64), ValueError),
    ],
)
def test_many_calls_that_do_not_fit_are_refused(compiled: ModuleType, words: Any, results: Any, starts: Any, error: Any) -> None:
    with pytest.raises(error):
        compiled.entry("total", compiled.levels()[-1]).each(words, results, starts, 2)


def test_entry_points_that_take_arrays_are_called_one_by_one(compiled: ModuleType) -> None:
    with pytest.raises(TypeError, match="more than numbers"):
        compiled.entry("nothing", compiled.levels()[-1]).each(np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), np.arange(2), 2)


def test_names_and_levels_that_are_not_there_are_refused(compiled: ModuleType) -> None:
    assert sorted(compiled.names()) == sorted(TYPES)
    with pytest.raises(KeyError):
        compiled.entry("other", compiled.levels()[-1])
    with pytest.raises(ValueError, match="no level"):
        compiled.entry("total", "x86-64-v9")


@pytest.mark.parametrize("text", ["int", "int32", "int32[]", "int32[:", "const int64", "float16[:]", "complex64[:]", "const bool"])
def test_a_type_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(AssertionError, match="is not a type"):
        type_of(text)


def test_the_table_is_what_the_manifest_says(tmp_path: Path) -> None:
    path = tmp_path / library.file_name()
    path.write_bytes(b"code")
    library.write_manifest(path, {"one": "1"})
    assert json.loads(path.with_name("entry_points.json").read_text())["stamps"] == {"one": "1"}
