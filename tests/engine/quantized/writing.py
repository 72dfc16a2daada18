"""Quantised checkpoints of small models, written after each format's public layout, with the numbers that they stand for.

Of a linear layer a writer makes (its tensors by what follows the module's name, the matrix that they stand for, float32).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

Written = tuple[dict[str, Tensor], Tensor]
Writer = Callable[[Tensor], Written]

INNER = re.compile(r"\.(q|k|v|o|gate(?=_)|up|down|w1|w2|w3|qkv|gate_up|q_a|q_b|kv_b|c_fc|c_proj)(_proj|_proj_with_mqa)?\.weight$")


def quantise_folder(
    folder: Path, target: Path, config: Mapping[str, Any], writer: Writer | Mapping[str, Writer | None], inner: re.Pattern[str] = INNER
) -> tuple[Path, Path]:
    """(a copy whose inner matrices are written so, a copy with the numbers that those stand for). Writers may differ by patterns."""
    writers = writer if isinstance(writer, Mapping) else {"": writer}
    packed, plain = {}, {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        chosen = next((made for part, made in writers.items() if re.search(part, name)), None)
        if inner.search(name) and tensor.ndim == 2 and chosen is not None:
            tensors, plain[name] = chosen(tensor.float())
            module = name.removesuffix(".weight")
            packed |= {f"{module}.{key}": value.contiguous() for key, value in tensors.items()}
        else:
            packed[name] = plain[name] = tensor
    quantised, same = target / "quantised", target / "same"
    for where, tensors in ((quantised, packed), (same, plain)):
        shutil.copytree(folder, where)
        save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, where / "model.safetensors", metadata={"format": "pt"})
    edited = json.loads((folder / "config.json").read_text()) | {"quantization_config": dict(config)}
    (quantised / "config.json").write_text(json.dumps(edited))
    return quantised, same


def bits_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """Words of 32 bits along the last axis, codes one after another from the lowest bit on."""
    flat = ((codes[..., None] >> np.arange(bits)) & 1).reshape(*codes.shape[:-1], -1)
    flat = np.concatenate((flat, np.zeros((*flat.shape[:-1], -flat.shape[-1] % 32), flat.dtype)), axis=-1)
    words = (flat.reshape(*flat.shape[:-1], -1, 32).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1)
    return words.astype(np.uint32).view(np.int32)


def affine(weight: Tensor, bits: int, groups: np.ndarray, is_symmetric: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, Tensor]:
    """Codes [rows, columns], zero points and scales [rows, groups], numbers, of columns in groups [columns]."""
    most, rows = (1 << bits) - 1, weight.shape[0]
    scales, zeros = np.zeros((rows, groups.max() + 1), np.float16), np.zeros((rows, groups.max() + 1), int)
    values = weight.numpy()
    for group in range(groups.max() + 1):
        part = values[:, groups == group]
        low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        if is_symmetric:
            high = np.maximum(-low, high)
            low = -high
        scales[:, group] = np.maximum((high - low) / most, 1e-4)
        zeros[:, group] = most // 2 + 1 if is_symmetric else np.clip(np.round(-low / scales[:, group]), 0, most)
    wide = scales.astype(np.float32)[:, groups]
    codes = np.clip(np.round(values / wide) + zeros[:, groups], 0, most).astype(int)
    return codes, zeros, scales, torch.from_numpy((codes - zeros[:, groups]) * wide).float()


def gptq(bits: int, group_size: int, *, desc_act: bool = False, sym: bool = True, version: int = 1, has_index: bool = True) -> Writer:
    """As AutoGPTQ packs: codes and zero points along their columns; zero points less one in the first version."""

    def write(weight: Tensor) -> Written:
        columns = weight.shape[1]
        groups = np.arange(columns) // (columns if group_size == -1 else group_size)
        if desc_act:
            groups = np.random.default_rng(columns).permutation(groups)
        codes, zeros, scales, numbers = affine(weight, bits, groups, sym)
        stored = (zeros - 1) % (1 << bits) if version == 1 else zeros
        tensors = {
            "qweight": torch.from_numpy(bits_of(codes, bits).T.copy()),
            "qzeros": torch.from_numpy(bits_of(stored.T.copy(), bits)),
            "scales": torch.from_numpy(scales.T.copy()),
            "g_idx": torch.from_numpy(groups.astype(np.int32)),
        }
        if not has_index:
            del tensors["g_idx"]
        return tensors, numbers

    return write


def awq(group_size: int) -> Writer:
    """As AutoAWQ's WQLinear_GEMM packs: eight rows a word, in the order 0, 2, 4, 6, 1, 3, 5, 7."""

    def write(weight: Tensor) -> Written:
        columns = weight.shape[1]
        codes, zeros, scales, numbers = affine(weight, 4, np.arange(columns) // (columns if group_size == -1 else group_size), False)

        def words(along: np.ndarray) -> Tensor:
            out = np.zeros((along.shape[0], along.shape[1] // 8), np.uint32)
            for place, row in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
                out |= along[:, row::8].astype(np.uint32) << np.uint32(4 * place)
            return torch.from_numpy(out.view(np.int32))

        return {"qweight": words(codes.T), "qzeros": words(zeros.T), "scales": torch.from_numpy(scales.T.copy())}, numbers

    return write


def float8(block: tuple[int, int] | None, *, scale: str = "weight_scale_inv", per_row: bool = False, input_scale: float | None = None) -> Writer:
    def write(weight: Tensor) -> Written:
        rows, columns = weight.shape
        height, width = block or ((1, columns) if per_row else (rows, columns))
        scales = torch.zeros(-(-rows // height), -(-columns // width))
        codes, numbers = torch.zeros(rows, columns, dtype=torch.float8_e4m3fn), torch.zeros(rows, columns)
        for i in range(scales.shape[0]):
            for j in range(scales.shape[1]):
                where = slice(i * height, (i + 1) * height), slice(j * width, (j + 1) * width)
                scales[i, j] = weight[where].abs().max() / 448
                codes[where] = (weight[where] / scales[i, j]).to(torch.float8_e4m3fn)
                numbers[where] = codes[where].float() * scales[i, j]
        extra = {} if input_scale is None else {"input_scale": torch.tensor(input_scale)}
        return {"weight": codes, scale: scales if block or per_row else scales.reshape(()), **extra}, numbers

    return write


NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495,
    0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
], np.float32)  # fmt: skip


def nf4(*, is_nested: bool) -> Writer:
    """As bitsandbytes' Params4bit saves itself: blocks of 64 numbers, the first of two in the upper bits."""

    def write(weight: Tensor) -> Written:
        values = weight.numpy().reshape(-1, 64)
        largest = np.abs(values).max(1)
        state: dict[str, Any] = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": list(weight.shape)}
        extra: dict[str, Tensor] = {}
        if is_nested:
            offset = float(largest.mean())
            state |= {"nested_blocksize": 256, "nested_offset": offset, "nested_dtype": "float32"}
            table = np.linspace(-1, 1, 256, dtype=np.float32)
            blocks = np.pad(largest - offset, (0, -largest.size % 256)).reshape(-1, 256)
            tops = np.abs(blocks).max(1).astype(np.float32)
            codes8 = np.abs((blocks / tops[:, None])[..., None] - table).argmin(-1).astype(np.uint8)
            stored = codes8.reshape(-1)[: largest.size]
            largest = (table[codes8] * tops[:, None]).reshape(-1)[: largest.size] + np.float32(offset)
            extra = {"weight.nested_absmax": torch.from_numpy(tops), "weight.nested_quant_map": torch.from_numpy(table)}
        else:
            stored = largest.astype(np.float32)
        codes = np.abs(values[..., None] / largest[:, None, None] - NF4).argmin(-1)
        numbers = (NF4[codes] * largest[:, None]).reshape(weight.shape)
        flat = codes.reshape(-1)
        tensors = {
            "weight": torch.from_numpy((flat[0::2] << 4 | flat[1::2]).astype(np.uint8)).view(-1, 1),
            "weight.absmax": torch.from_numpy(stored.copy()),
            "weight.quant_map": torch.from_numpy(NF4),
            "weight.quant_state.bitsandbytes__nf4": torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8),
            **extra,
        }
        return tensors, torch.from_numpy(numbers.astype(np.float32))

    return write


def llm_int8(weight: Tensor) -> Written:
    largest = weight.abs().amax(1)
    codes = (weight / largest[:, None] * 127).round().to(torch.int8)
    return {"weight": codes, "SCB": largest, "weight_format": torch.tensor(0, dtype=torch.uint8)}, codes.float() * (largest / 127)[:, None]
