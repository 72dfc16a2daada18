"""A step in one call of compiled code, from tokens to drawn tokens, where each sequence has a few new ones and wants no more.

Behind a model that has gone through all its weights, each object that Python touches is a wait for memory. So what the call reads
is made once, and used again: how rows are drawn as long as the sequences are the same, and all but tokens and positions as long as
the scheduler's plan is. Neither keeps a sequence alive. What comes out is what forward pass and draw give one after the other
(`runner.py`, `step_sampler.py`).
"""

from __future__ import annotations

import ctypes
import weakref
from typing import NamedTuple

import torch
from torch import Tensor

from ...kernels.cpu import decoder as compiled
from ...kernels.cpu.library import loaded
from ...kernels.sampler import compiled as drawing
from ...kernels.sampler.interface import SamplerRows
from ...sampling import BatchPacker
from ..attention.methods import fused
from ..attention.paged import MAX_SHORT
from ..models.decoder import CompiledSteps, Decoder, tables_of
from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk, Plan
from .runner import ModelRunner, packed
from .step_sampler import Drawn, StepSampler, picked_record
from .wanted_columns import SHARE


class _Draws:
    """How the next tokens of some sequences are drawn, which stays the same but for positions and masks."""

    def __init__(self, sequences: list[Sequence], vocab_size: int) -> None:
        count = len(sequences)
        self._of = [weakref.ref(sequence) for sequence in sequences]
        self._rows: SamplerRows = BatchPacker().pack([sequence.sampling for sequence in sequences])
        self.positions = (ctypes.c_int64 * count)()
        self.masks, self.legal = (ctypes.c_void_p * count)(), (ctypes.c_void_p * count)()  # of `mask` and `address_of_legal`
        self.picked = (ctypes.c_int64 * (count * drawing.ROW.size // 8))()
        is_told = any(sequence.request.tells_probabilities for sequence in sequences)
        self.picks = drawing.picks_of(self._rows, vocab_size, is_told=is_told)
        self.picks.position, self.picks.picked = ctypes.addressof(self.positions), ctypes.addressof(self.picked)
        self.has_masks = any(sequence.guide is not None for sequence in sequences)
        self.picks.masks = ctypes.addressof(self.masks) if self.has_masks else None
        self.needs_all = is_told or any(sequence.guide is None for sequence in sequences)
        self.address = ctypes.addressof(self.picks)

    def are_of(self, sequences: list[Sequence]) -> bool:
        """Whether it is these that are drawn for."""
        return [each() for each in self._of] == sequences

    def look(self, chunks: list[Chunk[Sequence]], most: int) -> bool:
        """Take positions and masks as they are now. Returns whether there are masks of no more than `most` tokens, in `legal`."""
        is_few = not self.needs_all
        for row, chunk in enumerate(chunks):
            sequence = chunk.sequence
            self.positions[row] = sequence.sampling.draw_index
            guide = sequence.guide
            if guide is not None:
                self.masks[row] = guide.mask_address
                if is_few:
                    address = guide.address_of_legal(most)
                    self.legal[row], is_few = address, address is not None
        return is_few


class WholeSteps:
    """Computes steps, and draws. Where a model cannot be computed so there are none: see `of`."""

    def __init__(self, runner: ModelRunner, steps: CompiledSteps, decoder: Decoder, vocab_size: int) -> None:
        found = loaded()
        assert found is not None, "there are compiled steps"
        self._call, self._runner, self._model, self._steps = found.maskwright_step, runner, decoder, steps
        self._vocab_size = vocab_size
        self._step, self._input, self._most = compiled.Step(), compiled.StepInput(), vocab_size // SHARE
        self._step.num_words, self._step.most_columns = -(-vocab_size // 32), self._most
        self._address = ctypes.addressof(self._step)
        self._draws = _Draws([], vocab_size)
        self._plan: weakref.ref[Plan[Sequence]] | None = None  # that `_step` was filled for: each sequence has one new token
        self._logits = torch.empty(0, steps.decoder.width)
        self._turns = _turns(decoder, 1)

    @classmethod
    def of(cls, runner: ModelRunner, sampler: StepSampler) -> WholeSteps | None:
        """Steps of a model whose logits are drawn from as they are, in compiled code, in this process."""
        decoder = runner.decoder
        if type(runner) is not ModelRunner or runner.attend is not fused or not isinstance(decoder, Decoder):
            return None
        steps = decoder.whole_steps
        return None if steps is None or not sampler.is_compiled else cls(runner, steps, decoder, sampler.vocab_size)

    @property
    def logits(self) -> Tensor:
        """[chunks, head width], of the last `draw`, until the next one."""
        return self._logits[: self._step.num_logits, : self._steps.decoder.num_columns]

    def draw(self, chunks: list[Chunk[Sequence]]) -> list[Drawn] | None:
        """What comes behind each chunk, whose keys and values are written; None where more is asked for than is done here.

        Nothing is counted as computed. Raises what compiled code raises: the step may be computed again by other means.
        """
        if self._plan is not None and self._plan() is chunks:
            self._advance(chunks)
        elif not self._fill(chunks):
            return None
        draws, step, decoder = self._draws, self._step, self._steps.decoder
        step.masks = ctypes.addressof(draws.legal) if draws.look(chunks, self._most) else None
        self._steps.use_cache(self._runner.cache)
        problem = self._call(decoder.address, self._address, draws.address, torch.get_num_threads())
        if problem:
            raise compiled.failure(problem, step.num_rows)
        sequences = [chunk.sequence for chunk in chunks]
        return list(map(picked_record, sequences, drawing.ROW.iter_unpack(draws.picked)))

    def _advance(self, chunks: list[Chunk[Sequence]]) -> None:
        """The same step as the last one, of the next tokens."""
        numbers, count = self._input.numbers, len(chunks)
        for row, chunk in enumerate(chunks):
            sequence = chunk.sequence
            numbers[row], numbers[count + row] = sequence.token_ids[-1], sequence.num_computed

    def _fill(self, chunks: list[Chunk[Sequence]]) -> bool:
        """Write what the step reads, if it can be computed here."""
        self._plan = None
        if not all(map(_is_plain, chunks)):
            return False
        packing, cache = packed(chunks), self._runner.cache
        if not self._steps.takes_lists(packing.spans, cache, len(packing.token_ids)):
            return False
        tables = tables_of(packing.spans, cache.block_size)
        rows = self._input.rows(packing.token_ids, packing.positions, packing.logit_rows, tables)
        self._turns = _turns(self._model, max(packing.positions) + cache.block_size + 1)
        sequences = [chunk.sequence for chunk in chunks]
        if not self._draws.are_of(sequences):
            self._draws = _Draws(sequences, self._vocab_size)
        if len(chunks) > self._logits.shape[0]:
            self._logits = torch.empty(len(chunks), self._steps.decoder.width)
        step, picks = self._step, self._draws.picks
        step.token_ids, step.positions, step.tables, step.logit_rows = rows.token_ids, rows.positions, rows.tables, rows.logit_rows
        step.num_rows, step.num_logits, step.table_width = rows.num_rows, rows.num_logits, rows.table_width
        step.angles, step.logits = ctypes.addressof(self._turns.table), self._logits.data_ptr()
        picks.logits, picks.stride = self._logits.data_ptr(), self._steps.decoder.width
        if len(packing.token_ids) == len(chunks) and isinstance(chunks, Plan):
            self._plan = weakref.ref(chunks)
        return True


class _Turns(NamedTuple):
    """The angles of ropes, and how C sees them."""

    tensors: list[tuple[Tensor, Tensor]]
    table: ctypes.Array[compiled.Angles]


def _turns(model: Decoder, num_positions: int) -> _Turns:
    tensors = [table.up_to(num_positions) for table in model.angles]
    return _Turns(tensors, compiled.angle_table(tensors))


def _is_plain(chunk: Chunk[Sequence]) -> bool:
    """Whether only the next token is wanted of a sequence, and neither text nor anybody else changes how it is drawn."""
    sequence = chunk.sequence
    is_next_alone = chunk.num_rows == 1 and not chunk.drafts and not chunk.reads_all and chunk.num_tokens <= MAX_SHORT
    is_own = sequence.search_group is None and sequence.stages is None and sequence.adapter is None and bool(sequence.block_table)
    sampling = sequence.sampling
    return is_next_alone and is_own and not sampling.follows_text and not sampling.steps and not sequence.request.sampling.logprobs
