"""Naive, streaming and fused attention are one operation; paged and contiguous caches hold the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engine.attention import methods
from maskwright.engine.attention.methods import METHODS, Scoring, Visible
from maskwright.engine.config import EngineConfig, resolve
from maskwright.engine.device.profiling import TABLE, TRACE, profiled
from maskwright.engine.errors import ConfigError
from maskwright.engine.models.spec import read_spec
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import VOCAB_SIZE, run_all


@settings(max_examples=60, deadline=None)
@given(
    queries=st.integers(1, 9),
    more_keys=st.integers(0, 30),
    block=st.integers(1, 40),
    query_block=st.integers(1, 9),
    kind=st.sampled_from(["causal", "window", "all"]),
    softcap=st.sampled_from([None, 2.0]),
    has_sinks=st.booleans(),
    seed=st.integers(0, 99),
)
def test_all_methods_agree(queries, more_keys, block, query_block, kind, softcap, has_sinks, seed):
    generator = torch.Generator().manual_seed(seed)
    keys = queries if kind == "causal" else queries + more_keys
    query = torch.randn(2, 3, queries, 8, generator=generator)
    key, value = torch.randn(2, 3, keys, 8, generator=generator), torch.randn(2, 3, keys, 5, generator=generator)
    place = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]
    bias = torch.where((place <= 0) & (place > -4), 0.0, float("-inf")) if kind == "window" else None
    sinks = torch.randn(1, 3, 1, 1, generator=generator) if has_sinks else None
    visible, scoring = Visible(bias, is_causal=kind == "causal"), Scoring(0.7, softcap)
    expected = METHODS["naive"](query, key, value, visible, sinks, scoring)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "KEY_BLOCK", block)
        patch.setattr(methods, "QUERY_BLOCK", query_block)
        for name in ("streaming", "fused"):
            torch.testing.assert_close(METHODS[name](query, key, value, visible, sinks, scoring), expected)


def test_a_sink_is_one_more_key_without_a_value():
    query, key, value = torch.randn(1, 2, 4), torch.randn(1, 5, 4), torch.randn(1, 5, 4)
    sink = torch.tensor(0.3).view(1, 1, 1)
    extra = torch.cat((key, torch.zeros(1, 1, 4)), 1), torch.cat((value, torch.zeros(1, 1, 4)), 1)
    bias = torch.tensor([0.0] * 5 + [0.3]).expand(2, 6)
    expected = METHODS["fused"](query, *extra, Visible(bias), None, Scoring(1.0))
    for method in METHODS.values():
        torch.testing.assert_close(method(query, key, value, Visible(), sink, Scoring(1.0)), expected)


@pytest.mark.parametrize("attention", METHODS)
@pytest.mark.parametrize("kv_layout", ["paged", "contiguous"])
@pytest.mark.parametrize("name", ["mistral-sliding", "gemma2", "deepseek-v3"])
def test_every_layout_and_method_gives_the_same_tokens(kv_layout, attention, name, tiny_model, make_engine):
    model = tiny_model(name)
    config = EngineConfig(model=model.folder, kv_layout=kv_layout, attention=attention, block_size=4, max_sequences=3)
    resolved = resolve(config, read_spec(model.folder))
    assert resolved.block_size == (128 if kv_layout == "contiguous" else 4)
    blocks = {"block_size": resolved.block_size, "num_blocks": 3 * 128 // resolved.block_size, "max_sequences": 3}
    engine = make_engine(model.folder, **blocks)
    engine.runner.attend = METHODS[resolved.attention]
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(3, VOCAB_SIZE, (length,), generator=generator).tolist() for length in (5, 33, 12, 20)]
    sampling = SamplingParams(temperature=0, max_tokens=12)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts]
    outputs = run_all(engine, {0: requests[:2], 3: requests[2:]})
    assert [list(outputs[i].token_ids) for i in range(4)] == [model.greedy(prompt, 12) for prompt in prompts]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "flash"}, 'attention must be one of fused, streaming, naive, got "flash"'),
        ({"kv_layout": "ring"}, 'kv_layout must be one of paged, contiguous, got "ring"'),
    ],
)
def test_unknown_names_are_refused(options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        EngineConfig(model=tmp_path, **options)


def test_profiling_writes_a_trace_and_a_table(tmp_path):
    with profiled(None):
        torch.ones(2).sum()
    with profiled(tmp_path / "made"):
        torch.ones(2).sum()
    assert "aten::sum" in (tmp_path / "made" / TABLE).read_text()
    assert "traceEvents" in (tmp_path / "made" / TRACE).read_text()
