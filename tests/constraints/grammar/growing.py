"""Grammars that the compiler refuses because what is kept of a text grows with it: what they mean is tested all the same."""

from __future__ import annotations

from maskwright.constraints import Constraint, Limits, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.source import Source
from maskwright.constraints.token_automaton.token_automaton import TokenAutomaton
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
_SHARED = SharedVocabulary(BYTES)


def unchecked(source: Source, limits: Limits, vocabulary: SharedVocabulary = _SHARED) -> Constraint:
    """The constraint of a source, however it grows: the tokens are the bytes, unless another vocabulary is given."""
    grammar = Grammar()
    root = source.lower(grammar, limits)
    return Constraint(TokenAutomaton(grammar, root, vocabulary, limits), source)
