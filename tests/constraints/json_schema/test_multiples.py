"""Multiples of a decimal: the texts against decimal arithmetic, the masks against brute force."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, Constraint, ConstraintError, ConstraintLimit, Limits
from maskwright.constraints.front_ends.numbers.multiples import common_step, divides, multiple_node, not_multiple_node
from maskwright.constraints.front_ends.numbers.numbers import canonical_number, number_node
from maskwright.constraints.grammar.expression import FAIL, Grammar, Node
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.runtime.constraint import as_token_ids
from maskwright.constraints.vocabulary.vocabulary import Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
TOKENS = [*BYTES, *(str(n).encode() for n in range(10, 1000)), b"0.", b".5", b".25", b"e-", b"-1", b"00", b"000", b"000000"]
EOS = len(TOKENS)
COMPILER = Compiler(Vocabulary([*TOKENS, None], eos_token_ids=[EOS]))
STEPS = ["7", "2.5", "0.01", "1e-8", "0.25", "3", "10", "200", "0.0001", "1e-7", "1.5", "0.0000007", "3.14159", "1000003", "0.3"]


@dataclass(frozen=True)
class Multiple:
    """A source: `multiple_node`, or `not_multiple_node` when `steps` are given."""

    step: str | None
    integer: bool = False
    bounds: dict[str, Any] = field(default_factory=dict, hash=False)
    steps: tuple[str, ...] = ()

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        step = None if self.step is None else Decimal(self.step)
        if self.steps:
            others = [Decimal(other) for other in self.steps]
            return not_multiple_node(grammar, others, integer=self.integer, multiple_of=step, **self.bounds)
        assert step is not None
        return multiple_node(grammar, step, integer=self.integer, **self.bounds)

    def contains(self, value: Decimal) -> bool:
        """By definition, without looking at the text."""
        exact = Fraction(value)
        low, high = self.bounds.get("low"), self.bounds.get("high")
        above = low is None or value > low or (value == low and not self.bounds.get("exclusive_low"))
        below = high is None or value < high or (value == high and not self.bounds.get("exclusive_high"))
        divisible = (self.step is None or exact % Fraction(self.step) == 0) and all(exact % Fraction(s) for s in self.steps)
        return above and below and divisible and (not self.integer or exact.denominator == 1)


def near(step: str, *bounds: Any) -> set[Decimal]:
    """Values to try: multiples of a step and their neighbours, around zero and around some bounds."""
    unit = Fraction(step)
    centers = [0, *(round(Fraction(bound) / unit) for bound in bounds if bound is not None), 400]
    multiples = {unit * (center + i) for center in centers for i in range(-4, 5)}
    moved = {value + delta for value in multiples for delta in (0, Fraction(1, 10), 1, unit / 10, unit / 2)}
    exact = (Decimal(value.numerator) / Decimal(value.denominator) for value in moved)
    return {value for value, fraction in zip(exact, moved, strict=True) if Fraction(value) == fraction}


def malformed(text: str) -> list[str]:
    """Spellings of the same number that are not canonical."""
    dotted = text if "." in text else text + "."
    return [text + ".", "0" + text, dotted + "0", "+" + text, text + "e0"]


limit = st.one_of(st.none(), st.sampled_from(["0", "-1.3", "2.5", "70", "0.0000002", "0.125", "21", "-7", "1200", "0.70001", "0.00011"]))


@given(st.sampled_from(STEPS), st.booleans(), limit, limit, st.booleans(), st.booleans())
@settings(max_examples=50)
def test_texts_are_those_of_the_multiples(step: str, integer: bool, low: Any, high: Any, no_low: bool, no_high: bool) -> None:
    low, high = (None if bound is None else Decimal(bound) for bound in (low, high))
    source = Multiple(step, integer, {"low": low, "high": high, "exclusive_low": no_low, "exclusive_high": no_high})
    grammar = Grammar()
    reference = Reference(grammar, source.lower(grammar, Limits()))
    for value in near(step, low, high):
        assert reference.accepts(canonical_number(value).encode()) == source.contains(value), value
    for value in [value for value in near(step, low, high) if source.contains(value)][:5]:
        assert not any(reference.accepts(text.encode()) for text in malformed(canonical_number(value)))
    assert not reference.accepts(b"-0")
    first = next((value for value in near(step, low, high) if source.contains(value)), None)
    assert first is None or reference.node != FAIL


def allowed(constraint: Constraint, state: Any, budget: int | None = None) -> set[int]:
    return set(as_token_ids(constraint.mask(state, budget)))


@pytest.mark.parametrize("step", ["7", "2.5", "0.0001", "1e-6", "35", "1.25", "300", "0.0003", "1000003", "0.01"])
@pytest.mark.parametrize("integer", [True, False])
def test_masks_equal_brute_force_over_all_texts(step: str, integer: bool) -> None:
    unit, rng = Decimal(step), random.Random(step)
    source = Multiple(step, integer, {"low": -40 * unit, "high": 1234 * unit + Decimal("1e-9")})
    texts = {canonical_number(unit * i).encode() for i in range(-40, 1235) if source.contains(unit * i)}
    live = {text[:length] for text in texts for length in range(len(text) + 1)}
    constraint = COMPILER.compile(source)
    for _ in range(6):
        state, text = constraint.start(), b""
        while True:
            legal, rest = allowed(constraint, state), constraint.min_tokens(state)
            assert legal - {EOS} == {t for t, token in enumerate(TOKENS) if text + token in live}, text
            assert (EOS in legal) == (text in texts) == (rest == 0), text
            assert allowed(constraint, state, rest)
            if not legal - {EOS}:
                break
            token = rng.choice(sorted(legal - {EOS}))
            state, text = constraint.advance(state, token), text + TOKENS[token]
            assert state is not None


@given(st.sampled_from([*STEPS, "1e20", "123456789", "0.123456789", "2147483647"]), st.booleans(), st.integers(0, 99))
@settings(max_examples=60)
def test_every_walk_within_its_budget_ends_at_a_multiple(step: str, integer: bool, seed: int) -> None:
    constraint, rng = COMPILER.compile(Multiple(step, integer)), random.Random(seed)
    state, text = constraint.start(), b""
    budget = constraint.min_tokens(state) + rng.randrange(12)
    while budget:
        choices = sorted(allowed(constraint, state, budget) - {EOS})
        if not choices:
            break
        token = rng.choice(choices)
        state, text, budget = constraint.advance(state, token), text + TOKENS[token], budget - 1
        assert state is not None
    assert constraint.is_accepting(state)
    assert Multiple(step, integer).contains(Decimal(text.decode())) and canonical_number(Decimal(text.decode())) == text.decode()


@pytest.mark.parametrize(
    ("step", "low", "high"), [("7", 10, 13), ("1000003", 1000004, 2000005), ("2147483647", 1, 2147483646), ("2.5", 6, 7)]
)
def test_bounds_without_a_multiple_are_seen_at_once(step: str, low: int, high: int) -> None:
    grammar = Grammar()
    for integer in (True, False):
        assert multiple_node(grammar, Decimal(step), integer=integer, low=Decimal(low), high=Decimal(high)) == FAIL
    assert len(grammar) < 20_000


def test_large_steps_within_bounds_are_quick() -> None:
    begun = time.process_time()
    constraint = COMPILER.compile(Multiple("1000003", True, {"low": Decimal(10**12 + 1), "high": Decimal(2 * 10**12)}))
    state = constraint.start()
    for _ in range(13):
        choices = allowed(constraint, state) - {EOS}
        if not choices:
            break
        state = constraint.advance(state, min(choices))
        assert state is not None
    assert constraint.is_accepting(state) and time.process_time() - begun < 10


def test_a_multiple_may_be_an_operand() -> None:
    class Even:
        def lower(self, grammar: Grammar, limits: Limits) -> Node:
            odd = grammar.without(number_node(grammar, integer=True), multiple_node(grammar, Decimal(2), integer=True))
            return grammar.both(odd, multiple_node(grammar, Decimal(21), integer=True))

    constraint = COMPILER.compile(Even())
    assert [n for n in range(-70, 70) if constraint.accepts(str(n))] == [-63, -21, 21, 63]
    with pytest.raises(ConstraintError, match="nothing satisfies"):
        COMPILER.compile(Multiple(None, True, {"low": Decimal(14), "high": Decimal(14)}, ("7",)))


@pytest.mark.parametrize(
    "source",
    [
        Multiple(None, True, {}, ("3",)),
        Multiple("2", False, {"low": Decimal(-9)}, ("6", "10")),
        Multiple("0.5", False, {}, ("2.5", "3")),
        Multiple(None, False, {"low": Decimal("0.1"), "high": Decimal(1)}, ("0.25",)),
    ],
)
def test_numbers_that_are_not_multiples(source: Multiple) -> None:
    constraint = COMPILER.compile(source)
    for value in near("0.5", 3, 10) | near("0.25", 1):
        assert constraint.accepts(canonical_number(value)) == source.contains(value), value


def test_everything_excluded_is_nothing() -> None:
    grammar = Grammar()
    assert not_multiple_node(grammar, [Decimal(1)], integer=True) == FAIL
    assert not_multiple_node(grammar, [Decimal("0.5")], integer=False, multiple_of=Decimal("2.5")) == FAIL
    assert divides(Decimal("0.5"), None, True) and not divides(Decimal("0.5"), None, False)
    assert divides(Decimal(3), Decimal("1.5"), False) is False and divides(Decimal(3), Decimal("1.5"), True) is True
    assert common_step(Decimal("0.4"), Decimal("0.6")) == Decimal("1.2") and common_step(Decimal(100), Decimal(15)) == 300


def test_huge_and_hostile_steps() -> None:
    grammar = Grammar()
    reference = Reference(grammar, multiple_node(grammar, Decimal("1e308"), integer=True, digits=310))
    assert reference.accepts(b"1" + b"0" * 308) and not reference.accepts(b"1" + b"0" * 307)
    nothing_but_zero = Reference(grammar, multiple_node(grammar, Decimal("1e9999"), integer=False))
    assert nothing_but_zero.accepts(b"0") and not nothing_but_zero.accepts(b"1")
    assert multiple_node(grammar, Decimal(7), integer=True, low=Decimal("1e1000000000")) == FAIL
    tiny = multiple_node(grammar, Decimal(7), integer=True, low=Decimal("1e-1000000000"), high=Decimal("0e500"))
    assert tiny == FAIL
    for step, name in (("2147483659", "modulus"), ("1e-1000000000", "digits"), ("1e-301", "digits")):
        with pytest.raises(ConstraintLimit) as error:
            multiple_node(grammar, Decimal(step), integer=False)
        assert error.value.limit == name
    for step in ("0", "-1", "NaN"):
        with pytest.raises(ConstraintError):
            multiple_node(grammar, Decimal(step), integer=False)
