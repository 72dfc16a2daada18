"""What the user chooses about the engine. What follows from the model lives in ModelInfo."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, get_args

import torch

from ..foundation.option_names import NamedOptions, not_one_of, unknown_name
from ..kernels.attention import FP8
from ..kernels.backend import Backend, uses_triton
from ..kernels.cpu import is_available
from .attention.methods import METHODS
from .errors import ConfigError
from .gguf.files import is_gguf
from .kv_cache.layouts import KV_LAYOUTS, LayoutRequest, tokens_per_block
from .limits import Limits
from .models.architecture import DTYPES, ModelInfo, ModelSpec
from .quantization.online import ONLINE_KINDS, OnlineKind

PRODUCTS = ("auto", "int8", "compiled", "float32")
COMPILED = ("int8", "compiled")  # those that are the compiled code of `kernels/cpu`
KV_DTYPES: Mapping[str, torch.dtype | None] = {  # None = the model's
    "auto": None, "fp8": FP8, "float16": torch.float16, "bfloat16": torch.bfloat16,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig(NamedOptions):
    """Settings of one engine. "auto" and None are filled in by `resolve`, which returns a new config.

    EngineConfig(model=folder)                                 everything chosen for you
    EngineConfig(model=folder, device="cuda:1")                that card
    EngineConfig(model=folder, max_batch_tokens=256)           shorter prefill chunks, steadier streams
    EngineConfig(model=folder, num_kv_blocks=512)              exactly 512 x 16 tokens of KV cache
    """

    KIND: ClassVar[str] = "engine option"

    model: Path  # folder in Hugging Face layout: config.json, *.safetensors, tokenizer files
    device: str = "auto"  # "auto", "cpu", "cuda", "cuda:0", ...
    dtype: str = "auto"  # "auto", "float32", "bfloat16" or "float16"
    block_size: int = 16  # tokens per KV-cache block
    kv_layout: str = "paged"  # "paged", or "contiguous": one block of max_model_len tokens for each sequence
    attention: str = "fused"  # "fused" (on CUDA by Triton kernels), "streaming" or "naive": see engine/attention/methods.py
    kernels: Backend = "auto"  # "auto" (Triton on CUDA), "reference" (plain PyTorch) or "triton": see kernels/backend.py
    quantization: OnlineKind | None = None  # of 16-bit weights while loading: "fp8", "int8" or "int4"; None: as stored
    quantized_activations: bool = True  # inputs rounded to 8 bits where the checkpoint says so; False: weights alone are
    products: str = "auto"  # on a CPU: "int8" (GGUF, quantised), "compiled" (others), "float32" or "auto": see docs/weights.md
    kv_dtype: str = "auto"  # of the KV cache: "auto" (as computed), "fp8" (e4m3), or on a CPU "float16" or "bfloat16"
    max_batch_tokens: int = 512  # tokens per step; longer prompts are prefilled in chunks
    max_sequences: int = 64  # sequences in the batch at once
    max_model_len: int | None = None  # prompt + output tokens; None: all that model and KV cache allow
    num_kv_blocks: int | None = None  # None: from kv_memory_fraction, never more than can be used
    kv_memory_fraction: float | None = None  # of the memory left after the weights; None: 0.9 on CUDA, 0.3 on a CPU
    cpu_offload_gb: float = 0.0  # of layers that stay in host memory and come to the GPU when they are needed
    tensor_parallel: int = 1  # GPUs, or processes on a CPU, that compute every layer together, each with a share of it
    rank_seconds: float = 30.0  # without a sign of life from one of those processes, or waiting for one, after which all are ended
    max_adapters: int = 8  # LoRA adapters that may be loaded at once; they take memory when they are. 0: none may
    max_adapter_rank: int = 64  # the highest rank of their matrices
    threads: int | None = None  # CPU threads of a step; None: one for a small model, else as PyTorch is set

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", Path(self.model))
        positive = ("block_size", "max_batch_tokens", "max_sequences", "max_model_len", "num_kv_blocks", "threads")
        for name in (*positive, "max_adapter_rank", "tensor_parallel"):
            _require_positive(name, getattr(self, name))
        if self.max_adapters != 0 or isinstance(self.max_adapters, bool):
            _require_positive("max_adapters, where it is not 0,", self.max_adapters)
        if self.max_batch_tokens < self.max_sequences:
            raise ConfigError(
                f"max_batch_tokens ({self.max_batch_tokens}) must be at least max_sequences ({self.max_sequences}): "
                "every running sequence decodes one token per step"
            )
        _require_fraction("kv_memory_fraction", self.kv_memory_fraction)
        _require_size("cpu_offload_gb", self.cpu_offload_gb)
        _require_seconds("rank_seconds", self.rank_seconds)
        if self.dtype not in ("auto", *DTYPES):
            raise ConfigError(f'dtype must be "auto" or one of {", ".join(DTYPES)}, got "{self.dtype}"')
        named: dict[str, Collection[str]] = {
            "kv_layout": KV_LAYOUTS, "attention": METHODS, "kernels": get_args(Backend), "kv_dtype": KV_DTYPES,
            "products": PRODUCTS,
        }  # fmt: skip
        if self.quantization not in (None, *ONLINE_KINDS):
            raise ConfigError(f'quantization must be one of {", ".join(ONLINE_KINDS)}, got "{self.quantization}"')
        for name, choices in named.items():
            if getattr(self, name) not in choices:
                raise ConfigError(not_one_of(name, getattr(self, name), choices))

    @classmethod
    def from_options(cls, options: Mapping[str, Any], others: Iterable[str] = ()) -> EngineConfig:
        """A config from loose options, for instance of a command line. others: names that could have been meant, too.

        Raises ConfigError for an unknown name.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ConfigError(unknown_name(cls.KIND, name, [*known, *others]))
        return cls(**options)


