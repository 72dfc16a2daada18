"""The modules that wheels carry as machine code (setup.py) can be compiled, and mean the same."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from maskwright.constraints.grammar.expression import Grammar
from maskwright.foundation.compiled_loops import library

ROOT = Path(__file__).resolve().parents[2]


@cache
def setup_script() -> ModuleType:
    """setup.py as a module: what it would build, without building it."""
    spec = spec_from_file_location("setup_script", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def native_files() -> list[Path]:
    return [ROOT / "constraints" / f"{name}.py" for name in setup_script().native_names()]


def classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]


def test_every_module_that_is_named_exists() -> None:
    script = setup_script()
    files = native_files()
    assert len(files) > 20
    assert not [str(file) for file in files if not file.is_file()]
    assert not [name for name in script.STAYS_PYTHON if not (ROOT / "constraints" / f"{name}.py").is_file()]
    assert not set(script.STAYS_PYTHON) & set(script.native_names())


def test_nothing_that_is_compiled_relies_on_generators_that_stop_early() -> None:
    """mypyc makes a list of a generator expression, but for the argument of `any`, `all` and `sum`: none may be of very many values."""
    many = {"product", "permutations", "combinations", "count", "cycle", "repeat"}
    for path in native_files():
        tree = ast.parse(path.read_text())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        in_place = {id(node.args[0]) for node in calls if node.func.id in ("any", "all", "sum") and node.args}  # type: ignore[attr-defined]
        for node in ast.walk(tree):
            if isinstance(node, ast.GeneratorExp) and id(node) not in in_place:
                sources = [each for part in node.generators for each in ast.walk(part.iter)]
                named = {each.id for each in sources if isinstance(each, ast.Name)}
                assert not named & many, f"{path.name}:{node.lineno}"


def test_what_is_called_rarely_is_declared_as_mypyc_does() -> None:
    """Else the compiler finds two declarations that differ, or one of a function that nobody calls any more."""
    mypyc = pytest.importorskip("mypyc")
    theirs = " ".join((Path(mypyc.__file__).parent / "lib-rt" / "CPy.h").read_text().split())
    ours = setup_script().RARELY_CALLED.splitlines()[2:]
    assert len(ours) == 3
    for line in ours:
        declaration = line.replace("MASKWRIGHT_RARE", "void").removesuffix(");").replace("struct _object", "PyObject")
        name, parameters = declaration.split("(")
        pattern = r"\s*\w*,\s*".join(map(re.escape, parameters.split(", ")))
        assert re.search(rf"{re.escape(name)}\({pattern}\s*\w*\);", theirs), line


def test_every_folder_with_python_files_ships() -> None:
    directories = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    packages = set(setup_script().all_packages())
    for package, top in directories.items():
        for source in (ROOT / top).rglob("*.py"):
            assert ".".join((package, *source.parent.relative_to(ROOT / top).parts)) in packages, source


def compiled_modules() -> list[str]:
    """The modules with functions that Numba compiles: they import its decorators."""
    found = []
    for path in (ROOT / "constraints").rglob("*.py"):
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        names = {alias.name for node in imports if (node.module or "").split(".")[-1] == "jit" for alias in node.names}
        if names & {"inner", "entry"}:
            found.append(".".join(("maskwright.constraints", *path.relative_to(ROOT / "constraints").with_suffix("").parts)))
    return found


def test_compiled_code_is_stamped_with_all_its_sources() -> None:
    """An entry point that is kept on disk is made anew when any module it holds code of has changed."""
    stamped = {path.relative_to(ROOT / "constraints").with_suffix("").as_posix() for path in library.sources("constraints")}
    compiled = {module.removeprefix("maskwright.constraints.").replace(".", "/") for module in compiled_modules()}
    assert len(compiled) > 20
    assert compiled <= stamped


def test_loops_have_types_but_for_a_few_modules() -> None:
    """The type checker lets functions without types pass in a few modules, whose loops are over arrays."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (untyped,) = [one["module"] for one in overrides if "maskwright.constraints.numba_support.sets" in one["module"]]
    files = {module: ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py") for module in compiled_modules()}
    assert set(untyped) <= set(files)
    loops = [one for file in files.values() for one in functions(file) if {"inner", "entry"} & {name_of(each) for each in one.decorator_list}]
    assert len([one for one in loops if one.returns is not None]) > 350 and len(loops) > 400


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


def name_of(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


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
    """What is copied is written out, because compiled classes do not tell their attributes."""
    beginning = Grammar()
    beginning.rule("r")
    node = beginning.seq(beginning.literal("a"), beginning.chars([(97, 122)]))
    beginning.search_share = 0.25
    after = Grammar.after(beginning)
    assert vars(after) == vars(beginning)
    after.literal("b")
    after.rule("s")
    assert after.seq(after.literal("a"), after.chars([(97, 122)])) == node, "what was made before is found"
    assert (len(after), len(after.rule_names)) != (len(beginning), len(beginning.rule_names))
