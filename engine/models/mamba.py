"""Mamba 2 (Dao and Gu 2024, arXiv:2405.21060): a state of fixed size per sequence instead of keys and values per token.

A head's state h [head_dim, state_size] follows h_t = exp(dt_t A) h_{t-1} + dt_t x_t B_t^T, and its output is
y_t = h_t C_t + D x_t. Prompts are scanned in chunks, in which this is a masked product of matrices; the last token of
every sequence, decoding or not, is one batched step. Where states are kept: `state_plan.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu, softplus

from ..attention.methods import Attend, fused
from ..attention.paged import Span
from ..errors import UnsupportedModel
from .architecture import ModelInfo
from .decoder import ForwardBatch
from .families import dtype_of, token_ids
from .layout import Portion, Source, Sources, head_name, linear_sources
from .linear import Adapt, DenseLinears, Linears
from .state_plan import StatePlan, plan_states
from .weights import read_weights

MAX_POSITIONS = 1 << 20  # nothing in the model limits the length of a sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaSpec(ModelInfo):
    hidden_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int  # of heads that share B and C
    kernel: int  # tokens that the convolution sees
    chunk_size: int  # tokens of a chunk of the scan
    eps: float
    has_bias: bool
    has_conv_bias: bool
    has_exact_residual: bool  # in float32
    dt_limit: tuple[float, float]

    @property
    def inner_size(self) -> int:
        return self.num_heads * self.head_dim

    @property
    def conv_size(self) -> int:
        return self.inner_size + 2 * self.num_groups * self.state_size


def mamba_spec(config: Mapping[str, Any]) -> MambaSpec:
    """Translate the content of config.json. Raises UnsupportedModel naming the key."""
    config = {**_DEFAULTS, **config}
    for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_heads", "head_dim", "state_size", "n_groups"):
        if not isinstance(config.get(name), int) or config[name] < 1:
            raise UnsupportedModel(f'config.json: "{name}" must be a positive integer, got {config.get(name)!r}')
    if config["num_heads"] * config["head_dim"] != int(config["expand"] * config["hidden_size"]):
        raise UnsupportedModel("config.json: num_heads x head_dim must be expand x hidden_size")
    if config["hidden_act"] not in ("silu", "swish"):
        raise UnsupportedModel(f'config.json: hidden_act "{config["hidden_act"]}" is not supported; supported: silu')
    low, high = config["time_step_limit"]
    return MambaSpec(
        architecture="Mamba2ForCausalLM",
        vocab_size=config["vocab_size"],
        dtype=dtype_of(config),
        eos_token_ids=token_ids(config.get("eos_token_id")),
        max_positions=MAX_POSITIONS,
        is_recurrent=True,
        has_tied_embeddings=bool(config["tie_word_embeddings"]),
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_heads"],
        head_dim=config["head_dim"],
        state_size=config["state_size"],
        num_groups=config["n_groups"],
        kernel=config["conv_kernel"],
        chunk_size=config["chunk_size"],
        eps=float(config["layer_norm_epsilon"]),
        has_bias=bool(config["use_bias"]),
        has_conv_bias=bool(config["use_conv_bias"]),
        has_exact_residual=bool(config["residual_in_fp32"]),
        dt_limit=(float(low), float(high)),
    )


_DEFAULTS: Mapping[str, Any] = {
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "expand": 2,
    "chunk_size": 256,
    "layer_norm_epsilon": 1e-5,
    "use_bias": False,
    "use_conv_bias": True,
    "residual_in_fp32": True,
    "time_step_limit": (0.0, float("inf")),
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}


@dataclass(frozen=True, slots=True)
class StatePool:
    """The states of all sequences, per layer. A slot's two places hold the states after `lengths` tokens of its sequence."""

    inputs: tuple[Tensor, ...]  # [num_slots, 2, kernel - 1, conv_size]: what the convolution still sees
    states: tuple[Tensor, ...]  # float32 [num_slots, 2, num_heads, head_dim, state_size]
    lengths: np.ndarray  # int64 [num_slots, 2]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors; their first axis is the slot."""
        return (*self.inputs, *self.states)


