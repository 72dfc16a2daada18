"""Structural tags as a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...grammar.expression import Grammar, Node
from ...grammar.source import Limits
from ...grammar.stages import Budgets
from ..cfg.budgeted_text import Budgeted
from .lowering import counts_tokens, lower_with_budgets
from .requests import read_structural_tag
from .tree import Part


@dataclass(frozen=True, slots=True)
class StructuralTag(Budgeted):
    """Texts with constrained parts in them.

    format: a tree of `maskwright.constraints.front_ends.tags.tree`, or the JSON form that XGrammar reads (`{"type":
    "structural_tag",
        "format": ...}`, or the older one with "structures" and "triggers"), as a mapping or as text; a `response_format` of
        OpenAI or vLLM too.

    Raises `ConstraintError` with the path of what cannot be read, `UnsupportedKeyword` for what cannot be enforced.
    """

    format: Part | Mapping[str, Any] | str

    def __post_init__(self) -> None:
        if isinstance(self.format, Mapping | str):
            object.__setattr__(self, "format", read_structural_tag(self.format))

    def lower_with_budgets(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        """The texts as a node, and the budgets in it."""
        return lower_with_budgets(self.format, grammar, limits)  # type: ignore[arg-type]  # read by __post_init__

    @property
    def may_have_budgets(self) -> bool:
        """Whether some part counts tokens."""
        return counts_tokens(self.format)  # type: ignore[arg-type]  # read by __post_init__
