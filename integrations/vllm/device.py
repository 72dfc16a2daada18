"""For Model Runner V2: a logits processor whose states advance on the device, beside vLLM's own path through the host.

    vllm serve MODEL --logits-processors maskwright.integrations.vllm.device:MaskwrightLogitsProcessor
    SamplingParams(extra_args={"maskwright": {"json": schema}})             the members of vLLM's structured_outputs, one of them
    {"vllm_xargs": {"maskwright": "{\\"json\\": {...}}"}, ...}                over HTTP, as text

A step takes the tokens that vLLM has committed on the device and moves every state by the tables there. The host reads one number,
whether some sequence got where nobody was before; only then it looks at states, fills in what is missing, and goes on.

Source of what it has to do: vllm/v1/worker/gpu/sample/logits_processor/interface.py, release 0.33.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsContext, LogitsProcessor, LogitsProcRequestState

from ...kernels.automaton.interface import Fact, Flag
from ...kernels.sampler.interface import UNCONSTRAINED
from ..walk import FINISHED

if TYPE_CHECKING:
    from ...constraints import Compiler, Constraint, Source

ARGUMENT = "maskwright"  # of a request
KINDS = {"json": "json_schema", "json_object": "json_object", "regex": "regex", "grammar": "grammar", "choice": "choice",
         "structural_tag": "structural_tag"}  # fmt: skip
FRONT_END_SECONDS = 2.0  # of processor time, compiling one constraint to find out whether it is refused
FOREVER = 1 << 28  # tokens left: a token that vLLM has committed cannot be refused any more, so there is no budget
THREADS = 2  # that compile while prompts are computed

logger = logging.getLogger(__name__)


@dataclass
class Followed:
    """A request in its slot: what constrains it, and how far the host has followed it."""

    compiled: Future[Constraint]
    start: int  # place of the first token of the output in all_token_ids
    seen: int  # tokens of the output that the device has taken, or was placed behind
    state: Any = None  # after `count` tokens of the output
    count: int = 0
    is_placed: bool = False


class MaskwrightLogitsProcessor(LogitsProcessor):
    """Sets the logits of forbidden tokens to -inf. Speculation is refused: drafts have no states on the device."""

    def __init__(self, vllm_config: Any, req_states: LogitsProcRequestState) -> None:
        from ...engine.device_constraints.automata import DeviceAutomata
        from ...kernels.automaton.backend import choose_operations
        from ..compilers import Compilers, whitespace_of
        from .registration import check_vllm

        check_vllm()
        if getattr(vllm_config, "speculative_config", None) is not None:
            raise ValueError("this logits processor knows no drafts: with speculation take the structured-output backend")
        self._states, self._device = req_states, req_states.device
        self._automata = DeviceAutomata(req_states.max_num_reqs, req_states.vocab_size, req_states.device, outputs=1)
        self._operations = choose_operations(req_states.device)
        self._compilers = Compilers(_tokenizer(vllm_config), req_states.vocab_size)
        self._whitespace = whitespace_of(compact=vllm_config.structured_outputs_config.disable_any_whitespace)
        self._pool = ThreadPoolExecutor(THREADS, "maskwright")
        self._followed: dict[int, Followed] = {}
        self._taken = torch.zeros(req_states.max_num_reqs, dtype=torch.int32, device=req_states.device)  # lengths that are known
        self._ended = torch.zeros(req_states.max_num_reqs, dtype=torch.bool, device=req_states.device)  # end of text was read
        self._slots = torch.arange(req_states.max_num_reqs, device=req_states.device)
        self._changed: set[int] = set()  # slots that other requests have now

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse what is no constraint or not enforced exactly. Raises ValueError with what, where and what to do instead.

        Tokens by name are not judged here: the front end tells its processors nothing of the tokenizer.
        """
        from ...constraints import UnsupportedKeyword
        from ...constraints.grammar.tokens import NO_SUCH_TOKEN

        source = asked_source(sampling_params)
        if source is None:
            return
        if sampling_params.structured_outputs is not None:
            raise ValueError(f"extra_args.{ARGUMENT} and structured_outputs constrain one output twice; give one of them")
        try:
            _byte_compiler().compile(source)
        except UnsupportedKeyword as error:
            if error.reason != NO_SUCH_TOKEN:
                raise

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """A request has this slot from now on. Returns whether it is constrained here."""
        self._followed.pop(req_idx, None)
        self._changed.add(req_idx)
        source = asked_source(sampling_params, self._whitespace)
        if source is None:
            return False
        compiled = self._pool.submit(self._compile, source, frozenset(sampling_params.all_stop_token_ids))
        self._followed[req_idx] = Followed(compiled, 0, 0)
        return True

    def apply_staged_writes(self) -> None:
        """Note where outputs begin; one that was preempted has a part of its output already."""
        for slot in self._changed:
            self._automata.vacate(slot)
            self._ended[slot] = False
            if (followed := self._followed.get(slot)) is not None:
                followed.start, length = int(self._states.prompt_len.np[slot]), int(self._states.prefill_len.np[slot])
                followed.seen = length - followed.start
                self._taken[slot] = length
        if self._changed:
            self._changed.clear()
            self._automata.send()
            self._automata.settle()

    def apply(self, logits: Tensor, ctx: LogitsContext) -> Tensor:
        """logits: float32 [rows, V], changed in place."""
        ours = [slot for slot in ctx.idx_mapping_np.tolist() if slot in self._followed]
        if not ours:
            return logits
        self._place_new(ours)
        length = self._states.total_len.gpu
        last = self._states.all_token_ids.gpu[self._slots, (length - 1).clamp(min=0).long()]
        token = torch.where(length > self._taken, last.long(), -1)
        self._taken.copy_(length)
        self._ended |= self._leaves_only_the_end() & (token >= 0)
        self._automata.join()
        self._automata.step(token)
        self._learn_what_is_missing()
        rows = ctx.expanded_idx_mapping.long()
        self._operations.ban(logits, self._automata.mask_rows, self._row_numbers()[rows])
        return logits

    # -- inside ---------------------------------------------------------------------------------------------------------

    def _compile(self, source: Source, end_ids: frozenset[int]) -> Constraint:
        from ...constraints import Choice, ConstraintError

        try:
            return self._compilers.compile(source, end_ids)
        except ConstraintError as error:  # what this vocabulary cannot spell; the front end has judged all else
            logger.error("a constraint was refused behind the front end, its output is left empty: %s", error)
            return self._compilers.compile(Choice([""]), end_ids)

    def _place_new(self, slots: list[int]) -> None:
        new = [slot for slot in slots if not self._followed[slot].is_placed]
        for slot in new:
            followed = self._followed[slot]
            followed.state = followed.compiled.result().start()
            self._follow(slot, followed.seen)
            self._put(slot)
            self._ended[slot] = followed.state == FINISHED
            followed.is_placed = True
        if new:
            self._automata.send()
            self._automata.settle()

    def _put(self, slot: int) -> None:
        followed = self._followed[slot]
        constraint = followed.compiled.result()
        self._automata.place(slot, constraint, followed.state, left=FOREVER, draw=0, taken=followed.count)

    def _follow(self, slot: int, count: int) -> None:
        """Follow a request on the host, up to so many tokens of its output."""
        from ...engine.errors import InternalError

        followed = self._followed[slot]
        if count > followed.count:
            places = slice(followed.start + followed.count, followed.start + count)
            for token in self._states.all_token_ids.gpu[slot, places].tolist():
                followed.state = followed.compiled.result().advance(followed.state, token)
                if followed.state is None:
                    raise InternalError(f"token {token} was taken, but the constraint does not accept it")
            followed.count = count

    def _learn_what_is_missing(self) -> None:
        from ...engine.errors import InternalError

        slots, waits = self._automata.slots, int(Flag.NO_TRANSITION | Flag.NO_ROW | Flag.COUNTED)
        while bool((slots.flags & waits).any()):  # the one number that the host reads
            flags, states, pending = slots.flags.tolist(), slots.state.tolist(), slots.pending.tolist()
            for slot in [slot for slot in self._followed if flags[slot] & waits]:
                try:
                    self._learn(slot, states[slot], pending[slot], flags[slot])
                except InternalError as error:  # another part of vLLM has forced a token, such as the end of thinking
                    logger.error("a constraint is given up in the middle of its output: %s", error)
                    del self._followed[slot]
                    self._automata.place(slot, None, None, left=FOREVER, draw=0, taken=0)
            self._automata.send()
            self._automata.settle()

    def _learn(self, slot: int, state: int, pending: int, flags: int) -> None:
        if flags & Flag.COUNTED:
            self._follow(slot, int(self._states.total_len.gpu[slot]) - self._followed[slot].start)
            self._put(slot)
        else:
            self._automata.learn(state, pending, flags)

    def _row_numbers(self) -> Tensor:
        """[slots] int32: the mask of each, none behind the end of its text."""
        slots, tables = self._automata.slots, self._automata.tables
        end = tables.row[slots.state.clamp(min=0).long()]  # automata stop where nothing else is left
        numbers = torch.where(self._leaves_only_the_end(), end, slots.mask_index)
        return torch.where(self._ended, UNCONSTRAINED, numbers)

    def _leaves_only_the_end(self) -> Tensor:
        """[slots] bool: whether nothing but end of text is legal."""
        state = self._automata.slots.state
        return (state >= 0) & (self._automata.tables.facts[state.clamp(min=0).long()] == int(Fact.ONLY_END))


