"""Compiled constraints from elsewhere, from files and from other processes: each automaton becomes a constraint, and those
behind the first one narrow it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..grammar.source import Limits, Source
from ..grammar.stages import Stages
from ..saved.constraint_file import LoadedAutomaton, SavedAutomaton, loaded_automaton, read_constraint
from ..saved.wellformed import malformed
from ..vocabulary.shared_vocabulary import SharedVocabulary
from .constraint import Constraint
from .staged import StagedConstraint
from .token_budget import BudgetedConstraint


class Handover(NamedTuple):
    """A constraint with all that it has found, on its way to another process with the same vocabulary, limits and code. It can be
    pickled."""

    automata: list[SavedAutomaton]
    narrowing: Any


def handed_over(constraint: Constraint) -> Handover:
    """What `take_over` makes the constraint of, elsewhere."""
    return Handover(constraint.saved_automata(found=True), constraint.narrowing)


def take_over(handover: Handover, shared_vocabulary: SharedVocabulary, limits: Limits, source: Source) -> Constraint:
    """The constraint of a source that another process has compiled. What it has found is trusted."""
    automata = [loaded_automaton(*saved, shared_vocabulary, limits, trusted=True) for saved in handover.automata]
    whole = _constraint(automata[0], source)
    return _narrowed(whole, list(map(_constraint, automata[1:])), handover.narrowing)


def load(
    path: str | os.PathLike[str],
    shared_vocabulary: SharedVocabulary,
    limits: Limits,
    source: Source | None,
    trusted: bool,
) -> Constraint:
    """See `Compiler.load`."""
    automata, narrowing = read_constraint(path, shared_vocabulary, limits, source, trusted)
    try:
        whole, *parts = map(_constraint, automata)
        return _narrowed(whole, parts, narrowing)
    except (TypeError, AttributeError) as error:  # JSON of another shape
        raise malformed(f"{type(error).__name__}: {error}") from None


def _constraint(loaded: LoadedAutomaton, source: Source | None = None) -> Constraint:
    constraint = Constraint(loaded.automaton, source or loaded.fingerprint)
    if loaded.distances is not None:
        with constraint.exclusively() as (_, distances):
            distances.take_over(loaded.distances)
    return constraint


def _narrowed(whole: Constraint, parts: Sequence[Constraint], narrowing: Any) -> Constraint:
    """narrowing: `Constraint.narrowing` of what was saved: stages as lists, the budget of the first part, or nothing."""
    if isinstance(narrowing, list):
        try:
            stages = Stages.of_lists(narrowing, len(parts))
        except ValueError as error:
            raise malformed(str(error)) from None
        return StagedConstraint(whole, parts, stages)
    if len(parts) != (narrowing is not None) or isinstance(narrowing, bool) or not isinstance(narrowing, int | None):
        raise malformed("one automaton, or two and a budget")
    return whole if narrowing is None else BudgetedConstraint(whole, parts[0], narrowing)
