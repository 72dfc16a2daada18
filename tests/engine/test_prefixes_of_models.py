"""Prefix hits, forks and preemption change no token, whatever the architecture keeps of a text."""

from __future__ import annotations

import pytest
import torch

from maskwright.engine.request import Request
from maskwright.sampling import SamplingParams

from .conftest import MODELS, VOCAB_SIZE, run_all


@pytest.mark.parametrize("name", MODELS)
def test_prefix_hits_change_nothing(name, tiny_model, make_engine):
    model = tiny_model(name)
    generator = torch.Generator().manual_seed(1)
    shared = torch.randint(3, VOCAB_SIZE, (23,), generator=generator).tolist()
    ends = [torch.randint(3, VOCAB_SIZE, (n,), generator=generator).tolist() for n in (1, 9, 4, 1, 14)]
    prompts = [shared + end for end in ends]
    sampling = SamplingParams(temperature=0, max_tokens=12)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts]
    engine = make_engine(model.folder, num_blocks=24, max_model_len=64)
    outputs = run_all(engine, {0: requests[:1], 3: requests[1:3], 9: requests[3:]})
    assert engine.statistics.num_cached_tokens >= 4 * 20 - 40
    assert [list(outputs[i].token_ids) for i in range(5)] == [model.greedy(prompt, 12) for prompt in prompts]
