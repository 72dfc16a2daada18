"""A pytest plugin: the strings of `NAME.test.yaml` files are tests, one each.

A file is taken when the grammar of the same name stands beside it (`dates.gbnf` for `dates.test.yaml`), or when it names one with a
line that begins with `grammar:`; all other YAML files are left alone. Nothing is imported until such a file is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .constraints.lab.suite import Case, Suite
    from .constraints.runtime.constraint import Constraint

_ENDINGS = (".test.yaml", ".test.yml")
_GRAMMARS = (".gbnf", ".ebnf", ".lark", ".regex", ".re", ".json", ".schema")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Suites of strings for grammars."""
    if file_path.name.endswith(_ENDINGS) and _has_grammar(file_path):
        return SuiteFile.from_parent(parent, path=file_path)
    return None


def _has_grammar(path: Path) -> bool:
    stem = path.name.removesuffix(".yaml").removesuffix(".yml").removesuffix(".test")
    if any(path.with_name(stem + ending).is_file() for ending in _GRAMMARS):
        return True
    try:
        return any(line.startswith("grammar:") for line in path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return False


class SuiteFile(pytest.File):
    """One file of strings. Its grammar is compiled once, when the first of them is tested."""

    def collect(self) -> Iterator[CaseItem]:
        from .constraints.base.errors import ConstraintError
        from .constraints.lab.suite import read_suites

        try:
            suites = read_suites(self.path)
        except ConstraintError as error:
            raise self.CollectError(str(error)) from None
        seen: dict[str, int] = {}
        for suite in suites:
            for case in suite.cases:
                count = seen[case.label] = seen.get(case.label, 0) + 1
                name = case.label if count == 1 else f"{case.label} ({count})"
                yield CaseItem.from_parent(self, name=name, suite=suite, case=case)

    def constraint(self, suite: Suite) -> Constraint:
        """The compiled grammar, the same for all strings of the file."""
        from .constraints.lab.language import byte_compiler

        return byte_compiler().compile(suite.grammar.source)


class CaseItem(pytest.Item):
    """One string that a grammar must accept or reject."""

    def __init__(self, *, suite: Suite, case: Case, **options: Any) -> None:
        super().__init__(**options)
        self.suite, self.case = suite, case

    def runtest(self) -> None:
        from .constraints.lab.suite import run_case

        assert isinstance(self.parent, SuiteFile)
        result = run_case(self.parent.constraint(self.suite), self.case)
        if result.reason is not None:
            wanted = _participle(self.case.wanted)
            raise StringFailed(f"{self.suite.grammar.name}: {self.case.text!r} must be {wanted}: {result.reason}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """One line for a string that fails, and for a grammar that does not compile."""
        from .constraints.base.errors import ConstraintError

        if isinstance(excinfo.value, StringFailed | ConstraintError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


class StringFailed(Exception):
    """A string that is accepted but must be rejected, or the other way round."""


def _participle(wanted: str) -> str:
    return {"accept": "accepted", "reject": "rejected"}.get(wanted, "the beginning of a text")
