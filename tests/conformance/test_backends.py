"""The suite finds what is wrong: backends with one fault each; and this package has only the faults that are known."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.cli import run as run_cli
from maskwright.conformance.backends.maskwright import ConformanceBackend, ConstraintMatcher
from maskwright.conformance.cases import SUITES, Case, load
from maskwright.conformance.running import REFUSED, RIGHT, WRONG, answer, find_backend
from maskwright.constraints import Vocabulary
from maskwright.errors import UsageError

# What this package does otherwise, by design, than a case says. Refusals are listed too: a new one is a loss.
KNOWN = {
    **dict.fromkeys([("spellings", "exponents"), ("spellings", "trailing-zeros"), ("spellings", "integer-with-fraction")], WRONG),  # numbers have one form
    ("patterns", "back-reference"): REFUSED,
    ("patterns", "unicode-class"): REFUSED,  # not of Python's dialect
}
OURS = ConformanceBackend()


def case_of(suite: str, case_id: str) -> Case:
    return next(case for case in load(suite) if case.id == case_id)


@pytest.mark.parametrize("suite", SUITES)
def test_this_package_answers_right(suite: str) -> None:
    for case in load(suite):
        found = answer(OURS, suite, case)
        assert found.verdict == KNOWN.get((suite, case.id), RIGHT), f"{case.id}: {found.why}"


class Faulty(ConstraintMatcher):
    """Ours, with a fault."""

    def __init__(self, inner: ConstraintMatcher, vocabulary: Vocabulary) -> None:
        self.__dict__.update(inner.__dict__)
        self.vocabulary = vocabulary


class AllowsSpecial(Faulty):
    def mask(self) -> Any:
        words = super().mask().copy()
        special = self.vocabulary.special_tokens.get("<|im_end|>", 0)
        words[special // 32] |= np.uint32(1 << special % 32)
        return words

    def accept(self, token_id: int) -> bool:
        return token_id == self.vocabulary.special_tokens.get("<|im_end|>", 0) or super().accept(token_id)


class ForbidsLongTokens(Faulty):
    def mask(self) -> Any:
        long = np.array([token is not None and len(token) > 2 for token in self.vocabulary.text_tokens])
        packed = np.packbits(np.pad(long, (0, -len(long) % 32)), bitorder="little").view(np.uint32)
        return super().mask() & ~packed


class EndsAnywhere(Faulty):
    def mask(self) -> Any:
        words = super().mask().copy()
        eos = self.vocabulary.eos_token_ids[0]
        words[eos // 32] |= np.uint32(1 << eos % 32)
        return words


class NeverFinished(Faulty):
    def is_finished(self) -> bool:
        return False


class ForgetsRollback(Faulty):
    def rollback(self, count: int) -> None:
        super().rollback(max(count - 1, 1))


class NoRollback(Faulty):
    def rollback(self, count: int) -> None:
        raise NotImplementedError("this engine cannot")


class DeadEnds(Faulty):
    def mask(self) -> Any:
        return super().mask() if len(self._states) < 3 else np.zeros_like(super().mask())


class MaskIsNotAccept(Faulty):
    def accept(self, token_id: int) -> bool:
        return super().accept(token_id) and len(self._states) < 3


class IgnoresBudgets(Faulty):
    def mask_within(self, count: int) -> Any:
        return self.mask()


class FailsInUse(Faulty):
    def mask(self) -> Any:
        raise RuntimeError("lexer state too complex")


class ShortMask(Faulty):
    def mask(self) -> Any:
        return super().mask()[:2]


def backend_of(fault: type[Faulty]) -> Any:
    class Backend(ConformanceBackend):
        def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> Any:
            return fault(OURS.compile(kind, source, vocabulary), vocabulary)

    return Backend()


@pytest.mark.parametrize(
    ("fault", "suite", "case_id", "verdict", "why"),
    [
        (AllowsSpecial, "special_tokens", "in-a-string", WRONG, "im_end"),
        (ForbidsLongTokens, "masks", "prefixes", WRONG, "forbids 'abc'"),
        (EndsAnywhere, "endings", "literal", WRONG, "may end behind nothing"),
        (EndsAnywhere, "schemas", "type-string", WRONG, "accepts"),
        (NeverFinished, "endings", "literal", WRONG, "not finished"),
        (ForgetsRollback, "rollback", "regex", WRONG, "taken back"),
        (NoRollback, "rollback", "regex", REFUSED, "this engine cannot"),
        (DeadEnds, "dead_ends", "object", WRONG, "dead end"),
        (MaskIsNotAccept, "patterns", "literal", WRONG, "and accept refuses it"),
        (IgnoresBudgets, "budgets", "object", WRONG, "not complete after"),
        (FailsInUse, "patterns", "literal", WRONG, "lexer state too complex"),
        (ShortMask, "patterns", "literal", WRONG, "words"),
    ],
)  # fmt: skip
def test_a_fault_is_found(fault: type[Faulty], suite: str, case_id: str, verdict: str, why: str) -> None:
    found = answer(backend_of(fault), suite, case_of(suite, case_id))
    assert found.verdict == verdict and why in found.why, found


class Refuses(ConformanceBackend):
    """For the command line: refuses everything."""

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> Any:
        raise ValueError(f"no {kind}")


class Dies(ConformanceBackend):
    """Dies in one case, hangs in another, refuses all others."""

    name, version = "dying", "0"

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> Any:
        if source == "a*":
            os.kill(os.getpid(), signal.SIGKILL)
        while source == "abc":
            time.process_time()
        raise ValueError(f"no {kind}")


@pytest.fixture
def as_module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """This file, as processes import it."""
    folder, name = str(Path(__file__).parent), Path(__file__).stem
    monkeypatch.setenv("PYTHONPATH", folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return lambda cls: f"{name}:{cls}"


def test_a_process_that_dies_or_hangs_is_one_wrong_answer(as_module: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.json"
    assert run_cli(["conformance", "--backend", as_module("Dies"), "--suite", "patterns", "--seconds", "1", "--json", str(out)]) == 1
    capsys.readouterr()
    found = json.loads(out.read_text())["backends"][0]["answers"]
    assert [one["id"] for one in found] == [case.id for case in load("patterns")]
    why = {one["id"]: one["why"] for one in found if one["verdict"] == WRONG}
    assert set(why) == {"star", "literal"}
    assert "exit status -9" in why["star"] and "too long" in why["literal"]


def test_the_command_line(as_module: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.json"
    arguments = ["conformance", "--backend", as_module("Refuses"), "--backend", "maskwright", "--suite", "budgets", "--json", str(out), "--all"]
    assert run_cli(arguments) == 0
    shown = capsys.readouterr().out
    assert "budgets" in shown and "refused budgets/star: ValueError: no regex" in shown
    told = json.loads(out.read_text())
    count = len(load("budgets"))
    assert [(one[REFUSED], one[RIGHT], one[WRONG]) for one in told["backends"]] == [(count, 0, 0), (0, count, 0)]
    assert told["backends"][1]["version"] == OURS.version


@pytest.mark.parametrize("arguments", [["--backend", "nothing"], ["--backend", "no_module:Class"], ["--backend", "maskwright", "--suite", "nothing"], ["--backend", "json:Nothing"]])
def test_what_is_unknown_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["conformance", *arguments]) == 2
    assert arguments[-1].split(":")[0] in capsys.readouterr().err


@pytest.mark.parametrize("name", ["xgrammar", "llguidance", "outlines"])
def test_other_engines_answer(name: str) -> None:
    """Their adapters are right: of cases that are easy for all, no answer is wrong, and masks of theirs are read as they are meant."""
    try:
        backend = find_backend(name)
    except UsageError as error:
        pytest.skip(str(error))
    for suite, case_id in (("patterns", "alternation"), ("patterns", "counted-range"), ("masks", "choice"), ("endings", "literal"), ("schemas", "type-integer")):
        found = answer(backend, suite, case_of(suite, case_id))
        assert found.verdict == RIGHT, found
