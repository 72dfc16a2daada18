"""Constraints: what may come next, token by token. Knows bytes, tokens and automata, never models or requests.

>>> compiler = Compiler(Vocabulary.from_tokenizer(tokenizer))
>>> constraint = compiler.compile(Regex(r"\\d{4}-\\d{2}-\\d{2}"))

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import machine_code as _machine_code  # noqa: F401  before what it replaces

if TYPE_CHECKING:
    from .base.errors import (
        ConstraintError,
        ConstraintLimit,
        GrammarSyntaxError,
        SavedConstraintError,
        UnsupportedKeyword,
    )
    from .capturing.capture import Capture, IncompleteOutput, captures, captures_by_name
    from .front_ends.cfg.ebnf import Ebnf
    from .front_ends.cfg.gbnf import Gbnf
    from .front_ends.cfg.lark_grammar import Lark
    from .front_ends.json_schema.json_schema import JsonSchema
    from .front_ends.regex.choice import Choice
    from .front_ends.regex.regex import Regex
    from .front_ends.tags.parsing import OutputParser, UnexpectedOutput, parse_output
    from .front_ends.tags.reasoning import Reasoning
    from .front_ends.tags.structural import StructuralTag
    from .front_ends.tags.styles import ToolStyle
    from .front_ends.tags.tools import Tools
    from .grammar.source import Limits, Source
    from .runtime.compiler import Compiler
    from .runtime.constraint import Constraint, State
    from .runtime.front_end import FrontEnd
    from .vocabulary.vocabulary import Vocabulary
    from .warm import warm_up

__all__ = [
    "Capture",
    "Choice",
    "Compiler",
    "Constraint",
    "ConstraintError",
    "ConstraintLimit",
    "Ebnf",
    "FrontEnd",
    "Gbnf",
    "GrammarSyntaxError",
    "IncompleteOutput",
    "JsonSchema",
    "Lark",
    "Limits",
    "OutputParser",
    "Reasoning",
    "Regex",
    "SavedConstraintError",
    "Source",
    "State",
    "StructuralTag",
    "ToolStyle",
    "Tools",
    "UnexpectedOutput",
    "UnsupportedKeyword",
    "Vocabulary",
    "captures",
    "captures_by_name",
    "parse_output",
    "warm_up",
]

_MODULES = {
    "base.errors": ["ConstraintError", "ConstraintLimit", "GrammarSyntaxError", "SavedConstraintError", "UnsupportedKeyword"],
    "capturing.capture": ["Capture", "IncompleteOutput", "captures", "captures_by_name"],
    "front_ends.cfg.ebnf": ["Ebnf"],
    "front_ends.cfg.gbnf": ["Gbnf"],
    "front_ends.cfg.lark_grammar": ["Lark"],
    "front_ends.json_schema.json_schema": ["JsonSchema"],
    "front_ends.regex.choice": ["Choice"],
    "front_ends.regex.regex": ["Regex"],
    "front_ends.tags.parsing": ["OutputParser", "UnexpectedOutput", "parse_output"],
    "front_ends.tags.reasoning": ["Reasoning"],
    "front_ends.tags.structural": ["StructuralTag"],
    "front_ends.tags.styles": ["ToolStyle"],
    "front_ends.tags.tools": ["Tools"],
    "grammar.source": ["Limits", "Source"],
    "runtime.compiler": ["Compiler"],
    "runtime.constraint": ["Constraint", "State"],
    "runtime.front_end": ["FrontEnd"],
    "vocabulary.vocabulary": ["Vocabulary"],
    "warm": ["warm_up"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
