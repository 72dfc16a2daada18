"""The engine with compiled constraints: outputs match the pattern whatever the sampling and the budget."""

from __future__ import annotations

import re

import pytest

from maskwright.constraints import Compiler
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import EOS, run_all

PATTERNS = [
    r"[a-z]{3,9}@[a-z]+\.(com|org)",
    r"\d{4}-\d{2}-\d{2}",
    r'\{"name":"[a-z ]{0,30}","age":\d{1,3}\}',
    r"(yes|no|nobody knows)",
    r"(ab*)+",
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """99 tokens: lower-case letters, digits and marks, and a few words that overlap them."""
    single = [bytes([byte]) for byte in b'abcdefghijklmnopqrstuvwxyz0123456789 @.-{}":,']
    words = [
        b'{"',
        b'":',
        b'","',
        b'"}',
        b"name",
        b"age",
        b"no",
        b"body",
        b" knows",
        b"com",
        b"org",
        b".c",
        b"20",
        b"19",
    ]
    tokens = [None, None, b"</s>", *single, *words]
    return Vocabulary(tokens + [b"ab" * n for n in range(1, 100 - len(tokens))], eos_token_ids=[EOS])


@pytest.fixture(scope="module")
def compiler(vocabulary) -> Compiler:
    return Compiler(vocabulary)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_batch_of_patterns_under_ample_and_tight_budgets(temperature, compiler, tiny_model, make_engine):
    constraints = [compiler.compile(Regex(pattern)) for pattern in PATTERNS]
    requests, expected = [], []
    for pattern, constraint in zip(PATTERNS, constraints, strict=True):
        shortest = constraint.min_tokens(constraint.start())
        for max_tokens in (shortest, shortest + 2, 60):
            sampling = SamplingParams(temperature=temperature, max_tokens=max_tokens, seed=max_tokens)
            requests.append(Request(prompt_token_ids=(9, 8, 7), sampling=sampling, constraint=constraint))
            expected.append((pattern, max_tokens))
    engine = make_engine(tiny_model("qwen3").folder, vocabulary=compiler.vocabulary)
    outputs = run_all(engine, {0: requests[:8], 3: requests[8:]})
    for position, (pattern, max_tokens) in enumerate(expected):
        output = outputs[position]
        assert re.fullmatch(pattern, output.text), (pattern, output.text)
        assert output.finish_reason == "stop" and len(output.token_ids) <= max_tokens


def test_forced_text_costs_no_steps(compiler, tiny_model, make_engine):
    sentence = "zqx " * 8
    request = Request(prompt_token_ids=(5,), constraint=compiler.compile(Regex(f"(1|2){sentence}")))
    engine = make_engine(tiny_model("llama").folder, vocabulary=compiler.vocabulary)
    engine.add_request(request)
    (event,) = engine.step()
    assert event.output is not None and event.output.text[1:] == sentence
