"""What is done where `limits.states` or `limits.nodes` is nearly used up: a text that was begun is finished.

A state whose mask is known keeps it. Of any other one the tokens on one way to the end stay allowed (ways_out.py), which takes few
states. For these, and for what else is asked there, the automaton may go beyond its limits (`Machine.beyond`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..automaton.machine import LITTLE_BEYOND
from ..automaton.tables import DEAD
from ..base.errors import ConstraintLimit
from ..base.ids import RegisterId, StateId
from ..token_automaton.min_tokens import Distances
from ..token_automaton.token_automaton import TokenAutomaton
from ..token_automaton.ways_out import Configuration, WaysOut
from ..uniqueness.seen_values import NO_REGISTER
from .budgets import Budgets

T = TypeVar("T")
P = ParamSpec("P")
LED_OUT = "a limit of its states was met inside of a text: from there on only tokens on one way to the end are allowed"


class NearLimits:
    """Masks and states of one automaton where it is nearly full. States come with their registers, NO_REGISTER where nothing is
    remembered."""

    def __init__(self, automaton: TokenAutomaton, distances: Distances) -> None:
        self._automaton, self._distances = automaton, distances
        self._led_out: set[Configuration] = set()  # where only the tokens on a way out are allowed

    @cached_property
    def _budgets(self) -> Budgets:
        return Budgets(self._automaton, self._distances)

    @cached_property
    def _ways_out(self) -> WaysOut:
        return WaysOut(self._automaton)

    @property
    def has_led_out(self) -> bool:
        """Whether some text was brought to its end."""
        return bool(self._led_out)

    def surely(self, ask: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """What needs few states is there although a limit is met."""
        try:
            return ask(*arguments, **named)
        except ConstraintLimit:
            with self._automaton.beyond_limits():
                return ask(*arguments, **named)

    def read(self, ask: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """`surely`, for texts that may be long: a little beyond the limit."""
        try:
            return ask(*arguments, **named)
        except ConstraintLimit:
            with self._automaton.beyond_limits(LITTLE_BEYOND):
                return ask(*arguments, **named)

    # -- masks --------------------------------------------------------------------------------------------------------

    def row_number(self, state: StateId, held: RegisterId) -> int:
        """The number of the row of a state before the end; where there is no room for it any more, of that of its way out. Raises
        `ConstraintLimit` where no way is found."""
        automaton = self._automaton
        if not automaton.is_nearly_full or automaton.has_row(state):
            try:
                return automaton.row_number(state, held)
            except ConstraintLimit:
                if not automaton.is_nearly_full:
                    raise
        tokens = self._tokens_out(state, held)
        if tokens is None:
            return automaton.row_number(state, held)
        self._led_out.add((state, held))
        shared = automaton.shared_vocabulary
        return automaton.rows.keep(shared.mask_of(tokens) if tokens.size else shared.eos_row)

    def ends(self, state: StateId) -> NDArray[np.int32]:
        """The states behind all tokens, DEAD behind those that are not allowed. int32 [tokens in the trie's order]"""
        automaton = self._automaton
        if not automaton.is_nearly_full:
            try:
                return automaton.end_states(state)[0]
            except ConstraintLimit:
                pass
        self.row_number(state, NO_REGISTER)
        tokens = self._tokens_out(state, NO_REGISTER) if (state, NO_REGISTER) in self._led_out else None
        if tokens is None:
            return self.surely(automaton.end_states, state)[0]
        order = automaton.shared_vocabulary.trie.order
        is_allowed = np.isin(order, tokens)
        ends = np.full(order.size, DEAD, np.int32)
        ends[is_allowed] = [self.surely(automaton.advance_one, state, token) for token in order[is_allowed].tolist()]
        return ends

    def _tokens_out(self, state: StateId, held: RegisterId) -> NDArray[np.int32] | None:
        with self._automaton.beyond_limits():
            return self._ways_out.tokens(state, held)

    # -- budgets ------------------------------------------------------------------------------------------------------

    def exactly_within(self, state: StateId, held: RegisterId, budget: int) -> NDArray[np.uint32] | None:
        """The mask within a budget that some token may exceed; None for another budget, and where there is no room to find out."""
        if self._automaton.is_nearly_full:
            return None
        try:
            return self._budgets.within(state, held, budget) if self._budgets.is_tight(state, budget) else None
        except ConstraintLimit:
            return None

    def within(self, state: StateId, held: RegisterId, mask: NDArray[np.uint32], budget: int) -> NDArray[np.uint32]:
        """What a budget leaves of the mask of a state, where `exactly_within` does not know."""
        is_led_out = (state, held) in self._led_out
        if self._automaton.is_nearly_full:
            if is_led_out and (near := self._near(state, held, mask, budget)) is not None:
                return near
            if self.surely(self._budgets.is_tight, state, budget):
                return self.surely(self._budgets.within, state, held, budget)
        if self._automaton.remembers and not is_led_out:
            far = self.surely(self._budgets.too_far, state, held, budget)
            return mask & ~far if far.any() else mask
        return mask

    def _near(self, state: StateId, held: RegisterId, mask: NDArray[np.uint32], budget: int) -> NDArray[np.uint32] | None:
        """Of the mask of a way out the tokens with which the text can be finished within a budget; None where none can."""
        tokens = self._tokens_out(state, held)
        if tokens is None or not tokens.size:
            return mask
        near = [token for token in tokens.tolist() if self._needed(state, held, token) < budget]
        return self._automaton.shared_vocabulary.row_of(near) if near else None

    def _needed(self, state: StateId, held: RegisterId, token_id: int) -> int:
        """Tokens that suffice behind an allowed one."""
        if not self._automaton.remembers:
            return self.surely(self._distances.of, self.surely(self._automaton.advance_one, state, token_id))
        return self.surely(self._distances.of, *self.surely(self._automaton.advance_remembering, state, held, token_id))