def resolve(config: EngineConfig, spec: ModelInfo) -> EngineConfig:
    """`config` with all but num_kv_blocks decided, which waits for the weights."""
    device = resolve_device(config.device)
    if config.cpu_offload_gb and device.type != "cuda":
        raise ConfigError(
            f'cpu_offload_gb is for a GPU; on "{device}" all weights are in host memory, and mapped ones are read from the file as '
            "they are needed: leave it out"
        )
    if KV_DTYPES[config.kv_dtype] in (torch.float16, torch.bfloat16) and device.type != "cpu":
        raise ConfigError(
            f'kv_dtype="{config.kv_dtype}" is for a CPU; on "{device}" the cache has the model\'s dtype: use "auto" or "fp8"'
        )
    if config.tensor_parallel > 1:
        _check_ranks(config, device)
    default_fraction = 0.9 if device.type == "cuda" else 0.3
    max_model_len = _resolve_max_model_len(config.max_model_len, spec)
    asked = LayoutRequest(config.block_size, max_model_len)
    return replace(
        config,
        device=str(device),
        dtype=_resolve_dtype(config.dtype, device, spec),
        block_size=max_model_len if spec.is_recurrent else tokens_per_block(config.kv_layout, asked),  # a state is one block too
        max_model_len=max_model_len,
        kv_memory_fraction=config.kv_memory_fraction or default_fraction,
        kernels=_resolve_kernels(config.kernels, device),
        products=_resolve_products(config, device, spec),
    )


def resolve_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f'unknown device "{name}"; use "auto", "cpu" or "cuda"') from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f'device "{name}" is not supported; use "auto", "cpu" or "cuda"')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f'device "{name}" was asked for, but PyTorch sees {torch.cuda.device_count()} CUDA devices')
    return device


def device_of_rank(config: EngineConfig, number: int) -> torch.device:
    """Where a rank of a resolved config computes: GPUs follow one another from that of rank 0 on."""
    device = torch.device(config.device)
    return torch.device("cuda", (device.index or 0) + number) if device.type == "cuda" else device


def _check_ranks(config: EngineConfig, device: torch.device) -> None:
    """Raises ConfigError where there are not as many devices, or with what is for one."""
    asked = f"tensor_parallel={config.tensor_parallel}"
    if device.type == "cuda" and (device.index or 0) + config.tensor_parallel > torch.cuda.device_count():
        raise ConfigError(f"{asked} from device {device.index or 0} on, but PyTorch sees {torch.cuda.device_count()} CUDA devices")
    if config.cpu_offload_gb:
        raise ConfigError(f"{asked} and cpu_offload_gb do not go together: more ranks hold less each; leave out one")


def _resolve_kernels(backend: Backend, device: torch.device) -> Backend:
    try:
        return "triton" if uses_triton(backend, device) else "reference"
    except ValueError as error:
        raise ConfigError(f"kernels: {error}") from None


