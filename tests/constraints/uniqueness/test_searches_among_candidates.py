"""What is kept of searches for the fewest tokens changes none of their results."""

from __future__ import annotations

import random
from typing import Any

import pytest

from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.base.ids import RegisterId, StateId
from maskwright.constraints.base.kinds import INFINITE
from maskwright.constraints.token_automaton import min_tokens
from maskwright.constraints.token_automaton.min_tokens import Distances

LONGER = (b'","', b'",', b'", "', b"ab", b"aab", b"the", b"A1", b"1A", b'"]', b'a"', b'b",', b'":', b"20", b"-0")
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *LONGER, None], eos_token_ids=[256 + len(LONGER)])
ITEMS: dict[str, Any] = {
    "two patterns": {"allOf": [{"pattern": "[A-Z]"}, {"pattern": "(.*\\d){2}"}]},
    "not": {"pattern": "^[ab]*$", "not": {"pattern": "aa"}},
    "few": {"enum": ["", "a", "ab", "aab", "the", "A1"]},
    "one letter": {"pattern": "^a*$"},
    "words": {"pattern": "(?:.*[a-m]){2}", "not": {"pattern": "\\d"}},
}


class Searching(Distances):
    """The slow twin: all tokens are looked at for each register."""

    def _one_token_away(self, state: StateId, held: RegisterId) -> int:
        return INFINITE


@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
@pytest.mark.parametrize("name", ITEMS)
def test_one_token_tells_what_a_search_tells(name: str, whitespace: str) -> None:
    schema = {"type": "array", "items": {"type": "string", **ITEMS[name]}, "uniqueItems": True, "minItems": 3, "maxItems": 5}
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema, whitespace=whitespace))
    with constraint.exclusively() as (automaton, _):
        quick, slow, asked = Distances(automaton), Searching(automaton), 0
        for seed in range(4):
            rng, state, held = random.Random(seed), automaton.start, automaton.empty_memory
            for _ in range(40):
                for unsettled in automaton.judge(state, held).unsettled:
                    asked += 1
                    assert quick.of(unsettled.state, unsettled.held) == slow.of(unsettled.state, unsettled.held)
                ends = automaton.judge(state, held).ends
                tokens = automaton.shared_vocabulary.trie.order[ends != DEAD].tolist()
                if not tokens:
                    break
                onward = sorted(set(tokens) & set(range(256, 256 + len(LONGER)))) if rng.random() < 0.7 else []
                state, held = automaton.advance_remembering(state, held, rng.choice(onward or tokens))
        assert asked > 10


@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
@pytest.mark.parametrize("name", [*ITEMS, "begin alike"])
def test_the_first_way_that_is_short_enough_tells_what_the_shortest_tells(name: str, whitespace: str) -> None:
    item = {"type": "string", **ITEMS.get(name, {"pattern": "^the", "maxLength": 30})}
    schema = {"type": "array", "items": item, "uniqueItems": True, "minItems": 3, "maxItems": 5}
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema, whitespace=whitespace))
    with constraint.exclusively() as (automaton, _):
        within, shortest, asked = Distances(automaton), Distances(automaton), 0
        for seed in range(4):
            rng, state, held = random.Random(seed), automaton.start, automaton.empty_memory
            for _ in range(40):
                judged = automaton.judge(state, held)
                for each in judged.unsettled:
                    least = shortest.of(each.state, each.held)
                    for budget in rng.sample([least - 1, least, least + 1, least + 2, least + 5], 3):
                        asked += 1
                        assert (within.of(each.state, each.held, budget) < budget) == (least < budget)
                tokens = automaton.shared_vocabulary.trie.order[judged.ends != DEAD].tolist()
                if not tokens:
                    break
                onward = sorted(set(tokens) & set(range(256, 256 + len(LONGER)))) if rng.random() < 0.7 else []
                state, held = automaton.advance_remembering(state, held, rng.choice(onward or tokens))
        assert asked > 10


@pytest.mark.parametrize("most", [1, 300, 1 << 20])
def test_followers_are_kept_up_to_a_number_of_all_together(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "string", "format": "date", "pattern": "^[12]"}
    constraint = Compiler(VOCABULARY).compile(JsonSchema(schema))
    with constraint.exclusively() as (automaton, _):
        few, all_kept, state = Distances(automaton), Distances(automaton), automaton.start
        with monkeypatch.context() as patched:
            for byte in b'"2024-01-01"':
                patched.setattr(min_tokens, "MAX_FOLLOWERS", most)
                found = few.of(state)
                largest = max(few._followers(StateId(number))[0].size for number in range(1, automaton.num_states))
                assert few.num_followers <= max(most, largest)
                patched.undo()
                assert found == all_kept.of(state)
                state = automaton.run(state, bytes([byte]))[0]
