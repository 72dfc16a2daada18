"""Words that are walked apart from names (apart.py), against tokens that are read byte by byte."""

from __future__ import annotations

import itertools
import random
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Gbnf, Vocabulary
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.masks.apart import WORTH_APART
from maskwright.constraints.runtime.constraint import as_token_ids

WORDS = ("if", "in", "int", "else", "RETURN", "not", "x")
PAIRS = ["".join(pair) for pair in itertools.product("abcefilnrstxIRE_1", repeat=2)]
# Many tokens behind a space, a bracket and a letter; words, and what goes on behind them.
TOKENS = [bytes([byte]) for byte in range(256)] + [
    text.encode()
    for text in (
        *(before + pair + after for pair in PAIRS for before, after in ((" ", ""), (" ", " x"), ("(", ")"), ("", ""), ("\n ", ""))),
        *(before + word + after for word in WORDS for before in ("", " ", "(", " (") for after in ("", " ", "(", "s", " x", ";", "\n")),
        *(" " + word[:cut] for word in WORDS for cut in range(1, len(word))),
        "  ", "   ", "\n ", " (", "((", ");", " é", " xé", "élan", " 12", " 1a",
    )
]  # fmt: skip
TOKENS = list(dict.fromkeys(TOKENS))
EOS = len(TOKENS)
COMPILER = Compiler(Vocabulary([*TOKENS, None], eos_token_ids=[EOS]))

NAMES = ("[a-z]+", "[a-zA-Z_] [a-zA-Z0-9_]*", "[a-zA-Zé]{2,}", "[a-f]+", '[a-z] [a-z ]* ";"')
SPACES = ('" "', "[ \\n]+", "[ \\n]*", '( " " | "(" )')


def grammar(words: list[str], name: str, space: str, is_nested: bool) -> Gbnf:
    """Statements of words and names with white space before each, in brackets if they are nested."""
    ways = [f'"{word}" rest{k}' for k, word in enumerate(words)] + ['"(" part* ")"', '[aex_]? "1" name'] * is_nested
    lines = [
        'root ::= part+ ";"?',
        f"part ::= ws ( name | {' | '.join(ways)} )",
        f"name ::= {name}",
        f"ws ::= {space}",
        *(f"rest{k} ::= " + ("ws name", '";"', "ws*", 'part "x"')[k % 4] for k in range(len(words))),
    ]
    return Gbnf("\n".join(lines))


def by_bytes(constraint: Any, state: Any) -> set[int]:
    """The tokens of a mask, from reading all tokens byte by byte."""
    automaton = constraint._automaton
    ends, _ = automaton.end_states(state)
    found = set(automaton.shared_vocabulary.trie.order[ends != DEAD].tolist())
    return found | ({EOS} if constraint.is_accepting(state) else set())


def check(source: Any, seed: int, steps: int) -> None:
    constraint = COMPILER.compile(source)
    rng, state = random.Random(seed), constraint.start()
    for _ in range(steps):
        allowed = set(as_token_ids(constraint.mask(state)))
        assert allowed == by_bytes(constraint, state)
        after = constraint.advance(state, rng.choice(sorted(allowed)))
        if after is None or after < 0:
            return
        state = after


grammars = st.builds(
    grammar, st.lists(st.sampled_from(WORDS), min_size=1, unique=True), st.sampled_from(NAMES), st.sampled_from(SPACES), st.booleans()
)


@given(grammars, st.integers(0, 99))
@settings(max_examples=60)
def test_masks_are_those_of_tokens_read_byte_by_byte(source: Gbnf, seed: int) -> None:
    check(source, seed, 8)


@pytest.mark.parametrize("space", SPACES)
def test_words_without_names(space: str) -> None:
    only_words = "\n".join(('root ::= ( ws ( "if" | "in" | "int" | "else" ) )+', f"ws ::= {space}"))
    check(Gbnf(only_words), 1, 12)


def test_states_are_not_made_for_words() -> None:
    """The mask of white space before many words takes no state for each of their letters."""
    words = ["".join(random.Random(k).choices(string.ascii_lowercase, k=9)) for k in range(30)]
    constraint = COMPILER.compile(grammar(words, "[a-z]+", '" "', False))
    assert sum(token.startswith(b" ") for token in TOKENS) > WORTH_APART
    before = constraint.statistics["states"]
    allowed = set(as_token_ids(constraint.mask(constraint.start())))
    assert constraint.statistics["states"] - before < 60
    assert allowed == by_bytes(constraint, constraint.start())
