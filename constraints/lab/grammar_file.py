"""Files that hold a constraint: which language they are in, as sources and as outlines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..base.errors import ConstraintError
from ..front_ends.cfg.ebnf import Ebnf
from ..front_ends.cfg.gbnf import Gbnf
from ..front_ends.cfg.lark_grammar import Lark
from ..front_ends.json_schema.json_schema import JsonSchema
from ..front_ends.regex.regex import Regex
from ..grammar.source import Limits, Source
from .outline import Outline, OutlineRule, Pattern
from .outline_gbnf import ebnf_outline, gbnf_outline
from .outline_lark import lark_outline

LANGUAGE_OF_ENDING = {
    ".gbnf": "gbnf", ".ebnf": "ebnf", ".lark": "lark", ".regex": "regex", ".re": "regex", ".json": "json-schema",
    ".schema": "json-schema",
}  # fmt: skip


@dataclass(frozen=True)
class GrammarFile:
    """A constraint as text. `name` is how messages call it.

    A file of a regular expression holds it on one line; the line end does not belong to it.
    """

    name: str
    text: str
    language: str
    start: str | None = None

    @classmethod
    def named(cls, name: str, text: str, language: str | None = None, start: str | None = None) -> GrammarFile:
        """The language follows from the ending of the name. Raises ConstraintError when it does not, and for unknown languages."""
        found = language or LANGUAGE_OF_ENDING.get(Path(name).suffix.lower())
        if found is None:
            raise ConstraintError(
                f"the ending of {name} says no language", instead=f"{' '.join(LANGUAGE_OF_ENDING)}, or name the language"
            )
        if found not in LANGUAGE_OF_ENDING.values():
            known = ", ".join(dict.fromkeys(LANGUAGE_OF_ENDING.values()))
            raise ConstraintError(f"there is no language {found!r}, expected one of {known}")
        if start is not None and found not in ("gbnf", "ebnf", "lark"):
            raise ConstraintError(f"{name} has no rules, so none to begin with")
        return cls(name, text, found, start)

    @cached_property
    def source(self) -> Source:
        """The constraint. Raises ConstraintError."""
        match self.language:
            case "gbnf":
                return Gbnf(self.text, self.start or "root")
            case "ebnf":
                return Ebnf(self.text, self.start)
            case "lark":
                return Lark(self.text, self.start or "start")
            case "regex":
                return Regex(self.pattern)
        return JsonSchema(self.text)

    @property
    def pattern(self) -> str:
        return self.text.removesuffix("\n").removesuffix("\r")

    @cached_property
    def outline(self) -> Outline | None:
        """The rules as written; None of a schema, which has none. Raises ConstraintError."""
        source, limits = self.source, Limits()
        if isinstance(source, Gbnf):
            return gbnf_outline(source, limits)
        if isinstance(source, Ebnf):
            return ebnf_outline(source, limits)
        if isinstance(source, Lark):
            return lark_outline(source, limits)
        if isinstance(source, Regex):
            body = Pattern(source, f"/{self.pattern}/", 0)
            return Outline(self.text, "pattern", {"pattern": OutlineRule("pattern", body, 0)})
        return None
