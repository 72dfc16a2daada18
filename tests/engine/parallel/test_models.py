"""Shares of every native family: logits of all ranks together are those of one device."""

from __future__ import annotations

import pytest
import torch

from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec

from ..conftest import save_tiny_model
from ..models.test_linear import FAMILIES, logits_of
from ..models.test_decoder import random_tokens
from .ranks import CPU, load_share, on_all_ranks

TOKENS = random_tokens(23)


def whole_logits(folder, **options) -> torch.Tensor:
    return logits_of(load_model(folder, read_spec(folder), torch.float32, CPU, 128, **options), TOKENS)


def shared_logits(folder, size: int, **options) -> torch.Tensor:
    return on_all_ranks(size, lambda peers: logits_of(load_share(folder, peers, **options), TOKENS))[0]


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_of_two_ranks_are_those_of_one_device(name, tmp_path):
    folder = save_tiny_model(tmp_path, *FAMILIES[name]).folder
    torch.testing.assert_close(shared_logits(folder, 2), whole_logits(folder), atol=1e-4, rtol=1e-4)
