"""Trees from JSON: XGrammar's structural tags (as of version 0.2), and the response formats of OpenAI and vLLM.

    {"type": "structural_tag", "format": {"type": "triggered_tags", ...}}
    {"type": "structural_tag", "structures": [{"begin", "schema", "end"}], "triggers": [...]}
    {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}, "json_object", "text", "regex", "grammar", "choice"
    {"type": "json_schema", "name", "schema", "strict"}                      OpenAI's Responses interface
    {"json": ..., "regex": ..., "choice": ..., "grammar": ..., "structural_tag": ...}      one of these: vLLM's `structured_outputs`

Members that are not known are refused by name, so that nothing is silently ignored. Source: `xgrammar/structural_tag.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..choice import Choice
from ..errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ..gbnf import Gbnf
from ..json_schema import JsonSchema
from ..regex import Regex
from ..schema.values import depth_of, parse_json
from ..source import Limits
from .tree import AnyOf, Const, Located, Part, Repeat, Separated, Sequence, Tag, Text, Token, Triggered


def read_structural_tag(form: Mapping[str, Any] | str) -> Part:
    """The tree that a request describes. Raises `ConstraintError` with the path of what is wrong."""
    value = parse_json(form) if isinstance(form, str) else form
    if not isinstance(value, Mapping):
        raise ConstraintError(f"an object is expected, not {_shown(value)}", path="#")
    if depth_of(value) > (limit := Limits().nesting):
        raise ConstraintLimit("a structural tag nested too deeply", limit="nesting", value=limit, path="#")
    top = _Object(value, "#")
    if "type" not in value and not _STRUCTURED_OUTPUTS.keys().isdisjoint(value):
        return _read_structured_outputs(top)
    reader = _RESPONSE_FORMATS.get(top.kind)
    return reader(top) if reader else _read_tree(top)


# -- objects ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Object:
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
                f"{wanted} is expected, not {_shown(value)}", path=f"{self.path}/{name}", keyword=name
            )
        return value

    def strings(self, name: str, default: Any = ...) -> tuple[str, ...]:
        values = self.take(name, list, tuple, default=default)
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise ConstraintError(
                    f"a string is expected, not {_shown(value)}", path=f"{self.path}/{name}/{i}", keyword=name
                )
        return tuple(values)

    def refuse(self, name: str, default: Any, instead: str) -> None:
        """That a member has another value than the default is not enforced."""
        self.known.add(name)
        if self.members.get(name, default) != default:
            raise UnsupportedKeyword("not enforced", path=self.path, keyword=name, instead=instead)

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


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."


# -- trees --------------------------------------------------------------------------------------------------------------

_Build = Callable[[list[Part]], Part]


def _read_tree(root: _Object) -> Part:
    """Objects from the root to the leaves, then parts in the opposite order."""
    visits: list[tuple[_Object, _Build, range]] = []
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


_Read = tuple[list[_Object], _Build]


def _leaf(part: Part) -> _Read:
    return [], lambda inner: part


def _child(one: _Object, name: str) -> _Object:
    return _Object(one.take(name, Mapping), f"{one.path}/{name}")


def _children(one: _Object, name: str) -> list[_Object]:
    values = one.take(name, list, tuple)
    for i, value in enumerate(values):
        if not isinstance(value, Mapping):
            raise ConstraintError(
                f"an object is expected, not {_shown(value)}", path=f"{one.path}/{name}/{i}", keyword=name
            )
    return [_Object(value, f"{one.path}/{name}/{i}") for i, value in enumerate(values)]


def _read_const(one: _Object) -> _Read:
    return _leaf(Const(one.take("value", str)))


def _read_schema(one: _Object) -> _Read:
    one.refuse("style", "json", "Tools with a style that writes arguments so")
    one.refuse("excludes", [], 'a "pattern" in the schema')
    order = "any" if one.take("any_order", bool, default=False) else "declared"
    most = one.take("max_whitespace_cnt", int, default=20)
    most = 20 if most is None else most
    schema = one.take("json_schema", Mapping, bool)
    space = "compact" if most == 0 else rf"[ \t\n\r]{{0,{most}}}"
    return _leaf(JsonSchema(schema, whitespace=space, property_order=order))


def _read_regex(one: _Object) -> _Read:
    return _leaf(Regex(one.take("pattern", str), dialect="ecma"))


def _read_grammar(one: _Object) -> _Read:
    return _leaf(Gbnf(one.take("grammar", str)))


def _read_text(one: _Object) -> _Read:
    one.refuse("max_tokens", None, "max_chars, or Reasoning(max_tokens=...)")
    return _leaf(Text(one.strings("excludes", ()), one.take("max_chars", int, default=None)))


def _read_token(one: _Object) -> _Read:
    return _leaf(Token(one.take("token", str, int)))


def _read_sequence(one: _Object) -> _Read:
    return _children(one, "elements"), Sequence


def _read_or(one: _Object) -> _Read:
    options = _children(one, "elements")
    if not options:
        raise ConstraintError("one of nothing", path=one.path, keyword="elements", instead="at least one")
    return options, AnyOf


def _read_tag(one: _Object) -> _Read:
    begin, end = _marker(one, "begin"), one.members.get("end")
    one.known.add("end")
    ends = one.strings("end") if isinstance(end, list | tuple) else (_marker(one, "end"),)
    return [_child(one, "content")], lambda inner: Tag(begin, inner[0], ends)


def _marker(one: _Object, name: str) -> str:
    """A string, or `{"type": "token", "token": "<name>"}`: names of special tokens in markup are the tokens."""
    value = one.take(name, str, Mapping)
    if isinstance(value, str):
        return value
    token = _Object(value, f"{one.path}/{name}")
    if token.kind != "token":
        raise ConstraintError("a string or a token is expected", path=token.path, keyword="type")
    return str(token.take("token", str))


def _read_triggered(one: _Object) -> _Read:
    return _triggered(one, one.strings("triggers"), one.strings("excludes", ()))


def _read_token_triggered(one: _Object) -> _Read:
    one.refuse("exclude_tokens", [], "nothing: special tokens are never part of text")
    return _triggered(one, one.strings("trigger_tokens"), ())


def _triggered(one: _Object, triggers: tuple[str, ...], excludes: tuple[str, ...]) -> _Read:
    first, stop = one.take("at_least_one", bool, default=False), one.take("stop_after_first", bool, default=False)

    def build(inner: list[Part]) -> Part:
        return Triggered(triggers, map(_bare_tag, inner), first, stop, excludes)

    return _tags(one), build


def _tags(one: _Object) -> list[_Object]:
    tags = [_Object({"type": "tag", **tag.members}, tag.path) for tag in _children(one, "tags")]
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


def _read_separated(one: _Object) -> _Read:
    first, stop = one.take("at_least_one", bool, default=False), one.take("stop_after_first", bool, default=False)
    separator = one.take("separator", str)
    return _tags(one), lambda inner: Separated(inner, separator, first, stop)


def _read_repeated(low: int, high: int | None) -> Callable[[_Object], _Read]:
    return lambda one: ([_child(one, "content")], lambda inner: Repeat(inner[0], low, high))


def _read_repeat(one: _Object) -> _Read:
    low, high = one.take("min", int), one.take("max", int)
    return [_child(one, "content")], lambda inner: Repeat(inner[0], low, None if high == -1 else high)


def _read_dispatch(one: _Object) -> _Read:
    """Rules of a pattern and what follows it: tags without an end."""
    rules = one.take("rules", list, tuple)
    for i, rule in enumerate(rules):
        is_pair = (
            isinstance(rule, list | tuple)
            and len(rule) == 2
            and isinstance(rule[0], str)
            and isinstance(rule[1], Mapping)
        )
        if not is_pair:
            raise ConstraintError("a pattern and a format are expected", path=f"{one.path}/rules/{i}", keyword="rules")
    excludes, stop = one.strings("excludes", ()), not one.take("loop", bool, default=True)
    patterns = [rule[0] for rule in rules]

    def build(inner: list[Part]) -> Part:
        tags = [Tag(pattern, content, "") for pattern, content in zip(patterns, inner, strict=True)]
        return Triggered(patterns, tags, False, stop, excludes)

    return [_Object(rule[1], f"{one.path}/rules/{i}/1") for i, rule in enumerate(rules)], build


_FORMATS: dict[str, Callable[[_Object], _Read]] = {
    "const_string": _read_const,
    "json_schema": _read_schema,
    "any_text": _read_text,
    "token": _read_token,
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
}


# -- response formats -----------------------------------------------------------------------------------------------------


def _read_request(one: _Object) -> Part:
    """The new form with "format", or the older one with "structures" and "triggers"."""
    if "format" in one.members:
        tree = _read_tree(_child(one, "format"))
        one.check_all_known()
        return tree
    triggers, tags = one.strings("triggers"), []
    for each in _children(one, "structures"):
        schema = Located(JsonSchema(each.take("schema", Mapping, str, bool)), f"{each.path}/schema")
        tags.append(Tag(each.take("begin", str), schema, each.take("end", str)))
        each.check_all_known()
    one.check_all_known()
    return Located(Triggered(triggers, tags), "#")


def _read_schema_format(one: _Object) -> Part:
    """OpenAI: {"json_schema": {"name", "schema", "strict", "description"}}; also the schema itself, as XGrammar spells it."""
    is_flat = "schema" in one.members and "json_schema" not in one.members
    wrapped = one.members if is_flat else one.take("json_schema", Mapping, bool)
    if not isinstance(wrapped, Mapping) or "schema" not in wrapped:
        return _read_tree(one)
    if not is_flat:
        one.check_all_known()
    inner = one if is_flat else _Object(wrapped, "#/json_schema")
    inner.known |= {"name", "description", "strict"}
    part = Located(JsonSchema(inner.take("schema", Mapping, bool)), f"{inner.path}/schema")
    inner.check_all_known()
    return part


def _read_json_object(one: _Object) -> Part:
    one.check_all_known()
    return JsonSchema({"type": "object"})


def _read_plain(one: _Object) -> Part:
    one.check_all_known()
    return Text()


def _read_choice(one: _Object) -> Part:
    choice = Choice(one.strings("choice"))
    one.check_all_known()
    return choice


def _read_structured_outputs(one: _Object) -> Part:
    """vLLM: one member says what is constrained."""
    given = [name for name in one.members if name in _STRUCTURED_OUTPUTS and one.members[name] is not None]
    if len(given) != 1:
        raise ConstraintError(
            f"one constraint is expected, not {' and '.join(given) or 'none'}",
            path=one.path,
            keyword="structured_outputs",
        )
    one.known |= {name for name in _STRUCTURED_OUTPUTS if one.members.get(name) is None}
    one.known.discard("type")
    part = Located(_STRUCTURED_OUTPUTS[given[0]](one), f"{one.path}/{given[0]}")
    one.check_all_known()
    return part


def _read_json(one: _Object) -> Part:
    return JsonSchema(one.take("json", Mapping, str, bool))


def _read_any_object(one: _Object) -> Part:
    if not one.take("json_object", bool):
        raise ConstraintError("true is expected", path=one.path, keyword="json_object")
    return JsonSchema({"type": "object"})


_STRUCTURED_OUTPUTS: dict[str, Callable[[_Object], Part]] = {
    "json": _read_json,
    "json_object": _read_any_object,
    "regex": lambda one: Regex(one.take("regex", str)),
    "choice": lambda one: Choice(one.strings("choice")),
    "grammar": lambda one: Gbnf(one.take("grammar", str)),
    "structural_tag": lambda one: read_structural_tag(one.take("structural_tag", Mapping, str)),
}

_RESPONSE_FORMATS: dict[str, Callable[[_Object], Part]] = {
    "structural_tag": _read_request,
    "json_schema": _read_schema_format,
    "json_object": _read_json_object,
    "text": _read_plain,
    "choice": _read_choice,
}
