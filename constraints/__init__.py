"""Constraints: what may come next, token by token. Knows bytes, tokens and automata, never models or requests.

>>> compiler = Compiler(Vocabulary.from_tokenizer(tokenizer))
>>> constraint = compiler.compile(Regex(r"\\d{4}-\\d{2}-\\d{2}"))
"""

from ..foundation import compile_cache as _compile_cache  # noqa: F401  before numba: where compiled code is kept
from . import machine_code as _machine_code  # noqa: F401  before what it replaces
from .base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, SavedConstraintError, UnsupportedKeyword
from .captures.capture import Capture, IncompleteOutput, captures, captures_by_name
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
