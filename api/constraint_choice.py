"""The keywords that constrain an output, understood: at most one for a prompt, and how the output is read.

    schema=Person                   a Pydantic model, dataclass, TypedDict, Literal, Enum, ... -> an instance
    schema={...}, json_schema=...   a raw JSON Schema: mapping, boolean or JSON text            -> parsed JSON
    regex=r"\\d+"                    a regular expression for the whole output                  -> str
    grammar="root ::= ..."          a grammar in GBNF or Lark's language                       -> str
    choice=["yes", "no"]            one of these                                               -> str
    constraint=...                  a front end such as `Gbnf(text, root="json")`           -> str, parsed JSON for JsonSchema
                                    or a compiled constraint                               -> str

For several prompts each keyword takes one value for all of them, or a list with one value (or None) for each. A list of
strings given as `choice` is one choice for all; a list of lists is one for each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, TypedDict

from .constraints import Choice, Constraint, Gbnf, JsonSchema, Lark, Regex
from .constraints.base.utf8 import BYTE_ORDER_MARK
from .constraints.front_ends.json_schema.documents.values import parse_json
from .constraints.front_ends.json_schema.types import validate
from .constraints.grammar.source import is_source
from .errors import UsageError
from .sampling.params import OPTIONS


class ConstraintOptions(TypedDict, total=False):
    """The keywords above, as `generate` and `LLM.generate` take them."""

    schema: Any
    json_schema: Any
    regex: str | Sequence[str | None] | None
    grammar: str | Sequence[str | None] | None
    choice: Sequence[str] | Sequence[Sequence[str] | None] | None
    constraint: Any


_FILE_NAME = re.compile(r"[\w./\\~ -]*\w\.(json|ya?ml|gbnf|lark|ebnf|bnf|txt|py)", re.IGNORECASE)
_JSON_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})
_GBNF_RULE = re.compile(r"^[ \t]*[\w-]+\s*::=", re.MULTILINE)

KEYWORDS = tuple(ConstraintOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class ConstraintChoice:
    """What one output must satisfy, how it is read, and how the embedded model is told."""

    source: Any = None  # a front end, a compiled constraint, or None: free text
    read: Callable[[str], Any] = str  # complete text -> what the user gets; ValueError when a validator rejects it
    is_json: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)  # keywords of `prompts.render_messages`


FREE = ConstraintChoice()


def choose(options: ConstraintOptions) -> ConstraintChoice:
    """The constraint of one prompt. Raises UsageError when there are two."""
    given = {name: value for name, value in options.items() if value is not None}
    unknown = next((name for name in given if name not in KEYWORDS), None)
    if unknown is not None:
        raise UsageError(f"unknown argument {unknown}=; {_where_it_belongs(unknown)}")
    if len(given) > 1:
        first, second = list(given)[:2]
        raise UsageError(f"{first}= and {second}= contradict each other: an output has one constraint")
    return MAKERS[next(iter(given))](next(iter(given.values()))) if given else FREE


def choose_for_each(num_prompts: int, options: ConstraintOptions) -> list[ConstraintChoice]:
    """The constraint of every prompt. Raises UsageError for lists of another length."""
    columns = [_column(name, value, num_prompts) for name, value in options.items() if value is not None]
    shared = dict(column for column in columns if isinstance(column, tuple))
    lists = [column for column in columns if isinstance(column, list)]
    if not lists:
        return [choose(shared)] * num_prompts  # type: ignore[arg-type]
    return [choose({**shared, **dict(row)}) for row in zip(*lists, strict=True)]  # type: ignore[typeddict-item]


def _column(name: str, value: Any, num_prompts: int) -> tuple[str, Any] | list[tuple[str, Any]]:
    """(name, value) for all prompts, or a list with one for each."""
    if name == "choice" and not _are_choices(value):
        raise UsageError("choice= is a list of strings, or a list with one such list for each prompt")
    is_one_choice = name == "choice" and all(isinstance(option, str) for option in value)
    if not isinstance(value, list) or is_one_choice:
        return name, value
    if len(value) != num_prompts:
        raise UsageError(f"{name}= has {len(value)} values for {num_prompts} prompts")
    return [(name, each) for each in value]


def _are_choices(value: Any) -> bool:
    """Whether a value is a list of strings, or may be a list of such lists, one for each prompt."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Iterator)
    return is_list and all(option is None or isinstance(option, str | list | tuple) for option in value)


# -- one maker per keyword -----------------------------------------------------------------------------------------------


