"""Reasoning before a constraint, with and without a budget."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Choice,
    Compiler,
    Constraint,
    ConstraintError,
    JsonSchema,
    OutputParser,
    Reasoning,
    Regex,
    StructuralTag,
    Tools,
    UnsupportedKeyword,
    Vocabulary,
    parse_output,
)
from maskwright.constraints.front_ends.tags.events import ReasoningDelta, ReasoningEnd, ReasoningStart, TextDelta
from maskwright.constraints.front_ends.tags.tree import Text
from maskwright.constraints.runtime.constraint import as_token_ids

BYTES = [bytes([byte]) for byte in range(256)]
TOKENS = [*BYTES, b"<think>", b"</th", b"ink>", b"ab", b"</", b">yes", b"a</think>y", b"hm", b"\n\n"]
THINK, ENDTHINK, EOS = len(TOKENS), len(TOKENS) + 1, len(TOKENS) + 2
PLAIN = Compiler(Vocabulary([*TOKENS, None, None, None], eos_token_ids=[EOS]))
MARKED = Compiler(
    Vocabulary(
        [*TOKENS, None, None, None], eos_token_ids=[EOS], special_tokens={"<think>": THINK, "</think>": ENDTHINK}
    )
)
YES = Choice(["yes", "no"])
WEATHER = {
    "name": "get",
    "parameters": {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "additionalProperties": False,
    },
}


def allowed(constraint: Constraint, state: Any, budget: int | None = None) -> set[int]:
    return set(as_token_ids(constraint.mask(state, budget)))


def test_reasoning_then_the_constraint() -> None:
    constraint = PLAIN.compile(Reasoning(YES))
    for good in ("<think></think>yes", "<think>a < b </think\n> </</think>\n\nno", "<think>é</think> yes"):
        assert constraint.accepts(good), good
    for bad in (
        "yes",
        "<think>yes",
        "<think></think>maybe",
        "<think></think>yes</think>",
        "x<think></think>yes",
        "<think></think>\n\n\n\n\nyes",
    ):
        assert not constraint.accepts(bad), bad
    assert PLAIN.compile(Reasoning(YES, start="")).accepts("hm</think>yes")
    optional = PLAIN.compile(Reasoning(YES, optional=True))
    assert optional.accepts("yes") and optional.accepts("<think>hm</think>yes")


def test_events() -> None:
    parser = OutputParser(PLAIN.compile(Reasoning(Tools([WEATHER]))))
    events = parser.feed("<think>hm <") + parser.feed("/think>\n\nSo <") + parser.feed("b>") + parser.finish()
    assert events == [ReasoningStart(), ReasoningDelta("hm "), ReasoningEnd(), TextDelta("\n\nSo "), TextDelta("<b>")]
    reply = '<think></think><tool_call>\n{"name": "get", "arguments": {"x": 1}}\n</tool_call>'
    parsed = parse_output(PLAIN.compile(Reasoning(Tools([WEATHER]), max_tokens=30)), reply)
    assert (parsed.reasoning, parsed.text, [(call.name, call.arguments) for call in parsed.calls]) == (
        "",
        "",
        [("get", '{"x": 1}')],
    )
    parsed = parse_output(
        MARKED.compile(Reasoning(JsonSchema({"const": 1}), max_tokens=9)), [THINK, *b"hm", ENDTHINK, *b"1"]
    )
    assert (parsed.reasoning, parsed.text, parsed.is_complete) == ("hm", "1", True)


# -- budgets --------------------------------------------------------------------------------------------------------------


def reasoning_of(tokens: list[int], compiler: Compiler) -> bytes:
    return b"".join(compiler.vocabulary.spellings[token] or b"" for token in tokens)


def end_mark(compiler: Compiler) -> bytes:
    return (compiler.vocabulary.spellings[ENDTHINK] if compiler is MARKED else None) or b"</think>"


def tokens_to_end(text: bytes, compiler: Compiler, limit: int) -> int:
    """The twin: the least number of tokens after which the end mark is there, breadth first over what matters."""
    mark = end_mark(compiler)
    useful = [t for t in set(compiler.vocabulary.spellings) if t and (set(t) & set(mark))]
    if mark in text:
        return 0
    seen, queue = {text[-8:]}, deque([(text, 0)])
    while queue:
        at, distance = queue.popleft()
        if distance == limit:
            return limit
        for token in useful:
            after = at + token
            if mark in after:
                return distance + 1
            if after[-8:] not in seen and any(after.endswith(mark[:i]) for i in range(1, len(mark))):
                seen.add(after[-8:])
                queue.append((after, distance + 1))
    return limit


@pytest.mark.parametrize("compiler", [PLAIN, MARKED], ids=["text", "special tokens"])
@given(st.integers(6, 12), st.integers(0, 50))
@settings(max_examples=20)
def test_reasoning_always_ends_within_its_budget(compiler: Compiler, budget: int, seed: int) -> None:
    constraint = compiler.compile(Reasoning(YES, max_tokens=budget))
    plain = compiler.compile(Reasoning(YES))
    rng, state, free, path = random.Random(seed), constraint.start(), plain.start(), list[int]()
    while end_mark(compiler) not in reasoning_of(path, compiler):
        legal = allowed(constraint, state)
        assert legal and legal <= allowed(plain, free)
        possible = sorted(allowed(plain, free) - {EOS})
        for token in rng.sample(possible, min(len(possible), 12)):
            after = constraint.advance(state, token)
            assert (after is not None) == (token in legal)
            left = tokens_to_end(reasoning_of([*path, token], compiler), compiler, budget)
            assert token not in legal or len(path) + 1 + left <= budget  # what is allowed can still end in time
        choices = [token for token in legal if rng.random() < 0.3] or sorted(legal)
        path.append(rng.choice(sorted(choices)))
        state, free = constraint.advance(state, path[-1]), plain.advance(free, path[-1])
        assert state is not None and free is not None
        assert len(path) <= budget
    assert allowed(constraint, state) == allowed(plain, free)


def test_when_the_budget_is_used_up_only_the_way_to_the_end_remains() -> None:
    constraint = MARKED.compile(Reasoning(YES, max_tokens=4))
    state = constraint.advance_batch([constraint.start()] * 2, [THINK, 97])
    assert state[1] is None
    inside = state[0]
    assert allowed(constraint, inside) >= {97, ENDTHINK, TOKENS.index(b"hm")}
    inside = constraint.advance(constraint.advance(inside, 97), 97)
    assert allowed(constraint, inside) == {ENDTHINK}
    assert constraint.advance(inside, 97) is None and not constraint.explain(inside, 97).allowed
    assert constraint.explain(inside, ENDTHINK).allowed
    state_after = constraint.advance(inside, ENDTHINK)
    assert constraint.forced(state_after) == b"" and allowed(constraint, state_after) >= {ord("y"), ord("n"), ord(" ")}


@given(st.integers(4, 9), st.integers(0, 30))
@settings(max_examples=15)
def test_the_contract_of_a_constraint_holds(budget: int, seed: int) -> None:
    constraint = MARKED.compile(Reasoning(YES, max_tokens=budget))
    rng, state, states = random.Random(seed), constraint.start(), []
    for _ in range(budget + 3):
        states.append(state)
        distance = constraint.min_tokens(state)
        after = {token: constraint.advance(state, token) for token in allowed(constraint, state) if token != EOS}
        assert (distance == 0) == constraint.is_accepting(state)
        costs = {token: constraint.min_tokens(s) for token, s in after.items()}
        assert distance == 0 or min(costs.values()) <= distance - 1
        for total in (distance, distance + 1):
            expected = {token for token, cost in costs.items() if cost <= total - 1} | (
                {EOS} if distance == 0 else set()
            )
            assert allowed(constraint, state, total) == expected
        if not after:
            break
        state = after[rng.choice(sorted(after))]
    out = np.zeros((len(states), constraint.mask(states[0]).size), np.uint32)
    constraint.fill_masks(states, out)
    numbers, rows = constraint.mask_rows(states)
    for k, each in enumerate(states):
        assert np.array_equal(out[k], constraint.mask(each)) and np.array_equal(
            rows.get(int(numbers[k])), constraint.mask(each)
        )
    assert len(set(states)) <= len(states)  # states can be hashed


REFUSED: list[tuple[Any, str]] = [
    (lambda: PLAIN.compile(Reasoning(YES, max_tokens=1)), "the marks of the reasoning alone take"),
    (lambda: Reasoning(YES, max_tokens=0), "not a number of tokens"),
    (lambda: Reasoning(YES, end=""), "has an end"),
    (lambda: Reasoning(YES, start="", optional=True), "not optional"),
    (lambda: Reasoning("yes"), "before a source"),  # type: ignore[arg-type]
    (lambda: PLAIN.compile(Reasoning(Reasoning(YES))), "inside a structural tag"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        make()


def test_it_stands_around_the_whole() -> None:
    with pytest.raises(UnsupportedKeyword, match="around the whole"):
        PLAIN.compile(StructuralTag(Reasoning(Regex("a"), max_tokens=9)))
    assert PLAIN.compile(Reasoning(StructuralTag(Text(["a"])))).accepts("<think>a</think>b")


PIECES = ["<", "<tool", "<tool_call>", "\n", " ", "a", "</", "<think>", "</think>"]


@given(st.lists(st.sampled_from(PIECES), max_size=6))
@settings(max_examples=150, deadline=None)
def test_nothing_behind_the_reasoning_is_lost(pieces: list[str]) -> None:
    """Where text ends with what might have become a call, it is text."""
    answer, reply = "".join(pieces), "<think>hm</think>" + "".join(pieces)
    constraint = PLAIN.compile(Reasoning(Tools([WEATHER], style="hermes")))
    if not constraint.accepts(reply):
        return
    assert parse_output(constraint, reply).text == answer
