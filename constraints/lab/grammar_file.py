"""Files that hold a constraint: which language they are in, as sources and as outlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...foundation.registry import Registry
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


@dataclass(frozen=True, slots=True)
class Language:
    """A notation in which constraints are written down in files."""

    read: Callable[[str, str | None], Source]  # from a text, and the rule to begin with, if one is named
    endings: tuple[str, ...]  # of files in it, with their dots, in small letters
    has_rules: bool = False  # else no rule may be named


def _pattern(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


GRAMMAR_LANGUAGES: Registry[Language] = Registry(
    "grammar language",
    {
        "gbnf": Language(lambda text, start: Gbnf(text, start or "root"), (".gbnf",), has_rules=True),
        "ebnf": Language(lambda text, start: Ebnf(text, start), (".ebnf",), has_rules=True),
        "lark": Language(lambda text, start: Lark(text, start or "start"), (".lark",), has_rules=True),
        "regex": Language(lambda text, start: Regex(_pattern(text)), (".regex", ".re")),
        "json-schema": Language(lambda text, start: JsonSchema(text), (".json", ".schema")),
    },
    needs="a Language",
    fits=lambda value: isinstance(value, Language),
)


def language_of(ending: str) -> str | None:
    """The language of files with an ending; of several the one that was registered last."""
    found = [name for name, language in GRAMMAR_LANGUAGES.items() if ending.lower() in language.endings]
    return found[-1] if found else None


def endings() -> list[str]:
    """The endings of all languages."""
    return [ending for language in GRAMMAR_LANGUAGES.values() for ending in language.endings]


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
        found = language or language_of(Path(name).suffix)
        if found is None:
            raise ConstraintError(
                f"the ending of {name} says no language", instead=f"{' '.join(endings())}, or name the language"
            )
        if found not in GRAMMAR_LANGUAGES:
            raise ConstraintError(f"there is no language {found!r}, expected one of {', '.join(GRAMMAR_LANGUAGES)}")
        if start is not None and not GRAMMAR_LANGUAGES[found].has_rules:
            raise ConstraintError(f"{name} has no rules, so none to begin with")
        return cls(name, text, found, start)

    @cached_property
    def source(self) -> Source:
        """The constraint. Raises ConstraintError."""
        return GRAMMAR_LANGUAGES[self.language].read(self.text, self.start)

    @property
    def pattern(self) -> str:
        return _pattern(self.text)

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