def _of_schema(schema: Any) -> ConstraintChoice:
    if isinstance(schema, Mapping | bool | str):
        return _of_json_schema(schema)
    return replace(_of_constraint(JsonSchema(schema)), read=partial(validate, schema))


def _of_json_schema(schema: Any) -> ConstraintChoice:
    if not isinstance(schema, Mapping | bool | str):
        raise UsageError(f"json_schema= is a mapping, a boolean or JSON text, not {type(schema).__name__}; types go to schema=")
    _refuse_name("schema", schema)
    if isinstance(schema, Mapping) and _is_response_format(schema):
        around = "what response_format= of OpenAI's interface has around it"
        raise UsageError(f'schema= is the schema itself, not {around}: give its "schema"')
    return _of_constraint(JsonSchema(schema))


def _of_regex(pattern: Any) -> ConstraintChoice:
    _require_str("regex", pattern)
    return _of_constraint(Regex(pattern))


def _of_grammar(text: Any) -> ConstraintChoice:
    _require_str("grammar", text)
    _refuse_name("grammar", text)
    return _of_constraint(Gbnf(text) if _GBNF_RULE.search(text.removeprefix(BYTE_ORDER_MARK)) else Lark(text))


def _of_choice(options: Any) -> ConstraintChoice:
    is_list = isinstance(options, Iterable) and not isinstance(options, str)
    if not is_list or not all(isinstance(option, str) for option in options):
        raise UsageError("choice= is a list of strings")
    return _of_constraint(Choice(options))


def _of_constraint(constraint: Any) -> ConstraintChoice:
    """A front end is treated like its keyword; a compiled constraint has a text, and no more is known of it."""
    if isinstance(constraint, JsonSchema):
        return ConstraintChoice(constraint, json.loads, True, {"schema": parse_json(constraint.schema)})
    if isinstance(constraint, Constraint) or is_source(constraint):
        return ConstraintChoice(constraint, told=_told(constraint))
    said = f"constraint= is a front end or a compiled constraint, not {type(constraint).__name__}"
    raise UsageError(f"{said}; a pattern goes to regex=, a grammar to grammar=")


def _told(source: Any) -> dict[str, Any]:
    if isinstance(source, Regex):
        return {"regex": source.pattern}
    if isinstance(source, Choice):
        return {"choice": source.options}
    return {"grammar": source.text} if isinstance(source, Gbnf) else {}


MAKERS: Mapping[str, Callable[[Any], ConstraintChoice]] = {
    "schema": _of_schema,
    "json_schema": _of_json_schema,
    "regex": _of_regex,
    "grammar": _of_grammar,
    "choice": _of_choice,
    "constraint": _of_constraint,
}


def _require_str(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{name}= is a str, not {type(value).__name__}")


def _refuse_name(name: str, text: Any) -> None:
    """Refuse the name of a file or of a type: it is neither JSON nor a grammar, and the error of a parser would not say why."""
    if isinstance(text, str) and _FILE_NAME.fullmatch(text):
        raise UsageError(f'{name}= is a text, and "{text}" looks like the name of a file: give what it contains')
    if name == "schema" and isinstance(text, str) and text.isidentifier() and text not in _JSON_WORDS:
        raise UsageError(f'schema= is a type or a JSON Schema, and "{text}" looks like the name of a type: give the type itself')


def _is_response_format(schema: Mapping[str, Any]) -> bool:
    """Whether a mapping has a schema in it and no keyword of its own."""
    if schema.get("type") == "json_schema":
        return True
    return isinstance(schema.get("schema"), Mapping) and schema.keys() <= {"name", "description", "schema", "strict"}


_ELSEWHERE = {  # what other libraries call an argument
    "sampling_params": "sampling", "response_format": "schema", "guided_json": "schema", "output_type": "schema",
    "pattern": "regex", "guided_regex": "regex", "guided_choice": "choice", "guided_grammar": "grammar",
    "beam_width": "width", "num_beams": "width",
}  # fmt: skip


def _where_it_belongs(name: str) -> str:
    """What to write instead of an argument that is not known."""
    options = [option.name for option in OPTIONS]
    if name in options:
        return f"options go to sampling=SamplingParams({name}=...)"
    near = [_ELSEWHERE[name]] if name in _ELSEWHERE else get_close_matches(name, [*KEYWORDS, *options], n=1, cutoff=0.7)
    hint = f"; did you mean {near[0]}?" if near else ""
    known = ", ".join(f"{name}=" for name in KEYWORDS)
    return f"a constraint is one of {known}; options go to sampling=SamplingParams(...){hint}"
