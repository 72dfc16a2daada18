"""Several decode steps a visit of the host: forward pass, draw and constraint states of all rows, again and again on the device.

The input of each step is where the last one left it (`decode_batch.py`), masks are where the device's automaton says, and random
numbers are numbered there. A row that cannot go on without the host (its next state or mask is not known there, its token was
refused by the budget, its text is complete) draws nothing until the visit is over, and the other rows go on. What the device cannot
see, stop strings and end-of-text of free text, the host finds in the tokens, and drops those behind it.

Rows that need the host at every step keep the whole batch from it: penalties (which count tokens), DRY, n-grams and bad words
(which read the text), mirostat (which follows what is drawn), `min_tokens`, forced text taken ahead (`jump_forward`), masks near
the limit of tokens, constraints whose masks are made on the host, and a value that is ended because the model loops in it. A visit
is over before such a loop may be seen.

A step reads and writes the same addresses each time. So on a GPU it is captured in a CUDA graph (`graphs.py`), one for each number
of rows in `BUCKETS` and each set of sampler stages; rows beyond those in use pad. Batches with biased or banned tokens, or with
programs of stages, are not captured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kernels.sampler.interface import MISSING, NO_TOKEN, Sampled, SamplerRows
from ...kernels.sampler.parameters import ParameterArrays, filled
from ...kernels.to_device import to_device
from ...sampling.batch import pack_bias, pack_fixed
from ..attention.decode_batch import NOBODY, DecodeBatch, DecodeBuffers
from ..device.graphs import StepGraphs
from ..device_constraints.automata import DeviceAutomata
from ..requests.sequence import Sequence
from ..steps.runner import ModelRunner
from ..steps.step_sampler import SamplingInputs, StepSampler
from .device_readings import Read
from .slots import SlotTable

BUCKETS = (1, 2, 4, 8, *range(16, 257, 16), *range(288, 4097, 32))  # rows of a captured step


class Start(NamedTuple):
    """Where the rows of a visit stand, as far as the host knows."""

    token_ids: list[int]
    num_past: list[int]
    block_tables: list[list[int]]
    adapters: list[int]  # slots; -1 for none


class MultiStep:
    """num_steps: of a visit at most. Memory of fixed addresses for up to `max_rows` rows."""

    def __init__(
        self,
        runner: ModelRunner,
        sampler: StepSampler,
        slots: SlotTable,
        automata: DeviceAutomata,
        *,
        num_steps: int,
        max_blocks: int,
        block_size: int,
        graphs: StepGraphs | None = None,
    ) -> None:
        self.num_steps, self._graphs = num_steps, graphs
        self._runner, self._sampler, self._slots, self._automata = runner, sampler, slots, automata
        most = max(bucket_of(slots.num_slots - 1), slots.num_slots - 1) if graphs else slots.num_slots - 1
        self._buffers = DecodeBuffers(most, max_blocks, block_size, slots.device)
        self._memory = StepMemory(most, num_steps, slots)

    def work(
        self, sequences: list[Sequence], start: Start, num_steps: int, *, continues: bool, has_news: bool
    ) -> Callable[[], Read]:
        """The device's work of a visit. continues: these rows, where the visit before left them, which nobody has read yet."""
        sampling_inputs = self._wishes(sequences)
        of_slots = [self._slots.of(sequence) for sequence in sequences]
        num_rows = len(sequences)
        captures = self._graphs is not None and sampling_inputs.rows.bias is None and sampling_inputs.rows.programs is None
        padded = bucket_of(num_rows) if captures else num_rows
        has_adapters = max(start.adapters) >= 0

        def work() -> Read:
            if continues:
                self._buffers.write_tables(start.block_tables)
            else:
                self._buffers.fill(*start)
                self._memory.seat(of_slots, sampling_inputs.rows)
            if has_news:
                self._automata.settle()
            self._memory.begin(sampling_inputs.num_top_logprobs)
            batch = self._buffers.batch(padded, has_adapters=has_adapters)
            if not captures:
                batch = replace(batch, block_tables=batch.block_tables[:, : max(map(len, start.block_tables))])
            step = self._step(batch, sampling_inputs, padded)
            adapters = self._runner.adapter_version if has_adapters else None
            for _ in range(num_steps):
                if captures and self._graphs is not None:
                    self._graphs.run((padded, sampling_inputs.rows.stages, sampling_inputs.num_top_logprobs, adapters), step)
                else:
                    step()
            self._automata.mark()
            return self._memory.read(num_rows, num_steps, self._automata)

        return work

    def _wishes(self, sequences: list[Sequence]) -> SamplingInputs:
        samplings = [sequence.sampling for sequence in sequences]
        rows = pack_fixed(samplings, self._slots.device)._replace(bias=pack_bias(samplings, self._slots.device))
        return SamplingInputs(rows, max(sequence.request.sampling.logprobs or 0 for sequence in sequences))

    def _step(self, batch: DecodeBatch, sampling_inputs: SamplingInputs, num_rows: int) -> Callable[[], None]:
        """One step of the rows of `batch`, in place: what a graph captures."""
        memory, automata, runner = self._memory, self._automata, self._runner
        rows, of_slots = memory.rows(num_rows, sampling_inputs.rows), memory.of_slots[:num_rows]

        def step() -> None:
            slots = automata.slots
            logits = runner.decode(batch)
            mask_index = torch.where(batch.positions >= 0, slots.mask_index[of_slots], MISSING)
            drawing = sampling_inputs._replace(rows=rows._replace(position=slots.draw[of_slots]))
            sampled = self._sampler.sample(logits, drawing, automata.mask_rows, mask_index)
            memory.keep(sampled)
            before = slots.taken[of_slots]
            automata.step(memory.offer(of_slots, sampled.token))
            batch.advance(torch.where(slots.taken[of_slots] > before, sampled.token, NOBODY))

        return step


