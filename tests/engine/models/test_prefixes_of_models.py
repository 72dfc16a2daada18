"""Prefix hits, forks and preemption change no token, whatever the architecture keeps of a text."""

from __future__ import annotations

import pytest
import torch

from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from ..conftest import MODELS, VOCAB_SIZE, run_all


@pytest.mark.parametrize("name", MODELS)
def test_prefix_hits_and_preemption_change_nothing(name, tiny_model, make_engine):
    model = tiny_model(name)
    generator = torch.Generator().manual_seed(1)
    shared = torch.randint(3, VOCAB_SIZE, (23,), generator=generator).tolist()
    ends = [torch.randint(3, VOCAB_SIZE, (n,), generator=generator).tolist() for n in (1, 9, 4, 1, 14)]
    expected = [model.greedy(shared + end, 12) for end in ends]
    sampling = SamplingParams(temperature=0, max_tokens=12)
    requests = [Request(prompt_token_ids=tuple(shared + end), sampling=sampling) for end in ends]
    engine = make_engine(model.folder, num_blocks=14, max_model_len=56)
    outputs = run_all(engine, {0: requests[:1], 2: requests[1:]})
    assert engine.statistics.num_cached_tokens >= 40
    assert engine.statistics.num_preemptions > 0
    assert [list(outputs[i].token_ids) for i in range(5)] == expected
    alone = run_all(make_engine(model.folder, max_model_len=64), {0: requests[4:]})
    assert list(alone[0].token_ids) == expected[4]
