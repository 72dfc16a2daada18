"""Every native family computed by the Triton kernels, in Triton's interpreter where there is no GPU, against plain PyTorch."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from maskwright.engine.attention.decode_batch import DecodeBuffers
from maskwright.engine.attention.kernel_plans import KernelPlan, covers
from maskwright.engine.attention.methods import METHODS
from maskwright.engine.attention.paged import Chunks
from maskwright.engine.models.decoder import Decoder, ForwardBatch, load_decoder
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.requests.request import Request
from maskwright.kernels.attention import FP8
from maskwright.sampling import SamplingParams

from ..conftest import DEEPSEEK_ROPE, FULL, LATENT, LONG_ROPE, SIZES, SLIDING, TinyModel, run_all, save_tiny_model
from .test_decoder import random_tokens

pytestmark = pytest.mark.slow

BLOCK_SIZE = 2
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# name -> (transformers' configuration class, what differs from SIZES and SMALL); the interpreter takes 10 ms for each program
# of a kernel, so: two layers, few heads, windows of a few tokens
SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.4}
FAMILIES = {
    "llama": ("LlamaConfig", {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "mistral": ("MistralConfig", {"sliding_window": 3}),
    "qwen2": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True}),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 3, "query_pre_attn_scalar": 24}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 3, "layer_types": [SLIDING, FULL]}),
    "phi3": ("Phi3Config", {"pad_token_id": 0, "num_attention_heads": 4, "rope_parameters": LONG_ROPE, "original_max_position_embeddings": 128}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 3}),
    "qwen3-moe": ("Qwen3MoeConfig", {"num_experts": 3, "moe_intermediate_size": 16, "num_experts_per_tok": 2, "mlp_only_layers": [0], "head_dim": 16}),
    "deepseek-v3": ("DeepseekV3Config", {**LATENT, "num_attention_heads": 2, "num_key_value_heads": 2, "rope_parameters": DEEPSEEK_ROPE}),
    "cohere": ("CohereConfig", {"use_qk_norm": True}),
    "olmo2": ("Olmo2Config", {}),
    "exaone4": ("Exaone4Config", {"sliding_window": 3, "sliding_window_pattern": 2}),
    "cohere2": ("Cohere2Config", {"sliding_window": 3, "layer_types": [SLIDING, FULL]}),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 3}),
    "llama4": ("Llama4TextConfig", {"intermediate_size_mlp": 40, "num_local_experts": 2, "num_experts_per_tok": 1, "no_rope_layers": [1, 0], "interleave_moe_layer_step": 2, "attention_chunk_size": 4, "floor_scale": 2, "head_dim": 8}),
}  # fmt: skip


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    built: dict[str, TinyModel] = {}

    def get(name: str) -> TinyModel:
        if name not in built:
            class_name, changes = FAMILIES[name]
            built[name] = save_tiny_model(tmp_path_factory.mktemp(name), class_name, {**SMALL, **changes})
        return built[name]

    return get


def load(folder, backend, dtype=torch.float32, kv_dtype=None):
    decoder = load_decoder(folder, read_spec(folder), dtype, DEVICE, backend, kv_dtype)
    return decoder, decoder.allocate_cache(64, BLOCK_SIZE)


class NothingAsked(TorchDispatchMode):
    """Raises for operations whose result the host would have to wait for, or that copy from it: no graph can hold them."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "bincount", "lift_fresh")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split("::")[1]
        assert not name.startswith(self.FORBIDDEN), f"a decode step calls {name}"
        return func(*args, **(kwargs or {}))


def forward(decoder: Decoder, cache, chunks) -> torch.Tensor:
    token_ids = [token for tokens, _, _ in chunks for token in tokens]
    positions = [past + i for tokens, past, _ in chunks for i in range(len(tokens))]
    plan = decoder.plan([(past, len(tokens), table) for tokens, past, table in chunks], cache)
    numbers = (torch.tensor(column, device=DEVICE) for column in (token_ids, positions, list(range(len(token_ids)))))
    return decoder.forward(ForwardBatch(*numbers, plan), cache)


