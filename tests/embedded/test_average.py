"""Averages of weights: as much of each folder as its share says, in the type of the first; other matrices are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

sys.path.append(str(Path(__file__).parents[2] / "training"))

from average import average


def folder(path: Path, **tensors: torch.Tensor) -> Path:
    path.mkdir()
    save_file(tensors, path / "model.safetensors")
    return path


def test_each_counts_by_its_share(tmp_path: Path) -> None:
    one, other = (torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)).bfloat16() for seed in range(2))
    folders = {folder(tmp_path / "one", a=one): 1.5, folder(tmp_path / "other", a=other): -0.5}
    made = average(folders)
    assert list(made) == ["a"] and torch.equal(made["a"], (1.5 * one.double() - 0.5 * other.double()).bfloat16())


def test_others_are_refused(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", a=torch.zeros(2))
    for name, tensors in {"longer": {"a": torch.zeros(3)}, "named": {"b": torch.zeros(2)}}.items():
        with pytest.raises(SystemExit, match="do not have the same matrices"):
            average({one: 0.5, folder(tmp_path / name, **tensors): 0.5})
