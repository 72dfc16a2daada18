"""A model with random weights that knows nothing, so whatever is right comes from the constraint."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from maskwright.constraints import Compiler, Vocabulary

MERGED = [b"ab", b"abc", b'{"', b'":', b'"}', b'", "', b": ", b"er", b"in", b"the", "é".encode(), b"\xf0\x9f", b"[1", b"]}"]
EOS, HEAD_PADDING = 256 + len(MERGED), 5


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    tokens = [*(bytes([byte]) for byte in range(256)), *MERGED, b"<|end|>", b"<|pad|>"]
    return Vocabulary(tokens, eos_token_ids=[EOS], special_tokens={"<|pad|>": EOS + 1})


@pytest.fixture(scope="session")
def compiler(vocabulary: Vocabulary) -> Compiler:
    return Compiler(vocabulary)


def random_model(vocabulary: Vocabulary, seed: int, width: int = 32) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    eos = vocabulary.eos_token_ids[0]
    config = LlamaConfig(
        vocab_size=vocabulary.size + HEAD_PADDING, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, eos_token_id=eos, pad_token_id=eos + 1, bos_token_id=None,
        initializer_range=0.3,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def model(vocabulary: Vocabulary) -> Any:
    return random_model(vocabulary, 0)


@pytest.fixture(scope="session")
def assistant(vocabulary: Vocabulary) -> Any:
    return random_model(vocabulary, 1, width=16)
