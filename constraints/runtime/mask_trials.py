"""Masks of grammars whose bytes take much, tried while compiling.

A byte of a text leads to one state, but a mask to as many as the tokens tell apart. Where many terminals overlap, with counts that
differ, nearly every beginning of a token has a state of its own, and a mask takes seconds: each of 400 terminals such as
/[a-k]{3,17}/ is there with its count. So where bytes take much, some tokens are followed from the first states of a text, and a
grammar for which these alone write more than LIMITS_OF_A_MASK times `Limits.byte_words` is refused: its masks would write many
times that.
"""

from __future__ import annotations

import random

from ..automaton.tables import DEAD
from ..base.errors import ConstraintLimit
from ..base.ids import StateId
from ..grammar.stopwatch import look
from ..token_automaton.token_automaton import TokenAutomaton

LIMITS_OF_A_MASK = 8  # a tenth of a second; masks of programming languages write a twentieth of that
_FOLLOWED = 512  # tokens, from one end of the alphabet to the other
_STATES = 3  # one behind another, from each of which they are followed


def try_masks(automaton: TokenAutomaton) -> None:
    """Raises `ConstraintLimit` for a grammar whose first masks take too long."""
    order = automaton.shared_vocabulary.trie.order
    tokens = order[:: order.size // _FOLLOWED + 1].tolist()
    draw, state = random.Random(0), automaton.start
    for _ in range(_STATES):
        behind = _followed(automaton, state, tokens)
        if not behind:
            break
        state = draw.choice(behind)


def _followed(automaton: TokenAutomaton, state: StateId, tokens: list[int]) -> list[StateId]:
    """The states behind those tokens that survive."""
    found: list[StateId] = []
    most = automaton.num_words + LIMITS_OF_A_MASK * automaton.limits.byte_words
    for token in tokens:
        look()
        after = automaton.advance_one(state, token)
        if after != DEAD:
            found.append(after)
        if automaton.num_words > most:
            raise _too_wide(automaton.limits.byte_words)
    return found


def _too_wide(limit: int) -> ConstraintLimit:
    return ConstraintLimit(
        f"nearly every token is read in ways of its own: some of them write more than {LIMITS_OF_A_MASK * limit} words",
        limit="byte_words", value=limit,
        instead="terminals that overlap less, without counted repetitions such as {3,17} beside one another; or raise "
        "limits.byte_words",
    )  # fmt: skip