def _resolve_products(config: EngineConfig, device: torch.device, spec: ModelInfo) -> str:
    """How matrices are multiplied on a CPU.

    "auto": by compiled code, unless a `dtype` was asked for, or there is none here. Of a GGUF file or a quantised folder with
    activations rounded to 8 bits, as llama.cpp does; of a folder in floating point with activations as they are.
    """
    if device.type != "cpu":
        if config.products != "auto":
            raise ConfigError(f'products="{config.products}" is for a CPU; on "{device}" blocks are multiplied in {config.dtype}')
        return "auto"
    compiled = "int8" if is_gguf(config.model) or spec.quantization is not None else "compiled"
    if config.products == "float32":
        return "float32"
    if config.products in COMPILED and (reason := _why_not_compiled(config, spec, compiled)) is not None:
        raise ConfigError(f'products="{config.products}" {reason}; use "auto" or "float32"')
    if config.products in COMPILED:
        return compiled
    is_wanted = config.dtype != "float32" if is_gguf(config.model) else config.dtype == "auto"
    return compiled if is_wanted and _why_not_compiled(config, spec, compiled) is None else "float32"


def _why_not_compiled(config: EngineConfig, spec: ModelInfo, compiled: str) -> str | None:
    if config.products not in ("auto", compiled):
        kinds = "folders in floating point" if compiled == "int8" else "GGUF files and quantised folders"
        return f"is for {kinds}; {config.model} is not one"
    if not isinstance(spec, ModelSpec):
        return f"is for models that are computed natively; {config.model} is not one"
    if config.dtype not in ("auto", "float32") and not is_gguf(config.model):
        return f'computes in float32, and dtype="{config.dtype}" was asked for'
    return None if is_available() else "needs a C compiler, or a wheel made with one, and a processor with AVX2 or DotProd"


def resolve_num_blocks(config: EngineConfig, bytes_per_block: int, free_bytes: int) -> int:
    """The number of KV-cache blocks for a resolved config: as asked, else as the memory allows.

    Raises ConfigError when not a single block is affordable.
    """
    if config.num_kv_blocks is not None:
        return config.num_kv_blocks
    assert config.max_model_len is not None and config.kv_memory_fraction is not None
    useful = config.max_sequences * -(-config.max_model_len // config.block_size)
    affordable = int(free_bytes * config.kv_memory_fraction) // bytes_per_block
    if affordable < 1:
        raise ConfigError(
            f"no memory for the KV cache: a block takes {bytes_per_block} bytes, {free_bytes} are free, of which "
            f"kv_memory_fraction allows {config.kv_memory_fraction}; a block holds {config.block_size} tokens, and no more than "
            "max_model_len: set that lower, or kv_memory_fraction higher"
        )
    return min(useful, affordable)


def limits_of(config: EngineConfig, num_blocks: int, wanted_len: int | None = None) -> Limits:
    """The scheduler's limits for a resolved config; max_model_len shrinks to what all blocks together hold.

    Raises ConfigError when that is less than `wanted_len`, the max_model_len that the user asked for.
    """
    assert config.max_model_len is not None
    num_tokens = num_blocks * config.block_size
    if wanted_len is not None and wanted_len > num_tokens:
        raise ConfigError(
            f"max_model_len {wanted_len} does not fit into the KV cache of {num_blocks} blocks of {config.block_size} tokens; "
            "lower it, or raise num_kv_blocks or kv_memory_fraction"
        )
    return Limits(
        block_size=config.block_size,
        num_blocks=num_blocks,
        max_batch_tokens=config.max_batch_tokens,
        max_sequences=config.max_sequences,
        max_model_len=min(config.max_model_len, num_tokens),
    )


def _resolve_dtype(name: str, device: torch.device, spec: ModelInfo) -> str:
    """On a GPU the checkpoint's own dtype. On a CPU float32: exact, and faster.

    Measured with 4.5 million parameters and one thread of a CPU that has AVX512-BF16: 3.9 ms a step for one sequence and 31
    for 32 in float32, 10.4 and 50 in bfloat16, whose attention is slow (`benchmarks/constrained_decode.py --dtype`).
    """
    if name != "auto":
        return name
    return spec.dtype if device.type == "cuda" else "float32"


def _resolve_max_model_len(wanted: int | None, spec: ModelInfo) -> int:
    if wanted is not None and wanted > spec.max_positions and not spec.is_stretchable:
        raise ConfigError(
            f"max_model_len {wanted} is longer than the {spec.max_positions} positions this model's config.json allows"
        )
    return wanted or spec.max_positions


def _require_positive(name: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError(f"{name} must be an integer of at least 1, got {value!r}")


def _require_size(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise ConfigError(f"{name} must be a number of gigabytes, 0 or more, got {value!r}")


def _require_seconds(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 1e6:
        raise ConfigError(f"{name} must be a number of seconds, 1 or more, got {value!r}")


def _require_fraction(name: str, value: float | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1):
        raise ConfigError(f"{name} must be a number in (0, 1], got {value!r}")
