"""Linear layers of other kinds than dense ones, in every native family: whatever multiplies by a matrix goes through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from maskwright.engine.models.decoder import Decoder
from maskwright.engine.models.layout import sources_of
from maskwright.engine.models.linear import DenseLinears, Linear, Linears
from maskwright.engine.models.mamba import Mamba, MambaSpec, mamba_sources
from maskwright.engine.models.spec import read_spec
from maskwright.engine.models.weights import read_weights
from maskwright.kernels.moe import grouped_mlp

from ..conftest import MODELS, SIZES, save_tiny_model
from . import test_decoder, test_mamba
from .test_decoder import BLOCK_SIZE, random_tokens

FAMILIES = {
    **MODELS,
    **{f"mamba-{name}": ("Mamba2Config", {**test_mamba.SIZES, **changes}) for name, changes in test_mamba.MODELS.items()},
    "mixtral-tied": ("MixtralConfig", {"num_local_experts": 4, "tie_word_embeddings": True}),
}


def read(folder: Path) -> tuple:
    """The spec of a model, and all its tensors."""
    spec = read_spec(folder)
    sources = mamba_sources(spec) if isinstance(spec, MambaSpec) else sources_of(spec)
    return spec, read_weights(folder, spec, sources, torch.float32, torch.device("cpu"))


def build(spec, weights: Mapping[str, Tensor], linears: Linears | None = None) -> Decoder | Mamba:
    return (Mamba if isinstance(spec, MambaSpec) else Decoder)(spec, weights, linears=linears)


def logits_of(model: Decoder | Mamba, tokens: list[int]) -> Tensor:
    """Of a prompt, computed at once."""
    cache = model.allocate_cache(16, BLOCK_SIZE)
    if isinstance(model, Mamba):
        return test_mamba.forward(model, cache, [(tokens, 0, 3)])
    return test_decoder.forward(model, cache, [(tokens, 0, list(range(8)))])


# ---- a toy of quantised weights


class Int8Linears:
    """Of matrices in int8, a scale for each row: tensors "NAME.int8" [..., rows, columns] and "NAME.scale" [..., rows, 1]."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights, self.calls = weights, Counter()

    def dense(self, name: str) -> Tensor:
        self.calls[name] += 1
        return self.weights[f"{name}.int8"] * self.weights[f"{name}.scale"]

    def embedding(self, name: str, *, uses_triton: bool):
        return DenseLinears(self.weights).embedding(name, uses_triton=uses_triton)

    def linear(self, name: str):
        bias = self.weights.get(f"{name}.bias")
        return lambda x: torch.nn.functional.linear(x, self.dense(name), bias)

    def per_head(self, name: str):
        return lambda x: (x[:, :, None] @ self.dense(name).transpose(1, 2))[:, :, 0]

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool):
        def mlp(hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
            matrices = self.dense(f"{name}.gate_up"), self.dense(f"{name}.down")
            return grouped_mlp(hidden, *matrices, chosen, weights, activation, scales_input, backend="reference")

        return mlp


def is_matrix(name: str, weight: Tensor) -> bool:
    """Not the weight of a norm of heads, the filter of a convolution, or the embedding, of which rows are looked up."""
    return weight.ndim > 1 and not name.endswith(("norm.weight", ".conv")) and name != "embedding.weight"


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    scale = weight.abs().amax(dim=-1, keepdim=True) / 127
    return (weight / scale).round().to(torch.int8), scale


def with_matrices_in_int8(spec, weights: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(what a model of `Int8Linears` holds, the tensors of the dense model with the same logits, whose head is a matrix of its own)."""
    matrices = {name.removesuffix(".weight"): weight for name, weight in weights.items() if is_matrix(name, weight)}
    packed = dict(weights)
    dense = {**weights, "head.weight": weights["embedding.weight"]} if spec.has_tied_embeddings else dict(weights)
    if spec.has_tied_embeddings:
        matrices["embedding"] = weights["embedding.weight"]
    for name, weight in matrices.items():
        int8, scale = quantised(weight)
        dense["head.weight" if name == "embedding" else f"{name}.weight"] = int8 * scale
        packed |= {f"{name}.int8": int8, f"{name}.scale": scale}
        if name != "embedding":
            del packed[f"{name}.weight"]
    return packed, dense


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_of_quantised_matrices_multiplies_by_nothing_else(name, tmp_path):
    """It holds no matrix in floating point but the embedding, and its logits are those of a dense model of what int8 stands for."""
    spec, weights = read(save_tiny_model(tmp_path, *FAMILIES[name]).folder)
    packed, dense = with_matrices_in_int8(spec, weights)
    linears, tokens = Int8Linears(packed), random_tokens(19)
    found = logits_of(build(spec, packed, linears), tokens)
    expected = logits_of(build(replace(spec, has_tied_embeddings=False), dense), tokens)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(found, logits_of(build(spec, weights), tokens), atol=1e-3), "int8 rounds"
    matrices = {tensor.removesuffix(".int8") for tensor in packed if tensor.endswith(".int8")}
    assert linears.calls == Counter(dict.fromkeys(matrices, 1)), "each matrix is multiplied by once in a step"


# ---- a toy of adapters


@dataclass(frozen=True)
class Adapted:
    """base(x), and for each row B A x of the adapter that it wants. Adapter 0 adds nothing."""

    base: Linear
    down: Tensor  # A [num_adapters, rank, in_features]
    up: Tensor  # B [num_adapters, out_features, rank]
    adapter_of_row: Tensor  # int64 [num_rows]

    def __call__(self, x: Tensor) -> Tensor:
        inner = torch.einsum("ri,rki->rk", x, self.down[self.adapter_of_row])
        return self.base(x) + torch.einsum("rk,rok->ro", inner, self.up[self.adapter_of_row])


class AdaptedLinears:
    """Those of `base`, with adapters for the layers that `adapters` names: (A, B) as in `Adapted`."""

    def __init__(self, base: Linears, adapters: Mapping[str, tuple[Tensor, Tensor]], adapter_of_row: Tensor) -> None:
        self.base, self.adapters, self.adapter_of_row = base, adapters, adapter_of_row
        self.embedding, self.per_head, self.grouped_mlp = base.embedding, base.per_head, base.grouped_mlp

    def linear(self, name: str) -> Linear:
        base = self.base.linear(name)
        return Adapted(base, *self.adapters[name], self.adapter_of_row) if name in self.adapters else base


@pytest.mark.parametrize("kind", [DenseLinears, Int8Linears])
def test_each_row_of_a_batch_has_an_adapter_of_its_own(kind: Callable[[Mapping[str, Tensor]], Linears], tiny_model):
    """Every sequence gets the logits of the model into whose matrices its adapter is merged."""
    spec, weights = read(tiny_model("llama").folder)
    held, dense = (weights, weights) if kind is DenseLinears else with_matrices_in_int8(spec, weights)
    random = partial(torch.randn, generator=torch.Generator().manual_seed(1))
    adapters: dict[str, tuple[Tensor, Tensor]] = {}
    for name in ("attention.qkv", "attention.output", "mlp.up", "mlp.down"):
        rows, columns = dense[f"layers.1.{name}.weight"].shape
        adapters[f"layers.1.{name}"] = (0.4 * random(3, 4, columns), 0.4 * random(3, rows, 4))
        adapters[f"layers.1.{name}"][1][0] = 0
    texts, tables = [random_tokens(length, seed) for seed, length in enumerate((5, 9, 3))], [[1, 2], [5, 3, 4], [0]]
    of_row = torch.cat([torch.full((len(text),), adapter) for adapter, text in enumerate(texts)])
    model = build(spec, held, AdaptedLinears(kind(held), adapters, of_row))
    together = test_decoder.forward(model, model.allocate_cache(8, BLOCK_SIZE), [(t, 0, b) for t, b in zip(texts, tables, strict=True)])
    for adapter, (text, found) in enumerate(zip(texts, together.split([len(text) for text in texts]), strict=True)):
        merged = {f"{name}.weight": dense[f"{name}.weight"] + up[adapter] @ down[adapter] for name, (down, up) in adapters.items()}
        torch.testing.assert_close(found, logits_of(build(spec, {**dense, **merged}), text), atol=2e-4, rtol=2e-4)


def test_a_name_that_the_model_does_not_have_is_an_error(tiny_model):
    _, weights = read(tiny_model("llama").folder)
    with pytest.raises(KeyError, match=r"layers\.9\.mlp\.up\.weight"):
        DenseLinears(weights).linear("layers.9.mlp.up")


def test_a_packed_model_is_counted_as_large_as_what_it_holds(tiny_model):
    spec, weights = read(tiny_model("llama").folder)
    packed, _ = with_matrices_in_int8(spec, weights)
    model = build(spec, packed, Int8Linears(packed))
    in_float = sum(weight.nbytes for name, weight in weights.items() if not is_matrix(name, weight))
    matrices = [weight for name, weight in weights.items() if is_matrix(name, weight)]
    assert SIZES["hidden_size"] == 32 and model.num_bytes == in_float + sum(m.numel() + 4 * m.shape[0] for m in matrices)
