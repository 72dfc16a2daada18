"""Files that are written anew in other blocks hold what the library makes of the numbers, and the metadata as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from maskwright.engine.errors import ConfigError
from maskwright.engine.gguf.files import open_gguf
from maskwright.engine.gguf.reader import Strings
from maskwright.engine.gguf.writer import KINDS, write_quantized

from ..conftest import save_tiny_model
from .test_models import BLOCKS, logits
from .writing import Kind, write_gguf


def plain(value: object) -> object:
    return value.read() if isinstance(value, Strings) else value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_in_other_blocks_is_what_a_converter_writes(kind: str, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", BLOCKS).folder
    source = write_gguf(tmp_path / "source.gguf", folder)
    fine = {"token_embd": Kind.Q8_0, "^output": Kind.Q8_0} if kind.startswith(("Q4", "Q5")) else {}
    expected = open_gguf(write_gguf(tmp_path / "expected.gguf", folder, Kind[kind], overrides=fine))
    write_quantized(source, tmp_path / "target.gguf", kind)
    found = open_gguf(tmp_path / "target.gguf")
    assert found.tensors.keys() == expected.tensors.keys()
    for name, tensor in expected.tensors.items():
        assert (found.tensors[name].type, found.tensors[name].shape) == (tensor.type, tensor.shape), name
        assert found.tensors[name].data.equal(tensor.data), name
    for name, value in open_gguf(source).metadata.items():
        assert plain(found.metadata[name]) == plain(value)
    assert logits(tmp_path / "target.gguf").isfinite().all()


def test_a_split_model_becomes_one_file(tmp_path: Path, tiny_model: Callable) -> None:
    write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder, split=11)
    (first, *_) = sorted(tmp_path.iterdir())
    write_quantized(first, tmp_path / "whole.gguf", "F16")
    assert open_gguf(tmp_path / "whole.gguf").tensors.keys() == open_gguf(first).tensors.keys()


def test_what_cannot_be_written_is_named(tmp_path: Path, tiny_model: Callable) -> None:
    source = write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder)
    with pytest.raises(ConfigError, match='"Q4_K" cannot be written; choose one of F32, F16'):
        write_quantized(source, tmp_path / "target.gguf", "Q4_K")
    with pytest.raises(ConfigError, match="this is the model that is read"):
        write_quantized(source, source, "Q8_0")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_quantized(source, tmp_path / "nowhere" / "target.gguf", "Q8_0")
