"""Imports lead down: from layer to layer, from room to room, and never in a circle.

All imports count, those inside of functions and those for the type checker alone too.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIRECTORIES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]

# The floors of the house, lowest first; what stands on one floor does not know its neighbours there.
LAYERS = [{"foundation"}, {"kernels"}, {"sampling", "constraints"}, {"grammars", "engine"}, {"api"}, {"integrations", "conformance", "server"}, {"cli"}]
CONSTRAINTS = [
    {"base"}, {"numba_support"}, {"vocabulary"}, {"grammar"}, {"normal_form"}, {"automaton"}, {"automaton.assembling"}, {"masks"}, {"uniqueness"}, {"token_automaton"},
    {"saved"}, {"runtime"}, {"front_ends.regex"}, {"front_ends.numbers"}, {"front_ends.json_schema.documents"},
    {"front_ends.json_schema.strings"}, {"front_ends.json_schema.algebra"}, {"front_ends.json_schema.lowering"},
    {"front_ends.json_schema.python_types"},
    {"front_ends.json_schema"}, {"front_ends.cfg"}, {"front_ends.tags"}, {"capturing"}, {"lab"},
]  # fmt: skip
ENGINE = [
    {"errors", "footprint", "limits"}, {"device", "kv_cache", "gguf", "offload", "quantization", "sharding"}, {"attention"}, {"models"}, {"adapters"},
    {"config", "requests", "conversion"},
    {"scheduling", "device_constraints", "search"}, {"steps"}, {"drafts", "parallel"}, {"features"}, {"loops"}, {"engine"}, {"assembly"},
    {"loader"}, {"sessions", "follower", "verification"},
]  # fmt: skip
MOST_FILES = 26  # of a folder, `__init__.py` included: what a reader can take in


def _sources() -> Iterator[tuple[str, Path]]:
    """Every module of the package by its full name."""
    for package, top in DIRECTORIES.items():
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            yield ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts))), path


def _imported(name: str, path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in its text."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join((*base, *([node.module] if node.module else [])))
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                yield from (one for one in (whole if whole in modules else source,) if one in modules)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)


@cache
def graph() -> dict[str, set[str]]:
    """Module -> modules that it imports."""
    modules = dict(_sources())
    return {name: set(_imported(name, path, modules)) - {name} for name, path in modules.items()}


def _layer(module: str) -> str:
    if module == "maskwright.__main__":  # the command line, found where `python -m maskwright` looks for it
        return "cli"
    second = module.split(".")[1] if "." in module else "api"
    return second if f"maskwright.{second}" in DIRECTORIES else "api"


def _room(module: str, package: str, rooms: Iterable[str]) -> str | None:
    """The room of a module, the innermost that has it; None for the package itself and what stands beside its rooms."""
    inside = module.removeprefix(package + ".")
    fitting = [room for room in rooms if f"{inside}.".startswith(f"{room}.")]
    return max(fitting, key=len, default=None)


def _upward(floors: list[set[str]], edges: Iterable[tuple[str, str, str]]) -> list[str]:
    """Of (from, to, what it is) those that do not lead to a lower floor."""
    floor_of = {name: number for number, floor in enumerate(floors) for name in floor}
    return sorted({what for source, target, what in edges if source != target and floor_of[target] >= floor_of[source]})


def test_layers_import_what_is_below_them() -> None:
    edges = [(_layer(name), _layer(other), f"{name} -> {other}") for name, others in graph().items() for other in others]
    assert not _upward(LAYERS, edges)


@pytest.mark.parametrize(("package", "floors"), [("maskwright.constraints", CONSTRAINTS), ("maskwright.engine", ENGINE)])
def test_rooms_import_what_is_below_them(package: str, floors: list[set[str]]) -> None:
    rooms = [room for floor in floors for room in floor]
    edges = []
    for name, others in graph().items():
        room = _room(name, package, rooms) if name.startswith(package + ".") else None
        for other in others if room is not None else ():
            target = _room(other, package, rooms) if other.startswith(package + ".") else None
            if room is not None and target is not None:
                edges.append((room, target, f"{name} -> {other}"))
    assert len(edges) > 100
    assert not _upward(floors, edges)


@pytest.mark.parametrize(("package", "floors"), [("maskwright.constraints", CONSTRAINTS), ("maskwright.engine", ENGINE)])
def test_every_folder_is_a_room(package: str, floors: list[set[str]]) -> None:
    rooms = {room for floor in floors for room in floor}
    folders = {name.removeprefix(package + ".") for name, path in _sources() if path.name == "__init__.py" and name.startswith(package + ".")}
    without_files = {"front_ends"}
    assert folders - rooms <= without_files


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_folders_stay_small_enough_to_be_taken_in() -> None:
    folders: dict[Path, int] = {}
    for name, path in _sources():
        if name.startswith(("maskwright.constraints.", "maskwright.engine.")):
            folders[path.parent] = folders.get(path.parent, 0) + 1
    assert not {str(folder): count for folder, count in folders.items() if count > MOST_FILES}


@pytest.mark.parametrize("package", ["maskwright.constraints", "maskwright.engine"])
def test_every_room_says_what_it_is_for(package: str) -> None:
    for name, path in _sources():
        if path.name == "__init__.py" and name.startswith(package):
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{name} has no docstring"
