"""What can go wrong while a constraint is compiled or used.

    ConstraintError               a constraint that cannot be compiled or used as asked
    |- GrammarSyntaxError         the text of a grammar, regular expression or schema does not parse
    |- UnsupportedKeyword         something valid that is not enforced exactly yet
    |- ConstraintLimit            a named limit was reached
    |- SavedConstraintError       a file of a compiled constraint that cannot be used here
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...foundation.errors import MaskwrightError


class ConstraintError(MaskwrightError, ValueError):
    """A constraint that cannot be compiled or used as asked.

    Attributes: `path` where in the source (a JSON pointer or a rule name), `keyword` what was at fault, `reason` why,
    `instead` what to write instead, `line` and `column` (from 1) for sources that are text.
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        keyword: str | None = None,
        instead: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.reason, self.path, self.keyword, self.instead = reason, path, keyword, instead
        self.line, self.column = line, column
        super().__init__(self._message())

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is: so it is copied, and sent from one process to another."""
        return _as_it_was, (type(self), self.args, self.__dict__)

    def move_below(self, path: str) -> None:
        """Say that the source of the error stands at a path of something larger."""
        self.path = path + (self.path or "#").removeprefix("#")
        self.args = (self._message(),)

    def show_in(self, text: str) -> None:
        """Add the line of the source at which it is to the message, and a caret, unless it shows one already."""
        lines = text.split("\n")
        if not text or self.line is None or self.column is None or str(self).endswith("^") or not 1 <= self.line <= len(lines):
            return
        start = max(0, self.column - 40)
        shown = lines[self.line - 1][start : self.column + 40]
        self.args = (f"{self}\n    {shown}\n    {' ' * (self.column - 1 - start)}^",)

    def _message(self) -> str:
        where = [f"at {self.path or '#'}" if self.path is not None else "", f"{self.keyword!r}" if self.keyword else ""]
        if self.line is not None:
            where.append(f"line {self.line}, column {self.column}")
        prefix = " ".join(part for part in where if part)
        message = f"{prefix}: {self.reason}" if prefix else self.reason
        return f"{message}; instead: {self.instead}" if self.instead else message


class GrammarSyntaxError(ConstraintError):
    """The text of a grammar, regular expression or schema does not parse."""


class UnsupportedKeyword(ConstraintError):
    """Valid, but not enforced exactly yet: refused by name rather than approximated."""


class ConstraintLimit(ConstraintError):
    """A named limit was reached. `limit` is its name, `value` its setting."""

    def __init__(
        self,
        reason: str,
        *,
        limit: str,
        value: float,
        path: str | None = None,
        keyword: str | None = None,
        instead: str | None = None,
    ) -> None:
        self.limit, self.value = limit, value
        reason, instead = f"{reason} (limit {limit}={value:g})", instead or f"raise limits.{limit}"
        super().__init__(reason, path=path, keyword=keyword, instead=instead)


class SavedConstraintError(ConstraintError):
    """A file of a compiled constraint that cannot be used here. `keyword` is what differs: "file" (none of ours, cut short or
    changed), "format", "version", "vocabulary", "limits", "source" or "content" (well written, but no constraint)."""


def _as_it_was(kind: type[ConstraintError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> ConstraintError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error
