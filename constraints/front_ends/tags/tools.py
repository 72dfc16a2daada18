"""Tool calls as a source: a structural tag made from the tools and the style of the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...base.errors import ConstraintError
from ...grammar.expression import Grammar, Node
from ...grammar.segments import MARKUP, REASONING, TEXT, Segment
from ...grammar.source import Limits, Source, is_source
from ...runtime.constraint import Constraint
from ...runtime.front_end import FrontEnd, front_end_of
from ...runtime.segmented_places import OnePlace, OwnedPlaces, SegmentedPlaces
from ...runtime.values import Places, SegmentedValues, Values
from ..cfg.lark_grammar import Lark
from ..json_schema.documents.values import dump_json, parse_json, plain_value
from ..json_schema.json_schema import JsonSchema
from ..regex.regex import Regex
from .arguments import Argument, Parameter, parameters_of, site_at
from .custom_input import INPUT, InputObject, InputString
from .lowering import lower_tree
from .structural import StructuralTag
from .styles import ALIASES, STYLES, ToolStyle, style_of
from .tree import AnyOf, Const, Joined, Labelled, Located, Part, Repeat, Separated, Sequence, Tag, Text, Triggered

SPACE = r"[ \t\n\r]{0,20}"  # white space where JSON allows it, as in JsonSchema(whitespace="flexible")
_NAME = re.compile(r"[\w.:/-]+")
_MESSAGE_SEGMENTS = {"text": TEXT, "reasoning": REASONING}
ANSWER_PATH = "#/answer"  # with which the paths of errors about the answer begin


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool: its name, and the JSON Schema of its arguments as text. A custom tool has one argument, a text called
    "input"."""

    name: str
    parameters: str
    path: str = "#"
    is_custom: bool = False
    input: Source | None = None  # what the text of a custom tool satisfies; None for any text