class StepMemory:
    """What steps read and write besides the forward pass and the automaton, at fixed addresses."""

    def __init__(self, max_rows: int, num_steps: int, slots: SlotTable) -> None:
        device = slots.device
        self.of_slots = torch.full((max_rows,), slots.idle, dtype=torch.int64, device=device)
        self._idle, self._max_rows, self._num_steps = slots.idle, max_rows, num_steps
        self._parameters = filled(max_rows, device, temperature=0.0)
        self._seed = torch.zeros(max_rows, dtype=torch.int64, device=device)
        self._offered = torch.full((slots.num_slots,), NO_TOKEN, dtype=torch.int64, device=device)
        self._step = torch.zeros(1, dtype=torch.int64, device=device)  # number of the step in its visit
        self._drawn: dict[int, Sampled] = {}  # top log-probabilities wanted -> [steps, rows] of each
        self._current: Sampled | None = None

    def seat(self, of_slots: list[int], rows: SamplerRows) -> None:
        """Who is in which row; the others pad."""
        padding = [self._idle] * (self._max_rows - len(of_slots))
        self.of_slots.copy_(to_device(np.array(of_slots + padding), self.of_slots.device))
        for there, given in zip((*self._parameters, self._seed), (*rows.parameters, rows.seed), strict=True):
            there[: len(of_slots)].copy_(given)

    def begin(self, num_top: int) -> None:
        self._step.zero_()
        if num_top not in self._drawn:
            self._drawn[num_top] = self._allocate(num_top)
        self._current = self._drawn[num_top]

    def rows(self, num_rows: int, sampling_inputs: SamplerRows) -> SamplerRows:
        parameters = ParameterArrays(*(array[:num_rows] for array in self._parameters))
        return sampling_inputs._replace(parameters=parameters, seed=self._seed[:num_rows])

    def keep(self, sampled: Sampled) -> None:
        """Note the draws of this step."""
        assert self._current is not None
        for there, drawn in zip(self._current, sampled, strict=True):
            if drawn.numel():
                there[:, : len(drawn)].index_copy_(0, self._step, drawn[None])
        self._step.add_(1)

    def offer(self, of_slots: Tensor, token: Tensor) -> Tensor:
        """The tokens by slot; padding rows all write NO_TOKEN to the idle one."""
        return self._offered.fill_(NO_TOKEN).index_copy_(0, of_slots, token.clamp_min(NO_TOKEN))

    def read(self, num_rows: int, num_steps: int, automata: DeviceAutomata) -> Read:
        """Copies, for the next visit writes to the same memory."""
        assert self._current is not None
        of_slots, slots = self.of_slots[:num_rows], automata.slots
        drawn = Sampled(*(part[:num_steps, :num_rows].clone() for part in self._current))
        return Read(*drawn, slots.state[of_slots], slots.pending[of_slots], slots.flags[of_slots])

    def _allocate(self, num_top: int) -> Sampled:
        def empty(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros(self._num_steps, self._max_rows, *shape, dtype=dtype, device=self.of_slots.device)

        return Sampled(
            token=empty(torch.int64),
            logprob=empty(torch.float32),
            kept_mass=empty(torch.float64),
            num_allowed=empty(torch.int64),
            bans_overridden=empty(torch.bool),
            top_token=empty(torch.int64, num_top),
            top_logprob=empty(torch.float32, num_top),
            share=empty(torch.float32, 0),  # nobody who learns from it is drawn here
        )


def bucket_of(num_rows: int) -> int:
    """The rows of the smallest captured step that has room for so many."""
    place = bisect_left(BUCKETS, num_rows)
    return BUCKETS[place] if place < len(BUCKETS) else num_rows


def needs_host(sequence: Sequence) -> bool:
    """Whether the next draws of a sequence depend on what only the host knows."""
    sampling, guide = sequence.sampling, sequence.guide
    if sampling.follows_text or sequence.stages is not None:
        return True
    if guide is None:
        return False
    is_narrowed = guide.is_narrowed or guide.is_steered
    return guide.has_masks_of_its_own or is_narrowed or sequence.request.sampling.jump_forward
