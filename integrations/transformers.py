"""transformers' continuous batching under constraints, another one for each request.

    from maskwright.integrations.transformers import constrained

    with constrained(model, constraint):
        outputs = model.generate_batch(prompts, generation_config, ContinuousBatchingConfig(use_async_batching=False))

    with constrained(model), model.continuous_batching_context_manager(generation_config) as manager:
        manager.add_request(prompt, constraint=constraint)

`generate` needs none of this: `maskwright.LogitsProcessor` is a logits processor as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)
from transformers.generation.logits_process import LogitsProcessorList

from ..constraints import Constraint, State
from ..constraints.runtime.constraint import FINISHED
from ..constraints.runtime.mask_batches import make_masks
from ..errors import UsageError
from ..kernels.sampler.interface import UNCONSTRAINED
from ..row_states import mask_within
from .resident_masks import MaskWords, ResidentMasks
from .versions import check_version

TESTED = ("5.20", "5.21", "5.22", "5.23")
NUM_MASKS = 1024  # rows of the resident table: 16 MB for 128k tokens


class ContinuousBatchingConstraint(ContinuousBatchingLogitsProcessor):
    """One row number a request into a table of masks that stays on the device.

    constraint: of requests that name none; None: these are not constrained.
    head: how many logits the model has for a token, at least V.

    A request's `max_new_tokens` is its budget: its output is complete by then, if so many tokens can suffice.
    """

    supported_kwargs: dict[str, type] = {"constraint": Constraint}  # noqa: RUF012  as the base class has it
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(
        self, constraint: Constraint | None, head: int, device: torch.device | str, num_masks: int = NUM_MASKS
    ) -> None:
        self.constraint, self.head = constraint, head
        self.masks = ResidentMasks(num_masks, -(-head // 32), device)
        self._known: dict[str, tuple[Constraint, list[int], State | None]] = {}  # of the last step, by request
        if constraint is not None:
            check_fit(constraint, head)

    def fill_defaults(self, int32_tensor: Tensor) -> None:
        """Rows of no request are not constrained."""
        int32_tensor.fill_(UNCONSTRAINED)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> Tensor:
        """int32 [requests]: the row of each request's mask, after the tokens that it has by now."""
        states = [request.state for request in requests_with_new_token]
        self._known = {state.request_id: known for state in states if (known := self._state_of(state)) is not None}
        make_masks((constraint, state) for constraint, _, state in self._known.values() if state is not None)
        masks: dict[Hashable, Callable[[], MaskWords]] = {}
        names = [self._name_mask(state, masks) for state in states]
        rows = self.masks.rows(masks)
        return torch.tensor([UNCONSTRAINED if name is None else rows[name] for name in names], dtype=torch.int32)

    def __call__(self, scores: Tensor, tensor_arg: Tensor) -> Tensor:
        """`scores` [tokens, head] under the masks of rows `tensor_arg` int32 [>= tokens]."""
        masked = scores.clone(memory_format=torch.contiguous_format)
        self.masks.ban(masked, tensor_arg[: scores.shape[0]])
        return masked

    def _state_of(self, request: Any) -> tuple[Constraint, list[int], State | None] | None:
        """(constraint, tokens, state behind them, None if they are not allowed) of a request; None if it is not constrained."""
        constraint = request.logit_processor_kwargs.get("constraint", self.constraint)
        if constraint is None:
            return None
        if request.position_offset != len(request.initial_tokens) + len(request.generated_tokens):
            raise UsageError(_ASYNCHRONOUS)
        tokens = request.generated_tokens
        if request._true_initial_tokens:  # it was displaced: what it had generated became a part of its prompt
            tokens = request.initial_tokens[request._true_initial_tokens :] + tokens
        known, before, state = self._known.get(request.request_id, (constraint, [], constraint.start()))
        if known is not constraint or tokens[: len(before)] != before:
            before, state = [], constraint.start()
        for token_id in tokens[len(before) :]:
            if state is not None and state != FINISHED:
                state = constraint.advance(state, token_id) if token_id < constraint.vocabulary.size else None
        return constraint, list(tokens), state

    def _name_mask(self, request: Any, masks: dict[Hashable, Callable[[], MaskWords]]) -> Hashable:
        """What names the mask of a request, which is put into `masks`; None if it is not constrained."""
        if request.request_id not in self._known:
            return None
        constraint, _, state = self._known[request.request_id]
        if state is None:
            state = FINISHED  # continued against its mask, by whatever else forbids tokens: it may only end
        limit = request.max_new_tokens
        mask = mask_within(constraint, state, None if limit is None else limit - len(request.generated_tokens))
        if mask is constraint.mask(state):
            numbers, rows = constraint.mask_rows([state])
            name: Hashable = rows, int(numbers[0])
        else:
            name = mask.tobytes()
        masks[name] = lambda: mask
        return name


