"""Constraints: what may come next, token by token. Knows bytes, tokens and automata, never models or requests.

>>> compiler = Compiler(Vocabulary.from_tokenizer(tokenizer))
>>> constraint = compiler.compile(Regex(r"\\d{4}-\\d{2}-\\d{2}"))
"""

from ..kernels import compile_cache as _compile_cache  # noqa: F401  before numba: where compiled code is kept
from . import machine_code as _machine_code  # noqa: F401  before what it replaces
from .captures import Capture, IncompleteOutput, captures, captures_by_name
from .choice import Choice
from .compiler import Compiler
from .constraint import Constraint, State
from .ebnf import Ebnf
from .errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, SavedConstraintError, UnsupportedKeyword
from .gbnf import Gbnf
from .json_schema import JsonSchema
from .lark_grammar import Lark
from .regex import Regex
from .source import Limits, Source
from .tags.parsing import OutputParser, UnexpectedOutput, parse_output
from .tags.reasoning import Reasoning
from .tags.structural import StructuralTag
from .tags.styles import ToolStyle
from .tags.tools import Tools
from .vocabulary import Vocabulary
from .warm import warm_up

__all__ = [
    "Capture",
    "Choice",
    "Compiler",
    "Constraint",
    "ConstraintError",
    "ConstraintLimit",
    "Ebnf",
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