class Mamba:
    """A loaded model. `weights` are all tensors that it holds, by the names of `mamba_sources(spec)`.

    `linears` makes its linear layers; None: dense ones, of `weights`. `adapt` wraps them. `mean_squares` are those of the groups of
    heads, [num_tokens, num_groups, 1] of [num_tokens, num_groups, channels], where other ranks hold some heads of a group.
    """

    def __init__(
        self,
        spec: MambaSpec,
        weights: Mapping[str, Tensor],
        linears: Linears | None = None,
        adapt: Adapt | None = None,
        mean_squares: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        linears = linears or DenseLinears(weights)
        linears = linears if adapt is None else adapt(linears)
        self.spec, self.weights = spec, weights
        self.num_bytes, self.host_bytes = sum(tensor.nbytes for tensor in weights.values()), 0
        self._embedding = linears.embedding("embedding", uses_triton=False)  # vocab -> hidden
        self._mixers = tuple(
            _Mixer(spec, weights, linears, f"layers.{index}.", mean_squares) for index in range(spec.num_layers)
        )
        self._head = linears.linear(head_name(spec))  # hidden -> vocab

    @property
    def device(self) -> torch.device:
        return self.weights["embedding.weight"].device

    @property
    def dtype(self) -> torch.dtype:
        return self.weights["embedding.weight"].dtype

    def block_bytes(self, block_size: int) -> int:
        """Bytes that one slot takes in all layers. A block is a slot, however many tokens it stands for."""
        spec = self.spec
        inputs = (spec.kernel - 1) * spec.conv_size * self.dtype.itemsize
        return 2 * spec.num_layers * (inputs + spec.inner_size * spec.state_size * torch.float32.itemsize)

    def allocate_cache(self, num_blocks: int, block_size: int) -> StatePool:
        spec, layers = self.spec, range(self.spec.num_layers)
        inputs = (num_blocks, 2, spec.kernel - 1, spec.conv_size)
        states = (num_blocks, 2, spec.num_heads, spec.head_dim, spec.state_size)
        return StatePool(
            tuple(torch.zeros(inputs, dtype=self.dtype, device=self.device) for _ in layers),
            tuple(torch.zeros(states, dtype=torch.float32, device=self.device) for _ in layers),
            np.zeros((num_blocks, 2), dtype=np.int64),
        )

    def plan(self, spans: Sequence[Span], cache: StatePool, attend: Attend = fused) -> StatePlan:
        return plan_states(spans, cache.lengths, self.device)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: StatePool) -> Tensor:
        """Logits [num_logits, vocab] for `batch.logit_rows`; writes the states after this step into `cache`."""
        weights, eps = self.weights, self.spec.eps
        hidden = self._embedding(batch.token_ids, 1.0)
        if self.spec.has_exact_residual:
            hidden = hidden.float()
        for index in range(self.spec.num_layers):
            weight = weights[f"layers.{index}.norm"]
            given = rms_norm(hidden.to(self.dtype), (hidden.shape[-1],), weight, eps)
            hidden = hidden + self._mix(index, given, batch.attention, cache)
        wanted = hidden.index_select(0, batch.logit_rows)
        normed = rms_norm(wanted, (wanted.shape[-1],), weights["final_norm"].to(wanted.dtype), eps)
        return self._head(normed.to(self.dtype))

    def _mix(self, index: int, hidden: Tensor, plan: StatePlan, cache: StatePool) -> Tensor:
        spec, mixer = self.spec, self._mixers[index]
        gate, mixed, dt = mixer.project_in(hidden).split((spec.inner_size, spec.conv_size, spec.num_heads), dim=-1)
        inputs, states = cache.inputs[index], cache.states[index]
        inputs[plan.fresh, 0], states[plan.fresh, 0] = 0, 0
        output = torch.empty((len(hidden), spec.inner_size), dtype=torch.float32, device=hidden.device)
        for scan in plan.scans:
            rows, slot = slice(scan.start, scan.stop), scan.slot
            before = torch.zeros_like(inputs[slot, 0]) if scan.source is None else inputs[slot, scan.source]
            state = torch.zeros_like(states[slot, 0]) if scan.source is None else states[slot, scan.source]
            convolved, left = mixer.convolve(mixed[rows], before)
            output[rows], last = mixer.scan(convolved, dt[rows], state)
            inputs[slot, scan.target], states[slot, scan.target] = left, last
        convolved, left = mixer.convolve_one(mixed[plan.rows], inputs[plan.slots, plan.sources])
        output[plan.rows], last = mixer.step(convolved, dt[plan.rows], states[plan.slots, plan.sources])
        inputs[plan.slots, plan.targets], states[plan.slots, plan.targets] = left, last
        return mixer.project_out(mixer.gated_norm(output, gate).to(hidden.dtype))


