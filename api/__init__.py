"""Structured generation that is exact, finishes, and costs nothing.

    from maskwright import generate, LLM, AsyncLLM, SamplingParams

    person = generate("Ada Lovelace, 36, lives in London.", schema=Person)

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_llm import AsyncLLM
    from .async_session import AsyncSession
    from .chat import Reply
    from .constraints.base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
    from .engine.errors import ConfigError, EngineError, RequestError, SessionError
    from .errors import MaskwrightError, ModelNotFound, ToolFailed, UsageError
    from .events import Delta, Done, FieldClosed, FieldOpened
    from .field_details import FieldDetails
    from .llm import LLM
    from .logits_processor import LogitsProcessor
    from .outputs import GenerationIncomplete, GenerationOutput, ValidationFailed
    from .sampling import SamplingError, SamplingParams
    from .sampling.logits_stages import LogitsStage
    from .session import Session
    from .shortcut import generate
    from .tool_loop import ToolResult, ToolRun
    from .tools import Tool, ToolCall

__all__ = [
    "LLM",
    "AsyncLLM",
    "AsyncSession",
    "ConfigError",
    "ConstraintError",
    "ConstraintLimit",
    "Delta",
    "Done",
    "EngineError",
    "FieldClosed",
    "FieldDetails",
    "FieldOpened",
    "GenerationIncomplete",
    "GenerationOutput",
    "GrammarSyntaxError",
    "LogitsProcessor",
    "LogitsStage",
    "MaskwrightError",
    "ModelNotFound",
    "Reply",
    "RequestError",
    "SamplingError",
    "SamplingParams",
    "Session",
    "SessionError",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "ToolResult",
    "ToolRun",
    "UnsupportedKeyword",
    "UsageError",
    "ValidationFailed",
    "generate",
]

# PyTorch's threads wait for each other many times a step, and OpenMP reads how they wait when it is loaded. Spinning, two threads
# beside one other busy program are 20 times slower than waiting passively.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_MODULES = {
    "async_llm": ["AsyncLLM"],
    "async_session": ["AsyncSession"],
    "chat": ["Reply"],
    "constraints.base.errors": ["ConstraintError", "ConstraintLimit", "GrammarSyntaxError", "UnsupportedKeyword"],
    "engine.errors": ["ConfigError", "EngineError", "RequestError", "SessionError"],
    "errors": ["MaskwrightError", "ModelNotFound", "ToolFailed", "UsageError"],
    "events": ["Delta", "Done", "FieldClosed", "FieldOpened"],
    "field_details": ["FieldDetails"],
    "llm": ["LLM"],
    "logits_processor": ["LogitsProcessor"],
    "outputs": ["GenerationIncomplete", "GenerationOutput", "ValidationFailed"],
    "sampling": ["SamplingError", "SamplingParams"],
    "sampling.logits_stages": ["LogitsStage"],
    "session": ["Session"],
    "shortcut": ["generate"],
    "tool_loop": ["ToolResult", "ToolRun"],
    "tools": ["Tool", "ToolCall"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("maskwright")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
