"""The sampler on batches of one kind, and other ways to do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from cases import Case, Line
from timing import Clock
from torch import Tensor

from maskwright.kernels.backend import Backend
from maskwright.kernels.sampler.backend import choose_sampler
from maskwright.kernels.sampler.interface import UNCONSTRAINED, SamplerRows, Stages, TokenValues
from maskwright.kernels.sampler.parameters import filled


class Kind(NamedTuple):
    """What the rows of a batch want. masks: "none", "few" legal tokens, "most" tokens legal, or "mixed" with free rows."""

    name: str
    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    masks: str = "none"
    num_edits: int = 0  # tokens a row with penalties
    scale: float = 4.0  # of the normal logits: 4 is as peaked as a model's, 1 is nearly flat


KINDS = [
    Kind("greedy", temperature=0.0),
    Kind("temperature 1", temperature=1.0),
    Kind("temperature"),
    Kind("temperature, few legal", masks="few"),
    Kind("temperature, most legal", masks="most"),
    Kind("temperature, mixed", masks="mixed"),
    Kind("top-k 50", top_k=50),
    Kind("top-p 0.9", top_p=0.9),
    Kind("top-k 50, top-p 0.9, mixed", top_k=50, top_p=0.9, masks="mixed"),
    Kind("top-p 0.9, flat", top_p=0.9, scale=1.0),
    Kind("penalties", num_edits=512),
]


class Inputs(NamedTuple):
    logits: Tensor  # [batch, head width]
    rows: SamplerRows
    mask_rows: Tensor | None
    mask_index: Tensor | None
    vocab_size: int


def make_inputs(kind: Kind, batch: int, vocab_size: int, dtype: torch.dtype, device: torch.device) -> Inputs:
    generator = torch.Generator(device).manual_seed(0)
    width = -(-vocab_size // 64) * 64
    logits = (torch.randn(batch, width, generator=generator, device=device) * kind.scale).to(dtype)

    penalty = 1.2 if kind.num_edits else 1.0
    used = {"top_k": kind.top_k > 0, "top_p": kind.top_p < 1}
    rows = SamplerRows(
        parameters=filled(
            batch, device, temperature=kind.temperature, top_k=kind.top_k, top_p=kind.top_p, repetition_penalty=penalty
        ),
        seed=torch.arange(batch, device=device),
        position=torch.zeros(batch, dtype=torch.int64, device=device),
        stages=Stages(kind.temperature > 0, frozenset(name for name in used if used[name]), kind.top_k),
        history=history(kind.num_edits, batch, vocab_size, generator) if kind.num_edits else None,
    )
    mask_rows, mask_index = make_masks(kind.masks, batch, vocab_size, generator)
    return Inputs(logits, rows, mask_rows, mask_index, vocab_size)


def history(count: int, batch: int, vocab_size: int, generator: torch.Generator) -> TokenValues:
    count, device = min(count, vocab_size), generator.device
    tokens = torch.stack([torch.randperm(vocab_size, generator=generator, device=device)[:count] for _ in range(batch)])
    offsets = torch.arange(0, batch * count + 1, count, device=device)
    return TokenValues(offsets, tokens.flatten(), torch.ones(batch * count, device=device))


def make_masks(
    masks: str, batch: int, vocab_size: int, generator: torch.Generator
) -> tuple[Tensor | None, Tensor | None]:
    """A pool of 64 masks, as many as a batch that shares a few constraints needs. Legal tokens lie together, as in a sorted
    vocabulary: 40 of them, or all but two hundred."""
    if masks == "none":
        return None, None
    device, pool = generator.device, 64
    start = torch.randint(max(1, vocab_size - 200), (pool, 1), generator=generator, device=device)
    token = torch.arange(-(-vocab_size // 32) * 32, device=device)
    inside = (token >= start) & (token < start + (40 if masks != "most" else 200))
    legal = (inside if masks != "most" else ~inside) & (token < vocab_size)
    bits = legal.unflatten(1, (-1, 32)).long() << torch.arange(32, device=device)
    index = torch.arange(batch, dtype=torch.int32, device=device) % pool
    if masks == "mixed":
        index[::2] = UNCONSTRAINED
    return bits.sum(-1).to(torch.int32), index


def cases(
    batches: Sequence[int], vocabularies: Sequence[int], dtypes: Sequence[torch.dtype], clock: Clock, bandwidth: float,
    backend: Backend, kinds: Sequence[Kind] = KINDS,
) -> Iterator[Case]:  # fmt: skip
    """The largest batches first: the bars are about those."""
    for dtype in dtypes:
        for vocab_size in vocabularies:
            for batch in sorted(batches, reverse=True):
                for kind in kinds:
                    what = {"what": "sampler", "kind": kind.name, "filters": bool(kind.top_k or kind.top_p < 1)}
                    what |= {"edits": bool(kind.num_edits), "dtype": str(dtype).removeprefix("torch.")}
                    what |= {"vocabulary": vocab_size, "batch": batch}
                    yield Case(what, partial(compared, kind, batch, vocab_size, dtype, clock, bandwidth, backend))


def compared(
    kind: Kind, batch: int, vocab_size: int, dtype: torch.dtype, clock: Clock, bandwidth: float, backend: Backend
) -> Iterator[Line]:
    inputs = make_inputs(kind, batch, vocab_size, dtype, clock.device)
    num_bytes = batch * vocab_size * dtype.itemsize
    for name, call in ways(inputs, kind, backend):
        try:
            seconds, captured = clock.seconds(call)
        except Exception as error:
            if name == "maskwright":
                raise
            yield {"by": name, "error": str(error).splitlines()[0]}  # a rival that cannot run must not end the run
            continue
        rate = num_bytes / seconds
        yield {"by": name, "us": seconds * 1e6, "logits_gb_s": rate / 1e9, "times_floor": bandwidth / rate, "graph": captured}


def ways(inputs: Inputs, kind: Kind, backend: Backend) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, call) of everything that draws from these inputs."""
    sample = choose_sampler(inputs.logits.device, backend)
    logits, rows, mask_rows, mask_index, vocab_size = inputs
    yield "maskwright", lambda: sample(logits, rows, mask_rows, mask_index, vocab_size=vocab_size)
    if not kind.num_edits:
        masked = xgrammar_masks(inputs) if kind.masks != "none" else lambda: logits[:, :vocab_size].float()
        prefix = "" if kind.masks == "none" else "xgrammar and "
        if masked is not None:
            yield prefix + "torch", lambda: draw_with_torch(masked(), kind)
            draw = flashinfer_draw(kind, vocab_size) if logits.is_cuda else None
            if draw is not None:
                yield prefix + "flashinfer", lambda: draw(masked())


