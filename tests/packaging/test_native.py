"""The modules that wheels carry as machine code (setup.py) can be compiled, and mean the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.constraints.grammar.expression import Grammar

ROOT = Path(__file__).resolve().parents[2]


def native_files() -> list[Path]:
    tree = ast.parse((ROOT / "setup.py").read_text())
    (names,) = [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NATIVE"]
    return [ROOT / "constraints" / f"{name}.py" for name in eval(compile(ast.Expression(names), "setup.py", "eval"))]


def classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]


def test_every_native_module_exists() -> None:
    files = native_files()
    assert len(files) > 20
    assert not [str(file) for file in files if not file.is_file()]


def test_native_classes_have_no_slots() -> None:
    """mypyc compiles a class with `__slots__`, and importing it fails."""
    wrong = [
        f"{file.name}: {one.name}"
        for file in native_files()
        for one in classes(file)
        if any(isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__slots__" for line in one.body)
    ]
    assert not wrong


def test_what_inherits_from_a_native_class_is_native() -> None:
    files = native_files()
    native = {one.name for file in files for one in classes(file) if not one.decorator_list}
    others = [file for file in (ROOT / "constraints").rglob("*.py") if file not in files]
    wrong = [
        f"{file.name}: {one.name}"
        for file in others
        for one in classes(file)
        if native & {ast.unparse(base) for base in one.bases}
    ]
    assert not wrong


def test_a_mode_that_does_not_exist_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=ROOT, env={"MASKWRIGHT_NATIVE": "perhaps"}, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "auto, require, never" in done.stderr


@pytest.mark.skipif(not hasattr(Grammar(), "__dict__"), reason="compiled classes do not tell their attributes")
def test_a_grammar_begins_with_all_that_another_one_holds() -> None:
    """`ATTRIBUTES` are written out because compiled classes do not tell them."""
    assert sorted(Grammar.ATTRIBUTES) == sorted(vars(Grammar()))
    beginning = Grammar()
    beginning.rule("r")
    node = beginning.seq(beginning.literal("a"), beginning.chars([(97, 122)]))
    beginning.search_share = 0.25
    after = Grammar.after(beginning)
    assert {name: getattr(after, name) for name in Grammar.ATTRIBUTES} == vars(beginning)
    after.literal("b")
    after.rule("s")
    assert after.seq(after.literal("a"), after.chars([(97, 122)])) == node, "what was made before is found"
    assert (len(after), len(after.rule_names)) != (len(beginning), len(beginning.rule_names))
