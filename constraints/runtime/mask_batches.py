"""Masks of many texts at once, made by several threads.

A mask that is met for the first time takes a few microseconds, less than a thread waits for Python's lock: threads that ask for one
mask after the other make no more of them together than one does alone. So those of a batch are gathered first, and made in one call
of compiled code, in as many threads as there are processors, without that lock. Masks of one constraint are made by one thread,
since they grow the same automaton.

    make_masks((guide.constraint, guide.state) for guide in batch)      then each `mask` is known

Another processor does not have a constraint's automaton in its caches, so masks of a few transitions, as most of JSON Schemas are,
would take longer there than they are worth. How many masks will take is told by what those of their constraints took so far.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...foundation.compiled_loops.declarations import call_each
from ..token_automaton import masking
from .constraint import Constraint, State

WORTH_TRANSITIONS = 600  # that others find meanwhile, below which several threads gain nothing (docs/journal.md)
_NUM_WORDS, _NUM_RESULTS = 6, 2  # of `masking.mask_row`


def make_masks(wanted: Iterable[tuple[Any, Any]], num_threads: int | None = None) -> None:
    """Make those masks of (constraint, state) that are not known yet, if that takes long enough. Never raises for what a constraint
    refuses: `mask` does, when it is asked.

    wanted: anything that has masks; those that are no `Constraint`, or one of several parts, are passed over. num_threads: at
    most, by default as many as there are processors for this process.
    """
    states: dict[Constraint, dict[State, None]] = {}
    for constraint, state in wanted:
        if type(constraint) is Constraint and not constraint.knows_mask(state):
            states.setdefault(constraint, {})[state] = None
    if len(states) > 1:
        num_threads = num_processors() if num_threads is None else num_threads
        if num_threads > 1 and _num_spared(states, num_threads) >= WORTH_TRANSITIONS:
            _make(states, num_threads)


def _num_spared(states: dict[Constraint, dict[State, None]], num_threads: int) -> float:
    """How many of the transitions that some masks will take are found while others are, by what masks took so far."""
    expected = [len(own) * constraint.transitions_a_mask for constraint, own in states.items()]
    return sum(expected) - max(sum(expected) / num_threads, *expected)


def num_processors() -> int:
    """Those on which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make(states: dict[Constraint, dict[State, None]], num_threads: int) -> None:
    words, starts = array("q"), [0]
    begun: list[tuple[Constraint, list[State]]] = []
    results = np.empty((0, _NUM_RESULTS), np.int64)
    try:
        for constraint, own in states.items():
            asked = constraint.begin_masks(own)
            if asked is not None:
                begun.append((constraint, [state for state, _ in asked]))
                for _, call in asked:
                    words.extend(call)
                starts.append(starts[-1] + len(asked))
        results = np.full((starts[-1], _NUM_RESULTS), masking.NO_ROOM, np.int64)
        of_calls = np.frombuffer(words, np.int64).reshape(-1, _NUM_WORDS) if words else np.empty((0, _NUM_WORDS), np.int64)
        call_each(masking.mask_row, of_calls, results, np.array(starts, np.int64), num_threads)
    finally:
        for (constraint, made), first in zip(begun, starts, strict=False):
            answers = results[first : first + len(made)].tolist()
            constraint.end_masks([(state, *answer) for state, answer in zip(made, answers, strict=False)])  # none where it failed
