"""Masks of grammars whose bytes take much, tried while compiling.

A byte of a text leads to one state, but a mask walks through all tokens, to as many states as these tell apart. Where many
terminals overlap, with counts that differ, nearly every beginning of a token has a state of its own, and a mask takes seconds: each
of 400 terminals such as /[a-k]{3,17}/ is there with its count. So where bytes take much, a text of a few tokens is drawn with its
masks, and a grammar of which one writes more than WORDS times `Limits.byte_words` is refused.
"""

from __future__ import annotations

import random

from ..automaton.tables import DEAD
from ..base.errors import ConstraintLimit
from ..grammar.stopwatch import look
from ..token_automaton.token_automaton import TokenAutomaton
from .constraint import token_ids

WORDS = 8  # a tenth of a second; masks of programming languages write a twentieth of that
_TOKENS = 3  # that are drawn


def try_masks(automaton: TokenAutomaton) -> None:
    """Raises `ConstraintLimit` for a grammar whose first masks take too long. What is made for them is kept."""
    draw, state = random.Random(0), automaton.start
    for _ in range(_TOKENS):
        look()
        try:
            with automaton.writing(WORDS * automaton.limits.byte_words):
                row = automaton.row(state)
        except ConstraintLimit as error:
            raise _too_wide(automaton) if error.limit == "byte_words" else error from None
        allowed = token_ids(row)
        state = automaton.advance_one(state, int(allowed[draw.randrange(allowed.size)])) if allowed.size else DEAD
        if state == DEAD:
            break


def _too_wide(automaton: TokenAutomaton) -> ConstraintLimit:
    limit = automaton.limits.byte_words
    return ConstraintLimit(
        f"nearly every token is read in ways of its own: one mask writes more than {WORDS * limit} words, {WORDS} times the limit",
        limit="byte_words", value=limit,
        instead="terminals that overlap less, without counted repetitions such as {3,17} beside one another; or raise "
        "limits.byte_words",
    )  # fmt: skip
