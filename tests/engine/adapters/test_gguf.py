"""GGUF: adapters of peft over packed weights, and adapters as llama.cpp's converter writes them, over either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from maskwright.engine.adapters.reading import read_adapter
from maskwright.engine.errors import AdapterError
from maskwright.engine.models.spec import read_spec

from ..conftest import run_all
from ..gguf.writing import Kind, as_folder, write_gguf
from ..models.test_decoder import random_tokens
from .making import make_engine, peft_adapter, peft_logits, request
from .test_models import adapted_model, logits_of

ALL = {"target_modules": "all-linear"}


def turned(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries or keys as llama.cpp has them: halves of each head in turn (`LlamaModel.permute`)."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def write_adapter(folder: Path, path: Path, architecture: str, spec: Any, *, is_turned: bool, **changes: Any) -> None:
    """What convert_lora_to_gguf.py makes of a folder of peft."""
    config = json.loads((folder / "adapter_config.json").read_text())
    arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, spec.num_layers)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type(changes.get("type", "adapter"))
    writer.add_string("adapter.type", changes.get("adapter_type", "lora"))
    if "alpha" not in changes:
        writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
    elif changes["alpha"] is not None:
        writer.add_float32("adapter.lora.alpha", changes["alpha"])
    if "alora" in changes:
        writer.add_array("adapter.alora.invocation_tokens", changes["alora"])
    tensors = {name: tensor.numpy() for name, tensor in load_file(folder / "adapter_model.safetensors").items()}
    for name, array in {**tensors, **changes.get("tensors", {})}.items():
        module, half = name.removeprefix("base_model.model.").removesuffix(".weight").rsplit(".lora_", 1)
        for projection, heads in (("q_proj", spec.num_heads), ("k_proj", spec.num_kv_heads)):
            if is_turned and module.endswith(projection) and half == "B":
                array = turned(array, heads)
        found = names.get_name(module) or module
        writer.add_tensor(f"{found}.weight.lora_{half.lower()}", np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def made(tiny_model, tmp_path_factory):
    """name of a family -> (folder, GGUF file of the model in float32, folder of an adapter, GGUF file of it, peft's model)"""
    built: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in built:
            tiny, where = tiny_model(name), tmp_path_factory.mktemp(name)
            reference = peft_adapter(tiny, where / "adapter", **ALL)
            write_gguf(where / "model.gguf", tiny.folder)
            spec = read_spec(tiny.folder)
            write_adapter(where / "adapter", where / "adapter.gguf", name, spec, is_turned=name == "llama")
            built[name] = tiny.folder, where / "model.gguf", where / "adapter", where / "adapter.gguf", reference
        return built[name]

    return get


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "phi3"])
@pytest.mark.parametrize("model_as", ["folder", "gguf"])
@pytest.mark.parametrize("adapter_as", ["folder", "gguf"])
def test_either_adapter_over_either_model_is_peft(family, model_as, adapter_as, made):
    folder, file, adapter, adapter_file, reference = made(family)
    model, slots = adapted_model(folder if model_as == "folder" else file, adapter if adapter_as == "folder" else adapter_file)
    tokens = random_tokens(17)
    torch.testing.assert_close(logits_of(model, slots, tokens, 1), peft_logits(reference, tokens), atol=4e-4, rtol=4e-4)


@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.Q4_1])
def test_over_packed_weights_it_adds_what_it_adds_over_their_numbers(kind, made, tmp_path):
    folder, _, adapter, _, _ = made("llama")
    packed = write_gguf(tmp_path / "model.gguf", folder, kind)
    tokens, found = random_tokens(17), []
    for model_folder in (packed, as_folder(packed, folder, tmp_path / "same")):
        model, slots = adapted_model(model_folder, adapter)
        found.append(logits_of(model, slots, tokens, 1) - logits_of(model, slots, tokens, -1))
    assert found[0].abs().max() > 0.1
    torch.testing.assert_close(*found, atol=2e-3, rtol=2e-3)


def test_an_engine_runs_both_kinds_in_one_batch(made):
    _, file, adapter, adapter_file, _ = made("llama")
    engine = make_engine(file, {"peft": adapter, "gguf": adapter_file})
    prompt = random_tokens(9)
    outputs = run_all(engine, {0: [request(prompt, name) for name in ("peft", "gguf", None)]})
    assert outputs[0].token_ids == outputs[1].token_ids != outputs[2].token_ids


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "model"}, 'general.type and adapter.type are \'model\' and \'lora\', not "adapter" and "lora"'),
    ({"adapter_type": "ia3"}, "general.type and adapter.type are 'adapter' and 'ia3'"),
    ({"alpha": None}, '"adapter.lora.alpha" is a number, not None'),
    ({"alpha": float("inf")}, '"adapter.lora.alpha" is a number, not inf'),
    ({"alora": [1, 2]}, "aLoRA is not supported"),
    ({"tensors": {"base_model.model.model.embed_tokens.lora_A": np.zeros((4, 99), np.float32)}}, "tensor token_embd.weight.lora_a: adapters of the embedding are not supported"),
    ({"tensors": {"blk.0.ffn_up_exps.lora_A": np.zeros((4, 32), np.float32)}}, "tensor blk.0.ffn_up_exps.weight.lora_a: this model has no such linear layer; adapters of the experts"),
    ({"tensors": {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": np.zeros((4, 33), np.float32)}}, "blk.0.attn_q.weight.lora_a: it has shape [4, 33]"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_what_is_refused_is_named(changes, message, made, tmp_path):
    folder, _, adapter, _, _ = made("llama")
    spec = read_spec(folder)
    write_adapter(adapter, tmp_path / "a.gguf", "llama", spec, is_turned=True, **changes)
    with pytest.raises(AdapterError) as caught:
        read_adapter(tmp_path / "a.gguf", spec, 16)
    assert message in str(caught.value)


def test_an_alpha_of_0_means_a_scale_of_1(made, tmp_path):
    folder, _, adapter, _, _ = made("llama")
    spec = read_spec(folder)
    write_adapter(adapter, tmp_path / "a.gguf", "llama", spec, is_turned=True, alpha=0.0)
    assert {part.scale for part in read_adapter(tmp_path / "a.gguf", spec, 16).parts.values()} == {1.0}


def test_files_that_are_no_adapters(made, tmp_path):
    folder, file, *_ = made("llama")
    spec = read_spec(folder)
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + bytes(10))
    for path, message in ((file, "general.type and adapter.type are None and None"), (tmp_path / "x.gguf", "x.gguf")):
        with pytest.raises(AdapterError, match=message):
            read_adapter(path, spec, 16)
