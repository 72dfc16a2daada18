"""Reasoning before the constrained part, with a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...base.errors import ConstraintError
from ...grammar.expression import Grammar, Node
from ...grammar.segments import END_OF_REASONING, MARKUP, REASONING
from ...grammar.source import Limits, Source, is_source
from ...runtime.constraint import Constraint
from ...runtime.front_end import FrontEnd, front_end_of
from ...runtime.segmented_places import SegmentedPlaces
from ...runtime.token_budget import BudgetedConstraint
from ...runtime.values import JsonValues, Places, SegmentedValues, Values
from ..regex.regex import Regex
from .lowering import lower_tree
from .tree import AnyOf, Labelled, Part, Sequence, Tag, Text

_GAP = Regex(r"[ \t\n\r]{0,4}", dialect="ecma")  # white space between the end of the reasoning and what follows


@dataclass(frozen=True, slots=True)
class Reasoning(FrontEnd):
    """Reasoning in free text, then a constraint.

    inner: the source of what follows.
    start, end: the marks around the reasoning; special tokens where the vocabulary has them by that name. start="" when the prompt
        ends with it already.
    max_tokens: how many tokens may be spent until the end mark is complete, both marks included. When just enough of them are left,
        only tokens on the way to the end mark remain. None = no bound.
    optional: a reply may also begin with what follows. Then that must not be able to begin with `start`.

    Raises `ConstraintError` when the budget does not suffice for the marks.
    """

    inner: Source
    start: str = "<think>"
    end: str = "</think>"
    max_tokens: int | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        if not is_source(self.inner):
            raise ConstraintError(f"reasoning stands before a source, not {type(self.inner).__name__}")
        if not self.end:
            raise ConstraintError("reasoning has an end", keyword="end", instead='end="</think>"')
        if self.optional and not self.start:
            raise ConstraintError("reasoning without a start is not optional", keyword="optional", instead="a start")
        if self.max_tokens is not None and (not isinstance(self.max_tokens, int) or self.max_tokens < 1):
            raise ConstraintError(f"{self.max_tokens!r} is not a number of tokens", keyword="max_tokens")

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The replies as a node."""
        reasoned = Sequence((self._part(), Labelled(_GAP, MARKUP), self.inner))
        return lower_tree(AnyOf((reasoned, self.inner)) if self.optional else reasoned, grammar, limits)

    @property
    def stands_alone(self) -> bool:
        return True

    def finish(self, constraint: Constraint, compiled: Callable[[Source], Constraint]) -> Constraint:
        """The constraint with its budget."""
        if self.max_tokens is None:
            return constraint
        part = compiled(_Part(self._part()))
        needed = part.min_tokens(part.start())
        if needed > self.max_tokens:
            reason = f"the marks of the reasoning alone take {needed} tokens"
            raise ConstraintError(reason, keyword="max_tokens", instead=f"{needed} or more")
        return BudgetedConstraint(constraint, part, self.max_tokens)

    def values(self, constraint: Constraint) -> Values | None:
        """Those of what follows; reasoning has none."""
        found = front_end_of(self.inner).values(constraint)
        return SegmentedValues(constraint, is_text_json=True) if isinstance(found, JsonValues) else found

    def places(self, constraint: Constraint) -> Places | None:
        """Those of what follows; reasoning has none."""
        inner = front_end_of(self.inner)
        found = inner.places(constraint)
        if found is None or isinstance(found, SegmentedPlaces):
            return found
        return SegmentedPlaces(constraint, lambda segment: inner.places(constraint) if segment.role == "text" else None)

    def _part(self) -> Part:
        return Tag(self.start, Text(), self.end, segment=REASONING, closing=END_OF_REASONING)


@dataclass(frozen=True, slots=True)
class _Part:
    """The reasoning alone."""

    part: Part

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return lower_tree(self.part, grammar, limits)
