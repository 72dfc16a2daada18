"""Tool calls written by hand, one short function a style: what the models' chat templates produce. The twin of the styles' table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Call: TypeAlias = tuple[str, dict[str, Any]]
Writer: TypeAlias = Callable[[str, Sequence[Call]], str]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _hermes(text: str, calls: Sequence[Call]) -> str:
    written = [
        f'<tool_call>\n{{"name": "{name}", "arguments": {_json(arguments)}}}\n</tool_call>' for name, arguments in calls
    ]
    return text + "\n".join(written)


def _qwen3_coder(text: str, calls: Sequence[Call]) -> str:
    written = []
    for name, arguments in calls:
        values = {key: value if isinstance(value, str) else _json(value) for key, value in arguments.items()}
        parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
        written.append(f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>")
    return text + "\n".join(written)


def _llama3_json(text: str, calls: Sequence[Call]) -> str:
    return text or "; ".join(_json({"name": name, "parameters": arguments}) for name, arguments in calls)


def _llama_pythonic(text: str, calls: Sequence[Call]) -> str:
    return (
        text
        or "["
        + ", ".join(
            f"{name}({', '.join(f'{k}={python_literal(v)}' for k, v in arguments.items())})" for name, arguments in calls
        )
        + "]"
    )


def python_literal(value: Any) -> str:
    """A literal with strings in double quotes."""
    if isinstance(value, str):
        return _json(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(python_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {python_literal(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _mistral(text: str, calls: Sequence[Call]) -> str:
    return (
        text
        + "[TOOL_CALLS]["
        + ", ".join(_json({"name": name, "arguments": arguments}) for name, arguments in calls)
        + "]"
    )


def _mistral_v11(text: str, calls: Sequence[Call]) -> str:
    return text + "".join(f"[TOOL_CALLS]{name}[ARGS]{_json(arguments)}" for name, arguments in calls)


def _deepseek_v3(text: str, calls: Sequence[Call]) -> str:
    begin, sep, end = "<｜tool▁call▁begin｜>function", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"  # noqa: RUF001
    written = [f"{begin}{sep}{name}\n```json\n{_json(arguments)}\n```{end}" for name, arguments in calls]
    return text + "<｜tool▁calls▁begin｜>" + "\n".join(written) + "<｜tool▁calls▁end｜>"  # noqa: RUF001


def _deepseek_v31(text: str, calls: Sequence[Call]) -> str:
    begin, sep, end = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"  # noqa: RUF001
    written = [f"{begin}{name}{sep}{_json(arguments)}{end}" for name, arguments in calls]
    return text + "<｜tool▁calls▁begin｜>" + "".join(written) + "<｜tool▁calls▁end｜>"  # noqa: RUF001


def _harmony(text: str, calls: Sequence[Call]) -> str:
    preamble = f"<|channel|>commentary<|message|>{text}<|end|><|start|>assistant" if text else ""
    ((name, arguments),) = calls
    return f"{preamble}<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{_json(arguments)}<|call|>"


WRITERS: dict[str, Writer] = {
    "hermes": _hermes,
    "qwen3-coder": _qwen3_coder,
    "llama3-json": _llama3_json,
    "llama-pythonic": _llama_pythonic,
    "mistral": _mistral,
    "mistral-v11": _mistral_v11,
    "deepseek-v3": _deepseek_v3,
    "deepseek-v3.1": _deepseek_v31,
    "harmony": _harmony,
}
BY_PARAMETER = ("qwen3-coder", "llama-pythonic")  # styles that write arguments one by one
TEXT_OR_CALLS = ("llama3-json", "llama-pythonic")  # styles without text before calls
ONE_CALL = ("harmony",)
