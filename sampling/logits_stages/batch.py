"""Stages of one's own, applied to the rows of a batch that have them.

A stage is called once for all rows that have it at the same place of their lists. After each, what was there before is put back
where the mask bans: so neither the draw nor the next stage can see what was written there. Where a stage raises, its rows are tried
one by one, and the draw tells those with which it fails alone by a number; NaN is told by the device, which nobody waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.to_device import to_device
from .context import StageContext, StageRow
from .stage import LOGITS_STAGES, LogitsStage, RowStages

BANNED = float("-inf")
NONE = -1  # in Staged.failed


class Staged(NamedTuple):
    """What stages leave."""

    logits: Tensor  # [rows, V] float32
    has_stages: Tensor  # [rows] bool
    failed: Tensor  # [rows] int64: the place of the stage, in the row's list, that failed with it; NONE
    overridden: Tensor  # [rows] bool: stages and bans leave nothing of what the mask allows, and the model's logits hold


class BatchStages:
    """The stages of the rows of one draw, as the text is now."""

    def __init__(self, rows: Sequence[tuple[RowStages | None, list[int], int]]) -> None:
        """rows: of each its stages, the tokens of its sequence and how many of them count."""
        self._rows = list(rows)
        for stages, _, _ in rows:
            if stages is not None:
                stages.failure = ""

    @torch.no_grad()
    def apply(self, logits: Tensor, allowed: Tensor | None, drawable: Tensor | None, vocab_size: int) -> Staged:
        """logits [rows, head width], not changed; allowed, drawable [rows, V] bool, None for everything: what masks allow, and what
        bans leave of it."""
        model = logits[:, :vocab_size].to(torch.float32, copy=True)
        current, device = model.clone(), logits.device
        failed = torch.full((len(model),), NONE, device=device)
        own = [place for place, (stages, _, _) in enumerate(self._rows) if stages is not None]
        for number in range(max(len(self._stages(place)) for place in own)):
            for stage, places in self._alike(own, number):
                where = to_device(np.array(places, np.int64), device)
                within = None if allowed is None else allowed[where]
                context = StageContext([self._row(place, number) for place in places], vocab_size, device, within)
                before, is_failed = current[where], failed[where]
                after, raised = self._run(stage, before, context, [self._rows[place][0] for place in places])
                bad = after.isnan() if within is None else after.isnan() & within
                bad = bad.any(-1) | raised
                kept = ~bad[:, None] if within is None else ~bad[:, None] & within
                current[where] = torch.where(kept, after, before)
                failed[where] = torch.where(bad & (is_failed == NONE), number, is_failed)
        has_stages = to_device(np.array([stages is not None for stages, _, _ in self._rows]), device)
        left = current != BANNED if drawable is None else (current != BANNED) & drawable
        overridden = has_stages & ~left.any(-1)
        return Staged(torch.where(overridden[:, None], model, current), has_stages, failed, overridden)

    def _stages(self, place: int) -> tuple[tuple[LogitsStage, Any], ...]:
        stages = self._rows[place][0]
        return () if stages is None else stages.stages

    def _alike(self, own: list[int], number: int) -> list[tuple[LogitsStage, list[int]]]:
        """Each stage that rows have at this place, with the rows."""
        found: dict[int, tuple[LogitsStage, list[int]]] = {}
        for place in own:
            if number < len(self._stages(place)):
                stage, _ = self._stages(place)[number]
                found.setdefault(id(stage), (stage, []))[1].append(place)
        return list(found.values())

    def _row(self, place: int, number: int) -> StageRow:
        stages, tokens, num_tokens = self._rows[place]
        assert stages is not None
        return StageRow(stages.request, stages.stages[number][1], tokens, num_tokens)

    def _run(
        self, stage: LogitsStage, before: Tensor, context: StageContext, rows: list[RowStages | None]
    ) -> tuple[Tensor, Tensor]:
        """What a stage makes of some rows, and of which it made nothing."""
        raised = torch.zeros(len(before), dtype=torch.bool, device=before.device)
        try:
            return _checked(stage, before, context), raised
        except Exception as error:
            if len(before) == 1:
                assert rows[0] is not None
                rows[0].failure = f"{type(error).__name__}: {error}"
                return before, ~raised
        tried = [self._run(stage, before[p : p + 1], context.row(p), rows[p : p + 1]) for p in range(len(before))]
        return torch.cat([after for after, _ in tried]), torch.cat([alone for _, alone in tried])


def _checked(stage: LogitsStage, before: Tensor, context: StageContext) -> Tensor:
    """What the stage gives, as float32. Raises where that is not logits for these rows."""
    after = stage.apply(before.clone(), context)
    wanted = f"logits {list(before.shape)} on {before.device}"
    if not isinstance(after, Tensor):
        raise TypeError(f"`apply` gave {type(after).__name__}, not {wanted}")
    if after.shape != before.shape or not after.is_floating_point() or after.device != before.device:
        raise ValueError(f"`apply` gave {after.dtype} {list(after.shape)} on {after.device}, not {wanted}")
    return after.float()


def failure_text(stages: RowStages, number: int) -> str:
    """How the stage at a place failed with a row."""
    name = LOGITS_STAGES.called(stages.stages[number][0])
    return f'logits processor "{name}": {stages.failure or "it gave NaN for a token that the mask allows"}'
