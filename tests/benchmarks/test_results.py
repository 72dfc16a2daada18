"""What a benchmark cannot do is said before its runs, in a sentence: their results are not lost."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from argparse import ArgumentTypeError
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
PROJECT = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPENDENCIES = {re.split(r"[^\w-]", needed)[0].replace("-", "_") for needed in PROJECT["dependencies"]}
OF_DEPENDENCIES = {"jsonschema_specifications", "referencing"}
PLOTTING = ["plot_masks.py", "plot_schema_coverage.py", "gpu/plots.py"]


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that `prefill.py` and `decode.py` share, with runs that take no time."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    module = import_module("lengths")
    monkeypatch.setattr(module, "_in_a_process", lambda name: [{"seconds": 1e-3, "bytes": 2**20}])
    yield module
    for name in ("lengths", "result_files", "random_weights"):
        del sys.modules[name]


@pytest.mark.parametrize("is_installed", [False, True])
def test_figures_are_written_with_and_without_matplotlib(
    lengths: ModuleType, is_installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_installed and find_spec("matplotlib") is None:
        pytest.skip("needs matplotlib")
    if not is_installed:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "found.json"
    options = lengths.parser("", [8]).parse_args(["--variants", "paged-fused", "--out", str(out)])
    lengths.main(options, "nothing", lambda *_: None)
    assert json.loads(out.read_text())["variants"] == {"paged-fused": [{"seconds": 1e-3, "bytes": 2**20}]}
    assert out.with_suffix(".svg").exists() == is_installed
    assert ("no plot will be drawn" in capsys.readouterr().err) != is_installed


@pytest.mark.parametrize(
    ("given", "message"),
    [(["--out", "nowhere/found.json"], "there is no folder nowhere"), (["--variants", "paged-fusd"], "paged-fusd")],
)
def test_what_cannot_be_done_is_said_before_the_runs(
    lengths: ModuleType, given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        lengths.parser("", [8]).parse_args(given)
    assert message in capsys.readouterr().err


def test_a_folder_is_no_file_for_results(lengths: ModuleType, tmp_path: Path) -> None:
    result_file = sys.modules["result_files"].result_file
    assert result_file(str(tmp_path / "new.json")) == tmp_path / "new.json"
    with pytest.raises(ArgumentTypeError, match="cannot be written"):
        result_file(str(tmp_path))


@pytest.mark.parametrize("script", PLOTTING)
def test_scripts_that_only_plot_ask_for_matplotlib(script: str) -> None:
    without = f"""
