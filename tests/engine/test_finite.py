"""All mask rows of a regular constraint at once, from its byte automaton, against the constraint's own masks."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.device.uploads import Uploads
from maskwright.engine.device_constraints.automata import DeviceAutomata
from maskwright.engine.device_constraints.finite_automata import FiniteRows, byte_automaton
from maskwright.engine.device_constraints.mask_pool import MaskPool
from maskwright.engine.device_constraints.state_tables import Capacity
from maskwright.kernels.automaton.backend import choose_operations
from maskwright.kernels.automaton.vocabulary import TokenBytes, mask_rows

from .test_automata import DEVICE, decode

NEEDS_TRITON = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
WORDS = [b"ab", b"abc", b"12", b"-0", "é".encode(), b"@a", b".com", b"\xc3", b"yes or", b"no"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    tokens = [None, b"</s>", *(bytes([byte]) for byte in range(256)), *WORDS, None, b"ab"]
    return Vocabulary(tokens, eos_token_ids=[1])


@pytest.mark.parametrize("pattern", [r"[a-z]+@[a-z]+\.com", r"\d{4}-\d\d-\d\d", r"(yes|no|é*)", r".{0,9}", r"(ab*c?)*"])
def test_rows_of_all_states_are_the_masks(pattern, vocabulary):
    constraint = Compiler(vocabulary).compile(Regex(pattern))
    automaton, states = byte_automaton(constraint)
    token_bytes = TokenBytes.of(vocabulary.text_tokens, vocabulary.eos_token_ids)
    numbers = torch.arange(1, len(states), dtype=torch.int32)
    out = torch.full((len(numbers), -(-vocabulary.size // 32)), -1, dtype=torch.int32)
    mask_rows(numbers, automaton, token_bytes, out)
    expected = np.stack([constraint.mask(state) for state in states[1:]])
    assert np.array_equal(out.numpy().view(np.uint32), expected)


@pytest.mark.parametrize("backend", ["reference", pytest.param("triton", marks=NEEDS_TRITON)])
def test_rows_that_the_device_fills_draw_the_same_tokens(backend, vocabulary):
    """One switch apart, with little room too: then some constraints are left to the host."""
    compiler = Compiler(vocabulary)
    sources = [Regex(r"[a-z]{1,9}@[a-z]+\.(com|org)"), Regex(r"\d{4}-\d\d-\d\d"), Gbnf('root ::= "(" root ")" | "x"')]
    jobs = [(constraint, 25) for constraint in map(compiler.compile, sources)]
    room = Capacity(states=1 << 10, rows=256, partitions=16, ladder=1 << 10, exceptions=1 << 13)
    found = []
    for capacity in (room, room._replace(finite=64), room._replace(finite=64, rows=40)):
        automata = DeviceAutomata(len(jobs), vocabulary.size, DEVICE, capacity=capacity, outputs=64, backend=backend)
        found.append(decode(automata, jobs, vocabulary.size, 1.0))
    assert found[0] == found[1] == found[2]


def test_rows_are_all_there_when_one_is_asked_for(vocabulary):
    uploads, operations = Uploads(DEVICE), choose_operations(DEVICE)
    pool = MaskPool(rows=64, reserved=2, words=-(-vocabulary.size // 32), uploads=uploads)
    rows = FiniteRows(32, operations, pool, uploads)
    constraint = Compiler(vocabulary).compile(Regex(r"[0-9]{2}-[ab]*"))
    _, states = byte_automaton(constraint)
    numbers = [rows.row(constraint, state) for state in states[1:]]
    assert len(set(numbers)) == len(states) - 1 == len(pool)
    uploads.send()
    uploads.join()
    expected = np.stack([constraint.mask(state) for state in states[1:]])
    assert np.array_equal(pool.rows[numbers].cpu().numpy().view(np.uint32), expected)
    rows.forget()
    assert len(pool) == 0 and pool.take(62) and not pool.take(1)
    assert FiniteRows(3, operations, pool, uploads).row(constraint, states[1]) is None  # too many states
    assert FiniteRows(0, operations, pool, uploads).row(constraint, states[1]) is None  # switched off


def test_what_is_not_finite_or_remembers_is_left_to_the_host(vocabulary):
    compiler = Compiler(vocabulary)
    recursive = compiler.compile(Gbnf('root ::= "(" root ")" | "x"'))
    unique = compiler.compile(JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}))
    assert byte_automaton(recursive, max_states=64) is None
    assert byte_automaton(unique) is None
    few = Vocabulary([None, b"</s>", b"a", b"b"], eos_token_ids=[1])
    assert byte_automaton(Compiler(few).compile(Regex("a*b"))) is None
