"""Who holds what: shares of all ranks make the whole, cuts are what indexing gives, and too little for all is refused by name."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwright.engine.errors import ConfigError
from maskwright.engine.models.spec import read_spec
from maskwright.engine.parallel.plan import grouped_shares, plan_of
from maskwright.engine.quantization.online import quantized
from maskwright.engine.sharding.cuts import Cut
from maskwright.engine.sharding.ranks import Rank
from maskwright.kernels.quantized import BLOCK_TYPES, Packed
from maskwright.kernels.quantized.scaled import dequantize

from ..conftest import save_tiny_model
from ..models.test_linear import FAMILIES


@given(st.integers(0, 40), st.integers(1, 9))
def test_shares_follow_one_another_and_differ_by_one(count: int, size: int) -> None:
    shares = [Rank(number, size).share(count) for number in range(size)]
    assert shares[0].first == 0 and shares[-1].stop == count
    assert all(before.stop == after.first for before, after in pairwise(shares))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 12))
def test_every_head_is_on_one_rank_beside_its_group(num_groups: int, per_group: int, size: int) -> None:
    count = num_groups * per_group
    try:
        shares = [grouped_shares(count, num_groups, Rank(number, size)) for number in range(size)]
    except ConfigError:
        assert num_groups < size and (size % num_groups or size // num_groups > per_group)
        return
    assert [head for heads, _ in shares for head in range(heads.first, heads.stop)] == list(range(count))
    for heads, groups in shares:
        local = len(heads) // len(groups)
        assert len(heads) == local * len(groups) > 0, "as many heads are of each group"
        assert all(groups.first + (head - heads.first) // local == head // per_group for head in range(heads.first, heads.stop))


ranges = st.lists(st.integers(0, 12), max_size=6).map(sorted).map(lambda ends: list(zip(ends[::2], ends[1::2], strict=False)))


@given(ranges, st.integers(0, 1))
def test_a_cut_is_what_indexing_gives(ranges: list[tuple[int, int]], axis: int) -> None:
    whole, cut = torch.arange(144).view(12, 12), Cut.of(axis, 12, ranges)
    places = [place for first, stop in ranges for place in range(first, stop)]
    assert cut.num_held == len(places) and cut.shape((12, 12))[axis] == len(places)
    if places:
        found = cut.tensor(whole)
        assert torch.equal(found, whole.index_select(axis, torch.tensor(places))) and found.is_contiguous()
        assert cut.copies or found.data_ptr() in range(whole.data_ptr(), whole.data_ptr() + whole.nbytes)


@given(st.sampled_from(["int8", "int4", "fp8"]), st.integers(0, 1), st.integers(0, 8), st.integers(0, 8))
def test_cut_codes_stand_for_the_numbers_that_are_held(kind, axis: int, first: int, stop: int) -> None:
    first, stop = sorted((first, stop + 1))
    matrix = quantized(kind, torch.randn(288, 288, generator=torch.Generator().manual_seed(0)))
    cut = Cut.of(axis, 288, [(first * 32, min(stop * 32, 288))])
    if cut.ranges and (found := cut.codes(matrix)) is not None:
        assert torch.equal(dequantize(found), cut.tensor(dequantize(matrix)))
        assert found.num_columns == cut.shape((288, 288))[1]


def test_blocks_are_cut_between_them() -> None:
    kind = BLOCK_TYPES["Q4_0"]
    whole = Packed(kind, torch.arange(3 * 4 * 18, dtype=torch.uint8).view(3, 72))
    cut = Cut.of(1, 128, [(32, 96)])
    assert cut.fits_blocks(32) and not Cut.of(1, 128, [(16, 96)]).fits_blocks(32)
    found = cut.blocks(whole)
    assert (found.num_rows, found.num_columns) == (3, 64)
    assert torch.equal(found.data, whole.data[:, 18:54])


@pytest.mark.parametrize("name", ["llama", "phi3", "mixtral", "deepseek-v3", "llama4", "mamba-plain", "starcoder2"])
@pytest.mark.parametrize("size", [2, 4])
def test_what_is_cut_is_on_one_rank_and_nothing_on_none(name: str, size: int, tmp_path) -> None:
    spec = read_spec(save_tiny_model(tmp_path, *FAMILIES[name]).folder)
    plans = [plan_of(spec, Rank(number, size)) for number in range(size)]
    for tensor, source in plans[0].sources.items():
        for place, (_, shape) in enumerate(source.parts):
            cuts = [plan.sources[tensor].cuts[place] for plan in plans if tensor in plan.sources and plan.sources[tensor].cuts]
            if cuts:
                held = [index for cut in cuts for first, stop in cut.ranges for index in range(first, stop)]
                assert set(held) == set(range(shape[cuts[0].axis])), f"{tensor}: something is on no rank"
                is_shared = len(held) > len(set(held))  # heads of keys, and groups of states, where there are fewer than ranks
                assert not is_shared or tensor.endswith(("qkv.weight", "qkv.bias", "in.weight", "conv", "conv_bias"))
                assert is_shared <= (size == 4)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("llama", 3, "tensor_parallel=3 does not fit 4 heads in 2 groups, .*; choose at most 2 or 4"),
        ("llama", 8, "tensor_parallel=8 does not fit 4 heads in 2 groups"),
        ("deepseek-v3", 5, "tensor_parallel=5 is more than the 4 attention heads of this model; choose at most 4"),
        ("mamba-plain", 3, "tensor_parallel=3 does not fit 8 heads in 2 groups, .*; choose at most 2 or 4 or 6 or 8"),
    ],
)
def test_what_there_is_too_little_of_is_named(name: str, size: int, message: str, tmp_path) -> None:
    spec = read_spec(save_tiny_model(tmp_path, *FAMILIES[name]).folder)
    with pytest.raises(ConfigError, match=message):
        plan_of(spec, Rank(0, size))
