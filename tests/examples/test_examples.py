"""Every example runs on the embedded model and prints what it promises."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from maskwright.model_folder import embedded_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PERSON = r"Person\(name='[^']*', age=\d+, city='[^']*'\)"

# example -> what each of its first lines looks like
PROMISES = {
    "extract.py": [PERSON, PERSON],
    "classify.py": [r"(billing|technical|shipping|account) .*"] * 3,
    "find_number.py": [r"\d{3}-\d{4}"] * 2,
    "grammar.py": [r"(lamp|heater|radio) (on|off|at [1-9][0-9]?%)"] * 2,
    "transformers_generate.py": [r"\d{3}-\d{4}"] * 2,
    "bigram_blocker.py": [r" *[1-9]\d* pairs came again: [a-z ]{60}", r"  0 pairs came again: [a-z ]{60}"],
    "watermark.py": [r"plain  z = (-\d|[012])\.\d", r"marked z = [3-9]\.\d"],
    "guidance.py": [r"scale 0\.0: (billing|shipping|account)", r"scale 1\.0: (billing|shipping|account)", r"scale 3\.0: (billing|shipping|account)"],
    "batch.py": [r".* Person\(name='[^']*', city='[^']*'\)", r".* '(billing|shipping|account)'", r".* 'ORD-\d{5}'", r".* \{.*\}"],
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROMISES)


@pytest.mark.parametrize("name", PROMISES)
def test_an_example_does_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (embedded_model() / "config.json").is_file(), "the package ships with a model"
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    for line, promise in zip(lines, PROMISES[name], strict=False):
        assert re.fullmatch(promise, line), line
    assert len(lines) >= len(PROMISES[name])
    if name == "batch.py":
        assert lines[-1].startswith("100 prompts")
