"""Attributes of rules in llguidance's variant of lark's notation: `name[lazy, capture="x", stop="\\n"]: ...`."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import UnsupportedKeyword
from ..regex.parser import line_and_column
from .lark_syntax import fail_at
from .lark_terminals import literal_text
from .syntax_tree import Token, Tree

_KNOWN = ("capture", "lazy", "stop", "suffix", "stop_capture", "max_tokens", "temperature")

_CAPTURES = ("capture", "stop_capture")


@dataclass(frozen=True)
class Attributes:
    """The attributes of a rule. `end`: the terminal that ends the rule's text, with `stop` or `suffix`. `written`: the
    names as they stand in the brackets. `capture`: "" under the rule's own name, None for none."""

    written: tuple[str, ...] = ()
    lazy: bool = False
    end: Token | None = None
    stops_at_end: bool = False  # stop="": nothing but the end of the text
    max_tokens: int | None = None
    capture: str | None = None
    stop_capture: str = ""

    @property
    def captures(self) -> bool:
        """Whether some of the rule's text has a name."""
        return self.capture is not None or bool(self.stop_capture)

    @property
    def is_lexeme(self) -> bool:
        """Whether the rule is one lexeme: its body is a terminal."""
        return self.lazy or self.end is not None or self.stops_at_end


def read_attributes(text: str, tree: Tree[Token] | None) -> Attributes:
    """What stands in the brackets. Raises `GrammarSyntaxError`, and `UnsupportedKeyword` for `temperature`."""
    found: dict[str, tuple[Token, Token | None]] = {}
    for attribute in [] if tree is None else tree.children:
        assert isinstance(attribute, Tree)
        name, value = attribute.children
        assert isinstance(name, Token) and (value is None or isinstance(value, Token))
        if name in found:
            fail_at(text, name, f"{str(name)!r} stands here twice")
        if name not in _KNOWN:
            fail_at(text, name, f"there is no attribute {str(name)!r}, expected one of {' '.join(_KNOWN)}")
        found[str(name)] = name, value
        _check_value(text, name, value)
    if "temperature" in found:
        _refuse(text, found["temperature"][0])
    if "stop_capture" in found and "stop" not in found and "suffix" not in found:
        fail_at(text, found["stop_capture"][0], "stop_capture belongs to stop or suffix")
    if "stop" in found and "suffix" in found:
        fail_at(text, found["suffix"][0], "a rule has either stop or suffix")
    end = found.get("stop", found.get("suffix", (None, None)))[1]
    is_empty = end is not None and end.type == "STRING" and not literal_text(text, end)
    budget = found.get("max_tokens", (None, None))[1]
    names = {name: "" if value is None else literal_text(text, value) for name, (_, value) in found.items() if name in _CAPTURES}
    return Attributes(
        tuple(found), "lazy" in found, None if is_empty else end, is_empty, None if budget is None else int(budget[:9]),
        names.get("capture"), names.get("stop_capture", ""),
    )  # fmt: skip


def _check_value(text: str, name: Token, value: Token | None) -> None:
    kinds = {
        "stop": "STRING REGEXP TERMINAL",
        "suffix": "STRING REGEXP TERMINAL",
        "max_tokens": "NUMBER",
        "temperature": "NUMBER",
    }
    wanted = kinds.get(str(name), "STRING" if name in ("capture", "stop_capture") else "")
    if value is None:
        if name not in ("capture", "lazy"):
            fail_at(text, name, f"{str(name)!r} needs a value")
        return
    if value.type not in wanted.split():
        expected = " or ".join(wanted.split()).lower().replace("regexp", "regular expression") or "no value"
        fail_at(text, value, f"the value of {str(name)!r} cannot be {str(value)[:40]}, expected {expected}")
    if name in ("capture", "stop_capture") and not literal_text(text, value):
        fail_at(text, value, f"{str(name)!r} needs a name that is not empty")
    if name == "max_tokens" and not (value.isdigit() and int(value[:20]) > 0):
        fail_at(text, value, "max_tokens is a whole number of tokens, at least 1")


def _refuse(text: str, name: Token) -> None:
    line, column = line_and_column(text, name.start_pos or 0)
    reason, instead = "how tokens are drawn is no property of the text", "SamplingParams(temperature=...)"
    raise UnsupportedKeyword(reason, keyword=str(name), instead=instead, line=line, column=column)
