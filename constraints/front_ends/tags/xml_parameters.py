"""XGrammar's `style` of a JSON schema: the members of an object, each written by itself as models write arguments.

Sources: `xgrammar/structural_tag.py` (0.2.8), `JSONSchemaFormat.style`; docs/structural_tag/minimax_m3_design.md of its repository.
A style is a row of a table: how a member is written, and in which notation values of which types. A string is written bare, up to
the first end mark, all else as JSON, or, where a style has it so, objects as members and arrays as items again. White space may
stand before and behind every member, and around a JSON value unless the style is tight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...base.errors import ConstraintLimit, UnsupportedKeyword
from ...grammar.source import Limits
from ..json_schema.algebra.claims import ALL_ATOMS
from ..json_schema.documents.document import Site
from ..json_schema.documents.reading import count_of
from ..json_schema.json_schema import JsonSchema
from ..regex.regex import Regex
from .arguments import DESCRIBING, Argument, Parameter, Place, Values, parameters_of, site_at
from .tree import AnyOf, Const, Joined, Part, Repeat, Sequence, Tag, Text

MAX_MEMBERS = 2000  # of all objects and arrays inside each other together
_MAX_DEPTH = 50
_OF_ARRAYS = {"type", "items", "minItems", "maxItems"} | DESCRIBING
_STRING, _NUMBER = frozenset({"string"}), frozenset({"integer", "fraction"})
_OBJECT, _ARRAY = frozenset({"object"}), frozenset({"array"})
_SCALARS = ALL_ATOMS - _OBJECT - _ARRAY


@dataclass(frozen=True, slots=True)
class Kind:
    """Values of some types: the label that the template has for them, and their notation."""

    label: str
    atoms: frozenset[str]
    notation: str  # "bare", "json", "either" as of `Argument`; "members", "items"


@dataclass(frozen=True, slots=True)
class ParameterStyle:
    """How members are written. `{key}` is the name, `{kind}` the label of the value's kind."""

    member: str
    kinds: tuple[Kind, ...] = (Kind("", ALL_ATOMS, "either"),)
    item: str = ""  # of an array whose items are written one by one
    mark: str = ""  # how every end begins, and where a bare string ends; "": at the whole end
    is_tight: bool = False  # no white space around JSON values
    has_tight_items: bool = False  # nor between items
    escaped_name: Callable[[str], str] = str


def _xml_escaped(name: str) -> str:
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


_BARE_OR_JSON = (Kind("true", _STRING, "bare"), Kind("false", ALL_ATOMS - _STRING, "json"))
_COHERE = '<cofl:value name="{key}" type="{kind}">{value}</cofl:value>'
_MINIMAX = "]<]minimax[>["  # begins every mark of MiniMax M3
_STYLES = {
    "qwen_xml": ParameterStyle("<parameter={key}>{value}</parameter>"),
    "minimax_xml": ParameterStyle('<parameter name="{key}">{value}</parameter>'),
    "glm_xml": ParameterStyle("<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"),
    "deepseek_xml": ParameterStyle(
        '<\uff5cDSML\uff5cparameter name="{key}" string="{kind}">{value}</\uff5cDSML\uff5cparameter>', _BARE_OR_JSON
    ),
    "deepseek_v4_1_xml": ParameterStyle(
        '<\uff5cDSML\uff5c parameter name="{key}" string="{kind}">{value}</\uff5cDSML\uff5c parameter>', _BARE_OR_JSON
    ),
    "kimi_k3_xml": ParameterStyle(
        '<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>',
        (
            Kind("string", _STRING, "bare"), Kind("number", _NUMBER, "json"), Kind("boolean", frozenset({"boolean"}), "json"),
            Kind("object", _OBJECT, "json"), Kind("array", _ARRAY, "json"), Kind("null", frozenset({"null"}), "json"),
        ),
    ),
    "cohere_xml": ParameterStyle(
        _COHERE,
        (
            Kind("raw", _STRING, "bare"), Kind("json", _SCALARS - _STRING, "json"),
            Kind("dict", _OBJECT, "members"), Kind("list", _ARRAY, "items"),
        ),
        item=_COHERE.replace(' name="{key}"', ""), has_tight_items=True, escaped_name=_xml_escaped,
    ),
    "minimax_m3_xml": ParameterStyle(
        f"{_MINIMAX}<{{key}}>{{value}}{_MINIMAX}</{{key}}>",
        (Kind("", _SCALARS, "either"), Kind("", _OBJECT, "members"), Kind("", _ARRAY, "items")),
        item=f"{_MINIMAX}<item>{{value}}{_MINIMAX}</item>", mark=_MINIMAX, is_tight=True,
    ),
}  # fmt: skip