def xgrammar_masks(inputs: Inputs) -> Callable[[], Tensor] | None:
    """A call that copies the logits as fp32 and masks them as XGrammar does; None without XGrammar. One bitmask a row."""
    try:
        import xgrammar
    except ImportError:
        return None
    if inputs.mask_rows is None or inputs.mask_index is None:
        return None
    free = torch.full_like(inputs.mask_rows[:1], -1)
    bitmask = torch.where(
        (inputs.mask_index >= 0)[:, None], inputs.mask_rows[inputs.mask_index.clamp(min=0).long()], free
    ).contiguous()

    def masked() -> Tensor:
        logits = inputs.logits[:, : inputs.vocab_size].float().contiguous()
        xgrammar.apply_token_bitmask_inplace(logits, bitmask)
        return logits

    return masked


def flashinfer_draw(kind: Kind, vocab_size: int) -> Callable[[Tensor], Tensor] | None:
    """FlashInfer's sampling of fp32 logits; None without FlashInfer."""
    try:
        from flashinfer import sampling
    except ImportError:
        return None
    if kind.temperature == 0:
        return lambda logits: logits.argmax(-1)
    if not kind.top_k and kind.top_p == 1:
        return lambda logits: sampling.sampling_from_logits(logits / kind.temperature)
    top_k = min(kind.top_k or vocab_size, vocab_size)
    return lambda logits: sampling.top_k_top_p_sampling_from_logits(logits / kind.temperature, top_k, kind.top_p)


def draw_with_torch(logits: Tensor, kind: Kind) -> Tensor:
    """Sorting and `multinomial`'s own trick (an exponential race), as engines without sampling kernels do it."""
    if kind.temperature == 0:
        return logits.argmax(-1)
    logits = logits / kind.temperature
    if kind.top_k or kind.top_p < 1:
        ordered, order = logits.sort(-1)
        if kind.top_k:
            k = min(kind.top_k, logits.shape[-1])
            ordered = ordered.masked_fill(ordered < ordered[:, -k].unsqueeze(1), -torch.inf)
        if kind.top_p < 1:
            below = ordered.softmax(-1).cumsum(-1) <= 1 - kind.top_p
            below[:, -1] = False
            ordered = ordered.masked_fill(below, -torch.inf)
        logits = torch.empty_like(logits).scatter_(-1, order, ordered)
    probabilities = logits.softmax(-1)
    return (probabilities / torch.empty_like(probabilities).exponential_()).argmax(-1)
