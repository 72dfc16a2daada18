"""gpt-oss with experts in MXFP4: a model computes what transformers computes of the numbers that transformers itself decodes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from maskwright.engine.errors import UnsupportedModel, WeightError
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec

from ..conftest import save_tiny_model
from .test_formats import WIDE, assert_same, ours, theirs
from .test_loading_in_place import mapped_ranges

E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def mxfp4(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(blocks, scales) of weights [experts, columns, rows], as the checkpoints of gpt-oss have them."""
    groups = weight.transpose(1, 2).unflatten(2, (-1, 32))
    exponents = (groups.abs().amax(3).clamp_min(1e-9) / 6).log2().ceil()
    codes = (groups / exponents.exp2()[..., None])[..., None].sub(E2M1).abs().argmin(-1).to(torch.uint8)
    return codes[..., 0::2] | codes[..., 1::2] << 4, (exponents + 127).to(torch.uint8)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(a checkpoint with packed experts, the numbers that they stand for)."""
    parent = tmp_path_factory.mktemp("gpt-oss")
    changes = {**WIDE, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64, "initializer_range": 0.2}
    changes |= {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 6, "pad_token_id": 0}
    folder = save_tiny_model(parent / "folder", "GptOssConfig", changes).folder
    packed, plain = {}, {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        packed[name] = plain[name] = tensor
        if name.endswith(("gate_up_proj", "down_proj")):
            blocks, scales = mxfp4(packed.pop(name))
            packed |= {f"{name}_blocks": blocks.contiguous(), f"{name}_scales": scales}
            plain[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).contiguous()
    for where, tensors in (("packed", packed), ("plain", plain)):
        shutil.copytree(folder, parent / where)
        save_file(tensors, parent / where / "model.safetensors", metadata={"format": "pt"})
    edited = json.loads((folder / "config.json").read_text()) | {"quantization_config": {"quant_method": "mxfp4"}}
    (parent / "packed" / "config.json").write_text(json.dumps(edited))
    return parent / "packed", parent / "plain"


def test_packed_experts_compute_what_their_numbers_do(folders: tuple[Path, Path]) -> None:
    packed, plain = folders
    assert_same(ours(packed), theirs(plain), 1e-4)


def test_packed_experts_stay_in_the_file(folders: tuple[Path, Path]) -> None:
    model = load_model(folders[0], read_spec(folders[0]), torch.float32, torch.device("cpu"), 128)
    held = {name: tensor for name, tensor in model.module.named_parameters() if tensor.dtype == torch.uint8}
    ranges = mapped_ranges(folders[0] / "model.safetensors")
    assert len(held) == 8 and all(any(begin <= tensor.data_ptr() < end for begin, end in ranges) for tensor in held.values())


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: None, "lacks model.layers.0.mlp.experts.down_proj_scales"),
        (lambda t: t[:, :-1], r"down_proj_scales has shape \[4, 63, 2\]"),
        (lambda t: t.float(), r"down_proj_scales is of type F32, which is no MXFP4"),
    ],
)
def test_what_does_not_fit_is_named(edit, message: str, folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "broken")
    tensors = load_file(folders[0] / "model.safetensors")
    name = "model.layers.0.mlp.experts.down_proj_scales"
    made = edit(tensors.pop(name))
    save_file(tensors if made is None else {**tensors, name: made.contiguous()}, tmp_path / "broken" / "model.safetensors")
    with pytest.raises(WeightError, match=message):
        ours(tmp_path / "broken")


def test_other_models_have_no_experts_of_this_kind(tmp_path: Path, tiny_model) -> None:
    shutil.copytree(tiny_model("llama").folder, tmp_path / "llama")
    config = json.loads((tmp_path / "llama" / "config.json").read_text()) | {"quantization_config": {"quant_method": "mxfp4"}}
    (tmp_path / "llama" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModel, match=r'quantised weights \("mxfp4"\) of LlamaForCausalLM are not supported: mxfp4 is for gpt-oss'):
        read_spec(tmp_path / "llama")
