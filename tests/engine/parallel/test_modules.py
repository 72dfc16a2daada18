"""Models of transformers, dealt out by its own plans: what all ranks compute together is what one device computes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwright.engine.errors import ConfigError, UnsupportedModel
from maskwright.engine.models.spec import spec_from_config
from maskwright.engine.models.transformers_families import HYBRID, VERIFIED
from maskwright.engine.models.transformers_model import TransformersSpec, transformers_spec
from maskwright.engine.parallel.modules import deal_out
from maskwright.engine.parallel.shares import check_sharing
from maskwright.engine.requests.request import Request
from maskwright.engine.sharding.peers import Peers
from maskwright.engine.sharding.ranks import Rank
from maskwright.sampling import SamplingParams

from ..conftest import VOCAB_SIZE, run_all
from ..models.test_transformers_hybrids import forward, hybrid, hybrid_reference
from ..models.test_transformers_models import (
    WINDOWED,
    greedy,
    logits_in_chunks,
    small_config,
    small_model,
    transformers_model,
)
from .ranks import on_all_ranks, shared_engine

pytestmark = pytest.mark.slow


def plan_of(model_type: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return getattr(CONFIG_MAPPING[model_type], "base_model_tp_plan", None)


PLANNED = sorted(name for name in VERIFIED if plan_of(name))
HYBRIDS = sorted(name for name in HYBRID if plan_of(name))


def sequences() -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(3, 150, (length,), generator=generator).tolist() for length in (19, 13)]


def dealt(model: Any, peers: Peers) -> Any:
    own = copy.deepcopy(model)
    deal_out(own, peers)
    return own


def num_bytes(model: Any) -> int:
    return sum(parameter.nbytes for parameter in model.parameters())


CASES = [(name, {}) for name in PLANNED] + list(WINDOWED.items())


@pytest.mark.parametrize(("model_type", "changes"), CASES, ids=[name + "-sliding" * bool(changes) for name, changes in CASES])
def test_two_ranks_compute_every_family_that_has_a_plan(model_type: str, changes: dict[str, Any]) -> None:
    model = small_model(small_config(model_type, **changes))
    with torch.inference_mode():
        expected = [model(torch.tensor([ids]), use_cache=False).logits[0] for ids in sequences()]
    found = on_all_ranks(2, lambda peers: logits_in_chunks(transformers_model(dealt(model, peers)), sequences()))
    for ours, logits in zip(found[0], expected, strict=True):
        torch.testing.assert_close(ours, logits, atol=2e-4, rtol=2e-4)
    assert num_bytes(dealt(model, Peers(Rank(0, 2)))) < 0.8 * num_bytes(model), "most of it is dealt out"


@pytest.mark.parametrize("model_type", HYBRIDS)
def test_two_ranks_compute_every_hybrid_that_has_a_plan(model_type: str) -> None:
    reference, tokens = hybrid_reference(model_type), sequences()[0]

    def logits(model: Any) -> torch.Tensor:
        cache = model.allocate_cache(1, 32)
        return torch.cat([forward(model, cache, [(tokens[first:stop], first, 0)]) for first, stop in ((0, 9), (9, 18), (18, 19))])

    with torch.inference_mode():
        expected = reference(torch.tensor([tokens]), use_cache=False).logits[0]
    found = on_all_ranks(2, lambda peers: logits(hybrid(model_type, dealt(reference, peers))))
    torch.testing.assert_close(found[0], expected, atol=2e-4, rtol=2e-4)


UNEVEN: dict[str, tuple[int, dict[str, Any]]] = {
    "flex_olmo": (3, {}),  # all heads on all ranks; inner features and tokens do not come out even
    "glm4": (4, {"num_key_value_heads": 4, "intermediate_size": 90, "vocab_size": 159}),
    "olmoe": (4, {"num_key_value_heads": 4, "tie_word_embeddings": True}),
}  # fmt: skip


@pytest.mark.parametrize("model_type", UNEVEN)
def test_ranks_need_not_hold_alike_much(model_type: str) -> None:
    size, changes = UNEVEN[model_type]
    model = small_model(small_config(model_type, **changes))
    with torch.inference_mode():
        expected = [model(torch.tensor([ids]), use_cache=False).logits[0] for ids in sequences()]
    found = on_all_ranks(size, lambda peers: logits_in_chunks(transformers_model(dealt(model, peers)), sequences()))
    for ours, logits in zip(found[0], expected, strict=True):
        torch.testing.assert_close(ours, logits, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("features", [{}, {"speculation": "lookup", "num_draft_tokens": 3}], ids=["plain", "lookup"])
@pytest.mark.parametrize("model_type", ["cohere2_moe", "olmoe"])
def test_an_engine_of_two_ranks_writes_the_same_tokens(model_type: str, features: dict[str, Any], tmp_path: Path) -> None:
    """With prefix hits and preemption."""
    model = small_model(small_config(model_type, vocab_size=VOCAB_SIZE))
    model.save_pretrained(tmp_path / "model")
    generator = torch.Generator().manual_seed(3)
    shared = torch.randint(3, 90, (23,), generator=generator).tolist()
    prompts = [shared + torch.randint(3, 90, (n,), generator=generator).tolist() for n in (1, 9, 4, 14)]
    expected = [greedy(model, prompt, 10) for prompt in prompts]
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=SamplingParams(temperature=0, max_tokens=10)) for prompt in prompts]
    engine = shared_engine(tmp_path / "model", 2, tmp_path / "meeting", num_blocks=14, max_model_len=56, **features)
    try:
        outputs = run_all(engine, {0: requests[:1], 2: requests[1:]})
    finally:
        engine.close()
    assert [list(outputs[i].token_ids) for i in range(4)] == expected
    assert engine.statistics.num_cached_tokens >= 40 and engine.statistics.num_preemptions > 0


def spec_of(model_type: str, **changes: Any) -> Any:
    return spec_from_config({**small_config(model_type, **changes).to_dict(), "architectures": None})


def test_what_cannot_be_dealt_out_is_named() -> None:
    with pytest.raises(UnsupportedModel, match=r"tensor_parallel=2: .*, which has no plan of how to deal it out \(base_model_tp_plan\)"):
        check_sharing(spec_of("stablelm"), 2)
    with pytest.raises(ConfigError, match="deals out num_key_value_heads=2 evenly: choose a number of ranks that divides it"):
        check_sharing(spec_of("cohere2_moe"), 4)
    strange = TransformersSpec(
        architecture="Strange", model_type="", vocab_size=9, dtype="float32", eos_token_ids=(2,), max_positions=9, sharding=(("head", "diagonal"),)
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match='Strange is computed by transformers, which deals it out as "diagonal", which is not known here'):
        check_sharing(strange, 2)


@pytest.mark.parametrize("model_type", PLANNED + HYBRIDS)
def test_all_plans_of_transformers_are_known(model_type: str) -> None:
    check_sharing(transformers_spec(None, {"model_type": model_type}), 1)