def steps(decoder: Decoder, cache) -> list[torch.Tensor]:
    """Logits of prompts, of a ragged batch (a decode, then chunks with and without a past), and of a decode step from buffers."""
    sequences = [random_tokens(length, seed) for seed, length in enumerate((5, 6, 2))]
    tables = [[40, 3, 7], [5, 1, 8, 30], [2, 60]]
    past = [4, 2, 0]
    prompts = [(s[:p], 0, t) for s, p, t in zip(sequences, past, tables, strict=True) if p]
    found = [forward(decoder, cache, prompts)]
    found.append(forward(decoder, cache, [(s[p:], p, t) for s, p, t in zip(sequences, past, tables, strict=True)]))
    buffers = DecodeBuffers(3, 4, BLOCK_SIZE, DEVICE)
    buffers.fill([9, 10], [5, 6], tables[:2])
    batch = buffers.batch(3)
    with NothingAsked() if decoder.uses_triton else nullcontext():
        logits = decoder.decode(batch, cache)
        batch.advance(logits.argmax(dim=-1))
    return [*found, logits[:2]]


def test_what_waits_for_the_device_is_noticed():
    with pytest.raises(AssertionError, match="a decode step calls _local_scalar_dense"), NothingAsked():
        torch.ones(1).item()


@pytest.mark.skipif(DEVICE.type != "cuda", reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("name", FAMILIES)
def test_a_captured_decode_step_replayed_for_other_rows_gives_its_logits(name, small_model):
    decoder, cache = load(small_model(name).folder, "triton")
    tables = [[40, 3, 7], [5, 1, 8, 30], [2, 60]]
    forward(decoder, cache, [(random_tokens(len(table), seed), 0, table) for seed, table in enumerate(tables)])
    buffers = DecodeBuffers(4, 8, BLOCK_SIZE, DEVICE)
    batch, graph, side = buffers.batch(4), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        decoder.decode(batch, cache)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        logits = decoder.decode(batch, cache)
        batch.advance(logits.argmax(dim=-1))
    for rows in ([0, 1], [2, 0, 1]):
        step = ([9 + row for row in rows], [len(tables[row]) for row in rows], [tables[row] for row in rows])
        buffers.fill(*step)
        expected = decoder.decode(batch, cache)[: len(rows)].clone()
        graph.replay()
        torch.testing.assert_close(logits[: len(rows)], expected)
        assert batch.token_ids.tolist() == [*expected.argmax(dim=-1).tolist(), *[-1] * (4 - len(rows))]


@pytest.mark.parametrize("name", FAMILIES)
def test_kernels_compute_what_plain_pytorch_computes(name, small_model):
    folder = small_model(name).folder
    for ours, plain in zip(steps(*load(folder, "triton")), steps(*load(folder, "reference")), strict=True):
        torch.testing.assert_close(ours, plain, atol=3e-4, rtol=3e-4)


@pytest.mark.parametrize(
    ("dtype", "kv_dtype", "tolerance"),
    [(torch.float32, FP8, 0.03), (torch.bfloat16, None, 0.15), (torch.bfloat16, FP8, 0.15), (torch.float16, None, 0.02)],
)
def test_dtypes_of_model_and_cache(dtype, kv_dtype, tolerance, small_model):
    """With kernels and without they differ by rounding; fp8 rounds alike in both, but what it rounds differs in the last bits."""
    folder = small_model("qwen3").folder
    ours, plain = load(folder, "triton", dtype, kv_dtype), load(folder, "reference", dtype, kv_dtype)
    assert ours[1].keys[0].dtype == (kv_dtype or dtype)
    for found, expected in zip(steps(*ours), steps(*plain), strict=True):
        torch.testing.assert_close(found.float(), expected.float(), atol=tolerance * float(expected.abs().max()), rtol=0)


@pytest.mark.parametrize("backend", ["reference", "triton"])
def test_an_fp8_cache_stays_close_to_an_exact_one(backend, small_model):
    folder = small_model("gemma2").folder
    for found, expected in zip(steps(*load(folder, backend, kv_dtype=FP8)), steps(*load(folder, "reference")), strict=True):
        assert torch.nn.functional.cosine_similarity(found, expected).min() > 0.97


def test_chunks_that_are_not_whole_blocks_are_computed_by_the_plain_path(small_model):
    decoder, _ = load(small_model("llama4").folder, "triton")
    for block_size, is_covered in ((2, True), (8, False)):
        cache = decoder.allocate_cache(8, block_size)
        assert covers(cache, 0, Chunks(4)) is is_covered
        plan = decoder.plan([(0, 3, [0, 1])], cache)
        assert (plan.plain is None) is is_covered


def test_latent_attention_is_computed_by_the_plain_path(small_model):
    decoder, cache = load(small_model("deepseek-v3").folder, "triton")
    assert not isinstance(decoder.plan([(0, 3, [0, 1])], cache), KernelPlan)


def test_sinks_and_windows_of_a_model_that_transformers_computes(tmp_path):
    sizes = {**SIZES, **SMALL, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 3, "head_dim": 8}
    model = save_tiny_model(tmp_path, "GptOssConfig", {**sizes, "layer_types": [SLIDING, FULL]})
    decoders = [load_model(tmp_path, read_spec(tmp_path), torch.float32, DEVICE, 64, backend=b) for b in ("triton", "reference")]
    tokens, table = random_tokens(6), [3, 1, 2]
    with torch.inference_mode():
        expected = model.reference(torch.tensor([tokens])).logits[0]
    for decoder in decoders:
        cache = decoder.allocate_cache(4, BLOCK_SIZE)
        found = [forward(decoder, cache, [(tokens[:4], 0, table)])]
        found += [forward(decoder, cache, [(tokens[i : i + 1], i, table)]) for i in (4, 5)]
        torch.testing.assert_close(torch.cat(found).cpu(), expected, atol=3e-4, rtol=3e-4)
    assert isinstance(decoders[0].plan([(0, 3, table)], cache), KernelPlan)


@pytest.mark.parametrize("method", ["streaming", "naive"])
def test_methods_by_name_stay_what_they_are(method, small_model):
    decoder, cache = load(small_model("llama").folder, "triton")
    assert not isinstance(decoder.plan([(0, 3, [0, 1])], cache, METHODS[method]), KernelPlan)


def greedy_run(engine, model, max_tokens: int) -> None:
    """Requests of which some begin alike: the tokens are those of transformers."""
    shared = random_tokens(4, 1)
    prompts = [[*shared, token] for token in (7, 30)] + [random_tokens(2, 3)]
    sampling = SamplingParams(temperature=0, max_tokens=max_tokens)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts]
    outputs = run_all(engine, {0: requests[:1], 2: requests[1:]})
    assert [list(outputs[i].token_ids) for i in range(3)] == [model.greedy(prompt, max_tokens) for prompt in prompts]


@pytest.mark.parametrize("name", ["gemma2", "mixtral"])
def test_greedy_tokens_with_prefix_hits_chunks_and_preemption(name, small_model, make_engine):
    limits = {"block_size": 2, "num_blocks": 6, "max_batch_tokens": 4, "max_sequences": 3, "max_model_len": 12}
    engine = make_engine(small_model(name).folder, backend="triton", device=str(DEVICE), **limits)
    greedy_run(engine, small_model(name), 6)
    assert engine.statistics.num_cached_tokens > 0 and engine.statistics.num_preemptions > 0


def test_greedy_tokens_on_a_contiguous_cache(small_model, make_engine):
    limits = {"block_size": 16, "num_blocks": 3, "max_batch_tokens": 4, "max_sequences": 3, "max_model_len": 14}
    engine = make_engine(small_model("llama4").folder, backend="triton", device=str(DEVICE), **limits)
    greedy_run(engine, small_model("llama4"), 3)
