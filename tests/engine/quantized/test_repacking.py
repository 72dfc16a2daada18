"""Formats whose codes are put into another order while they are loaded: which codes, and what stays in memory of the file."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engine.device import memory
from maskwright.engine.device.memory import drop_pages
from maskwright.engine.kv_cache.pages import zeros_by_page
from maskwright.engine.models.checkpoint_weights import read_decoder_weights
from maskwright.engine.models.spec import read_spec
from maskwright.engine.quantization import awq
from maskwright.kernels.quantized.scaled_reference import unpacked

from ..conftest import save_tiny_model
from .test_formats import CASES
from .test_loading_in_place import CPU, LARGE
from .writing import quantise_folder

ROWS_OF_A_WORD = (0, 2, 4, 6, 1, 3, 5, 7)  # from the lowest bits on
is_linux = pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="what is resident of a mapped file is told by Linux")


@given(columns=st.integers(1, 40), count=st.integers(1, 9), at_once=st.sampled_from([1, 100, 1 << 18]), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_words_of_awq_are_turned_into_rows(columns: int, count: int, at_once: int, seed: int) -> None:
    words = torch.randint(-(2**31), 2**31, (columns, count), generator=torch.Generator().manual_seed(seed), dtype=torch.int32)
    codes = [[[(int(word) >> 4 * place) & 15 for place in np.argsort(ROWS_OF_A_WORD)] for word in row] for row in words]
    expected = torch.tensor(codes, dtype=torch.uint8).flatten(1).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(awq, "_CODES_AT_A_TIME", at_once)
        found = awq.transposed(words)
    assert found.shape[1] % 4 == 0
    assert torch.equal(unpacked(found, awq.unsigned(4), columns), expected)


def resident(path: Path) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    found, is_ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0] and not line.split()[0].endswith(":"):
            is_ours = line.endswith(str(path.resolve()))
        elif is_ours and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


@is_linux
@pytest.mark.parametrize("name", ["awq", "gptq-4", "gptq-act-order", "nf4"])
def test_what_was_put_into_another_order_leaves_nothing_of_the_file_in_memory(name: str, tmp_path: Path) -> None:
    larger = {"num_hidden_layers": 1, "intermediate_size": 6144}  # the system maps what lies around a page that is read
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**LARGE, **larger}).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES[name])
    weights, _, _ = read_decoder_weights(quantised, read_spec(quantised), torch.float32, CPU)
    path = quantised / "model.safetensors"
    assert sum(tensor.nbytes for tensor in weights.values()) > path.stat().st_size / 2
    assert resident(path) < 0.4 * path.stat().st_size


@is_linux
def test_pages_are_dropped_of_files_only(tmp_path: Path) -> None:
    size = 4 * memory.LEAST_DROPPED
    (tmp_path / "file").write_bytes(bytes(range(256)) * (size // 256))
    mapped = torch.from_numpy(np.memmap(tmp_path / "file", mode="c"))
    total, count = mapped.long().sum(), resident(tmp_path / "file")
    drop_pages(mapped, [mapped[100:200]])
    assert resident(tmp_path / "file") == count >= size
    drop_pages(mapped)
    assert resident(tmp_path / "file") < size / 2
    assert mapped.long().sum() == total, "it is read again"
    plain = torch.ones(size, dtype=torch.uint8)
    drop_pages(plain)
    assert plain.all()


@is_linux
def test_zeros_take_memory_where_they_are_written() -> None:
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    zeros = zeros_by_page(64 << 20)
    before = held()
    zeros[:: 1 << 20] = 1
    assert held() - before < 16 << 20, "no large pages"
    assert int(zeros.sum()) == 64
