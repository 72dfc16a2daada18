"""The contract of a compiled constraint, against brute force over small vocabularies."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Compiler,
    Constraint,
    ConstraintError,
    ConstraintLimit,
    Limits,
    UnsupportedKeyword,
    Vocabulary,
)
from maskwright.constraints.runtime.constraint import FINISHED, State, as_token_ids, token_ids
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

from ..grammar.growing import unchecked
from ..grammars import EOS, TOKENS, VOCABULARY, FreeKeys, Recipe, Twin, recipes, regular_recipes

COMPILER = Compiler(VOCABULARY)


def allowed(constraint: Constraint, state: State, budget: int | None = None) -> set[int]:
    return set(as_token_ids(constraint.mask(state, budget)))


def compiled(source: Any, compiler: Compiler = COMPILER) -> Constraint:
    """The constraint; examples whose language is empty are skipped. Of one that is refused because its stacks grow the same is
    promised."""
    try:
        return compiler.compile(source)
    except UnsupportedKeyword as error:
        assert error.keyword == "ambiguity"
        return unchecked(source, compiler.limits, SharedVocabulary(compiler.vocabulary))
    except ConstraintError as error:
        assume("nothing satisfies" not in str(error))
        raise


def random_walk(constraint: Constraint, twin: Twin, seed: int, length: int) -> Iterator[tuple[bytes, State, Any]]:
    """(text, state of the constraint, position of the twin) along random legal tokens."""
    rng = random.Random(seed)
    state, position, text = constraint.start(), twin.start(), b""
    for _ in range(length):
        yield text, state, position
        choices = sorted(allowed(constraint, state) - {EOS})
        if not choices:
            return
        token_id = rng.choice(choices if rng.random() < 0.5 else choices[-8:])
        after = constraint.advance(state, token_id)
        assert after is not None
        state, position, text = after, twin.reference.run(TOKENS[token_id], position), text + TOKENS[token_id]


@given(st.one_of(regular_recipes, recipes), st.integers(0, 9))
def test_every_mask_equals_brute_force(source: Recipe, seed: int) -> None:
    constraint, twin = compiled(source), Twin(source)
    for text, state, position in random_walk(constraint, twin, seed, 4):
        assert allowed(constraint, state) == twin.mask(position), text
        assert constraint.is_accepting(state) == twin.reference.is_accepting(position), text


@given(st.integers(0, 30))
@settings(max_examples=15)
def test_masks_with_remembered_keys_equal_brute_force(seed: int) -> None:
    several = [b'{"', b'":', b'"a"', b'a"', b',"a":1', b'{"a":1,"a', b'{"a":1,"a"', b'a":1,"b":1', b"1}"]
    tokens = [bytes([b]) for b in range(256)] + several
    vocabulary = Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])
    constraint = Compiler(vocabulary).compile(FreeKeys())
    twin = Twin(FreeKeys(), vocabulary, alphabet=b'{}"ab:1,', horizon=8)
    rng = random.Random(seed)
    state, position = constraint.start(), twin.start()
    for _ in range(6):
        legal = allowed(constraint, state)
        assert legal == twin.mask(position)
        text_tokens = sorted(legal - {len(tokens)}, key=lambda t: (len(tokens[t]), t))
        if not text_tokens:
            break
        token_id = rng.choice(text_tokens[-4:])
        state, position = constraint.advance(state, token_id), twin.reference.run(tokens[token_id], position)
        assert state is not None


@given(regular_recipes, st.integers(0, 3))
@settings(max_examples=30)
def test_min_tokens_is_exact_for_regular_constraints(source: Recipe, seed: int) -> None:
    constraint, twin = compiled(source), Twin(source)
    for text, state, position in random_walk(constraint, twin, seed, 2):
        expected = twin.min_tokens(position, limit=4)
        found = constraint.min_tokens(state)
        assert found == expected if expected < 4 else found >= 4, text


@given(st.one_of(recipes, st.just(FreeKeys())), st.integers(0, 9))
def test_budgets_keep_exactly_what_can_still_finish(source: Any, seed: int) -> None:
    constraint, twin = compiled(source), Twin(source)
    for text, state, _ in random_walk(constraint, twin, seed, 4):
        distance = constraint.min_tokens(state)
        assert (distance == 0) == constraint.is_accepting(state), text
        successors = {token_id: constraint.advance(state, token_id) for token_id in allowed(constraint, state)}
        after = {token_id: constraint.min_tokens(s) for token_id, s in successors.items() if s is not None}
        assert distance == 0 or min(after.values()) <= distance - 1, text
        for budget in (0, 1, distance, distance + 1, distance + 4):
            expected = {token_id for token_id, rest in after.items() if rest <= budget - 1}
            expected |= {EOS} if distance == 0 else set()
            assert allowed(constraint, state, budget) == expected, (text, budget)


@given(st.one_of(regular_recipes, recipes, st.just(FreeKeys())), st.integers(0, 9), st.integers(0, 6))
def test_following_the_budget_always_finishes_inside_it(source: Any, seed: int, extra: int) -> None:
    constraint, rng = compiled(source), random.Random(seed)
    state = constraint.start()
    budget = constraint.min_tokens(state) + extra
    while budget:
        choices = sorted(allowed(constraint, state, budget) - {EOS})
        if not choices:
            break
        state = constraint.advance(state, rng.choice(choices))
        assert state is not None
        budget -= 1
    assert constraint.is_accepting(state)


@given(st.one_of(regular_recipes, recipes), st.integers(0, 9))
def test_forced_is_what_all_completions_share(source: Recipe, seed: int) -> None:
    constraint, twin = compiled(source), Twin(source)
    for text, state, position in random_walk(constraint, twin, seed, 3):
        forced = constraint.forced(state)
        for byte in forced:
            assert not twin.reference.is_accepting(position), text
            live = [b for b in range(256) if twin.is_live(twin.reference.step(position, b))]
            assert live == [byte], text
            position = twin.reference.step(position, byte)
        live = [b for b in range(256) if twin.is_live(twin.reference.step(position, b))]
        assert twin.reference.is_accepting(position) or len(live) > 1, text


@given(st.one_of(regular_recipes, recipes), st.integers(0, 9), st.randoms(use_true_random=False))
def test_every_split_of_an_accepted_text_is_accepted(source: Recipe, seed: int, rng: random.Random) -> None:
    constraint, twin = compiled(source), Twin(source)
    *_, (text, state, _) = random_walk(constraint, twin, seed, 6)
    other: State | None = constraint.start()
    at = 0
    while at < len(text):
        fits = [t for t, token in enumerate(TOKENS) if token and text.startswith(token, at)]
        token_id = rng.choice(fits)
        at += len(TOKENS[token_id])
        assert other is not None
        other = constraint.advance(other, token_id)
    assert other == state
    assert constraint.accepts(text) == constraint.is_accepting(state)


@given(st.lists(st.sampled_from([("literal", "ab"), ("repeat", ("any",), 0, None), ("chars", "ab")]), min_size=1, max_size=3))
@settings(max_examples=20)
def test_batch_calls_equal_single_calls(parts: list[Any]) -> None:
    constraint = compiled(Recipe(("seq", *parts)))
    states = [constraint.start()]
    for token_id in (97, 98, 256, 97):
        after = constraint.advance(states[-1], token_id)
        states.append(states[-1] if after is None else after)
    out = np.full((len(states), constraint.mask(states[0]).size), 0xDEAD, np.uint32)
    constraint.fill_masks(states, out)
    assert all(np.array_equal(row, constraint.mask(state)) for row, state in zip(out, states, strict=True))
    tokens = [97, 256, 98, EOS, 261]
    assert constraint.advance_batch(states, tokens) == [constraint.advance(s, t) for s, t in zip(states, tokens, strict=True)]


def test_eos_is_legal_exactly_when_complete() -> None:
    constraint = COMPILER.compile(Recipe(("literal", "ab")))
    start = constraint.start()
    assert constraint.advance(start, EOS) is None
    complete = constraint.advance_bytes(start, b"ab")
    assert complete is not None and allowed(constraint, complete) == {EOS}
    finished = constraint.advance(complete, EOS)
    assert finished == FINISHED and constraint.is_accepting(FINISHED) and constraint.forced(FINISHED) == b""
    assert constraint.min_tokens(FINISHED) == 0 and allowed(constraint, FINISHED) == {EOS}
    assert constraint.advance(FINISHED, EOS) == FINISHED and constraint.advance(FINISHED, 97) is None
    assert constraint.fill_masks([FINISHED, start], np.zeros((2, constraint.mask(start).size), np.uint32)) is None


def test_several_eos_ids_padding_and_tokens_that_are_never_text() -> None:
    tokens = [b"a", b"b", b"", None, b"<eos>", b"a", b"ab"] + [None] * 30
    constraint = Compiler(Vocabulary(tokens, eos_token_ids=[4, 20])).compile(Recipe(("repeat", ("chars", "a"), 0, None)))
    start = constraint.start()
    assert allowed(constraint, start) == {0, 5, 4, 20}  # duplicates all; b"" and None never; EOS bytes are not text
    assert constraint.advance(start, 2) is None and constraint.advance(start, 3) is None
    assert constraint.mask(start).size == 2


def test_ids_outside_the_vocabulary_are_refused() -> None:
    constraint = COMPILER.compile(Recipe(("literal", "ab")))
    for token_id in (-1, VOCABULARY.size):
        with pytest.raises(ValueError, match=str(token_id)):
            constraint.advance(constraint.start(), token_id)
        with pytest.raises(ValueError, match=str(token_id)):
            constraint.advance_batch([constraint.start()], [token_id])
        with pytest.raises(ValueError, match=str(token_id)):
            constraint.explain(constraint.start(), token_id)


def test_masks_are_read_only_and_their_size_is_checked() -> None:
    constraint = COMPILER.compile(Recipe(("literal", "ab")))
    with pytest.raises(ValueError):
        constraint.mask(constraint.start())[0] = 1
    with pytest.raises(ValueError, match="shape"):
        constraint.fill_masks([constraint.start()], np.zeros((2, 3), np.uint32))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=4))
def test_token_ids_are_the_bits_of_a_mask(words: list[int]) -> None:
    mask = np.array(words, np.uint32)
    ids = [bit for bit in range(32 * len(words)) if words[bit // 32] >> bit % 32 & 1]
    assert as_token_ids(mask) == ids == token_ids(mask).tolist()


def test_a_byte_the_vocabulary_lacks_is_named() -> None:
    vocabulary = Vocabulary([b"a", b"b", None], eos_token_ids=[2])
    with pytest.raises(ConstraintError, match="0x63"):
        Compiler(vocabulary).compile(Recipe(("literal", "abc")))
    with pytest.raises(ConstraintError, match="0x28"):
        Compiler(vocabulary).compile(Recipe(("seq", ("chars", "("), ("literal", "a"))))


def test_without_single_bytes_no_token_leads_where_the_vocabulary_cannot_finish() -> None:
    vocabulary = Vocabulary([b"a", "é".encode(), "é".encode()[:1], b"ab", b"b", None], eos_token_ids=[5])
    constraint = Compiler(vocabulary).compile(Recipe(("seq", ("repeat", ("any",), 1, 2), ("literal", "b"))))
    assert allowed(constraint, constraint.start()) == {0, 1, 3, 4}  # a lone lead byte could never be completed
    assert constraint.min_tokens(constraint.start()) == 1  # "ab"
    assert constraint.accepts("éb")


def test_left_recursion_is_refused_by_name() -> None:
    class Left:
        def lower(self, grammar: Any, limits: Any) -> Any:
            rule = grammar.rule("sum")
            grammar.define(rule, grammar.alt(grammar.literal("1"), grammar.seq(grammar.call(rule), grammar.literal("+1"))))
            return grammar.call(rule)

    with pytest.raises(ConstraintError, match="left recursion") as error:
        COMPILER.compile(Left())
    assert error.value.path == "sum"


def test_explanations_name_the_byte_and_what_was_expected() -> None:
    constraint = COMPILER.compile(Recipe(("seq", ("literal", "a"), ("chars", 'b"'))))
    verdict = constraint.explain(constraint.start(), 256 + 2)  # b"aab"
    assert not verdict.allowed and verdict.dies_at == 1 and "'b'" in verdict.expected
    assert TOKENS[verdict.nearest[0]] in (b"ab", b'a"', b"a")
    assert constraint.explain(constraint.start(), 256 + 2, num_nearest=0) == replace(verdict, nearest=())
    assert constraint.explain(constraint.start(), 97).allowed
    assert "complete" in constraint.explain(constraint.start(), EOS).reason


def test_a_large_counter_costs_nothing_until_it_is_used() -> None:
    constraint = COMPILER.compile(Recipe(("repeat", ("chars", "ab"), 2, 500_000)))
    state: State | None = constraint.start()
    for _ in range(50):
        assert state is not None
        state = constraint.advance(state, 264 + 5)  # nine letters at once
    assert state is not None and constraint.statistics["states"] < 2_000


def test_rows_are_dropped_beyond_their_limit_and_masks_stay_right() -> None:
    source = Recipe(("repeat", ("seq", ("chars", "ab"), ("repeat", ("any",), 0, 30)), 0, 4))
    small, large = Compiler(VOCABULARY, Limits(row_bytes=1)).compile(source), COMPILER.compile(source)
    state, other = small.start(), large.start()
    for token_id in [97, 98, 99, 100] * 5:
        kept = small.mask(state)
        copy = kept.copy()
        assert np.array_equal(kept, large.mask(other))
        state, other = small.advance(state, token_id), large.advance(other, token_id)
        assert state is not None and other is not None
        small.mask(state)
        assert np.array_equal(kept, copy)  # a mask that was handed out does not change


def test_a_worn_constraint_is_replaced_for_new_requests_and_stays_valid_for_old_ones() -> None:
    compiler, source = Compiler(VOCABULARY, Limits(states=40)), Recipe(("repeat", ("chars", "ab"), 0, 100))
    constraint = compiler.compile(source)
    assert compiler.compile(source) is constraint
    state = constraint.advance_bytes(constraint.start(), b"ab" * 15)
    assert state is not None and compiler.compile(source) is not constraint
    assert constraint.accepts(b"abab") and constraint.is_accepting(state)


def test_a_limit_reached_while_generating_is_named() -> None:
    constraint = Compiler(VOCABULARY, Limits(states=100)).compile(Recipe(("repeat", ("chars", "ab"), 0, 5000)))
    with pytest.raises(ConstraintLimit) as error:
        constraint.advance_bytes(constraint.start(), b"ab" * 2000)
    assert error.value.limit == "states" and error.value.value == 100
    assert constraint.accepts(b"ab")  # the constraint lives on


def test_threads_share_one_constraint() -> None:
    constraint = COMPILER.compile(Recipe(("repeat", ("seq", ("chars", "ab"), ("repeat", ("any",), 0, 3)), 0, None)))
    expected: list[list[int]] = []
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng, state, path = random.Random(seed), constraint.start(), []
            for _ in range(30):
                token_id = rng.choice(sorted(allowed(constraint, state) - {EOS}))
                state = constraint.advance(state, token_id)
                path.append(token_id)
            expected.append(path)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed % 2,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len({tuple(path) for path in expected}) == 2
