"""Folders that are written with fewer bits: read by compressed-tensors in transformers, and computing what loading them so computes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from maskwright.cli.quantize import quantize
from maskwright.engine.conversion.quantized_folder import FOLDER_KINDS, write_quantized_folder
from maskwright.engine.errors import ConfigError
from maskwright.engine.models.spec import read_spec

from ..conftest import MODELS as FAMILIES
from ..conftest import save_tiny_model
from .test_formats import CASES, MODELS, WIDE, assert_same, logits_of, ours, theirs
from .writing import quantise_folder


@pytest.mark.parametrize("kind", FOLDER_KINDS)
@pytest.mark.parametrize("model", [*MODELS, "odd"])
def test_a_folder_is_what_others_read(model: str, kind: str, tmp_path: Path) -> None:
    class_name, changes = MODELS.get(model, ("LlamaConfig", {**WIDE, "intermediate_size": 90}))  # rows of no whole groups, or words
    folder = save_tiny_model(tmp_path / "folder", class_name, changes, max_shard_size="40KB").folder
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    seen: list[tuple[int, int]] = []
    write_quantized_folder(folder, tmp_path / "target", kind, lambda done, total: seen.append((done, total)))
    found = ours(tmp_path / "target")
    assert_same(found, theirs(tmp_path / "target"))
    assert_same(found, logits_of(folder, replace(read_spec(folder), quantization=FOLDER_KINDS[kind])))
    assert seen[-1][0] == seen[-1][1] == len(seen)
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["chat_template.jinja", "config.json", "generation_config.json", "model.safetensors"]


def test_experts_are_written_one_by_one_and_routers_as_they_are(tmp_path: Path) -> None:
    changes: dict[str, Any] = {**WIDE, "num_experts": 4, "moe_intermediate_size": 64, "num_experts_per_tok": 2}
    folder = save_tiny_model(tmp_path / "folder", "Qwen3MoeConfig", changes).folder
    write_quantized_folder(folder, tmp_path / "target", "INT4")
    stored = load_file(tmp_path / "target" / "model.safetensors")
    assert stored["model.layers.0.mlp.experts.3.up_proj.weight_packed"].shape == (64, 8)
    assert stored["model.layers.0.mlp.gate.weight"].dtype == torch.float32
    ignored = json.loads((tmp_path / "target" / "config.json").read_text())["quantization_config"]["ignore"]
    assert "model.layers.0.mlp.gate" in ignored and "lm_head" in ignored
    assert_same(ours(tmp_path / "target"), logits_of(folder, replace(read_spec(folder), quantization="int4")))


def test_the_command_writes_a_folder(tmp_path: Path, tiny_model) -> None:
    import typer

    app = typer.Typer()
    app.command()(quantize)
    folder = tiny_model("llama").folder
    result = CliRunner().invoke(app, [str(folder), str(tmp_path / "target"), "--type", "fp8"])
    assert result.exit_code == 0, result.output
    assert read_spec(tmp_path / "target").quantization.method == "compressed-tensors"


def test_what_cannot_be_written_is_named(tmp_path: Path, tiny_model) -> None:
    folder = tiny_model("llama").folder
    with pytest.raises(ConfigError, match='"Q4_K" cannot be written into a folder; choose one of FP8, INT8, INT4'):
        write_quantized_folder(folder, tmp_path / "target", "Q4_K")
    with pytest.raises(ConfigError, match="there is something already"):
        write_quantized_folder(folder, folder, "INT8")
    quantised, _ = quantise_folder(save_tiny_model(tmp_path / "plain", *MODELS["llama"]).folder, tmp_path, *CASES["gptq-4"])
    with pytest.raises(ConfigError, match="LlamaForCausalLM is quantised already"):
        write_quantized_folder(quantised, tmp_path / "target", "INT8")
    other = save_tiny_model(tmp_path / "other", "OlmoConfig", {}).folder
    with pytest.raises(ConfigError, match="OlmoForCausalLM is not computed natively"):
        write_quantized_folder(other, tmp_path / "target", "INT8")
    assert FAMILIES and not (tmp_path / "target").exists()
