"""Modules of transformers of which each rank holds a share, by the plan that comes with their model.

transformers has a table for each model, name of a module or parameter -> how it is cut; its own loading makes DTensors of that.
Here parameters are cut when they are loaded, and `forward` of a module whose results have to be put together is replaced. In
that table "colwise" cuts outputs, the rows of a matrix as PyTorch stores it, and "rowwise" inputs, its columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import ConfigError, UnsupportedModel
from ..models.transformers_model import TransformersSpec
from ..sharding.peers import Peers
from ..sharding.ranks import Rank, Share

Forward = Callable[..., Any]


def check_dealing(spec: TransformersSpec, size: int) -> None:
    """That a model can be dealt out to `size` ranks.

    Raises UnsupportedModel where transformers has no plan for it, or one with a way of cutting that is not known here; ConfigError
    where heads of attention do not come out even.
    """
    refused, plan = f"tensor_parallel={size}: {spec.architecture} is computed by transformers, which", dict(spec.sharding)
    if not plan:
        raise UnsupportedModel(f"{refused} has no plan of how to deal it out (base_model_tp_plan): leave it out")
    if strange := sorted(set(plan.values()) - STYLES.keys()):
        raise UnsupportedModel(f'{refused} deals it out as "{strange[0]}", which is not known here: leave it out')
    if not any(style == "colwise" and "attn" in name for name, style in plan.items()):
        return  # all ranks attend with all heads
    for name, count in spec.head_counts:
        if count % size:
            raise ConfigError(f"{refused} deals out {name}={count} evenly: choose a number of ranks that divides it")


def deal_out(model: Any, peers: Peers) -> None:
    """Leave in a model of transformers what the rank of `peers` holds, and have its modules meet those of the others.

    By the model's own plan, which `check_dealing` has found good; what that does not name all ranks hold.
    """
    plan: Mapping[str, str] = model._tp_plan
    held = dict[int, nn.Parameter]()  # of a parameter, which two modules may share
    for name, module in list(model.named_modules()):
        style = plan.get(_pattern(name), "")
        for own_name, parameter in list(module.named_parameters(recurse=False)):
            if (cut := STYLES[plan.get(_pattern(f"{name}.{own_name}"), style)].cut) is not None:
                if id(parameter) not in held:
                    held[id(parameter)] = nn.Parameter(cut(parameter, peers.rank), requires_grad=False)
                setattr(module, own_name, held[id(parameter)])
        forward = _head if style == GATHERED and module is model.get_output_embeddings() else STYLES[style].forward
        if forward is not None:
            module.forward = partial(forward, module, module.forward, peers)


def _pattern(name: str) -> str:
    """`model.layers.3.mlp` as plans have it: `model.layers.*.mlp`."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name)


# ---- what a rank holds of a parameter


def _outputs(whole: Tensor, rank: Rank) -> Tensor:
    return _cut(whole, max(whole.ndim - 2, 0), rank)


def _inputs(whole: Tensor, rank: Rank) -> Tensor:
    return whole if whole.ndim == 1 else _cut(whole, -1, rank)  # a bias is added once, to the sum


def _outputs_of_two(whole: Tensor, rank: Rank) -> Tensor:
    """Of two matrices one under another."""
    axis = max(whole.ndim - 2, 0)
    return torch.cat([_cut(half, axis, rank) for half in whole.chunk(2, axis)], axis)


def _inputs_of_two(whole: Tensor, rank: Rank) -> Tensor:
    return whole if whole.ndim == 1 else torch.cat([_cut(half, -1, rank) for half in whole.chunk(2, -1)], -1)


def _tokens(whole: Tensor, rank: Rank) -> Tensor:
    return _cut(whole, 0, rank)


def _cut(whole: Tensor, axis: int, rank: Rank) -> Tensor:
    share = rank.share(whole.shape[axis])
    return whole.detach().narrow(axis, share.first, len(share)).clone()


# ---- how modules meet: `own` is a module's forward with what the rank holds


def _summed(module: Any, own: Forward, peers: Peers, x: Tensor) -> Tensor:
    product = peers.sum(nn.functional.linear(x, module.weight))
    return product if module.bias is None else product + module.bias


def _summed_of_own(module: Any, own: Forward, peers: Peers, x: Tensor) -> Tensor:
    share = peers.rank.share(x.shape[-1])
    return _summed(module, own, peers, x[..., share.first : share.stop])


def _gathered(module: Any, own: Forward, peers: Peers, x: Tensor) -> Tensor:
    """All ranks' outputs beside each other, on all ranks."""
    share, mine = peers.rank.share(module.out_features), own(x)
    return peers.sum(nn.functional.pad(mine, (share.first, share.count - share.stop)))


def _head(module: Any, own: Forward, peers: Peers, x: Tensor) -> Tensor:
    """All ranks' outputs beside each other, on rank 0."""
    mine, size = own(x), peers.rank.size
    widths = [len(Rank(number, size).share(module.out_features)) for number in range(size)]
    return peers.columns(mine.flatten(0, -2), widths).unflatten(0, mine.shape[:-1])


def _looked_up(module: Any, own: Forward, peers: Peers, token_ids: Tensor) -> Tensor:
    share: Share = peers.rank.share(module.num_embeddings)
    module.padding_idx = None  # which is a row of the whole, and matters to gradients alone
    is_own = (token_ids >= share.first) & (token_ids < share.stop)
    rows = own(torch.where(is_own, token_ids - share.first, 0))
    return peers.sum(rows * is_own[..., None].to(rows.dtype))


def _all_summed(module: Any, own: Forward, peers: Peers, *args: Any, **kwargs: Any) -> Tensor:
    return peers.sum(own(*args, **kwargs))


def _divided(module: Any, own: Forward, peers: Peers, x: Tensor) -> Any:
    """Of an expert that gives back what it is given, the part that a sum over all ranks makes whole."""
    return own(x / peers.rank.size)


class _Style(NamedTuple):
    """One way of dealing out a module, or a parameter."""

    cut: Callable[[Tensor, Rank], Tensor] | None = None
    forward: Callable[..., Any] | None = None


GATHERED = "colwise_gather_output"
_WHOLE = _Style()
STYLES: Mapping[str, _Style] = {
    "": _WHOLE,  # not in the plan
    "colwise": _Style(_outputs),
    GATHERED: _Style(_outputs, _gathered),
    "rowwise": _Style(_inputs, _summed),
    "rowwise_split_input": _Style(_inputs, _summed_of_own),
    "packed_colwise": _Style(_outputs_of_two),
    "packed_rowwise": _Style(_inputs_of_two),
    "embedding_rowwise": _Style(_tokens, _looked_up),
    "moe_tp_experts": _Style(forward=_all_summed),
    "moe_identity_expert": _Style(forward=_divided),
    # These concern gradients, or how transformers itself keeps what is cut.
    "replicated_with_grad_allreduce": _WHOLE, "mla_kv_a_proj": _WHOLE, "local_params": _WHOLE, "replicate": _WHOLE,
}  # fmt: skip
