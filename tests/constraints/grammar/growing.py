"""Grammars that the compiler refuses because what is kept of a text grows with it: what they mean is tested all the same. And the
work of texts that compiling does not try, of what it does not refuse."""

from __future__ import annotations

import numpy as np

from maskwright.constraints import Constraint, ConstraintLimit, Limits, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.source import Source
from maskwright.constraints.runtime.growth import Form, dearest
from maskwright.constraints.token_automaton.pumping import WINDOW
from maskwright.constraints.token_automaton.token_automaton import Pumped, TokenAutomaton
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
OTHER_TEXTS = ((1, 32), (4, 100), (10, 32), (12, 48), (14, 100), (19, 60), (1, 1024))  # period, and bytes that are free before
_SHARED = SharedVocabulary(BYTES)


def unchecked(source: Source, limits: Limits, vocabulary: SharedVocabulary = _SHARED) -> Constraint:
    """The constraint of a source, however it grows: the tokens are the bytes, unless another vocabulary is given."""
    grammar = Grammar()
    root = source.lower(grammar, limits)
    return Constraint(TokenAutomaton(grammar, root, vocabulary, limits), source)


def most_of(constraint: Constraint) -> int:
    """Work of a byte that no text of a constraint may take, on the average of WINDOW bytes."""
    with constraint.exclusively() as (automaton, _):
        return automaton.limits.byte_words + 40 * len(automaton.grammar)


def work_of(constraint: Constraint, period: int, free: int, length: int, enough: int) -> int:
    """The most work of a byte of a text that compiling does not try, on the average of WINDOW bytes; `enough` where it is more."""
    with constraint.exclusively() as (known, _):
        automaton = Form(known.grammar, known.root, known.grammar.stacks_as_graph).automaton(known)
    pumped = Pumped(free, np.zeros(length + 1, np.int32), np.zeros(length, np.int32), np.full(length, -1, np.int32))
    pumped.states[0] = automaton.start
    try:
        read = automaton.pump(period, 1000 + period, 0, length, enough * WINDOW, pumped)
    except ConstraintLimit:
        return enough
    return min(dearest(pumped.work[:read]), enough)
