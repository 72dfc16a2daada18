"""How models write tool calls: a table, one entry a style, and no code.

Templates hold `{name}`, `{arguments}`, `{key}`, `{value}` and `{text}`; everything else stands for itself. Names of special
tokens of the vocabulary in them are the tokens. Sources: the chat templates of the models, and
`xgrammar/builtin_structural_tag.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....foundation.registry import Registry
from ...base.errors import ConstraintError


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStyle:
    """One way to write tool calls. Give your own to `Tools(style=...)`.

    A reply is text in which calls may stand; or, with `begin`, text and then one block of calls; or, if calls are `leading`, either
    text or calls, told apart by the first character; or, with `answer`, messages of which each is of one kind.
    """

    call: str | tuple[str, ...]  # one call; of several spellings any
    begin: str = ""  # before the first call
    separator: str = ""  # between two
    end: str = ""  # behind the last one
    leading: str = ""  # characters with which text does not begin, because calls do
    opener: str = ""  # a special token that may stand before leading calls
    spaced: bool = False  # white space in `call` may be any white space
    parameter: str = ""  # one argument, where arguments are no JSON object
    parameter_separator: str = ""  # between two arguments
    notation: str = "bare"  # of {value}: "bare" strings and all else as JSON, or "python" literals
    preface: tuple[
        tuple[str, str], ...
    ] = ()  # messages that may come first, any number: ("text" or "reasoning", template)
    answer: str = ""  # the message that is the text of a reply
    marks: tuple[str, ...] = ()  # strings by which the chat templates of models with this style are known

    def __post_init__(self) -> None:
        object.__setattr__(self, "call", (self.call,) if isinstance(self.call, str) else tuple(self.call))
        for call in self.call:
            for name in ("{name}", "{arguments}"):
                if call.count(name) != 1:
                    raise ConstraintError(
                        f"a call has one {name}", path=call, keyword="call", instead="<call>{name} {arguments}</call>"
                    )
        if self.notation not in ("bare", "python"):
            raise ConstraintError(
                f"{self.notation!r} is not a notation", keyword="notation", instead="'bare' or 'python'"
            )
        if self.parameter and (self.parameter.count("{key}") != 1 or self.parameter.count("{value}") != 1):
            raise ConstraintError("a parameter has one {key} and one {value}", path=self.parameter, keyword="parameter")
        for role, template in (*self.preface, *((("text", self.answer),) if self.answer else ())):
            if role not in ("text", "reasoning") or template.count("{text}") != 1:
                raise ConstraintError(
                    "a message is text or reasoning and has one {text}", path=template, keyword="preface"
                )


_NAME_AND_ARGUMENTS = '{"name": "{name}", "arguments": {arguments}}'
_NEXT_MESSAGE = "<|end|><|start|>assistant"

_BUILT_IN: dict[str, ToolStyle] = {
    "hermes": ToolStyle(
        call=f"<tool_call>\n{_NAME_AND_ARGUMENTS}\n</tool_call>", separator="\n", spaced=True, marks=("<tool_call>",)
    ),
    "qwen3-coder": ToolStyle(
        call="<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
        parameter="<parameter={key}>\n{value}\n</parameter>\n",
        separator="\n",
        marks=("<tool_call>", "<function=", "<parameter="),
    ),
    "llama3-json": ToolStyle(
        call='{"name": "{name}", "parameters": {arguments}}',
        separator="; ",
        leading="{",
        opener="<|python_tag|>",
        spaced=True,
        marks=("<|start_header_id|>", '"parameters"'),
    ),
    "llama-pythonic": ToolStyle(
        begin="[",
        call="{name}({arguments})",
        separator=", ",
        end="]",
        leading="[",
        parameter="{key}={value}",
        parameter_separator=", ",
        notation="python",
    ),
    "mistral": ToolStyle(
        begin="[TOOL_CALLS][", call=_NAME_AND_ARGUMENTS, separator=", ", end="]", spaced=True, marks=("[TOOL_CALLS]",)
    ),
    "mistral-v11": ToolStyle(call="[TOOL_CALLS]{name}[ARGS]{arguments}", marks=("[TOOL_CALLS]", "[ARGS]")),
    "deepseek-v3": ToolStyle(
        begin="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>",
        separator="\n",
        end="<｜tool▁calls▁end｜>",
        marks=("<｜tool▁calls▁begin｜>", "```json"),
    ),
    "deepseek-v3.1": ToolStyle(
        begin="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        end="<｜tool▁calls▁end｜>",
        marks=("<｜tool▁calls▁begin｜>",),
    ),
    "harmony": ToolStyle(
        call=(
            "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>",
            "<|channel|>commentary to=functions.{name}<|constrain|>json<|message|>{arguments}<|call|>",
            " to=functions.{name}<|channel|>commentary json<|message|>{arguments}<|call|>",
            " to=functions.{name}<|channel|>commentary <|constrain|>json<|message|>{arguments}<|call|>",
        ),
        preface=(
            ("reasoning", f"<|channel|>analysis<|message|>{{text}}{_NEXT_MESSAGE}"),
            ("text", f"<|channel|>commentary<|message|>{{text}}{_NEXT_MESSAGE}"),
        ),
        answer="<|channel|>final<|message|>{text}",
        marks=("<|channel|>analysis<|message|>", "<|call|>"),
    ),
}
STYLES: Registry[ToolStyle] = Registry(
    "tool style", _BUILT_IN, needs="a ToolStyle", fits=lambda value: isinstance(value, ToolStyle)
)
ALIASES = {
    "qwen": "hermes",
    "qwen3": "hermes",
    "deepseek-r1": "deepseek-v3",
    "gpt-oss": "harmony",
    "pythonic": "llama-pythonic",
}


def style_of_template(chat_template: str) -> str | None:
    """The style that a model's chat template writes calls in: the one with most of its marks in the template, of equal ones
    one that was registered; None if it has marks of none."""
    known = [
        name
        for name, style in sorted(STYLES.items(), key=lambda item: STYLES.is_built_in(item[0]))
        if style.marks and all(mark in chat_template for mark in style.marks)
    ]
    return max(known, key=lambda name: len(STYLES[name].marks), default=None)


def style_of(style: str | ToolStyle) -> ToolStyle:
    """A style by name. Raises `ConstraintError` for one that is not known."""
    if isinstance(style, ToolStyle):
        return style
    found = STYLES.get(ALIASES.get(style, style)) if isinstance(style, str) else None
    if found is None:
        known = ", ".join(sorted({*STYLES, *ALIASES}))
        raise ConstraintError(f"no style {style!r} of tool calls", keyword="style", instead=f"{known}, or a ToolStyle")
    return found
