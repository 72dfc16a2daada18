"""What a front end is to the compiler: how it is lowered, and the hooks of those that have more to say than a grammar can.

`Source` (source.py) is all that is needed: a frozen, hashable value with `lower`. A front end that needs more inherits from
`FrontEnd` and overrides the hook; the default of each says that there is nothing more. `Compiler.compile` calls, in this order,

    new_grammar     for the grammar that it begins with
    is_plain_json   for what compiled code may rely on
    lower_whole     for the expression: `lower`, if that is all
    source_text     where that raises an error that has a line and a column
    finish          for the constraint, once there is one

Four more are asked by others: `stands_alone` by sources that have parts, `lower_marked` by `captures`, where `may_have_captures`,
`places` by `places_of`, and `values` by `values_of`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..base.errors import UnsupportedKeyword
from ..grammar.capture_marks import Marks
from ..grammar.expression import Grammar, Node
from ..grammar.segments import Segment
from ..grammar.source import Limits, Source
from ..grammar.stages import Budgets
from .constraint import Constraint
from .healed import HealedConstraint, PlacesBehind, ValuesBehind
from .values import JsonValues, Places, SegmentedValues, Values


class FrontEnd(ABC):
    """A constraint as written. Classes derived from this one are frozen dataclasses: equal ones are compiled once.

    In all hooks `grammar` is what is lowered into, and `limits` says how much a constraint may be.
    """

    __slots__ = ()

    @abstractmethod
    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """Add to `grammar` what this means and return the root. May be called for a part of another source, and more than once.

        Raises `ConstraintError`, and `UnsupportedKeyword` for what a grammar cannot say.
        """

    def lower_whole(self, grammar: Grammar, limits: Limits) -> Node:
        """The node of a source that is no part of another one: what `lower` refuses may be left to `finish` here."""
        return self.lower(grammar, limits)

    def new_grammar(self, limits: Limits) -> Grammar:
        """A new grammar to lower into. It may begin with parts that most sources of the kind need, built once and
        copied."""
        return Grammar()

    @property
    def is_plain_json(self) -> bool:
        """Whether all texts are JSON, with white space as JSON has it."""
        return False

    @property
    def source_text(self) -> str:
        """The text in which lines and columns of errors count; empty where there is none."""
        return ""

    def finish(self, constraint: Constraint, compiled: Callable[[Source], Constraint]) -> Constraint:
        """The constraint with what its grammar does not say. compiled: compiles a part of it, without keeping it."""
        return constraint

    def places(self, constraint: Constraint) -> Places | None:
        """Follows a text and tells the places in the source that its bytes belong to; None where these are not known.
        constraint: as for `values`."""
        return None

    def values(self, constraint: Constraint) -> Values | None:
        """Follows a text and knows which of its values are open; None where texts have none. constraint: what this source, or
        one that this is a part of, was compiled to."""
        return None

    @property
    def stands_alone(self) -> bool:
        """Whether it cannot be a part of a structural tag: `lower` leaves to `finish` what it does not refuse."""
        return False

    @property
    def may_have_captures(self) -> bool:
        """Whether it may name parts of its texts, which `lower_marked` then finds."""
        return False

    def lower_marked(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets, Marks]:
        """The expression as written, with its left recursion, the budgets of rules and where its captures are."""
        raise without_captures(self)


@dataclass(frozen=True, slots=True)
class _OnlyLowered(FrontEnd):
    """A source without hooks."""

    source: Source

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return self.source.lower(grammar, limits)

    def lower_marked(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets, Marks]:
        raise without_captures(self.source)


def front_end_of(source: Source) -> FrontEnd:
    """A source with all hooks; those that it does not have do nothing."""
    return source if isinstance(source, FrontEnd) else _OnlyLowered(source)


def places_of(constraint: Constraint) -> Places | None:
    """Follows a text from its beginning; None for a constraint without known places: those of schemas and of tools are known."""
    if isinstance(constraint, HealedConstraint):
        inner = places_of(constraint.unbudgeted)
        return inner if inner is None or constraint.begun else PlacesBehind(inner, len(constraint.owed))
    source = constraint.source
    return source.places(constraint) if isinstance(source, FrontEnd) else None


def values_of(constraint: Any) -> Values | None:
    """Follows a text from its beginning; None for a constraint whose texts have no known values: those of schemas, of tools and of
    schemas in tags have.

    Of a constraint that was read from a file its tables tell, not its source: reasoning before a schema is not known there.
    """
    if isinstance(constraint, HealedConstraint):
        inner = values_of(constraint.unbudgeted)
        return inner if inner is None or constraint.begun else ValuesBehind(inner, len(constraint.owed))
    source = getattr(constraint, "source", None)
    if isinstance(source, FrontEnd):
        return source.values(constraint)
    if source is not None or not isinstance(constraint, Constraint):
        return None
    whole: Constraint = getattr(constraint, "unbudgeted", constraint)
    with whole.exclusively() as (automaton, _):
        roles = {segment.role for segment in automaton.grammar.segments.values() if isinstance(segment, Segment)}
        is_json = automaton.grammar.has_json_values
    if roles & {"arguments", "value"}:
        return SegmentedValues(constraint, is_text_json=False)
    return JsonValues() if is_json else None


def may_have_captures(source: object) -> bool:
    """Whether something is a source that may name parts of its texts."""
    return isinstance(source, FrontEnd) and source.may_have_captures


def without_captures(source: object) -> UnsupportedKeyword:
    """The error for captures of a source that cannot have any."""
    return UnsupportedKeyword(f"{type(source).__name__} has no captures", keyword="captures", instead="Lark or Ebnf")
