"""Sequences with a few new tokens each are attended together as they are apart, whatever an architecture's queries see."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maskwright.engine.attention import paged
from maskwright.engine.attention.methods import METHODS
from maskwright.engine.kv_cache import tensors
from maskwright.engine.models.decoder import ForwardBatch
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec

from ..conftest import VOCAB_SIZE

WIDTHS = (1, 1, 2, 2, 5, 5, 16, 17)  # new tokens; the last one is too many


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["llama-wide-heads", "mistral-sliding", "gemma2", "deepseek-v3", "llama4"])
def test_together_as_apart(name, method, tiny_model, monkeypatch):
    folder = tiny_model(name).folder
    model = load_model(folder, read_spec(folder), torch.float32, torch.device("cpu"), 128)
    rng = np.random.default_rng(0)
    past = [int(length) for length in rng.integers(0, 40, len(WIDTHS))]
    tables = rng.permutation(len(WIDTHS) * 16).reshape(len(WIDTHS), 16).tolist()
    texts = [rng.integers(3, VOCAB_SIZE, before + new) for before, new in zip(past, WIDTHS, strict=True)]
    logits = {}
    for gathered, limit in ((1 << 20, 0), (1 << 20, paged.MAX_SHORT), (1 << 13, paged.MAX_SHORT)):
        monkeypatch.setattr(paged, "MAX_SHORT", limit)
        monkeypatch.setattr(tensors, "CPU_GATHER_BYTES", gathered)
        cache = model.allocate_cache(len(WIDTHS) * 16, 4)
        for text, before, table in zip(texts, past, tables, strict=True):
            if before:
                forward(model, cache, [(0, before, table)], text[:before], method)
        spans = list(zip(past, WIDTHS, tables, strict=True))
        new = np.concatenate([text[before:] for text, before in zip(texts, past, strict=True)])
        logits[limit, gathered] = forward(model, cache, spans, new, method)
    apart, *together = logits.values()
    assert len(together) == 2
    for each in together:
        torch.testing.assert_close(each, apart, atol=1e-4, rtol=1e-4)


def forward(model, cache, spans, token_ids, method):
    positions = np.concatenate([np.arange(before, before + new) for before, new, _ in spans])
    plan = model.plan(spans, cache, METHODS[method])
    rows = torch.arange(len(token_ids))
    return model.forward(ForwardBatch(torch.from_numpy(token_ids.astype(np.int64)), torch.from_numpy(positions), rows, plan), cache)