import runpy, sys
sys.modules["matplotlib"] = None
sys.path.insert(0, {str((SCRIPTS / script).parent)!r})
runpy.run_path({str(SCRIPTS / script)!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "plots need matplotlib (pip install matplotlib)\n")


def test_modules_that_are_missing_are_named_before_the_runs(lengths: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    known = sys.modules["result_files"]
    assert known.optional("json") is json
    known.require_engines(["maskwright", "llama.cpp"] if find_spec("xllamacpp") else ["maskwright"])
    for module in ("xgrammar", "outlines_core"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit, match=r"error: this needs outlines_core, xgrammar \(pip install outlines-core xgrammar\), or leave it out with --engines"):
        known.require_engines(["maskwright", "xgrammar", "outlines-core", "xgrammar-compliant"], option="--engines")
    with pytest.raises(SystemExit, match=r"error: this needs xgrammar \(pip install xgrammar\)$"):
        known.optional("xgrammar")


@pytest.mark.parametrize("script", sorted(SCRIPTS.rglob("*.py")), ids=lambda path: path.relative_to(SCRIPTS).as_posix())
def test_what_is_no_dependency_is_imported_where_it_is_needed(script: Path) -> None:
    """Else `--help` fails, too; `optional` and `require` say what is missing."""
    own = {path.stem for path in SCRIPTS.rglob("*.py")} | {"maskwright"}
    plotting = {"matplotlib"} if script.relative_to(SCRIPTS).as_posix() in PLOTTING else set()  # which asks for it itself, see above
    allowed = {*sys.stdlib_module_names, *own, *DEPENDENCIES, *OF_DEPENDENCIES, *plotting}
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert {name.partition(".")[0] for name in names} <= allowed


@pytest.mark.parametrize("script", sorted(SCRIPTS.rglob("*.py")), ids=lambda path: path.relative_to(SCRIPTS).as_posix())
def test_what_is_imported_of_the_package_is_there(script: Path) -> None:
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maskwright."):
            module = import_module(node.module or "")
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            assert all(find_spec(f"{node.module}.{name}") for name in missing), missing


@pytest.mark.parametrize(
    ("script", "given", "message"),
    [
        ("decode.py", ["--lengths", "0"], "0 is no positive integer"),
        ("prefill.py", ["--repeats", "-1"], "-1 is no positive integer"),
        ("prefill.py", ["--device", "nowhere"], "nowhere cannot be used"),
        ("constrained_decode.py", ["--batch", "0"], "0 is no positive integer"),
        ("attention_cpu.py", ["--shapes", "2x1"], "three numbers with an x between them"),
        ("schema_coverage.py", ["--schemas", "nowhere.jsonl"], "there is no nowhere.jsonl"),
        ("grammar_coverage.py", ["--cases", "nowhere.jsonl"], "there is no nowhere.jsonl"),
        ("weights.py", ["nowhere.gguf"], "there is no nowhere.gguf"),
        ("limits.py", ["--seconds", "-1"], "-1 is no number from 0 on"),
        ("masks.py", ["--tokenizer", ".", "--schemas", "."], "is no folder with a tokenizer.json"),
        ("schema_coverage.py", ["--schemas", "."], "error: "),
        ("scheduling.py", ["--cluster", "--requests", "20", "--replicas", "2"], "every replica has failed"),
    ],
)
def test_wrong_arguments_are_messages(script: str, given: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / script), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.name)
def test_numbers_are_looked_at_and_errors_are_messages(script: Path) -> None:
    """An integer may be anything where it is a seed or hidden; a `main` runs in `errors_as_messages`, or in one of its own."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            types = [key.value.id for key in node.keywords if key.arg == "type" and isinstance(key.value, ast.Name)]
            is_hidden = any(key.arg == "help" and isinstance(key.value, ast.Attribute) for key in node.keywords)
            assert is_hidden or not {"int", "float"} & {*types} or ast.literal_eval(node.args[0]) in ("--seed", "--until"), ast.unparse(node)
    bare = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node) == "if __name__ == '__main__':\n    main()"]
    assert not bare or script.name == "mask_worker.py"


def test_files_that_are_read_and_what_is_left_of_them(lengths: ModuleType, tmp_path: Path) -> None:
    known = sys.modules["result_files"]
    assert [known.amount("0"), known.size("0.5"), known.chosen([1], "--names")] == [0, 0.5, [1]]
    for read, text in ((known.amount, "-1"), (known.size, "nan"), (known.size, "inf"), (known.size, "x"), (known.tokenizer_folder, str(tmp_path))):
        with pytest.raises(ArgumentTypeError, match=re.escape(text)):
            read(text)
    with pytest.raises(SystemExit, match="error: nothing to measure is left by --names"):
        known.chosen([], "--names")
    for wrong in (lambda: json.loads("{"), lambda: (tmp_path / "x").read_text(), lambda: b"\xff".decode()):
        with pytest.raises(SystemExit, match=r"^error: "), known.errors_as_messages():
            wrong()


def test_a_small_trace_is_scheduled() -> None:
    command = [sys.executable, str(SCRIPTS / "scheduling.py"), "--requests", "5", "--schemas", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize(("script", "given"), [("load_client.py", ["--help"]), ("load_client.py", []), ("mask_worker.py", ["--help"])])
def test_programs_that_others_start_say_how(script: str, given: list[str]) -> None:
    done = subprocess.run([sys.executable, str(SCRIPTS / script), *given], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and "Traceback" not in done.stderr and len(done.stderr) > 100


def test_too_few_tokens_for_the_record_are_a_message() -> None:
    command = [sys.executable, str(SCRIPTS / "constrained_decode.py"), "--device", "cpu", "--batch", "1", "--max-tokens", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: ") and "max_tokens" in done.stderr and "Traceback" not in done.stderr
