"""The check of one grammar: everything that can be said about it without running a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError
from ..front_ends.json_schema.json_schema import JsonSchema
from ..front_ends.json_schema.report import EXACT, REFUSED, report
from ..runtime.compiler import Compiler
from .cost import Cost, measure
from .findings import ERROR, LEFT_RECURSION, LEVELS, NOTE, WARNING, Finding, outline_findings
from .grammar_file import GrammarFile
from .spelling import Encode, spelling_findings

_ADVICE = (
    "repetitions with bounds inside of others are followed with every pair of their counts that a text may have reached: "
    "let separators tell copies apart, or leave bounds out"
)
DEFAULT_STEPS = 200_000  # of the search for ambiguity: a few seconds at most


@dataclass(frozen=True)
class Check:
    """The findings about one file. cost: None when it does not compile."""

    file: GrammarFile
    findings: tuple[Finding, ...]
    cost: Cost | None
    num_rules: int

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing but notes."""
        return all(finding.level == NOTE for finding in self.findings)

    def of(self, level: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == level]

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.file.name,
            "language": self.file.language,
            "rules": self.num_rules,
            "clean": self.is_clean,
            "findings": [finding.as_json() for finding in self.findings],
            "cost": None if self.cost is None else self.cost.as_json(),
        }


def check(file: GrammarFile, compiler: Compiler, encode: Encode | None = None, steps: int = DEFAULT_STEPS) -> Check:
    """Checks a grammar for the vocabulary of `compiler`.

    encode: the tokenizer that this is the vocabulary of, for strings that it splits otherwise. steps: how far ambiguity is
    searched. Whatever keeps it from compiling is a finding.
    """
    failure, findings = None, list[Finding]()
    try:
        constraint = compiler.compile(file.source)
    except ConstraintError as error:
        error.show_in(file.text)
        if isinstance(error, GrammarSyntaxError):
            return Check(file, (Finding(ERROR, "syntax", str(error), error.path, error.line),), None, 0)
        failure = error
    outline = None
    if failure is None or failure.keyword == "ambiguity" or failure.reason.startswith("nothing satisfies"):
        outline = file.outline
    if outline is not None:
        found = outline_findings(outline, steps)
        findings += [one for one in found if one.code != LEFT_RECURSION or file.language == "gbnf"]
    elif isinstance(file.source, JsonSchema):
        findings += _of_schema(file.source, compiler)
    if failure is not None:
        if not any(finding.level == ERROR for finding in findings):
            findings.append(Finding(ERROR, "does not compile", str(failure), failure.path, failure.line))
        return Check(file, _sorted(findings), None, 0 if outline is None else len(outline.rules))
    if not isinstance(file.source, JsonSchema):
        findings += [Finding(NOTE, "note", note) for note in (*constraint.notes, *constraint.residue)]
    findings += spelling_findings(constraint, outline, encode)
    cost = None
    try:
        cost = measure(file.source, compiler)
    except ConstraintLimit as error:
        findings.append(Finding(WARNING, "cost", f"a walk through random texts reaches a limit: {error.reason}; {_ADVICE}"))
    return Check(file, _sorted(findings), cost, 0 if outline is None else len(outline.rules))


def _of_schema(source: JsonSchema, compiler: Compiler) -> list[Finding]:
    """The findings of `maskwright schema check`, without keywords that are exact."""
    result = report(source, compiler)
    levels = {REFUSED: ERROR}
    return [
        Finding(levels.get(one.verdict, NOTE), one.keyword, f"{one.path}: {one.reason}")
        for one in result.findings
        if one.verdict != EXACT
    ]


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))
