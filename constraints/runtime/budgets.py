"""What a budget of tokens leaves of a mask: the tokens behind which the text can be finished with what is left then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.ids import RegisterId, StateId
from ..token_automaton.min_tokens import Distances
from ..token_automaton.token_automaton import TokenAutomaton
from ..uniqueness.register_product import ExtraCost


class Budgets:
    """Masks of one automaton within budgets. budget: tokens left, the next one among them; states come with their registers."""

    def __init__(self, automaton: TokenAutomaton, distances: Distances) -> None:
        self._automaton, self._distances = automaton, distances

    def is_tight(self, state: StateId, budget: int) -> bool:
        """Whether some allowed token may lead farther than the budget allows, apart from unsettled ones."""
        return self._distances.may_exceed(state, budget - 1 - self._automaton.most_extra)

    def too_far(self, state: StateId, held: RegisterId, budget: int) -> NDArray[np.uint32]:
        """The mask of unsettled tokens after which the budget does not suffice."""
        unsettled = self._automaton.unsettled_tokens(state, held)
        far = (token.token_id for token in unsettled if self._distances.of(token.state, token.held, budget) >= budget)
        return self._automaton.shared_vocabulary.row_of(far)

    def within(self, state: StateId, held: RegisterId, budget: int) -> NDArray[np.uint32]:
        """The mask of the tokens behind which the budget suffices, EOS included where the text may end."""
        automaton, distances = self._automaton, self._distances
        order = automaton.shared_vocabulary.trie.order
        if automaton.remembers:
            ends, extra, unsettled = automaton.judge(state, held)
        else:
            ends, extra, unsettled = automaton.end_states(state)[0], None, []
        alive = np.flatnonzero(ends)  # DEAD is 0
        needed = distances.of_all(ends[alive])
        if extra is not None:
            more = extra[alive]
            needed += more
            for token in unsettled:
                needed[np.searchsorted(alive, token.position)] = distances.of(token.state, token.held, budget)
            for k in np.flatnonzero((more == int(ExtraCost.ONE_MORE)) & (needed == budget)).tolist():  # one too many, perhaps
                needed[k] = distances.of(*automaton.advance_remembering(state, held, int(order[alive[k]])), budget)
        row = automaton.shared_vocabulary.mask_of(order[alive[needed < budget]])
        return row | automaton.shared_vocabulary.eos_row if automaton.is_accepting(state) else row
