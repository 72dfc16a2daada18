"""All mask rows of a regular constraint at once, from its byte automaton, against the constraint's own masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.gbnf import Gbnf
from maskwright.constraints.regex import Regex
from maskwright.constraints.vocabulary import Vocabulary
from maskwright.engine.finite import byte_automaton
from maskwright.kernels.automaton.vocabulary import TokenBytes, mask_rows

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


def test_what_is_not_finite_or_remembers_is_left_to_the_host(vocabulary):
    compiler = Compiler(vocabulary)
    recursive = compiler.compile(Gbnf('root ::= "(" root ")" | "x"'))
    unique = compiler.compile(JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}))
    assert byte_automaton(recursive, max_states=64) is None
    assert byte_automaton(unique) is None
    few = Vocabulary([None, b"</s>", b"a", b"b"], eos_token_ids=[1])
    assert byte_automaton(Compiler(few).compile(Regex("a*b"))) is None