@dataclass(frozen=True, slots=True)
class Tools(FrontEnd):
    """Replies in which tools are called, as a model writes that.

    tools: definitions, in OpenAI's form (`{"type": "function", "function": {"name", "parameters"}}`, flat as in its Responses
        interface, or just `{"name", "parameters"}`; the schema may also be called `input_schema` or `inputSchema`), as a list or as
        JSON text. Custom tools too (`{"type": "custom", "name", "format"}`), whose input is any text, or one of a grammar in Lark's
        language or of a regular expression.
    style: a name (see `styles.STYLES`) or a `ToolStyle`.
    choice: "auto" (text, with calls in it), "none" (text), "required" (one call or more), {"name": ...} (one call of that tool),
        or OpenAI's objects for these.
    parallel: whether there may be several calls.
    whitespace: of JSON arguments, as in `JsonSchema`.
    on_unsupported: as in `JsonSchema`.
    answer: a source that the text of a reply satisfies; None for free text. A reply is then either calls or the answer, with no
        other text beside them. A text that is both is a call.

    Arguments are exact by the schema of their tool. Raises `ConstraintError` with the path, also for two tools of one name.
    """

    tools: Any
    style: str | ToolStyle = "hermes"
    choice: Any = "auto"
    parallel: bool = True
    whitespace: str = "auto"
    on_unsupported: str = "refuse"
    answer: Source | None = None

    def __post_init__(self) -> None:
        _check_answer(self.answer)
        tools = _definitions(self.tools)
        style = style_of(self.style)
        if not (isinstance(self.style, str) and (self.style in ALIASES or STYLES.is_built_in(self.style))):
            object.__setattr__(self, "style", style)  # a name that was registered means nothing in other processes
        mode, kept = _chosen(tools, self.choice)
        object.__setattr__(self, "tools", kept)
        object.__setattr__(self, "choice", mode)

    def new_grammar(self, limits: Limits) -> Grammar:
        """A grammar that begins with what most schemas need, see `JsonSchema.new_grammar`."""
        return JsonSchema(True).new_grammar(limits)

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The replies as a node. Raises `ConstraintError` with the path of the tool."""
        return lower_tree(self.tree(grammar, limits), grammar, limits)

    def values(self, constraint: Constraint) -> Values:
        """The arguments of calls, and an answer that is JSON."""
        is_json = self.answer is not None and front_end_of(self.answer).values(constraint) is not None
        return SegmentedValues(constraint, is_json)

    def places(self, constraint: Constraint) -> Places:
        """Those of calls, in the parameters of their tools, and of the answer."""
        return SegmentedPlaces(constraint, partial(self._places_of, constraint))

    def _places_of(self, constraint: Constraint, segment: Segment) -> Places | None:
        if segment.role == "text":
            return None if self.answer is None else front_end_of(self.answer).places(constraint)
        if segment.role not in ("arguments", "value"):
            return None
        tool = next(tool for tool in self.tools if tool.name == segment.owner)
        schema = JsonSchema(parse_json(tool.parameters), whitespace=self.whitespace, on_unsupported=self.on_unsupported)
        if segment.role == "arguments":
            inner = schema.places(constraint) if tool.input is None else OnePlace("#")
            return None if inner is None else OwnedPlaces(tool.name, inner)
        site = site_at(schema, (), constraint.limits).child("properties", segment.name)
        is_json = segment.notation == "json" and schema.has_only_space and tool.input is None
        return OwnedPlaces(tool.name, schema.places_from(site, constraint.limits) if is_json else OnePlace(site.path))

    def tree(self, grammar: Grammar, limits: Limits) -> Part:
        """The structural tag that the tools stand for."""
        return _Reply(self, style_of(self.style), grammar, limits).tree()


# -- requests -----------------------------------------------------------------------------------------------------------


def _check_answer(answer: Any) -> None:
    """Refuse an answer that has parts of its own: the reply has those of the tools."""
    if answer is None:
        return
    if not is_source(answer):
        raise ConstraintError(f"an answer is a source, not {type(answer).__name__}", path=ANSWER_PATH)
    if isinstance(answer, StructuralTag | Tools) or front_end_of(answer).stands_alone:
        instead = "a schema, pattern, grammar or choice"
        raise ConstraintError(f"{type(answer).__name__} is no answer beside tools", path=ANSWER_PATH, instead=instead)


def _definitions(tools: Any) -> tuple[ToolDefinition, ...]:
    if isinstance(tools, str):
        tools = parse_json(tools)
    if isinstance(tools, Mapping | bytes) or not isinstance(tools, Iterable):
        raise ConstraintError("tools are a list of definitions", path="#/tools")
    found = tuple(
        tool if isinstance(tool, ToolDefinition) else _definition(tool, f"#/tools/{i}") for i, tool in enumerate(tools)
    )
    for i, tool in enumerate(found):
        if any(tool.name == other.name for other in found[:i]):
            raise ConstraintError(f"two tools are called {tool.name!r}", path=tool.path, keyword="name")
    return found


def _definition(tool: Any, path: str) -> ToolDefinition:
    if not isinstance(tool, Mapping):
        raise ConstraintError("a tool is an object", path=path, instead='{"name": ..., "parameters": {...}}')
    if tool.get("type") == "custom":
        return _custom_definition(tool, path)
    if tool.get("type", "function") != "function":
        raise ConstraintError(f"a tool of type {tool['type']!r} is not a function", path=path, keyword="type")
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConstraintError(
            f"a name is made of letters, digits and _ . : / -, not {name!r}", path=path, keyword="name"
        )
    key = parameters_key(function)
    path = f"{path}/function/{key}" if function is not tool else f"{path}/{key}"
    return ToolDefinition(name, _object_schema(function.get(key), path), path)


def parameters_key(function: Mapping[str, Any]) -> str:
    """The member of a definition with the schema of its arguments, as OpenAI, Anthropic or the Model Context Protocol call it."""
    return next((key for key in ("parameters", "input_schema", "inputSchema") if function.get(key) is not None), "parameters")


def _custom_definition(tool: Mapping[str, Any], path: str) -> ToolDefinition:
    """A tool that takes a text, in the form of chat completions or, flat, of responses."""
    custom = tool.get("custom", tool)
    name = custom.get("name") if isinstance(custom, Mapping) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConstraintError(f"a name is made of letters, digits and _ . : / -, not {name!r}", path=path, keyword="name")
    path = f"{path}/custom/format" if custom is not tool else f"{path}/format"
    parameters = {"type": "object", "properties": {INPUT: {"type": "string"}}, "required": [INPUT], "additionalProperties": False}
    return ToolDefinition(name, dump_json(parameters), path, True, _input_format(custom.get("format"), path))


def _input_format(given: Any, path: str) -> Source | None:
    """What {"type": "grammar", "syntax", "definition"} says of a text; None for {"type": "text"}."""
    if given is None or (isinstance(given, Mapping) and given.get("type") == "text"):
        return None
    kind = given.get("type") if isinstance(given, Mapping) else given
    inner = given.get("grammar", given) if kind == "grammar" else None
    if not isinstance(inner, Mapping):
        raise ConstraintError(f"a format is text or grammar, not {kind!r}", path=path, keyword="type")
    definition, syntax = inner.get("definition"), inner.get("syntax")
    if not isinstance(definition, str):
        raise ConstraintError("a grammar has a definition", path=path, keyword="definition")
    if syntax not in ("lark", "regex"):
        raise ConstraintError(f"the syntax of a grammar is lark or regex, not {syntax!r}", path=path, keyword="syntax")
    return Lark(definition) if syntax == "lark" else Regex(definition)


def _object_schema(parameters: Any, path: str) -> str:
    """The schema of the arguments. It is an object, whether the schema says so or not; without a schema it is empty."""
    if parameters is None or parameters == {}:
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
    if parameters is True:
        parameters = {}
    if not isinstance(parameters, Mapping):
        raise ConstraintError("parameters are a JSON Schema", path=path, keyword="parameters")
    kinds = parameters.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list | tuple) and "object" in kinds):
        raise ConstraintError(f"arguments are an object, not {kinds!r}", path=path, keyword="type", instead='"object"')
    return dump_json(plain_value({**parameters, "type": "object"}))


def _chosen(tools: tuple[ToolDefinition, ...], choice: Any) -> tuple[str, tuple[ToolDefinition, ...]]:
    """("auto", "none", "required" or "one", the tools that may be called)."""
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return _allowed(tools, choice.get("allowed_tools", choice))
    if choice is None:
        choice = "auto"
    if choice in ("auto", "none", "required", "one"):
        if choice == "required" and not tools:
            raise ConstraintError("a call is required, but there are no tools", path="#/tool_choice")
        return choice, tools
    name = choice if isinstance(choice, str) else _name_in(choice)
    return "one", (_named(tools, name),)


def _allowed(tools: tuple[ToolDefinition, ...], allowed: Any) -> tuple[str, tuple[ToolDefinition, ...]]:
    """The tools that {"mode": ..., "tools": [...]} names."""
    path = "#/tool_choice/allowed_tools"
    if not isinstance(allowed, Mapping) or not isinstance(allowed.get("tools"), list | tuple):
        raise ConstraintError("allowed tools are a list", path=path, keyword="tools", instead='{"mode": "auto", "tools": [...]}')
    mode = allowed.get("mode", "auto")
    if mode not in ("auto", "required"):
        raise ConstraintError(f"there is no mode {mode!r}", path=path, keyword="mode", instead='"auto" or "required"')
    return _chosen(tuple(_named(tools, _name_in(each)) for each in allowed["tools"]), mode)


def _name_in(choice: Any) -> Any:
    """The name in {"type": "function", "function": {"name": ...}}, in its flat form, or in {"name": ...}."""
    function = choice.get("function", choice.get("custom", choice)) if isinstance(choice, Mapping) else choice
    return function.get("name") if isinstance(function, Mapping) else function


def _named(tools: tuple[ToolDefinition, ...], name: Any) -> ToolDefinition:
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None and not isinstance(name, str):
        raise ConstraintError("a tool is chosen by its name", path="#/tool_choice", keyword="name", instead='{"name": ...}')
    if found is None:
        known = ", ".join(repr(tool.name) for tool in tools) or "there are none"
        raise ConstraintError(f"no tool is called {name!r}", path="#/tool_choice", instead=known)
    return found


# -- trees --------------------------------------------------------------------------------------------------------------


class _Reply:
    """Makes the tree of one request."""

    def __init__(self, request: Tools, style: ToolStyle, grammar: Grammar, limits: Limits) -> None:
        self._request, self._style, self._grammar, self._limits = request, style, grammar, limits
        self._space = SPACE if request.whitespace in ("auto", "flexible") else request.whitespace

    def tree(self) -> Part:
        request, style = self._request, self._style
        calls = [self._call(tool, call) for tool in request.tools for call in style.call]
        mode = request.choice if calls else "none"
        if style.answer:
            return self._messages(calls, mode)
        if mode in ("required", "one"):
            return self._block(calls)
        if request.answer is not None:
            return self._text() if mode == "none" else AnyOf((self._text(), self._block(calls)))
        if style.leading:
            text = Text(not_leading=style.leading)
            return text if mode == "none" else AnyOf((text, self._block(calls)))
        if mode == "none":
            return Text()
        if style.begin:
            block = Tag(style.begin, self._separated(calls), style.end, segment=MARKUP)
            return Triggered((style.begin,), (block,), stop_after_first=True)
        triggers = tuple(dict.fromkeys(self._trigger(call) for call in style.call))
        return Triggered(triggers, calls, stop_after_first=self._is_one(), separator=style.separator)

    def _text(self) -> Part:
        """What a reply without calls is."""
        return Text() if self._request.answer is None else Labelled(Located(self._request.answer, ANSWER_PATH), TEXT)

    def _is_one(self) -> bool:
        return not self._request.parallel or self._request.choice == "one"

    def _separated(self, calls: list[Tag]) -> Part:
        return Separated(calls, self._style.separator, at_least_one=True, stop_after_first=self._is_one())

    def _block(self, calls: list[Tag]) -> Part:
        opener = self._style.opener
        openers = [Repeat(Const(opener), 0, 1)] if opener in self._grammar.special_tokens else []
        parts = (*openers, Const(self._style.begin), self._separated(calls), Const(self._style.end))
        return Labelled(Sequence(parts), MARKUP)

    def _messages(self, calls: list[Tag], mode: str) -> Part:
        """Messages, each of one kind: a call, or the answer, which comes last."""
        is_free = self._request.answer is None
        known = [(role, template) for role, template in self._style.preface if is_free or role != "text"]
        preface = [self._message(role, template, with_end=True) for role, template in known]
        last: list[Part] = (
            [] if mode in ("required", "one") else [self._message("text", self._style.answer, with_end=False)]
        )
        return Sequence((Repeat(AnyOf(preface)), AnyOf((*last, *([] if mode == "none" else calls)))))

    def _message(self, role: str, template: str, with_end: bool) -> Part:
        begin, _, end = template.partition("{text}")
        if not with_end and not end:
            return Sequence((Labelled(Const(begin), MARKUP), self._text()))
        closing = Segment("close reasoning") if role == "reasoning" else MARKUP
        content = Text() if with_end else self._text()
        return Tag(begin, content, end, segment=_MESSAGE_SEGMENTS[role], closing=closing)

    def _trigger(self, call: str) -> str:
        """What all calls begin with."""
        trigger = _first_piece(call.partition("{name}")[0], self._style.spaced)
        if not trigger:
            instead = "a template that begins with a mark, `begin`, or `leading`"
            raise ConstraintError("calls cannot be told from text", path=call, keyword="call", instead=instead)
        return trigger

    def _call(self, tool: ToolDefinition, template: str) -> Tag:
        """One call of one tool."""
        before, _, after = template.replace("{name}", tool.name).partition("{arguments}")
        first = _first_piece(before, self._style.spaced)
        notation = "parameters" if self._style.parameter else "json"
        inside, close = Segment("markup", tool.name), Segment("close call", tool.name, notation=notation)
        opening = self._pieces(before[len(first) :], MARKUP)
        arguments = Labelled(
            self._arguments(tool), inside if self._style.parameter else Segment("arguments", tool.name)
        )
        return Tag(first, Sequence((*opening, arguments, *self._pieces(after, close))), "", segment=MARKUP)

    def _pieces(self, template: str, segment: Segment) -> list[Part]:
        """Literal text, and white space that may be other white space."""
        if not self._style.spaced or self._request.whitespace in ("compact", "spaced"):
            return [Labelled(Const(template), segment)] if template else []
        pieces = re.split(r"(\s+)", template)
        gap = Regex(self._space, dialect="ecma")
        return [Labelled(gap if i % 2 else Const(piece), segment) for i, piece in enumerate(pieces) if piece]

    def _arguments(self, tool: ToolDefinition) -> Part:
        schema = JsonSchema(
            parse_json(tool.parameters), whitespace=self._space, on_unsupported=self._request.on_unsupported
        )
        if not self._style.parameter:
            return Located(schema if tool.input is None else InputObject(tool.input, self._space), tool.path)
        return self._parameters(tool, schema)

    def _parameters(self, tool: ToolDefinition, schema: JsonSchema) -> Part:
        try:
            found = parameters_of(schema, self._limits)
        except ConstraintError as error:
            error.move_below(tool.path)
            raise
        parts = [(self._parameter(tool, schema, each), each.is_required) for each in found]
        return Joined(parts, self._style.parameter_separator)

    def _parameter(self, tool: ToolDefinition, schema: JsonSchema, parameter: Parameter) -> Part:
        before, _, after = self._style.parameter.replace("{key}", parameter.name).partition("{value}")
        notation = "python" if self._style.notation == "python" else parameter.notation
        value = Segment("value", tool.name, parameter.name, notation)
        closing = Segment("close value", tool.name, parameter.name, notation)
        inside = Segment("markup", tool.name)
        source: Part = Located(Argument(schema, parameter.place, notation, after), tool.path)
        if tool.input is not None:
            source = Located(tool.input if notation == "bare" else InputString(tool.input), tool.path)
        elif notation == "bare" and parameter.is_free and after:
            source = Text()
        return Labelled(Tag(before, source, after, segment=value, closing=closing if after else inside), inside)


def _first_piece(template: str, spaced: bool) -> str:
    return re.split(r"\s", template, maxsplit=1)[0] if spaced else template
