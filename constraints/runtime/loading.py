"""Compiled constraints read from files: each automaton becomes a constraint, and those behind the first one narrow it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..grammar.source import Limits, Source
from ..grammar.stages import Stages
from ..saved.constraint_file import LoadedAutomaton, read_constraint
from ..saved.wellformed import malformed
from ..vocabulary.shared_vocabulary import SharedVocabulary
from .constraint import Constraint
from .staged import StagedConstraint
from .token_budget import BudgetedConstraint


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


def _constraint(loaded: LoadedAutomaton) -> Constraint:
    constraint = Constraint(loaded.automaton, loaded.fingerprint)
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
