"""Every grammar in `grammars/` against the strings in its `.test.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from maskwright.constraints import Compiler, Gbnf, Vocabulary

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
GRAMMARS = sorted(FOLDER.glob("*.gbnf"))
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.stem)
def test_strings(path):
    cases = yaml.safe_load(path.with_suffix(".test.yaml").read_text(encoding="utf-8"))
    constraint = Compiler(BYTES).compile(Gbnf(path.read_text(encoding="utf-8")))
    assert constraint.notes == ()
    assert cases["accept"] and cases["reject"]
    assert [text for text in cases["accept"] if not constraint.accepts(text.encode())] == []
    assert [text for text in cases["reject"] if constraint.accepts(text.encode())] == []


def test_every_grammar_has_strings_and_every_list_of_strings_a_grammar():
    assert len(GRAMMARS) >= 3
    assert {path.stem for path in GRAMMARS} == {path.name.removesuffix(".test.yaml") for path in FOLDER.glob("*.test.yaml")}
