"""Which share of a model a rank holds: one table for decoders, one for Mamba 2, in the names of `models/layout.py`.

As in Megatron-LM (arXiv:1909.08053) a layer is cut twice: matrices that widen give each rank some rows, whole heads or inner
features, and those that narrow some columns, so that what ranks compute has only to be added. Experts are whole, some on each rank;
embedding and head are cut by tokens. Norms, routers and what latent attention has in common are on all ranks.

Nothing here knows how a checkpoint stores a matrix, joined or apart: a rule cuts the rows of all parts one under another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import ConfigError
from ..models.architecture import ModelInfo, ModelSpec
from ..models.layout import Source, Sources, head_name, sources_of
from ..models.mamba import MambaSpec, mamba_sources
from ..sharding.cuts import Cut, Range
from ..sharding.ranks import Rank, Share

GRANULE = 256  # inner features are dealt out in pieces of at most so many: the largest block of any packed format


@dataclass(frozen=True, slots=True)
class Rows:
    """A rank holds some rows of a matrix, which are things of these kinds, one under another."""

    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """A rank holds some columns of a matrix, which are things of one kind, and products are summed over the ranks."""

    kind: str


Rule = Rows | Columns

DECODER: Mapping[str, Rule] = {
    "embedding": Rows(("vocabulary",)),
    "head": Rows(("vocabulary",)),
    "attention.qkv": Rows(("heads", "kv_heads", "kv_heads")),
    "attention.output": Columns("heads"),
    "attention.query_up": Rows(("heads",)),
    "attention.absorb": Rows(("heads",)),
    "attention.value_up": Rows(("heads",)),
    "mlp.up": Rows(("inner", "inner")),
    "mlp.down": Columns("inner"),
    "mlp.shared.up": Rows(("shared", "shared")),
    "mlp.shared.down": Columns("shared"),
    "mlp.experts.gate_up": Rows(("experts",)),
    "mlp.experts.down": Rows(("experts",)),
}
MAMBA: Mapping[str, Rule] = {
    "embedding": Rows(("vocabulary",)),
    "head": Rows(("vocabulary",)),
    "in": Rows(("inner", "inner", "states", "states", "heads")),
    "conv": Rows(("inner", "states", "states")),
    "conv_bias": Rows(("inner", "states", "states")),
    "dt_bias": Rows(("heads",)),
    "A_log": Rows(("heads",)),
    "D": Rows(("heads",)),
    "gate_norm": Rows(("inner",)),
    "out": Columns("inner"),
}


@dataclass(frozen=True)
class ParallelPlan:
    """What one rank holds of one model. `shares` has its share of each kind of thing, `own` the model's spec with those sizes."""

    rank: Rank
    spec: ModelInfo
    own: ModelInfo
    rules: Mapping[str, Rule]
    shares: Mapping[str, Share]

    @property
    def head(self) -> str:
        return head_name(self.spec)

    def rule(self, name: str) -> Rule | None:
        """How a linear layer, or another tensor, is cut, by its name of ours; None: all ranks hold all of it."""
        return self.rules.get(_within_layer(name))

    @cached_property
    def sources(self) -> Sources:
        """The table of `models/layout.py`, with what of each part this rank holds; biases that are added once are rank 0's."""
        whole, own = _sources(self.spec), _sources(self.own)
        return {
            name: replace(source, finish=own[name].finish, cuts=self._cuts(name, source))
            for name, source in whole.items()
            if not (self.rank.number and name.endswith(".bias") and isinstance(self.rule(_layer(name)), Columns))
        }

    def _cuts(self, name: str, source: Source) -> tuple[Cut, ...] | None:
        rule = self.rule(_layer(name))
        if rule is None or (isinstance(rule, Columns) and name.endswith(".bias")):
            return None
        if isinstance(rule, Columns):
            width, share = source.parts[0][1][1], self.shares[rule.kind]
            held = share.times(width // share.count)
            return tuple(Cut.of(1, width, [(held.first, held.stop)]) for _ in source.parts)
        return tuple(_cuts_of_rows([shape[0] for _, shape in source.parts], [self.shares[kind] for kind in rule.kinds]))


def _cuts_of_rows(heights: Sequence[int], shares: Sequence[Share]) -> Iterator[Cut]:
    """What is held of parts of these heights, whose rows are one under another. All shares count things of the same size."""
    size, begin, ranges = sum(heights) // sum(share.count for share in shares), 0, list[Range]()
    for share in (share.times(size) for share in shares):
        ranges.append((begin + share.first, begin + share.stop))
        begin += share.count
    begin = 0
    for height in heights:
        inside = [(max(first, begin) - begin, min(stop, begin + height) - begin) for first, stop in ranges]
        yield Cut.of(0, height, [(first, stop) for first, stop in inside if first < stop])
        begin += height


def plan_of(spec: ModelInfo, rank: Rank) -> ParallelPlan:
    """What a rank holds of a native model. Raises ConfigError where there is too little for all ranks."""
    shared = {"vocabulary": rank.share(_enough(spec.vocab_size, "tokens", rank))}
    if isinstance(spec, MambaSpec):
        return _mamba_plan(spec, rank, shared)
    assert isinstance(spec, ModelSpec), "others are dealt out by `modules.py`"
    return _decoder_plan(spec, rank, shared)


def _decoder_plan(spec: ModelSpec, rank: Rank, shared: Mapping[str, Share]) -> ParallelPlan:
    if spec.latent is None:
        heads, kv_heads = grouped_shares(spec.num_heads, spec.num_kv_heads, rank)
    else:  # one latent for all heads, which all ranks keep
        heads = kv_heads = rank.share(_enough(spec.num_heads, "attention heads", rank))
    shares = {**shared, "heads": heads, "kv_heads": kv_heads, "inner": _inner(spec.intermediate_size, rank)}
    own, experts, rules = replace(spec, num_heads=len(heads), num_kv_heads=len(kv_heads)), spec.experts, dict(DECODER)
    if spec.qk_norm in ("heads", "joint"):
        rules["attention.qk_norm"] = Rows(("heads", "kv_heads"))
    if not spec.is_gated:
        rules["mlp.up"] = Rows(("inner",))
    if experts is not None:
        shares["experts"] = rank.share(_enough(experts.count, "experts", rank))
        if experts.shared_size:
            shares["shared"] = _inner(experts.shared_size, rank)
        own = replace(own, experts=replace(experts, count=len(shares["experts"])))
    return ParallelPlan(rank, spec, own, rules, shares)


def _mamba_plan(spec: MambaSpec, rank: Rank, shared: Mapping[str, Share]) -> ParallelPlan:
    heads, groups = grouped_shares(spec.num_heads, spec.num_groups, rank)
    states, inner = groups.times(spec.state_size), heads.times(spec.head_dim)
    shares = {**shared, "heads": heads, "inner": inner, "states": states, "groups": groups}
    own = replace(spec, num_heads=len(heads), num_groups=len(groups))
    return ParallelPlan(rank, spec, own, MAMBA, shares)


def grouped_shares(num_heads: int, num_groups: int, rank: Rank) -> tuple[Share, Share]:
    """(heads, groups that they are of) of a rank, where as many heads are of each group, such as those of a head of keys.

    Whole groups where there are enough for all ranks; else each group is on several ranks, which share its heads.
    Raises ConfigError where that does not come out even.
    """
    per_group = num_heads // num_groups
    if num_groups >= rank.size:
        groups = rank.share(num_groups)
        return groups.times(per_group), groups
    ranks_per_group, rest = divmod(rank.size, num_groups)
    if rest or ranks_per_group > per_group:
        raise ConfigError(
            f"tensor_parallel={rank.size} does not fit {num_heads} heads in {num_groups} groups, which are held whole or by as "
            f"many ranks each; choose {_fitting(num_heads, num_groups)}"
        )
    group, number = divmod(rank.number, ranks_per_group)
    within = Rank(number, ranks_per_group).share(per_group)
    first = group * per_group
    return Share(num_heads, first + within.first, first + within.stop), Share(num_groups, group, group + 1)


def _fitting(num_heads: int, num_groups: int) -> str:
    """The numbers of ranks that heads in groups can be dealt out to."""
    more = [str(num_groups * times) for times in range(2, num_heads // num_groups + 1)]
    return " or ".join([f"at most {num_groups}", *more[:3]])


def _inner(size: int, rank: Rank) -> Share:
    """Inner features, in pieces as large as they may be."""
    piece = GRANULE
    while piece > 1 and (size % piece or size // piece < rank.size):
        piece //= 2
    return rank.share(_enough(size // piece, "inner features", rank)).times(piece)


def _enough(count: int, what: str, rank: Rank) -> int:
    if count < rank.size:
        raise ConfigError(f"tensor_parallel={rank.size} is more than the {count} {what} of this model; choose at most {count}")
    return count


def _sources(spec: ModelInfo) -> Sources:
    if isinstance(spec, MambaSpec):
        return mamba_sources(spec)
    assert isinstance(spec, ModelSpec), "others are dealt out by `modules.py`"
    return sources_of(spec)


def _layer(tensor: str) -> str:
    """The object that a tensor belongs to."""
    return tensor.removesuffix(".weight").removesuffix(".bias")


def _within_layer(name: str) -> str:
    return name.split(".", 2)[2] if name.startswith("layers.") else name