class _Mixer:
    """The weights of one layer, and its arithmetic."""

    def __init__(
        self,
        spec: MambaSpec,
        weights: Mapping[str, Tensor],
        linears: Linears,
        prefix: str,
        mean_squares: Callable[[Tensor], Tensor] | None,
    ) -> None:
        self.spec, self.weights, self.prefix, self.mean_squares = spec, weights, prefix, mean_squares
        self.project_in = linears.linear(f"{prefix}in")  # hidden -> inner_size + conv_size + num_heads: gate, mixed, dt
        self.project_out = linears.linear(f"{prefix}out")  # inner_size -> hidden

    def __getitem__(self, name: str) -> Tensor:
        return self.weights[self.prefix + name]

    def get(self, name: str) -> Tensor | None:
        return self.weights.get(self.prefix + name)

    def convolve(self, rows: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Convolve all rows of one sequence: rows [num_tokens, conv_size], before [kernel - 1, conv_size].

        Returns the convolved rows, and the last kernel - 1 rows, which the next token sees.
        """
        padded = torch.cat((before, rows))
        return self._filter(padded.unfold(0, self.spec.kernel, 1)), padded[len(rows) :]

    def convolve_one(self, rows: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Convolve one row of each of n sequences: rows [n, conv_size], before [n, kernel - 1, conv_size].

        Returns the convolved rows, and the kernel - 1 rows of each that the next token sees.
        """
        windows = torch.cat((before, rows[:, None]), dim=1)
        return self._filter(windows.transpose(1, 2)), windows[:, 1:]

    def _filter(self, windows: Tensor) -> Tensor:
        """The convolution of windows [n, conv_size, kernel], one output for each, [n, conv_size]."""
        filtered = (windows * self["conv"][:, 0]).sum(dim=-1)
        bias = self.get("conv_bias")
        return silu(filtered if bias is None else filtered + bias)

    def parts(self, convolved: Tensor, dt: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """What the recurrence reads of n tokens, in float32.

        convolved [n, conv_size], dt [n, heads] -> x [n, heads, head_dim]; B, C [n, heads, state_size]; dt and the logarithm of the
        decay, dt * A, both [n, heads].
        """
        spec = self.spec
        shared = spec.num_groups * spec.state_size
        x, b, c = convolved.float().split((spec.inner_size, shared, shared), dim=-1)
        per_group = spec.num_heads // spec.num_groups
        b, c = (part.unflatten(-1, (spec.num_groups, -1)).repeat_interleave(per_group, dim=1) for part in (b, c))
        dt = softplus(dt.float() + self["dt_bias"]).clamp(*spec.dt_limit)
        return x.unflatten(-1, (spec.num_heads, -1)), b, c, dt, dt * -self["A_log"].exp()

    def step(self, convolved: Tensor, dt: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance each of n sequences by one token: outputs [n, inner_size] and states [n, heads, head_dim, state_size]."""
        x, b, c, dt, decay = self.parts(convolved, dt)
        state = decay.exp()[..., None, None] * state + torch.einsum("nh,nhd,nhs->nhds", dt, x, b)
        return (torch.einsum("nhds,nhs->nhd", state, c) + self["D"][:, None] * x).flatten(1), state

    def scan(self, convolved: Tensor, dt: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance one sequence by all its tokens, chunk by chunk: outputs [num_tokens, inner_size] and the state after the last."""
        x, b, c, dt, decay = self.parts(convolved, dt)
        outputs = []
        for start in range(0, len(x), self.spec.chunk_size):
            rows = slice(start, start + self.spec.chunk_size)
            output, state = _scan_chunk(x[rows], b[rows], c[rows], dt[rows], decay[rows], state)
            outputs.append(output)
        return (torch.cat(outputs) + self["D"][:, None] * x).flatten(1), state

    def gated_norm(self, output: Tensor, gate: Tensor) -> Tensor:
        """RMSNorm, within each group of heads, of output * silu(gate); all [num_tokens, inner_size]."""
        gated = (output * silu(gate.float())).unflatten(-1, (self.spec.num_groups, -1))
        if self.mean_squares is None:
            normed = rms_norm(gated, (gated.shape[-1],), None, self.spec.eps)
        else:
            normed = gated * torch.rsqrt(self.mean_squares(gated) + self.spec.eps)
        return normed.flatten(-2).to(gate.dtype) * self["gate_norm"]


def _scan_chunk(x: Tensor, b: Tensor, c: Tensor, dt: Tensor, decay: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The recurrence over the tokens of one chunk, as products of matrices (section 6 of the paper).

    x [tokens, heads, head_dim]; b, c [tokens, heads, state_size]; dt, decay [tokens, heads]; `state` [heads, head_dim, state_size]
    is that before the chunk. Returns outputs [tokens, heads, head_dim] and the state after the chunk.
    """
    faded = decay.cumsum(dim=0).T  # [heads, tokens]: logarithm of what is left of the state before the chunk
    between = (faded[:, :, None] - faded[:, None, :]).tril()  # from token j to token i
    weight = torch.einsum("ihs,jhs->hij", c, b) * between.exp().tril() * dt.T[:, None, :]
    before = torch.einsum("ihs,hds->ihd", c, state) * faded.exp().T[:, :, None]
    output = torch.einsum("hij,jhd->ihd", weight, x) + before
    kept = (faded[:, -1:] - faded).exp() * dt.T  # of token j at the end of the chunk
    return output, faded[:, -1].exp()[:, None, None] * state + torch.einsum("hj,jhd,jhs->hds", kept, x, b)


def mamba_sources(spec: MambaSpec) -> Sources:
    """Every tensor of the model by our name, for instance "layers.0.in.weight", and which tensors of the checkpoint make it."""
    hidden, projected = spec.hidden_size, spec.inner_size + spec.conv_size + spec.num_heads
    sources = {
        "embedding.weight": _one("backbone.embeddings.weight", spec.vocab_size, hidden),
        "final_norm": _one("backbone.norm_f.weight", hidden),
    }
    if not spec.has_tied_embeddings:
        sources |= linear_sources("head", [("lm_head", spec.vocab_size)], hidden, has_bias=False)
    for index in range(spec.num_layers):
        mixer = f"backbone.layers.{index}.mixer."
        layer = {
            "norm": _one(f"backbone.layers.{index}.norm.weight", hidden),
            "conv": _one(f"{mixer}conv1d.weight", spec.conv_size, 1, spec.kernel),
            "dt_bias": _one(f"{mixer}dt_bias", spec.num_heads, dtype=torch.float32),
            "A_log": _one(f"{mixer}A_log", spec.num_heads, dtype=torch.float32),
            "D": _one(f"{mixer}D", spec.num_heads, dtype=torch.float32),
            "gate_norm": _one(f"{mixer}norm.weight", spec.inner_size),
        }
        layer |= linear_sources("in", [(f"{mixer}in_proj", projected)], hidden, spec.has_bias)
        layer |= linear_sources("out", [(f"{mixer}out_proj", hidden)], spec.inner_size, spec.has_bias)
        if spec.has_conv_bias:
            layer["conv_bias"] = _one(f"{mixer}conv1d.bias", spec.conv_size)
        sources |= {f"layers.{index}.{name}": source for name, source in layer.items()}
    return sources


def _one(name: str, *shape: int, dtype: torch.dtype | None = None) -> Source:
    return Source(((name, shape),), dtype=dtype)


def load_mamba(
    folder: Path,
    spec: MambaSpec,
    dtype: torch.dtype,
    device: torch.device,
    adapt: Adapt | None = None,
    portion: Portion | None = None,
) -> Mamba:
    """The model in `folder`, its weights converted to `dtype`; `adapt` as in `Mamba`, `portion` as in `load_decoder`.

    Raises ModelFolderError when a file is missing or damaged, WeightError when tensors are not those that `spec` calls for.
    """
    if portion is None:
        return Mamba(spec, read_weights(folder, spec, mamba_sources(spec), dtype, device), adapt=adapt)
    assert isinstance(portion.spec, MambaSpec), "a portion of Mamba is one"
    weights = read_weights(folder, spec, portion.sources, dtype, device, mamba_sources(spec))
    return Mamba(portion.spec, weights, adapt=adapt, mean_squares=portion.mean_squares)
