"""The public list of names is honest, and importing the package is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import maskwright

CONTRACT = {"generate", "LLM", "AsyncLLM", "SamplingParams", "LogitsProcessor", "ValidationFailed", "GenerationIncomplete"}


def test_the_contract_is_exported() -> None:
    assert set(maskwright.__all__) >= CONTRACT
    assert maskwright.__all__ == sorted(maskwright.__all__, key=lambda name: (name.islower(), not name.isupper(), name))


@pytest.mark.parametrize("name", maskwright.__all__)
def test_every_exported_name_exists_and_stays_what_it_is(name: str) -> None:
    first = getattr(maskwright, name)
    assert first.__name__ == name
    assert getattr(maskwright, name) is first
    assert name in dir(maskwright)


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'generator'"):
        _ = maskwright.generator


def test_type_checkers_see_what_is_exported() -> None:
    tree = ast.parse(Path(maskwright.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    names = {alias.name for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == set(maskwright.__all__)


@pytest.mark.parametrize(
    "program",
    ["import maskwright", "from maskwright.cli import run; run(['--version'])", "from maskwright.cli import run; run(['--help'])"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(program: str) -> None:
    heavy = ("torch", "numba", "transformers", "pydantic")
    check = f"{program}\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
