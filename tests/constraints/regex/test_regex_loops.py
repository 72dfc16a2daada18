"""Assertions inside of repetitions: agreement with `re` on every short text, for patterns written down and drawn at random."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from maskwright.constraints import Compiler, ConstraintError, Regex, UnsupportedKeyword, Vocabulary

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
TEXTS = ["".join(chars) for length in range(5) for chars in product("ab -"[: 4 if length < 4 else 3], repeat=length)]
TEXTS += ["\n", "a\n", "a\nb", "\na", "ab\n", "a\n\n", "é", "aé b"]
PATTERNS = [
    r"(?:a(?=b)|b)*", r"(\ba+\b ?)*", r"(?:\b\w+\b\W*)+", r"(?:(?<=a)b|a)*", r"(?:a(?!b))+", r"(?:(?=a)\w|b)*", r"(?:\Ba|\bb)+",
    r"(?:(?<!a)b|a)+", r"(?:a(?=b)b|b(?!a))*", r"(?:a|b(?!.*b))*", r"(?:(?!a$)a|b)*", r"(?:a(?=.b)|.)*", r"(?:\w(?:\B|$))+",
    r"(?m)(?:^a$\n?)+", r"(a\b|b\B)*", r"(?:a(?:(?=b)|-))*b", r"(?:(?=(a|b\b)*$)[ab ])*", r"(?:(?!(?=a)ab)[ab])*-?", r"(?:(?:a?\b)*-)+",
    r"(?:(?=a|)(?:a|b(?!-))?)*", r"(?:(?:\b|a)*b)+", r"(?:(?<!^)a|b)*", r"(?:(?<=ab)-|[ab])*",
]  # fmt: skip


def check(pattern: str) -> None:
    compiled = re.compile(pattern)
    for full, matches in ((True, compiled.fullmatch), (False, compiled.search)):
        constraint = COMPILER.compile(Regex(pattern, full=full))
        assert [text for text in TEXTS if bool(matches(text)) != constraint.accepts(text.encode())] == [], (pattern, full)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_written_patterns_agree_with_re(pattern: str) -> None:
    check(pattern)


def drawn(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(["a", "b", ".", r"\w", "[^a]", " ", r"\b", r"\B", "^", "$", "(?<=a)", "(?<!b)", "-"])
    inner = drawn(rng, depth - 1)
    other = drawn(rng, rng.randrange(depth))
    kinds = [f"{inner}{other}", f"(?:{inner}|{other})", f"(?:{inner})*", f"(?:{inner}){{1,2}}", f"(?={inner})", f"(?!{inner})"]
    return rng.choice([*kinds, f"(?:{inner}{other})+"])


@pytest.mark.parametrize("seed", range(24))
def test_drawn_patterns_agree_with_re(seed: int) -> None:
    rng = random.Random(seed)
    pattern = f"(?:{drawn(rng, 2)}[ab]|{drawn(rng, 3)})*{drawn(rng, 1)}"
    try:
        check(pattern)
    except ConstraintError as error:  # nothing matches
        assert "nothing satisfies" in error.reason
        assert not any(re.search(pattern, text) for text in TEXTS) or not any(re.fullmatch(pattern, text) for text in TEXTS)


def test_counts_beyond_the_automaton_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedKeyword, match="400 states") as caught:
        COMPILER.compile(Regex("(?:a(?=b)|b){2,20000}"))
    assert caught.value.keyword == "assertion in a repetition" and caught.value.instead
