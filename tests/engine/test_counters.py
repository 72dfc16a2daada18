"""Counters as registers: sequences that are in one state whatever was counted take the tokens that the host takes, and ask seldom."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.grammar.source import Source
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.device_constraints.automata import DeviceAutomata
from maskwright.engine.device_constraints.state_tables import Capacity
from maskwright.engine.requests.request import Request
from maskwright.kernels.automaton.interface import Flag
from maskwright.sampling import SamplingParams

from .conftest import run_all, tiny_vocabulary
from .host_automata import HostAutomata
from .test_automata import DEVICE, StandIn, decode, one_step, sampler_rows
from .test_pipeline import LOOPS, summary

SMALL = Capacity(states=1 << 10, rows=256, partitions=16, ladder=1 << 10, exceptions=1 << 12)
ASKS = Flag.NO_TRANSITION | Flag.NO_ROW | Flag.COUNTED


def text(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": low, "maxLength": high, **more}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SOURCES: list[Source] = [
    Regex(r"[a-z]{2,20000}"),
    Regex(r"[ab]{30,60}x"),
    Regex(r"([ab]|ab){0,40}(,[a-z]{0,30}){0,25}"),
    Regex(r"([a-z]{1,30}[0-9]{25,40},){10,30}"),
    JsonSchema(text(0, 1_000_000)),
    JsonSchema(text(25, 45, pattern="^[a-z]+$")),
    JsonSchema(closed(a=text(0, 40), b=text(18, 50), c={"type": "array", "items": text(0, 30), "maxItems": 20})),
    JsonSchema({"type": "array", "items": closed(a=text(0, 25)), "minItems": 3, "maxItems": 60}),
    JsonSchema({"type": "object", "additionalProperties": text(0, 50)}),
    Gbnf('root ::= "(" root ")" [ab]{0,40} | [a-z]{20,50}'),
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """Letters come in many tokens, so that texts are long."""
    words = [bytes([a, b]) for a in b"abcdefgh" for b in b"ijklmnop"] + [b"abcab", b"ab,c", b'"}', b'","', b"},{", b"12", "é".encode()]
    tokens = [None, None, b"</s>", *(bytes([byte]) for byte in range(256)), *words, *(bytes([letter]) for letter in b"abxyz" * 8)]
    return Vocabulary(tokens, eos_token_ids=[2])


@pytest.fixture(scope="module")
def compiler(vocabulary) -> Compiler:
    return Compiler(vocabulary)


def device(num_slots: int, vocab_size: int, capacity: Capacity = SMALL, **options: Any) -> DeviceAutomata:
    return DeviceAutomata(num_slots, vocab_size, DEVICE, capacity=capacity, outputs=128, **options)


def jobs_of(compiler: Compiler, sources: list[Source], more: list[int]) -> list[tuple[Any, int]]:
    constraints = map(compiler.compile, sources)
    return [(each, each.min_tokens(each.start()) + extra) for each, extra in zip(constraints, more, strict=True)]


@given(st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(0, 60)), min_size=2, max_size=4), st.sampled_from([0.0, 1.0, 3.0]))
@settings(max_examples=8)
def test_they_take_the_tokens_that_the_host_takes(compiler, vocabulary, asked, temperature) -> None:
    size, jobs = vocabulary.size, jobs_of(compiler, *map(list, zip(*asked, strict=True)))
    expected = decode(HostAutomata(len(jobs), size, DEVICE, outputs=128), jobs, size, temperature)
    assert decode(device(len(jobs), size), jobs, size, temperature) == expected


def test_little_room_only_costs_time(compiler, vocabulary):
    size, jobs = vocabulary.size, jobs_of(compiler, SOURCES[:7:2], [40] * 4)
    expected = decode(HostAutomata(len(jobs), size, DEVICE, outputs=128), jobs, size, 2.0)
    for capacity in (SMALL._replace(states=300), SMALL._replace(partitions=2, ladder=40)):
        assert decode(device(len(jobs), size, capacity), jobs, size, 2.0) == expected


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_kernel_takes_the_same_tokens(compiler, vocabulary):
    """In the interpreter where there is no GPU."""
    pytest.importorskip("triton")
    size, jobs = vocabulary.size, jobs_of(compiler, [SOURCES[0], SOURCES[1], SOURCES[6]], [30, 30, 30])
    expected = decode(device(3, size, backend="reference"), jobs, size, 1.0)
    assert decode(device(3, size, backend="triton"), jobs, size, 1.0) == expected


@pytest.mark.parametrize(
    ("source", "most"),
    [
        (Regex(r"[a-z]{2,20000}"), 4),
        (Regex(r"[a-z]{10000,20000}"), 4),
        (JsonSchema(text(0, 1_000_000)), 2),
        (JsonSchema(text(5000, 1_000_000)), 2),
        (JsonSchema(text(0, 1_000_000, pattern="^[a-z]+$")), 6),
        (JsonSchema(closed(a=text(0, 200), b=text(0, 1000), c=text(100, 2000))), 30),
    ],
)
def test_counting_asks_the_host_nothing(compiler, vocabulary, source, most):
    """Of 200 random tokens; the states and rows that the device learns do not grow with what is counted."""
    constraint, size = compiler.compile(source), vocabulary.size
    automata, model, rows = device(1, size), StandIn(size, 1), sampler_rows(1, 1.0)
    stay = np.array([spelled is not None and spelled.isalpha() for spelled in vocabulary.spellings])
    model.table[:, ~torch.from_numpy(stay)] -= 6.0  # texts that end seldom
    automata.attach(0, constraint, left=100_000)
    num_asked = 0
    for _ in range(200):
        automata.join()
        one_step(automata, model, rows, size)
        num_asked += bool(int(automata.slots.flags[0]) & ASKS)
        if automata.resolve()[0]:
            break
    assert num_asked <= most


PATTERNS = [r"[a-z]{2,2000}", r"[ab]{10,30}x", r"([a-z]{0,9},){3,200}", r"(\(\w{8,40}\))*", r"[a-c ]{40}(x|yes)?"]


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if "automaton" in loop], ids=str)
@pytest.mark.parametrize("max_tokens", [55])
def test_engines_write_what_the_plain_loop_writes(loop, max_tokens, tiny_model, make_engine, caplog):
    """Steps and visits; counts near their ends and far away, and tokens that become few."""
    caplog.set_level(logging.INFO)
    folder, compiler = tiny_model("llama").folder, Compiler(tiny_vocabulary())
    params = [SamplingParams(seed=seed, temperature=seed % 3 / 2, max_tokens=max_tokens) for seed in (1, 2)]
    requests = [
        Request(prompt_token_ids=(3 + place, 9), sampling=each, constraint=compiler.compile(Regex(pattern)))
        for place, pattern in enumerate(PATTERNS)
        for each in params
    ]
    expected = run_all(make_engine(folder), {0: requests})
    found = run_all(make_engine(folder, **loop), {0: requests})
    assert [summary(output) for _, output in sorted(found.items())] == [summary(output) for _, output in sorted(expected.items())]
    assert "on the host" not in caplog.text