class ConstrainedProcessors(ContinuousBatchingLogitsProcessorList):
    """The processors of a manager, behind a constraint for each request."""

    def __init__(self, given: ContinuousBatchingLogitsProcessorList, constraint: ContinuousBatchingConstraint) -> None:
        self.logits_processor = LogitsProcessorList([constraint, *given.logits_processor])
        self.tensors_required = given.tensors_required + 1
        self.do_processing = True
        self.constraint = constraint
        self._retrieve_processors_kwargs()

    def check_kwargs(self, kwargs: dict[str, Any]) -> None:
        """What a request gives for the processors. Raises UsageError; only that request fails."""
        constraint = kwargs.get("constraint")
        if isinstance(constraint, Constraint):
            check_fit(constraint, self.constraint.head)
        super().check_kwargs({name: value for name, value in kwargs.items() if name != "constraint" or value is not None})


def constrain(manager: Any, constraint: Constraint | None = None, *, num_masks: int = NUM_MASKS) -> None:
    """Let a `ContinuousBatchingManager` that has not been started take constraints: `manager.add_request(ids, constraint=...)`.

    constraint: of requests that name none (None by name: not constrained). num_masks: how many masks stay on the device.

    Raises UsageError; UnsupportedEngine for releases not tested.
    """
    check_version("transformers", ("transformers",), TESTED)
    if isinstance(manager.logit_processor, ConstrainedProcessors):  # one that is kept from call to call
        manager.logit_processor.constraint.constraint = constraint
        return
    if manager.batch_processor is not None:
        raise UsageError("the manager has been started or warmed up: constrain it before")
    if manager.continuous_batching_config.use_async_batching:
        raise UsageError(_ASYNCHRONOUS)
    head = manager.model.config.get_text_config().vocab_size
    processor = ContinuousBatchingConstraint(constraint, head, manager.model.device, num_masks)
    manager.logit_processor = ConstrainedProcessors(manager.logit_processor, processor)


@contextmanager
def constrained(model: Any, constraint: Constraint | None = None, *, num_masks: int = NUM_MASKS) -> Iterator[None]:
    """Within the block, `model.generate_batch` and `model.continuous_batching_context_manager` take constraints.

    constraint, num_masks: see `constrain`.
    """
    begin, before = model.init_continuous_batching, vars(model).get("init_continuous_batching")

    def begin_constrained(*args: Any, **kwargs: Any) -> Any:
        manager = begin(*args, **kwargs)
        constrain(manager, constraint, num_masks=num_masks)
        return manager

    model.init_continuous_batching = begin_constrained
    try:
        yield
    finally:
        if before is None:
            del model.init_continuous_batching  # the method of its class is below
        else:
            model.init_continuous_batching = before


def check_fit(constraint: Constraint, head: int) -> None:
    """Raises UsageError where a model with `head` logits a token cannot be constrained so."""
    vocabulary = constraint.vocabulary
    if vocabulary.size > head:
        advice = f"build it with Vocabulary.from_tokenizer(tokenizer, size={head})"
        raise UsageError(f"the vocabulary has {vocabulary.size} ids, but the model has logits for {head} only; {advice}")
    if not vocabulary.eos_token_ids:
        raise UsageError("the vocabulary names no EOS token, so no request could end; give eos_token_ids")


_ASYNCHRONOUS = (
    "with asynchronous batching a step is prepared before the token of the step before it is known, so no mask can be: "
    "give ContinuousBatchingConfig(use_async_batching=False)"
)
