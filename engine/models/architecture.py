"""What a model is: the facts that every part of the engine may ask for, and the structure of a native decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from ..attention.methods import Scoring
from ..attention.paged import Window
from ..kv_cache.tensors import LayerShape
from ..quantization.online import OnlineKind
from ..quantization.plan import Plan
from .rope import RopeSpec

DTYPES: Mapping[str, torch.dtype] = {  # that a model can be computed in, by the names that config.json has for them
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What the engine must know of a model, whoever computes it."""

    architecture: str  # as named in config.json, for instance "LlamaForCausalLM"
    vocab_size: int  # rows of embedding and head; may exceed the tokenizer's vocabulary
    dtype: str  # of the checkpoint, as config.json names it
    eos_token_ids: tuple[int, ...]
    max_positions: int  # longest sequence (prompt and output) the model was made for
    has_tied_embeddings: bool = False  # the head is the embedding
    prefix: str = ""  # of all names of tensors in checkpoints
    ignored: tuple[str, ...] = ()  # prefixes of tensors that are in checkpoints but take no part
    is_recurrent: bool = False  # a state per sequence instead of keys and values per token
    quantization: Plan | OnlineKind | None = None  # how matrices are stored in codes, or into which they are made while loading
    is_stretchable: bool = False  # an engine for sequences beyond max_positions turns all of them accordingly (dynamic NTK)


@dataclass(frozen=True, slots=True)
class NormSpec:
    kind: Literal["rms", "layer"]  # "layer" subtracts the mean first
    eps: float
    has_bias: bool = False
    offset: float = 0.0  # added to the stored weight; such weights are computed with in float32 (Gemma)


@dataclass(frozen=True, slots=True)
class LatentSpec:
    """Multi-head latent attention: keys and values of all heads come from one vector (DeepSeek-V2, arXiv:2405.04434)."""

    query_rank: int | None  # width of the query's own latent; None = projected directly
    rank: int  # width of the latent that is cached
    nope_dim: int  # of a head's query and key, the part without position
    rope_dim: int  # and the part that turns; one key for all heads, cached beside the latent
    value_dim: int


@dataclass(frozen=True, slots=True)
class ExpertSpec:
    """A layer's mixture of experts: how many there are, how the router scores them, chooses among them and weights them."""

    count: int
    per_token: int
    size: int  # intermediate size of one expert
    shared_size: int = 0  # of the expert that computes every token; 0 = none
    scoring: Literal["softmax", "sigmoid"] = "softmax"
    is_normalized: bool = False  # the chosen weights sum to 1
    scale: float = 1.0  # times the weights
    num_groups: int = 1  # experts fall into groups, of which
    groups_per_token: int = 1  # only the best are chosen from
    best_of_group: int = 2  # a group is as good as so many of its best experts together
    has_correction: bool = False  # a bias that takes part in the choice, not in the weight
    gates_shared: bool = False  # the shared expert's output is multiplied by a sigmoid of its own (Qwen 2)
    scales_input: bool = False  # the weight multiplies what goes into the expert, not what comes out (Llama 4)


@dataclass(frozen=True, slots=True)
class TemperatureSpec:
    """Queries grow with log(position / floor): Llama 4, arXiv:2501.19399."""

    floor: int  # tokens
    scale: float
    first: int = 1  # the number of the first position
    is_everywhere: bool = False  # else in layers without rotation only


@dataclass(frozen=True, slots=True)
class Names:
    """What a family calls its tensors within a layer. The defaults are Llama's."""

    qkv: str | None = None  # one tensor for query, key and value
    gate_up: str | None = None  # one tensor for gate and up
    up: str = "mlp.up_proj"
    gate: str = "mlp.gate_proj"
    down: str = "mlp.down_proj"
    router: str = "mlp.gate"
    expert: tuple[str, str, str] = ("mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj", "mlp.experts.{}.down_proj")
    stacked_experts: str | None = None  # all experts in two transposed tensors of this prefix (Llama 4)
    shared: str = "mlp.shared_experts"
    after_attention: str = "post_attention_layernorm"  # the three norms of a sandwich behind its first; two of them in "post"
    mlp_norm: str = "pre_feedforward_layernorm"
    after_mlp: str = "post_feedforward_layernorm"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec(ModelInfo):
    """Shapes and switches of a native decoder. Heads are `head_dim` wide, whatever hidden_size is."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm: NormSpec
    # norms before attention and MLP; before and after; one before both; after
    block: Literal["sequential", "sandwich", "parallel", "post"] = "sequential"
    activation: str = "silu"
    is_gated: bool = True  # the MLP multiplies a gate
    ropes: tuple[RopeSpec, ...]
    rope_of: tuple[int | None, ...]  # per layer: which of `ropes`; None = positions are not encoded
    is_rope_interleaved: bool = False  # dimension 2i turns with 2i + 1, not i with i + dim / 2
    windows: tuple[Window, ...]  # per layer: how far back a query sees
    scoring: Scoring = field(default_factory=Scoring)
    # one weight for all heads; one each; all heads as one vector; no weight, but later
    qk_norm: Literal["head", "heads", "joint", "after_rope"] | None = None
    has_qkv_bias: bool = False
    has_output_bias: bool = False  # of the attention's output projection
    has_mlp_bias: bool = False
    embedding_scale: float = 1.0
    logit_scale: float = 1.0
    logit_softcap: float | None = None
    temperature: TemperatureSpec | None = None
    latent: LatentSpec | None = None
    experts: ExpertSpec | None = None
    has_experts: tuple[bool, ...]  # per layer
    names: Names = field(default_factory=Names)

    @property
    def kv_layers(self) -> tuple[LayerShape, ...]:
        """Shape of what the KV cache holds of one token, per layer."""
        if self.latent is not None:
            return (LayerShape(1, self.latent.rank + self.latent.rope_dim, 0),) * self.num_layers
        return (LayerShape(self.num_kv_heads, self.head_dim, self.head_dim),) * self.num_layers

    def for_length(self, longest: int) -> ModelSpec:
        """This spec for sequences of at most `longest` tokens: longrope and dynamic scaling choose their stretch by that length."""
        return replace(self, ropes=tuple(replace(rope, longest=longest) for rope in self.ropes))
