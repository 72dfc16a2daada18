"""Trees from the JSON of structural tags, XGrammar's form (as of version 0.2): the "format" of a request, see `requests.py`.

Members that are not known are refused by name, so that nothing is silently ignored. Source: `xgrammar/structural_tag.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import ConstraintError, UnsupportedKeyword
from ..cfg.ebnf import Ebnf
from ..json_schema.json_schema import JsonSchema
from ..regex.regex import Regex
from .exclusions import without
from .tree import AnyOf, Const, Located, OtherToken, Part, Repeat, Separated, Sequence, Tag, Text, Token, Triggered
from .xml_parameters import xml_parameters

# -- objects ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class JsonObject:
    """One JSON object, its place, and which of its members have been read."""

    members: Mapping[str, Any]
    path: str
    known: set[str] = field(default_factory=lambda: {"type"})

    @property
    def kind(self) -> str:
        kind = self.members.get("type")
        if not isinstance(kind, str):
            raise ConstraintError('a "type" is missing', path=self.path, keyword="type")
        return kind

    def take(self, name: str, *types: type, default: Any = ...) -> Any:
        """A member of one of some types."""
        self.known.add(name)
        value = self.members.get(name, default)
        if value is ...:
            raise ConstraintError(f"{name!r} is missing", path=self.path, keyword=name)
        is_bool = isinstance(value, bool) and bool not in types
        if value is not default and (is_bool or not isinstance(value, types)):
            wanted = " or ".join(_NAMES[each] for each in types)
            raise ConstraintError(
                f"{wanted} is expected, not {shown(value)}", path=f"{self.path}/{name}", keyword=name
            )
        return value

    def strings(self, name: str, default: Any = ...) -> tuple[str, ...]:
        values = self.take(name, list, tuple, default=default)
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise ConstraintError(
                    f"a string is expected, not {shown(value)}", path=f"{self.path}/{name}/{i}", keyword=name
                )
        return tuple(values)

    def check_all_known(self) -> None:
        for name in self.members:
            if name not in self.known:
                raise ConstraintError("not a member of this", path=self.path, keyword=name)


_NAMES = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    Mapping: "an object",
}


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."


# -- trees --------------------------------------------------------------------------------------------------------------

_Build = Callable[[list[Part]], Part]


def read_tree(root: JsonObject) -> Part:
    """Objects from the root to the leaves, then parts in the opposite order."""
    visits: list[tuple[JsonObject, _Build, range]] = []
    waiting = [root]
    for one in waiting:  # grows while it is gone through
        reader = _FORMATS.get(one.kind)
        if reader is None:
            known = ", ".join(sorted(_FORMATS))
            raise UnsupportedKeyword(
                f"{one.kind!r} is not a format that is enforced", path=one.path, keyword="type", instead=known
            )
        inner, build = reader(one)
        one.check_all_known()
        visits.append((one, build, range(len(waiting), len(waiting) + len(inner))))
        waiting += inner
    parts: list[Part] = [Sequence(())] * len(visits)
    for i in range(len(visits) - 1, -1, -1):
        one, build, inside = visits[i]
        parts[i] = Located(build([parts[j] for j in inside]), one.path)
    return parts[0]


_Read = tuple[list[JsonObject], _Build]


def _leaf(part: Part) -> _Read:
    return [], lambda inner: part


def child(one: JsonObject, name: str) -> JsonObject:
    return JsonObject(one.take(name, Mapping), f"{one.path}/{name}")


def children(one: JsonObject, name: str) -> list[JsonObject]:
    values = one.take(name, list, tuple)
    for i, value in enumerate(values):
        if not isinstance(value, Mapping):
            raise ConstraintError(
                f"an object is expected, not {shown(value)}", path=f"{one.path}/{name}/{i}", keyword=name
            )
    return [JsonObject(value, f"{one.path}/{name}/{i}") for i, value in enumerate(values)]


def _read_const(one: JsonObject) -> _Read:
    return _leaf(Const(one.take("value", str)))


def _read_schema(one: JsonObject) -> _Read:
    excludes = one.strings("excludes", ())
    order = "any" if one.take("any_order", bool, default=False) else "declared"
    most = one.take("max_whitespace_cnt", int, default=20)
    most = 20 if most is None else most
    schema = one.take("json_schema", Mapping, bool)
    space = "compact" if most == 0 else rf"[ \t\n\r]{{0,{most}}}"
    style = one.take("style", str, default="json")
    if style == "json":
        schema, resources = without(schema, excludes, one.path) if excludes else (schema, {})
        return _leaf(JsonSchema(schema, whitespace=space, property_order=order, resources=resources))
    if excludes:
        raise UnsupportedKeyword("not enforced beside a style", path=one.path, keyword="excludes", instead="no excludes")
    if order == "any":
        raise UnsupportedKeyword("not enforced beside a style", path=one.path, keyword="any_order", instead="false")
    return _xml(one, schema, str(style), most)


def _xml(one: JsonObject, schema: Any, style: str, most: int) -> _Read:
    space = rf"[ \t\n\r]{{0,{most}}}"
    values = JsonSchema(schema, whitespace="compact" if most == 0 else space)
    try:
        return _leaf(xml_parameters(values, style, space, one.path))
    except ConstraintError as error:
        if error.keyword != "style":
            error.move_below(f"{one.path}/json_schema")
        raise


def _read_qwen(one: JsonObject) -> _Read:
    """The older name of a style."""
    return _xml(one, one.take("json_schema", Mapping, bool), "qwen_xml", 20)


def _read_regex(one: JsonObject) -> _Read:
    return _leaf(Regex(one.take("pattern", str), dialect="ecma"))


def _read_grammar(one: JsonObject) -> _Read:
    return _leaf(Ebnf(one.take("grammar", str), root="root", notation="xgrammar"))


def _read_text(one: JsonObject) -> _Read:
    return _leaf(Text(one.strings("excludes", ()), _bound(one, "max_chars"), _bound(one, "max_tokens")))


def _read_tokens(one: JsonObject) -> _Read:
    return _leaf(Text(max_tokens=_bound(one, "max_tokens"), without_tokens=_token_names(one, "exclude_tokens", ())))


def _bound(one: JsonObject, name: str) -> int | None:
    value = one.take(name, int, default=None)
    if value is not None and value < 0:
        raise ConstraintError("a number that is not negative is expected", path=f"{one.path}/{name}", keyword=name)
    return None if value is None else int(value)


def _read_token_but(one: JsonObject) -> _Read:
    return _leaf(OtherToken(_token_names(one, "exclude_tokens", ())))


def _token_names(one: JsonObject, name: str, default: Any = ...) -> tuple[str | int, ...]:
    """Special tokens, by name or id."""
    values = one.take(name, list, tuple, default=default)
    for i, value in enumerate(values):
        if not isinstance(value, str | int) or isinstance(value, bool):
            reason = f"the name or the id of a token is expected, not {shown(value)}"
            raise ConstraintError(reason, path=f"{one.path}/{name}/{i}", keyword=name)
    return tuple(values)


def _read_token(one: JsonObject) -> _Read:
    return _leaf(Token(one.take("token", str, int)))


def _read_sequence(one: JsonObject) -> _Read:
    return children(one, "elements"), Sequence


def _read_or(one: JsonObject) -> _Read:
    options = children(one, "elements")
    if not options:
        raise ConstraintError("one of nothing", path=one.path, keyword="elements", instead="at least one")
    return options, AnyOf


def _read_tag(one: JsonObject) -> _Read:
    begin, end = _marker(one, "begin"), one.members.get("end")
    one.known.add("end")
    ends = one.strings("end") if isinstance(end, list | tuple) else (_marker(one, "end"),)
    return [child(one, "content")], lambda inner: Tag(begin, inner[0], ends)


def _marker(one: JsonObject, name: str) -> str:
    """A string, or `{"type": "token", "token": "<name>"}`: names of special tokens in markup are the tokens."""
    value = one.take(name, str, Mapping)
    if isinstance(value, str):
        return value
    token = JsonObject(value, f"{one.path}/{name}")
    if token.kind != "token":
        raise ConstraintError("a string or a token is expected", path=token.path, keyword="type")
    return str(token.take("token", str))


def _read_triggered(one: JsonObject) -> _Read:
    return _triggered(one, one.strings("triggers"), one.strings("excludes", ()))


def _read_token_triggered(one: JsonObject) -> _Read:
    return _triggered(one, one.strings("trigger_tokens"), (), _token_names(one, "exclude_tokens", ()))


def _triggered(
    one: JsonObject, triggers: tuple[str, ...], excludes: tuple[str, ...], without: tuple[str | int, ...] | None = None
) -> _Read:
    first, stop = one.take("at_least_one", bool, default=False), one.take("stop_after_first", bool, default=False)

    def build(inner: list[Part]) -> Part:
        return Triggered(triggers, map(_bare_tag, inner), first, stop, excludes, without_tokens=without)

    return _tags(one), build


def _tags(one: JsonObject) -> list[JsonObject]:
    tags = [JsonObject({"type": "tag", **tag.members}, tag.path) for tag in children(one, "tags")]
    for tag in tags:
        if tag.kind != "tag":
            raise ConstraintError("a tag is expected", path=tag.path, keyword="type")
    if not tags:
        raise ConstraintError("there are no tags", path=one.path, keyword="tags", instead="at least one")
    return tags


def _bare_tag(part: Part) -> Tag:
    tag = part.content if isinstance(part, Located) else part
    assert isinstance(tag, Tag)
    return tag


def _read_separated(one: JsonObject) -> _Read:
    first, stop = one.take("at_least_one", bool, default=False), one.take("stop_after_first", bool, default=False)
    separator = one.take("separator", str)
    return _tags(one), lambda inner: Separated(inner, separator, first, stop)


def _read_repeated(low: int, high: int | None) -> Callable[[JsonObject], _Read]:
    return lambda one: ([child(one, "content")], lambda inner: Repeat(inner[0], low, high))


def _read_repeat(one: JsonObject) -> _Read:
    low, high = one.take("min", int), one.take("max", int)
    return [child(one, "content")], lambda inner: Repeat(inner[0], low, None if high == -1 else high)


def _read_dispatch(one: JsonObject) -> _Read:
    """Rules of a pattern and what follows it, as tags without an end."""
    return _dispatch(one, one.strings("excludes", ()), None)


def _read_token_dispatch(one: JsonObject) -> _Read:
    return _dispatch(one, (), _token_names(one, "exclude_tokens", ()))


def _dispatch(one: JsonObject, excludes: tuple[str, ...], without: tuple[str | int, ...] | None) -> _Read:
    rules = one.take("rules", list, tuple)
    for i, rule in enumerate(rules):
        is_pair = isinstance(rule, list | tuple) and len(rule) == 2 and isinstance(rule[0], str) and isinstance(rule[1], Mapping)
        if not is_pair:
            what = "a pattern" if without is None else "the name of a token"
            raise ConstraintError(f"{what} and a format are expected", path=f"{one.path}/rules/{i}", keyword="rules")
    stop = not one.take("loop", bool, default=True)
    patterns = [rule[0] for rule in rules]

    def build(inner: list[Part]) -> Part:
        tags = [Tag(pattern, content, "") for pattern, content in zip(patterns, inner, strict=True)]
        return Triggered(patterns, tags, False, stop, excludes, without_tokens=without)

    return [JsonObject(rule[1], f"{one.path}/rules/{i}/1") for i, rule in enumerate(rules)], build


_FORMATS: dict[str, Callable[[JsonObject], _Read]] = {
    "const_string": _read_const,
    "json_schema": _read_schema,
    "qwen_xml_parameter": _read_qwen,
    "any_text": _read_text,
    "token": _read_token,
    "any_tokens": _read_tokens,
    "exclude_token": _read_token_but,
    "grammar": _read_grammar,
    "regex": _read_regex,
    "sequence": _read_sequence,
    "or": _read_or,
    "tag": _read_tag,
    "triggered_tags": _read_triggered,
    "token_triggered_tags": _read_token_triggered,
    "tags_with_separator": _read_separated,
    "optional": _read_repeated(0, 1),
    "plus": _read_repeated(1, None),
    "star": _read_repeated(0, None),
    "repeat": _read_repeat,
    "dispatch": _read_dispatch,
    "token_dispatch": _read_token_dispatch,
}
