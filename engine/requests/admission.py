"""From a request to a sequence: what can never run is refused here, before it costs anything."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Tokens
from typing import Any

from ...constraints.vocabulary.vocabulary import Vocabulary
from ...foundation.errors import UsageError
from ...sampling import SamplingError, SamplingParams, SequenceSampling, StopMatcher
from ...sampling.logits_stages import LogitsStage, RowStages, StageRequest, set_up
from ...sampling.stopping import StoppingCriterion
from ..adapters.loaded import LoadedAdapter
from ..adapters.registry import AdapterRegistry
from ..errors import BudgetTooSmall, PromptTooLong, RequestError
from ..limits import Limits
from .canonical import CanonicalPairs
from .detokenizer import Detokenizer
from .endings import ending_maker
from .guide import Guide
from .request import Constraint, Request
from .sequence import Sequence
from .steering import steering_for


def admit(
    request_id: int,
    request: Request,
    vocabulary: Vocabulary,
    limits: Limits,
    adapters: AdapterRegistry | None = None,
    *,
    steers: bool = True,
    canonical: Callable[[], CanonicalPairs] | None = None,
    stages: Tokens[LogitsStage] = (),
    criteria: Tokens[StoppingCriterion] = (),
) -> Sequence:
    """Make a request into a sequence. Raises RequestError, which names what cannot run as asked.

    adapters: those that it may ask for. max_tokens is cut to what the model's length leaves after the prompt. steers: whether
    loops are ended, where the request does not say otherwise. canonical: the pairs of the model's tokenizer, where it is known.
    stages, criteria: logits processors and stopping criteria of every request, before its own; constraints know no criteria.
    """
    _check_prompt(request.prompt_token_ids, vocabulary, limits)
    max_tokens = min(request.sampling.max_tokens, limits.max_model_len - len(request.prompt_token_ids))
    pairs = _canonical(request, canonical)
    guide = _guide(request, vocabulary, max_tokens, limits, steers, pairs)
    min_tokens = request.sampling.min_tokens if guide is None else guide.min_tokens
    sampling = _sampling(request, vocabulary, guide)
    known = _known(request, sampling, vocabulary)
    make_ending = ending_maker(request.ending, (*criteria, *request.sampling.stopping_criteria) if guide is None else (), known)
    return Sequence(
        request_id=request_id,
        request=request,
        max_tokens=max_tokens,
        min_tokens=min(min_tokens, max_tokens),
        sampling=sampling,
        detokenizer=Detokenizer(vocabulary.text_tokens, len(request.healed)),
        stop_matcher=_stop_matcher(request.sampling),
        guide=guide,
        make_ending=make_ending,
        ending=None if make_ending is None else make_ending(),
        stages=_stages((*stages, *request.sampling.logits_processors), known),
        adapter=_adapter(request.adapter, adapters),
    )


def _known(request: Request, sampling: SequenceSampling, vocabulary: Vocabulary) -> StageRequest:
    """What stages and criteria may know of a request."""
    return StageRequest(
        prompt_token_ids=request.prompt_token_ids,
        sampling=request.sampling,
        seed=sampling.seed,
        vocab_size=vocabulary.size,
        eos_token_ids=sampling.eos_token_ids,
        spellings=vocabulary.text_tokens,
        is_constrained=request.constraint is not None,
    )


def _stages(stages: Tokens[LogitsStage], known: StageRequest) -> RowStages | None:
    try:
        return set_up(stages, known)
    except UsageError as error:
        raise RequestError(str(error)).about("logits_processors") from error


def _adapter(name: str | None, adapters: AdapterRegistry | None) -> LoadedAdapter | None:
    if name is None:
        return None
    if adapters is None:
        raise RequestError(f'adapter "{name!s:.80}": this engine has no adapters').about("adapter")
    return adapters.find(name)


def _check_prompt(token_ids: Tokens[int], vocabulary: Vocabulary, limits: Limits) -> None:
    if len(token_ids) > limits.max_prompt_len:
        raise PromptTooLong(len(token_ids), limits.max_prompt_len, limits.shortest)
    for token_id in (min(token_ids), max(token_ids)):
        if not 0 <= token_id < vocabulary.size:
            place, last = token_ids.index(token_id), vocabulary.size - 1
            raise RequestError(f"prompt token {place} is {token_id}; the vocabulary has the ids 0 to {last}").about("prompt")


def _sampling(request: Request, vocabulary: Vocabulary, guide: Guide | None) -> SequenceSampling:
    try:
        return SequenceSampling(
            request.sampling,
            vocab_size=vocabulary.size,
            prompt_token_ids=request.prompt_token_ids,
            eos_token_ids=vocabulary.eos_token_ids if guide is None else guide.end_ids,
            spellings=vocabulary.text_tokens,
        )
    except SamplingError as error:
        raise RequestError(str(error)) from error


def _stop_matcher(sampling: SamplingParams) -> StopMatcher | None:
    if not sampling.stop:
        return None
    return StopMatcher(sampling.stop, include_stop_in_output=sampling.include_stop_in_output)


def _canonical(request: Request, canonical: Callable[[], CanonicalPairs] | None) -> CanonicalPairs | None:
    if not request.sampling.canonical:
        return None
    if canonical is None:
        raise RequestError("canonical needs the model's tokenizer, and this engine was made without one").about("canonical")
    return canonical()


def _guide(
    request: Request, vocabulary: Vocabulary, max_tokens: int, limits: Limits, steers: bool, canonical: CanonicalPairs | None
) -> Guide | None:
    constraint = request.constraint
    if constraint is None:
        return None
    _check_vocabulary(constraint.vocabulary, vocabulary)
    _check_stop_tokens(constraint, request.sampling)
    steering = steering_for(constraint, request.sampling.loop_bound, request.begun) if steers else None
    state, before = _state_after(constraint, request.begun), request.prompt_token_ids[-1]
    guide = Guide(constraint, max_tokens, request.sampling.stop_token_ids, state, steering, canonical, before)
    if guide.min_tokens > max_tokens:
        was_cut = request.sampling.max_tokens >= guide.min_tokens
        raise BudgetTooSmall(max_tokens, guide.min_tokens, limits.shortest if was_cut else None)
    return guide


def _state_after(constraint: Constraint, begun: bytes) -> Any:
    """The state behind what the prompt ends with of the output."""
    state = constraint.advance_bytes(constraint.start(), begun)
    if state is None:
        raise RequestError(f"no output that satisfies the constraint begins with {begun.decode(errors='replace')!r}").about("begun")
    return state


def _check_vocabulary(compiled_for: Vocabulary, vocabulary: Vocabulary) -> None:
    """Refuse a constraint for other tokens than the engine's. End-of-text ids may differ: those of the constraint hold then."""
    if compiled_for is vocabulary or compiled_for == vocabulary or compiled_for.tokens == vocabulary.tokens:
        return
    raise RequestError(
        f"the constraint was compiled for another vocabulary, of {compiled_for.size} tokens, than this model's, of "
        f"{vocabulary.size}; compile it with the vocabulary of this engine"
    )


def _check_stop_tokens(constraint: Constraint, sampling: SamplingParams) -> None:
    text_tokens = constraint.vocabulary.text_tokens
    for token_id in sampling.stop_token_ids:
        if text_tokens[token_id] is not None:
            raise RequestError(
                f"stop token {token_id} is text, which in a constrained output belongs to the constraint"
            ).about("stop_token_ids")
