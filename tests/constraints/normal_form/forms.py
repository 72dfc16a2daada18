"""Small grammars in normal form, and their texts the slow way."""

from __future__ import annotations

from maskwright.constraints import Gbnf, Limits
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.normal_form.greibach import Greibach, Word, greibach
from maskwright.constraints.normal_form.rule_automata import rule_automata


def lowered(text: str) -> tuple[Grammar, Node]:
    grammar = Grammar()
    return grammar, Gbnf(text).lower(grammar, Limits())


def form_of(text: str) -> Greibach:
    return greibach(rule_automata(*lowered(text)))


def texts_of(form: Greibach, word: Word, longest: int) -> set[bytes]:
    """The texts of a word, of at most so many bytes: by trying every byte."""
    found = {b""} if all(form.nullable[one] for one in word) else set()
    if longest == 0:
        return found
    for byte_class, ranges in enumerate(form.byte_classes):
        rests = set().union(*(texts_of(form, rest, longest - 1) for rest in form.behind(word, byte_class)))
        found |= {bytes([byte]) + rest for low, high in ranges for byte in range(low, high + 1) for rest in rests}
    return found
