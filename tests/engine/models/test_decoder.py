"""The native decoder against transformers: logits of every family, however the prompt is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from maskwright.engine.config import EngineConfig, resolve
from maskwright.engine.kv_cache.tensors import KVCache
from maskwright.engine.models.decoder import Decoder, ForwardBatch, load_decoder
from maskwright.engine.models.spec import read_spec

from ..conftest import LONG_ROPE, MODELS, VOCAB_SIZE, save_tiny_model

BLOCK_SIZE = 4


def load(folder, dtype: torch.dtype = torch.float32) -> tuple[Decoder, KVCache]:
    spec = read_spec(folder)
    decoder = load_decoder(folder, spec, dtype, torch.device("cpu"))
    return decoder, decoder.allocate_cache(64, BLOCK_SIZE)


def forward(decoder: Decoder, cache: KVCache, chunks: list[tuple[list[int], int, list[int]]]) -> torch.Tensor:
    """Logits of every token of the chunks (token_ids, num_past, block_table)."""
    token_ids = [token for tokens, _, _ in chunks for token in tokens]
    positions = [past + i for tokens, past, _ in chunks for i in range(len(tokens))]
    spans = [(past, len(tokens), table) for tokens, past, table in chunks]
    attention = decoder.plan(spans, cache)
    batch = ForwardBatch(torch.tensor(token_ids), torch.tensor(positions), torch.arange(len(token_ids)), attention)
    return decoder.forward(batch, cache)


def random_tokens(length: int, seed: int = 0) -> list[int]:
    return torch.randint(3, VOCAB_SIZE, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def expected_logits(model, tokens: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return model.reference(torch.tensor([tokens])).logits[0]


@pytest.mark.parametrize("name", MODELS)
def test_logits_equal_transformers_in_one_chunk_and_in_many(name, tiny_model):
    model = tiny_model(name)
    tokens = random_tokens(41)
    expected = expected_logits(model, tokens)
    table = [9, 3, 4, 60, 5, 12, 11, 7, 30, 31, 2]
    for cuts in [(0, 41), (0, 1, 2, 17, 18, 40, 41)]:
        decoder, cache = load(model.folder)
        chunks = [(tokens[start:stop], start, table) for start, stop in pairwise(cuts)]
        logits = torch.cat([forward(decoder, cache, [chunk]) for chunk in chunks])
        torch.testing.assert_close(logits, expected, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("name", ["llama", "mistral-sliding", "qwen2-half-sliding", "qwen3"])
def test_ragged_batch_of_decodes_and_chunks_keeps_sequences_apart(name, tiny_model):
    model = tiny_model(name)
    decoder, cache = load(model.folder)
    lengths = [3, 22, 17, 9]
    sequences = [random_tokens(length, seed) for seed, length in enumerate(lengths)]
    tables = [[row * 8 + place for place in range(8)] for row in range(4)]
    num_past = [2, 21, 6, 0]  # two decodes, then a chunk with a past and one without
    forward(decoder, cache, [(s[:p], 0, t) for s, p, t in zip(sequences, num_past, tables, strict=True) if p])
    logits = forward(decoder, cache, [(s[p:], p, t) for s, p, t in zip(sequences, num_past, tables, strict=True)])
    expected = [expected_logits(model, s)[p:] for s, p in zip(sequences, num_past, strict=True)]
    torch.testing.assert_close(logits, torch.cat(expected), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("gather_bytes", [1, 900])  # every row alone; two or three rows together
def test_decodes_in_groups_equal_decodes_at_once(gather_bytes, tiny_model, monkeypatch):
    decoder, cache = load(tiny_model("mistral-sliding").folder)
    sequences = [random_tokens(length, seed) for seed, length in enumerate([3, 9, 9, 14, 2])]
    tables = [[row * 4 + place for place in range(4)] for row in range(5)]
    forward(
        decoder,
        cache,
        [(s[:-1], 0, t) for s, t in sorted(zip(sequences, tables, strict=True), key=lambda p: len(p[0]))],
    )
    decodes = [(s[-1:], len(s) - 1, t) for s, t in zip(sequences, tables, strict=True)]
    at_once = forward(decoder, cache, decodes)
    monkeypatch.setattr("maskwright.engine.kv_cache.tensors.CPU_GATHER_BYTES", gather_bytes)
    torch.testing.assert_close(forward(decoder, cache, decodes), at_once, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("longest", "length"), [(32, 32), (128, 41)])
def test_longrope_stretches_by_the_longest_sequence_of_the_engine(longest, length, tmp_path):
    rope = {**LONG_ROPE, "original_max_position_embeddings": 32}
    changes = {"pad_token_id": 0, "rope_parameters": rope, "original_max_position_embeddings": 32}
    model = save_tiny_model(tmp_path, "Phi3Config", changes)
    decoder = load_decoder(model.folder, read_spec(model.folder).for_length(longest), torch.float32, torch.device("cpu"))
    tokens = random_tokens(length)
    logits = forward(decoder, decoder.allocate_cache(16, BLOCK_SIZE), [(tokens, 0, list(range(11)))])
    torch.testing.assert_close(logits, expected_logits(model, tokens), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("length", [33, 60, 100])
def test_dynamic_scaling_turns_by_the_longest_sequence_of_the_engine(length, tmp_path):
    """Beyond the original 32 tokens: a sequence of just that length, which transformers computes at once with the same base."""
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 100.0}
    model = save_tiny_model(tmp_path, "LlamaConfig", {"rope_parameters": rope, "max_position_embeddings": 32})
    spec = read_spec(model.folder)
    resolved = resolve(EngineConfig(model=model.folder, device="cpu", max_model_len=length), spec)
    assert (resolved.max_model_len, resolve(EngineConfig(model=model.folder, device="cpu"), spec).max_model_len) == (length, 32)
    decoder = load_decoder(model.folder, spec.for_length(length), torch.float32, torch.device("cpu"))
    tokens, cache = random_tokens(length), decoder.allocate_cache(32, BLOCK_SIZE)
    chunks = [(tokens[:20], 0, list(range(26))), (tokens[20:], 20, list(range(26)))]
    logits = torch.cat([forward(decoder, cache, [chunk]) for chunk in chunks])
    torch.testing.assert_close(logits, expected_logits(model, tokens), atol=2e-4, rtol=2e-4)


def test_bfloat16_stays_close(tiny_model):
    model = tiny_model("llama")
    spec = read_spec(model.folder)
    decoder = load_decoder(model.folder, spec, torch.bfloat16, torch.device("cpu"))
    cache = decoder.allocate_cache(8, BLOCK_SIZE)
    tokens = random_tokens(12)
    logits = forward(decoder, cache, [(tokens, 0, [1, 2, 3])]).float()
    expected = expected_logits(model, tokens)
    assert torch.nn.functional.cosine_similarity(logits, expected).min() > 0.98