def asked_source(sampling_params: Any, whitespace: str = "auto") -> Source | None:
    """The constraint that a request asks for; None where it asks for none. Raises ValueError."""
    from ...constraints import ConstraintError
    from ..sources import source_of

    form = (getattr(sampling_params, "extra_args", None) or {}).get(ARGUMENT)
    if form is None:
        return None
    if isinstance(form, str):
        try:
            form = json.loads(form)
        except ValueError as error:
            raise ConstraintError(f"no JSON: {error}", keyword=ARGUMENT) from error
    if not isinstance(form, Mapping) or len(form) != 1 or not KINDS.keys() >= form.keys():
        raise ConstraintError(f"an object with one of {', '.join(KINDS)} is expected", keyword=ARGUMENT)
    ((name, value),) = form.items()
    if name == "json_object" and value is not True:
        raise ConstraintError("true is expected", keyword="json_object")
    is_text = isinstance(value, str) and name != "choice"
    return source_of(KINDS[name], value if is_text else json.dumps(value), whitespace)


@cache
def _byte_compiler() -> Compiler:
    """Judges constraints where no tokenizer is known: every byte is a token."""
    from ...constraints import Compiler, Limits, Vocabulary

    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_token_ids=[256])
    return Compiler(vocabulary, Limits(seconds=FRONT_END_SECONDS))


def _tokenizer(vllm_config: Any) -> Any:
    from vllm.tokenizers import cached_tokenizer_from_config

    return cached_tokenizer_from_config(model_config=vllm_config.model_config)