def xml_parameters(schema: JsonSchema, style: str, space: str, path: str) -> Part:
    """The members of an object in a style. `space`: white space as a pattern.

    Raises `UnsupportedKeyword` for a style that is not known, and for what members have to satisfy together.
    """
    found = _STYLES.get(style)
    if found is None:
        known = ", ".join(sorted(_STYLES))
        raise UnsupportedKeyword(f"{style!r} is not a style that is enforced", path=path, keyword="style", instead=known)
    return _Writer(schema, found, Regex(space, dialect="ecma")).members(())


class _Writer:
    """Makes the parts of one schema in one style."""

    def __init__(self, schema: JsonSchema, style: ParameterStyle, gap: Regex) -> None:
        self._schema, self._style, self._gap, self._limits = schema, style, gap, Limits()
        self._around: list[str] = []  # the paths of the schemas that are being written
        self._written = 0

    def members(self, place: Place) -> Part:
        """The members of the object at a place, with white space around each."""
        with self._inside(place):
            found = parameters_of(self._schema, self._limits, place)
            parts = [(Sequence((self._gap, self._member(each))), each.is_required) for each in found]
        return Sequence((Joined(parts, ""), self._gap))

    @contextmanager
    def _inside(self, place: Place) -> Iterator[Site]:
        """The schema at a place inside the schema that is being written. Raises where it is one of the schemas around
        it."""
        site = site_at(self._schema, place, self._limits)
        if site.path in self._around:
            raise site.unsupported("$ref", "a schema inside of itself, where members are written one by one", 'style "json"')
        if len(self._around) == _MAX_DEPTH:
            raise ConstraintLimit("members inside each other", limit="nesting", value=_MAX_DEPTH, path=site.path)
        self._around.append(site.path)
        yield site
        self._around.pop()

    def _member(self, parameter: Parameter) -> Part:
        template = self._style.member.replace("{key}", self._style.escaped_name(parameter.name))
        return self._value(template, parameter.place)

    def _items(self, place: Place) -> Part:
        """The items of the array at a place."""
        with self._inside(place) as site:
            for keyword in site.keywords:
                if keyword not in _OF_ARRAYS:
                    raise site.unsupported(keyword, "is not enforced where items are written one by one", 'style "json"')
            if not isinstance(site.keywords.get("items"), dict):
                raise site.unsupported("items", "items of any kind are not written one by one", 'a schema under "items"')
            low, high = (count_of(site, keyword) for keyword in ("minItems", "maxItems"))
            item = self._value(self._style.item, (*place, ("items",)))
        item = item if self._style.has_tight_items else Sequence((self._gap, item))
        return Sequence((Repeat(item, low or 0, high), self._gap))

    def _value(self, template: str, place: Place) -> Part:
        """One member or item: of each kind that it has values of."""
        self._written += 1
        if self._written > MAX_MEMBERS:
            raise ConstraintLimit("members written one by one", limit="members", value=MAX_MEMBERS)
        scratch = self._schema.new_grammar(self._limits)
        values = Values(self._schema, place, scratch, self._limits)
        kinds = [kind for kind in self._style.kinds if values.has(kind.atoms)] or [Kind("", ALL_ATOMS, "json")]
        options = [self._of_kind(template.replace("{kind}", kind.label), place, kind, values) for kind in kinds]
        return AnyOf(options) if len(options) > 1 else options[0]

    def _of_kind(self, template: str, place: Place, kind: Kind, values: Values) -> Part:
        begin, _, end = template.partition("{value}")
        mark = self._style.mark or end
        tag = Tag(begin, self._content(place, kind, values, mark), mark)
        return Sequence((tag, Const(end[len(mark) :]))) if end != mark else tag

    def _content(self, place: Place, kind: Kind, values: Values, mark: str) -> Part:
        gap = self._gap
        if kind.notation == "members":
            return Sequence((gap, self.members(place)))
        if kind.notation == "items":
            return Sequence((gap, self._items(place)))
        notation = kind.notation
        if notation == "either":
            has_strings, has_others = values.has(_STRING), values.has(kind.atoms - _STRING)
            notation = "json" if not has_strings else "either" if has_others else "bare"
        if notation == "bare" and values.is_free_text:
            return Text()
        value = Argument(self._schema, place, notation, mark, kind.atoms)
        return Sequence((gap, value, gap)) if notation == "json" and not self._style.is_tight else value
