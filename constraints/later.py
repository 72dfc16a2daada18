"""Sources of the contract that are not enforced yet. They can be written down; compiling one is refused by name."""

from __future__ import annotations

from typing import Any, ClassVar

from .errors import UnsupportedKeyword
from .expression import Grammar, Node
from .source import Limits


class _Refused:
    """A source that only remembers how it was written."""

    instead: ClassVar[str]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments, self.options = arguments, options

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """Raises UnsupportedKeyword."""
        raise UnsupportedKeyword("not supported yet", path="#", keyword=type(self).__name__, instead=self.instead)


class StructuralTag(_Refused):
    """Free text with triggers that switch to a constrained part and back."""

    instead = "JsonSchema(schema) for the constrained part alone"


class Tools(_Refused):
    """Tool calls in a model's own style."""

    instead = "JsonSchema of an object with name and arguments, or LLM.chat(messages, tools=...)"


class Reasoning(_Refused):
    """A reasoning prefix, then a constraint."""

    instead = "the constraint without the prefix"
