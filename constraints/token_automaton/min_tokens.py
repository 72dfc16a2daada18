"""`min_tokens`: how many tokens suffice to finish from a state.

Every state has an upper bound, its cost: the sum of the costs of its parts (shortest_completion.py). For constraints without
recursion and without a register the exact number is searched for, breadth first over tokens, within a limit on the trie
nodes that all searches visit; a state whose search runs into the limit keeps its bound. Distances along a path that was
found are kept too, so the number always falls by one along some token.

With a register (seen_values.py) the bound holds for texts without candidates. With candidates, one more character is enough
inside a body, and the surcharge of an item at the beginning of one; elsewhere the tokens that go along the candidates are
searched for a way out, breadth first. One more character is not always needed: the cheapest text may be a listed key that only
begins like a candidate, and no byte before it was charged for more than that. So there a search tells whether the bound for texts
without candidates holds after all.

Behind the end of an item a mask asks for dozens of registers, one for each text that the item may have, and of few states. Most
of these searches end with one token that leads away from all candidates. So of each state the tokens with the least cost behind
them are found once, and for a register it is only asked whether one of them leads away from its candidates. And a mask asks of
a token only whether its number is below a budget, so searches end there: two tokens from the end none looks farther than one; and
they end with the first way that is short enough, which is kept, so that each of its tokens brings the end nearer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..automaton.tables import DEAD
from ..base.ids import RegisterId, StateId
from ..base.kinds import INFINITE
from ..uniqueness.register_product import ExtraCost
from ..uniqueness.seen_values import NO_REGISTER
from .token_automaton import TokenAutomaton

_SLACK = 3  # a character cut short inside a body costs at most its remaining bytes
_MAX_MET = 1000  # places of searches among candidates that are kept; a place may have thousands of tokens
MAX_FOLLOWERS = 1 << 20  # states behind tokens that are kept, 8 bytes each, of all states together; of one there may be thousands
MAX_NEAREST = 8  # tokens of a state that are tried, and kept; where none will do all tokens are looked at
Configuration = tuple[StateId, RegisterId]  # a state and a register


class Onward(NamedTuple):
    """Where tokens lead from a state and a register: the least cost without candidates; what is reached along candidates; the
    tokens behind which one more character is enough, and the costs there."""

    least: int
    along: tuple[Configuration, ...]
    tokens: NDArray[np.int32]
    costs: NDArray[np.int32]


class Nearest(NamedTuple):
    """Of a state: the least cost behind any token, and some of the tokens behind which it is."""

    cost: int
    tokens: tuple[int, ...]


class Distances:
    """The distances of the states of one automaton, remembered."""

    def __init__(self, automaton: TokenAutomaton) -> None:
        self._automaton = automaton
        self._known: dict[StateId, int] = {}
        self._among_candidates: dict[Configuration, int] = {}
        self._not_below: dict[Configuration, int] = {}  # a search that was ended there found nothing
        self._ways: dict[Configuration, int] = {}  # what suffices along ways that were not proven to be the shortest
        self._met: dict[Configuration, Onward] = {}
        self._nearest: dict[StateId, Nearest] = {}
        self._followed: dict[StateId, tuple[NDArray[np.intp], int]] = {}
        self.num_followers = 0  # kept, of all states together
        self._ceilings: dict[StateId, int] = {}
        # Trie nodes that all searches together may still visit.
        self._nodes_left = int(automaton.limits.search_nodes * automaton.grammar.search_share)

    def found(self) -> NDArray[np.int64]:
        """What searches have found: rows (state, tokens). The first row is (-1, trie nodes that may still be visited).
        int64 [1 + states, 2]"""
        return np.array([(-1, self._nodes_left), *self._known.items()], np.int64)

    def take_over(self, found: NDArray[np.int64]) -> None:
        """Continue where another object was, which gave `found`, for an automaton with the same states."""
        (_, self._nodes_left), *known = found.tolist()
        self._known = dict(known)

    def of(self, state: StateId, held: RegisterId = NO_REGISTER, below: int = INFINITE) -> int:
        """Tokens that suffice from `state`, with the register `held` when it matters; where that is not less than `below`, any
        number that is not.

        Exact where the automaton is regular and the search stays within its limit.
        """
        if held:
            return self._with_memory(state, held, below)
        bound = self._automaton.cost(state)
        if bound <= 1 or not self._automaton.is_regular:
            return bound
        if state not in self._known:
            self._search(state, bound)
        return self._known[state]

    def of_all(self, states: NDArray[np.int32]) -> NDArray[np.int64]:
        """`of` for many states, few of which differ, without a register. int64 [states]"""
        of_state = np.zeros(int(states.max(initial=DEAD)) + 1, np.int64)
        of_state[states] = 1  # a mark; sorting the states would take longer than all else
        different = np.flatnonzero(of_state)
        of_state[different] = [self.of(StateId(state)) for state in different.tolist()]
        found: NDArray[np.int64] = of_state[states]
        return found

    def may_exceed(self, state: StateId, budget: int) -> bool:
        """Whether more than `budget` tokens may be needed behind some token allowed in `state`, without a register."""
        return budget < self._automaton.cost(state) + _SLACK or budget < self._ceiling(state)

    def _ceiling(self, state: StateId) -> int:
        """An upper bound of the distance after any one token allowed in `state`."""
        if state not in self._ceilings:
            costs = self._automaton.costs_after(state)
            self._ceilings[state] = int(costs[costs < INFINITE].max(initial=0))
        return self._ceilings[state]

    def _with_memory(self, state: StateId, held: RegisterId, below: int) -> int:
        extra = self._automaton.extra_cost(state, held)
        if extra == ExtraCost.EXPECTS_KEY:
            return self._with_key(state, held, below)
        cost = self._automaton.cost(state)
        if extra == ExtraCost.SEARCH:
            return self._among(state, held, 0, INFINITE, below)
        return self._among(state, held, cost, cost + ExtraCost.ONE_MORE, below) if extra == ExtraCost.ONE_MORE else cost + extra

    def _among(self, state: StateId, held: RegisterId, least: int, best: int, below: int) -> int:
        """What a search among candidates finds, between two numbers; where that is less than `below`, which is less than INFINITE,
        any number between them. What a way takes is remembered, and below which number there is none."""
        at = state, held
        if at in self._among_candidates:
            return self._kept(at)
        if max(least, self._not_below.get(at, 0)) >= below:
            return below
        found = max(least, min(best, self._kept(at)))
        if below < INFINITE and found < below:
            return found
        found = max(least, self._search_way_out(state, held, found, below))
        if below == INFINITE:
            self._among_candidates[at] = found
        elif found < below:
            self._ways[at] = found
        else:
            self._not_below[at] = below
        return found

    def _kept(self, at: Configuration) -> int:
        """What suffices along ways that were found before, INFINITE without any."""
        return min(self._among_candidates.get(at, INFINITE), self._ways.get(at, INFINITE))

    def _with_key(self, state: StateId, held: RegisterId, below: int) -> int:
        """Tokens that suffice where a key must come next: a quote, and what suffices behind it, which is known of these keys, while
        costs are for as many as may have to differ; or fewer, where a token that goes on behind the quote makes a shorter way, as
        a search that came along here has found or is to find."""
        cost = self._automaton.cost(state)
        opened, kept, _ = self._automaton.run_remembering(state, held, b'"')
        if opened == DEAD:
            return INFINITE
        found = min(1 + self.of(opened, kept), self._kept((state, held)))
        return found if found <= cost else self._among(state, held, 0, found, below)

    def _search_way_out(self, state: StateId, held: RegisterId, best: int, below: int) -> int:
        """The fewest tokens that lead along candidates and then to the end, or `best` when that is less; where `below` is less than
        INFINITE, what the first way takes that is found to be shorter, or any number that is not less.

        Texts that end before a key are left out: they could have stopped earlier. No state in which one more character is enough
        counts as less than its cost, here as in `_with_memory`.

        What would suffice without candidates is enough. Inside a key the search ends with the key, unless a whole item may
        be the candidate: costs are sums over parts and count on no token that goes on into another member, and with those
        there would be countless registers.
        """
        enough, key = self._automaton.cost(state), self._automaton.key_place(held)
        if key is None and (found := self._one_token_away(state, held)) <= enough:
            return found
        before: dict[Configuration, Configuration] = {}
        seen, frontier, depth, last = {(state, held)}, {(state, held): 0}, 0, (state, held)
        while frontier and depth + 1 < min(best, below) and best > enough:
            depth += 1
            reached: dict[Configuration, int] = {}  # with the least that it counts as on the way there
            for at, floor in frontier.items():
                nearest = max(depth + self._nearest_of(at[0]).cost, floor)
                if depth + 1 >= below <= nearest:
                    continue  # nothing comes behind this step, and no token is near enough
                if nearest < below < INFINITE and self._one_token_away(*at) < INFINITE:
                    self._keep_way(self._ways, at, (state, held), before, nearest)
                    return nearest
                onward = self._onward(at)
                if max(depth + onward.least, floor) < best:
                    best, last = max(depth + onward.least, floor), at
                    if best < below < INFINITE:
                        self._keep_way(self._ways, last, (state, held), before, best)
                        return best
                further = dict.fromkeys(onward.along, floor)
                if best >= depth + self._automaton.cost(at[0]):  # no way out is as cheap as the bound without candidates
                    for configuration in self._one_more(at, onward, best - depth):
                        further[configuration] = max(floor, depth + self._automaton.cost(configuration[0]))
                for configuration, least in further.items():
                    if key is None or self._automaton.key_place(configuration[1]) == key:
                        reached[configuration] = least
                        before.setdefault(configuration, at)
            fresh = [each for each in reached if each not in seen and reached[each] < best]
            frontier = {each: reached[each] for each in sorted(fresh, key=lambda each: self._automaton.cost(each[0]))}
            seen.update(frontier)
        if best >= below:
            return best
        self._keep_way(self._among_candidates, last, (state, held), before, best)
        return best

    def _keep_way(
        self, known: dict[Configuration, int], last: Configuration, first: Configuration,
        before: dict[Configuration, Configuration], best: int,
    ) -> None:  # fmt: skip
        """Remember what suffices along the way that was found, so that each of its tokens brings the end nearer."""
        way = [last]
        while way[-1] != first:
            way.append(before[way[-1]])
        for tokens, configuration in enumerate(reversed(way[:-1]), start=1):
            known[configuration] = min(best - tokens, known.get(configuration, INFINITE))

    def _one_token_away(self, state: StateId, held: RegisterId) -> int:
        """What a search finds with its first token, where that is the nearest one of the state and leads away from all candidates;
        else INFINITE. No register makes a token cheaper than that."""
        automaton, nearest = self._automaton, self._nearest_of(state)
        for token in nearest.tokens:
            after, kept = automaton.advance_remembering(state, held, token)
            if after != DEAD and automaton.cost(after) == nearest.cost and automaton.extra_cost(after, kept) == 0:
                return 1 + nearest.cost
        return INFINITE

    def _nearest_of(self, state: StateId) -> Nearest:
        known = self._nearest.get(state)
        if known is None:
            ends = self._automaton.end_states(state)[0]
            costs = np.where(ends != DEAD, self._automaton.costs(ends), INFINITE)
            least = int(costs.min(initial=INFINITE))
            places = np.flatnonzero(costs == least) if least < INFINITE else np.empty(0, np.intp)
            chosen = places[:: max(1, -(-places.size // MAX_NEAREST))]  # far from each other, so that they begin differently
            known = Nearest(least, tuple(self._automaton.shared_vocabulary.trie.order[chosen].tolist()))
            self._nearest[state] = known
        return known

    def _onward(self, at: Configuration) -> Onward:
        """Where tokens lead from a state and a register. It is kept, because searches for neighbouring tokens ask for the
        same."""
        known = self._met.get(at)
        if known is None:
            least, (tokens, states, memories, extra) = self._automaton.next_costs(*at)
            is_along, is_near = extra == int(ExtraCost.SEARCH), extra == int(ExtraCost.ONE_MORE)
            along = tuple(zip(states[is_along].tolist(), memories[is_along].tolist(), strict=True))
            if len(self._met) >= _MAX_MET:
                self._met.clear()
            known = self._met[at] = Onward(least, along, tokens[is_near], self._automaton.costs(states[is_near]))
        return known

    def _one_more(self, at: Configuration, onward: Onward, below: int) -> list[Configuration]:
        """The states and registers behind those tokens where one more character is enough and the cost is below `below`."""
        tokens = onward.tokens[onward.costs < below].tolist()
        followers = (self._automaton.advance_remembering(*at, token) for token in tokens)
        return [(after, kept) for after, kept in followers if after != DEAD]

    def _search(self, origin: StateId, bound: int) -> None:
        """Set the distance of `origin` to the exact number, or to `bound`; and those of the states on a shortest path."""
        parent: dict[StateId, StateId] = {origin: DEAD}
        frontier, best, best_at, depth = [origin], bound, DEAD, 0
        while frontier and depth + 1 < best:
            depth += 1
            reached: list[StateId] = []
            for state in frontier:
                if self._nodes_left <= 0 or self._automaton.is_nearly_full:
                    self._known[origin] = bound
                    return
                followers, visited = self._followers(state)
                self._nodes_left -= visited
                for number in followers.tolist():
                    after = StateId(number)
                    if after not in parent:
                        parent[after] = state
                        reached.append(after)
            for state in reached:
                rest = 0 if self._automaton.is_accepting(state) else self._known.get(state)
                if rest is not None and depth + rest < best:
                    best, best_at = depth + rest, state
            frontier = reached
        self._known[origin] = best
        self._keep_path(best_at, parent)

    def _followers(self, state: StateId) -> tuple[NDArray[np.intp], int]:
        """The states that tokens lead to, and the trie nodes that were visited to find them. They are kept, because the searches
        of neighbouring states meet the same ones."""
        known = self._followed.get(state)
        if known is None:
            ends, visited = self._automaton.end_states(state)
            alive = ends[ends != DEAD]
            is_reached = np.zeros(int(alive.max(initial=DEAD)) + 1, np.bool_)
            is_reached[alive] = True
            known = np.flatnonzero(is_reached), visited
            self._keep_followers(state, known)
        return known

    def _keep_followers(self, state: StateId, followers: tuple[NDArray[np.intp], int]) -> None:
        """Keep what `_followers` has found, and forget all others where they are too many together."""
        self.num_followers += followers[0].size
        if self.num_followers > MAX_FOLLOWERS:
            self._followed.clear()
            self.num_followers = followers[0].size
        self._followed[state] = followers

    def _keep_path(self, state: StateId, parent: dict[StateId, StateId]) -> None:
        if state == DEAD:
            return
        distance = 0 if self._automaton.is_accepting(state) else self._known[state]
        while state != DEAD:
            self._known[state] = min(distance, self._known.get(state, distance))
            state, distance = parent[state], distance + 1
