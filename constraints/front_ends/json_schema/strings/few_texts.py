"""Texts of an expression that has few: an intersection or a complement may have few although nothing bounds their length."""

from __future__ import annotations

from ....automaton.finite_automata import FiniteAutomaton, TooManyStates
from ....automaton.tables import DEAD
from ....grammar.cardinality import count_words
from ....grammar.expression import FAIL, Node
from ....grammar.matcher import Steps
from .text_classes import automaton_of

_MOST_STATES = 500  # of an automaton; with more of them texts count as many
_FEW_POSITIONS = 60  # behind which many texts are mostly found


def few_texts(steps: Steps, node: Node, most: int) -> list[bytes] | None:
    """The texts of `node`, None where there are more than `most`, or where that takes too many states to find out."""
    if node == FAIL:
        return []
    if count_words(steps, node, most + 1, _FEW_POSITIONS) == most + 1:
        return None
    try:
        return _texts_of(automaton_of(steps, node, _MOST_STATES), most)
    except TooManyStates:
        return None


def _texts_of(automaton: FiniteAutomaton, most: int) -> list[bytes] | None:
    """The texts of an automaton from each of whose states some text is completed; None for more than `most`."""
    rows = automaton.next[:, automaton.letters].tolist()
    layer = [(b"", automaton.start)] if automaton.start != DEAD else []
    found: list[bytes] = []
    for _ in range(automaton.num_states):
        found += (text for text, state in layer if automaton.accepts[state])
        layer = [
            (text + bytes([byte]), target) for text, state in layer for byte, target in enumerate(rows[state]) if target != DEAD
        ]
        if len(layer) + len(found) > most:  # from each something else is completed
            return None
    return None if layer else found  # texts with as many bytes as there are states go in a circle
