"""Constants of constraints/: a name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

from maskwright import constraints

FOLDER = Path(constraints.__file__).parent
EVERYTHING = sorted(path for path in FOLDER.rglob("*.py") if path.name != "__init__.py")


def constants(path: Path) -> set[str]:
    """The names in capitals that a module assigns to at its top, those private to it left out."""
    found = set()
    for statement in ast.parse(path.read_text()).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets += [statement.target] if isinstance(statement, ast.AnnAssign) else []
        names = (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        found.update(name for name in names if name.isupper() and not name.startswith("_"))
    return found


def meanings() -> dict[str, dict[str, list[str]]]:
    """By name and value: the modules that define the constant so."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in EVERYTHING:
        module = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        for name in constants(path):
            found[name][repr(getattr(import_module(f"maskwright.constraints.{module}"), name))].append(module)
    return found


def test_no_name_has_two_values() -> None:
    assert not {name: dict(values) for name, values in meanings().items() if len(values) > 1}


def test_constants_are_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("A, (B, C) = 1, (2, 3)\nD: int = 4\n_E = 5\nf = 6\ndef g():\n    H = 7\n")
    assert constants(module) == {"A", "B", "C", "D"}
    assert {"DEAD", "STATE_BITS", "ENDLESS", "NOTHING"} <= set(meanings())


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: str(path.relative_to(FOLDER)))
def test_numbers_in_a_row_are_enumerations(path: Path) -> None:
    """`A, B, C = range(3)` would be kinds, modes or offsets without a class of their own."""
    in_a_row = [
        ast.unparse(statement)
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith("range(")
        if not ast.unparse(statement.targets[0]).lstrip("(").startswith("_")
    ]
    assert not in_a_row
