"""The policy on keywords that cannot be enforced exactly, and remarks for the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....base.errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ....grammar.expression import Grammar
from ....grammar.stopwatch import beginning, check_bytes, is_over, work_on

MAX_APPLIED: Final = 200  # schemas that apply each other to one value, one inside another


class Policy:
    """Keywords that are not enforced are refused by name, or, where they are collected, told in `refused` and passed over.

    tells_all: what is refused is told of every place where it stands.
    `seconds` of the thread's processor time may pass since the compile began until `check_time` raises.
    """

    def __init__(
        self, grammar: Grammar, tells_all: bool, seconds: float = float("inf"), refused: list[UnsupportedKeyword] | None = None
    ) -> None:
        """refused: None: they are raised."""
        self.grammar, self.tells_all, self.seconds, self.refused = grammar, tells_all, seconds, refused
        self._started, self._begun = beginning()

    def check_time(self, path: str | None) -> None:
        """Raise `ConstraintLimit` when lowering has taken too long, or holds too much."""
        check_bytes()
        if is_over(self._started, self._begun, self.seconds):
            raise ConstraintLimit("lowering the schema takes too long", limit="seconds", value=self.seconds, path=path)
        if path is not None:
            work_on(path)

    def refuse(self, error: UnsupportedKeyword) -> None:
        """Raise `error`, or collect it."""
        if self.refused is None:
            raise error
        self.refused.append(error)

    def note(self, remark: str) -> None:
        if remark not in self.grammar.notes:
            self.grammar.notes.append(remark)

    def tell(self, remarks: Iterable[str], residue: Iterable[str]) -> None:
        """Leave remarks, and what is not enforced, in the grammar."""
        self.grammar.notes[:] = dict.fromkeys((*self.grammar.notes, *remarks))
        self.grammar.residue[:] = dict.fromkeys((*self.grammar.residue, *residue))


def too_deep() -> ConstraintLimit:
    return ConstraintLimit(
        "schemas that refer to each other too deeply", limit="nesting", value=MAX_APPLIED,
        instead="fewer schemas that apply others to the same value",
    )  # fmt: skip


def entry_of(path: str, keyword: str, reason: str) -> str:
    """The entry of a grammar's residue for a keyword that is not enforced."""
    return f"{path} {keyword}: not enforced: {reason}"


def read_entry(entry: str) -> tuple[str, str, str]:
    """Path, keyword and reason of such an entry."""
    where, _, reason = entry.partition(": not enforced: ")
    path, _, keyword = where.rpartition(" ")
    return path, keyword, reason


def located(error: ConstraintError, path: str, keyword: str) -> ConstraintError:
    """An error of a pattern or number, given the place in the schema where the pattern or number stands."""
    if error.keyword not in (None, keyword):
        error.reason = f"{error.keyword}: {error.reason}"
    error.path, error.keyword = path, keyword
    error.args = (error._message(),)
    return error
