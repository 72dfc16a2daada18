"""A decode step with and without a constraint: what masks and the automaton add to the sampler, and to a whole step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from automaton_cases import known_states
from cases import Case
from sampler_cases import Kind, make_inputs
from timing import Clock, timed

from maskwright.kernels.automaton.backend import choose_operations
from maskwright.kernels.backend import Backend
from maskwright.kernels.sampler.backend import choose_sampler

HIDDEN = 4096  # of the stand-in for a model's forward pass: its last product, which writes the logits


def steps(
    batch: int, vocab_size: int, dtype: torch.dtype, device: torch.device, backend: Backend, *, forward: bool, masks: str
) -> Callable[[], Any]:
    """masks: "none" for free rows; "few" or "most" tokens legal, where every row has a mask and the automaton takes its token."""
    sample, operations = choose_sampler(device, backend), choose_operations(device, backend)
    logits, rows, mask_rows, _, _ = make_inputs(Kind("step", masks=masks), batch, vocab_size, dtype, device)
    hidden_size = HIDDEN if device.type == "cuda" else 16
    hidden = torch.randn(batch, hidden_size, device=device).to(dtype) if forward else None
    head = torch.randn(hidden_size, logits.shape[1], device=device).to(dtype) if forward else None
    slots, tables = known_states(batch, vocab_size, 64, device)

    def free() -> Any:
        if hidden is not None:
            torch.mm(hidden, head, out=logits)
        return sample(logits, rows, vocab_size=vocab_size)

    def constrained() -> Any:
        if hidden is not None:
            torch.mm(hidden, head, out=logits)
        sampled = sample(logits, rows, mask_rows, slots.mask_index, vocab_size=vocab_size)
        operations.advance(sampled.token, slots, tables)
        return sampled

    return free if masks == "none" else constrained


def cases(
    batches: Sequence[int], vocabularies: Sequence[int], dtypes: Sequence[torch.dtype], clock: Clock, backend: Backend
) -> Iterator[Case]:
    for dtype in dtypes:
        for vocab_size in vocabularies:
            for batch in batches:
                for forward in (False, True):
                    for masks in ("none", "few", "most"):
                        what = {"what": "step", "forward": forward, "masks": masks, "batch": batch}
                        what |= {"dtype": str(dtype).removeprefix("torch."), "vocabulary": vocab_size}
                        make = partial(steps, batch, vocab_size, dtype, clock.device, backend, forward=forward, masks=masks)
                        yield timed(what, make, clock)
