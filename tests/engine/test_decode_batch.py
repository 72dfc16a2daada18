"""A decode step from tensors at fixed addresses computes what a planned step computes, filled by the host or advanced alone."""

from __future__ import annotations

import pytest
import torch

from maskwright.engine.attention.decode_batch import NOBODY, DecodeBuffers

from .conftest import MODELS
from .models.test_decoder import BLOCK_SIZE, forward, load, random_tokens

CPU = torch.device("cpu")
LENGTHS = (3, 22, 17, 9)
IN_DOUBLE = {"phi3-long-rope"}  # in single precision sums in other orders differ by more than is allowed, on some processors


def tables_of(num_rows: int, width: int = 8) -> list[list[int]]:
    """Blocks in no order."""
    order = torch.randperm(num_rows * width, generator=torch.Generator().manual_seed(5)).tolist()
    return [order[row * width : (row + 1) * width] for row in range(num_rows)]


def prefilled(folder, dtype=torch.float32):
    """A decoder, and its cache with all but the last token of four sequences."""
    decoder, cache = load(folder, dtype)
    sequences = [random_tokens(length, seed) for seed, length in enumerate(LENGTHS)]
    tables = tables_of(len(sequences))
    for tokens, table in zip(sequences, tables, strict=True):
        forward(decoder, cache, [(tokens[:-1], 0, table)])
    return decoder, cache, sequences, tables


@pytest.mark.parametrize("name", MODELS)
def test_steps_from_buffers_equal_planned_steps(name, tiny_model):
    dtype = torch.float64 if name in IN_DOUBLE else torch.float32
    decoder, cache, sequences, tables = prefilled(tiny_model(name).folder, dtype)
    twin, twins_cache, _, _ = prefilled(tiny_model(name).folder, dtype)
    buffers = DecodeBuffers(6, 10, BLOCK_SIZE, CPU)
    batch = buffers.batch(6)
    buffers.fill([tokens[-1] for tokens in sequences], [len(tokens) - 1 for tokens in sequences], tables)
    for step in range(5):
        logits = decoder.decode(batch, cache)[: len(sequences)]
        expected = forward(twin, twins_cache, [(s[-1:], len(s) - 1, t) for s, t in zip(sequences, tables, strict=True)])
        torch.testing.assert_close(logits, expected, atol=2e-5, rtol=2e-5)
        drawn = logits.argmax(dim=-1)
        for tokens, token in zip(sequences, drawn.tolist(), strict=True):
            tokens.append(token)
        if step % 2:
            buffers.fill(drawn.tolist(), [len(tokens) - 1 for tokens in sequences], tables)
        else:
            batch.advance(torch.cat((drawn, torch.tensor([7, 7]))))


def test_rows_come_and_go_and_tables_follow():
    buffers = DecodeBuffers(4, 3, 4, CPU)
    small, large = buffers.batch(2), buffers.batch(4)
    buffers.fill([5, 6, 7], [0, 5, 11], [[9], [3, 1], [2, 8, 0]])
    assert large.slots.tolist() == [36, 5, 3, NOBODY]
    assert large.context_lengths.tolist() == [1, 6, 12, 0]
    assert large.block_tables.tolist() == [[9, -1, -1], [3, 1, -1], [2, 8, 0], [-1, -1, -1]]
    buffers.fill(None, [4, 3], [[3, 1], [4]])
    assert small.token_ids.tolist() == [5, 6], "what the device wrote stays"
    assert large.block_tables.tolist() == [[3, 1, -1], [4, -1, -1], [2, 8, 0], [-1, -1, -1]]
    assert large.positions.tolist() == [4, 3, NOBODY, NOBODY]
    buffers.fill([1], [8], [[3, 1, 6]])
    assert large.block_tables[0].tolist() == [3, 1, 6]
    assert small.token_ids.data_ptr() == large.token_ids.data_ptr()


def test_rows_that_end_or_have_no_block_left_write_nothing():
    buffers = DecodeBuffers(4, 2, 4, CPU)
    batch = buffers.batch(4)
    buffers.fill([5, 6, 7], [3, 3, 6], [[0], [1, 2], [3, 4]])
    batch.advance(torch.tensor([8, -1, 9, 9]))
    assert batch.token_ids.tolist() == [8, NOBODY, 9, NOBODY]
    assert batch.positions.tolist() == [4, NOBODY, 7, NOBODY]
    assert batch.context_lengths.tolist() == [5, 0, 8, 0]
    assert batch.slots.tolist() == [NOBODY, NOBODY, 19, NOBODY], "row 0 has one block, row 1 is over"
    batch.advance(torch.tensor([1, 1, 1, 1]))
    assert batch.slots.tolist() == [NOBODY] * 4
