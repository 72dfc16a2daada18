"""POST /completion, /completions and /infill: prompts as llama.cpp takes them, answered in its form."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError

from ...engine.requests.output import Event, RequestOutput, TokenRecord
from ...planning import Plan
from ...sampling import SamplingParams
from ..answering import Events, answer
from ..completions import CompletionBody, plan_completion, silent
from ..deltas import ContentDelta
from ..documentation import answers
from ..errors import ApiError, told_as
from ..remarks import loops_of, remarks_of
from ..replies import reader_of
from ..service import Service
from ..streams import data, error_event, unless_gone
from ..token_logprobs import LogprobWriter
from .answers import LlamaCompletion, LlamaPiece
from .bodies import NAMES, LlamaCompletionBody, as_completion, token_prompts
from .gaps import LlamaInfillBody, ends_of_gaps, gap_prompt
from .timings import Timer

# Those of llama.cpp, in the order in which they are applied unless it is asked for another one.
SAMPLERS = ["penalties", "dry", "temperature", "top_n_sigma", "top_k", "top_p", "typ_p", "min_p", "xtc"]
TOLD = (  # settings that are called here as there
    "temperature", "dynatemp_range", "dynatemp_exponent", "top_k", "top_p", "min_p", "top_n_sigma", "typical_p", "xtc_probability",
    "xtc_threshold", "repeat_last_n", "presence_penalty", "frequency_penalty", "dry_multiplier", "dry_base", "dry_allowed_length",
    "dry_penalty_last_n", "mirostat", "mirostat_tau", "mirostat_eta", "ignore_eos",
)  # fmt: skip
router = APIRouter()


@router.post("/completion", summary="Go on with a prompt, as llama.cpp", responses=answers(LlamaCompletion, LlamaPiece))
@router.post("/completions", summary="Go on with a prompt, as llama.cpp", responses=answers(LlamaCompletion, LlamaPiece))
async def complete(request: Request, body: LlamaCompletionBody) -> Response:
    """llama.cpp's completion, with json_schema and grammar that always hold. Several prompts or outputs are told as a list."""
    service: Service = request.app.state.service
    with told_as(NAMES):
        prompts = await service.in_thread(token_prompts, body.prompt, service.llm, service.settings.max_prompts)
        return await completed(request, body, prompts)


@router.post("/infill", summary="Write what comes between two texts, as llama.cpp", responses=answers(LlamaCompletion, LlamaPiece))
async def infill(request: Request, body: LlamaInfillBody) -> Response:
    """llama.cpp's infill, for models that have marks for it. A constraint holds for what is written in between."""
    service: Service = request.app.state.service
    with told_as(NAMES):
        gap = await service.in_thread(gap_prompt, body, service.llm, service.model_len)
        return await completed(request, body, [gap], ends=ends_of_gaps(service.llm))


async def completed(
    request: Request, body: LlamaCompletionBody, prompts: list[list[int]], ends: Sequence[int] = ()
) -> Response:
    """The answer for prompts as tokens. ends: tokens that end an output beside those that end every text. Raises ApiError."""
    service: Service = request.app.state.service
    asked = await service.in_thread(as_completion, body, service.llm)
    if ends:
        asked["stop_token_ids"] = sorted({*asked.get("stop_token_ids", ()), *ends})
    try:
        made = CompletionBody.model_validate({**asked, "prompt": prompts})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error
    plans = await unless_gone(request, plan_completion(service, made))
    writer = LlamaWriter(service, body, plans, [len(prompt) for prompt in prompts])
    return await answer(request, plans, writer, body.stream, [*body.ignored, *made.ignored], names=body.names)


class LlamaWriter:
    """Makes llama.cpp's answers of the events of all outputs, numbered over all prompts."""

    def __init__(self, service: Service, body: LlamaCompletionBody, plans: Sequence[Plan], lengths: Sequence[int]) -> None:
        """lengths: how many tokens each prompt had as it was sent."""
        self._service, self._body = service, body
        self._plans = [plan for plan in plans for _ in plan.requests]
        self._lengths = [length for plan, length in zip(plans, lengths, strict=True) for _ in plan.requests]
        self._readers = [reader_of(plan) for plan in self._plans]
        self._timers = [Timer() for _ in self._plans]
        self._texts = [""] * len(self._plans)
        self._num_predicted = [0] * len(self._plans)
        self._outputs: dict[int, RequestOutput] = {}
        self._logprobs = LogprobWriter(service.llm.vocabulary, body.n_probs or 0)

    async def whole(self, events: Events) -> dict[str, Any] | list[dict[str, Any]]:
        """The answer when all outputs have ended: one, or a list."""
        async for index, event in events:
            self._read(index, event)
        told = [self._chosen(self._final(index, is_whole=True)) for index in range(len(self._plans))]
        return told[0] if len(told) == 1 else told

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The pieces, while they come, and the end of each output."""
        async for index, event in events:
            records, text = self._read(index, event)
            if records or text:
                yield data(self._piece(index, records, text))
            if event.output is not None:
                yield data(self._chosen(self._final(index, is_whole=False)))

    def failed(self, error: ApiError) -> bytes:
        return error_event(error)

    def _read(self, index: int, event: Event) -> tuple[Sequence[TokenRecord], str]:
        """(the tokens, the text) that an event adds."""
        if self._body.num_wanted == 0:
            event = silent(event)
        text = "".join(delta.text for delta in self._readers[index].read(event) if isinstance(delta, ContentDelta))
        self._texts[index] += text
        self._num_predicted[index] += len(event.tokens)
        self._timers[index].see(event)
        if event.output is not None:
            self._outputs[index] = event.output
        return event.tokens, text

    def _piece(self, index: int, records: Sequence[TokenRecord], text: str) -> dict[str, Any]:
        ids = [record.token_id for record in records]
        piece = {
            "index": index,
            "content": text,
            "tokens": ids,
            "stop": False,
            "tokens_predicted": self._num_predicted[index],
            "tokens_evaluated": len(self._plans[index].requests[0].prompt_token_ids),
        }
        if self._body.timings_per_token:
            piece["timings"] = self._timers[index].so_far()
        return piece | self._probabilities(records)

    def _final(self, index: int, *, is_whole: bool) -> dict[str, Any]:
        plan, output, reader = self._plans[index], self._outputs[index], self._readers[index]
        word = output.stop_string or reader.stop_string
        ids = list(output.token_ids) if is_whole and self._body.return_tokens else []
        final = {
            "index": index,
            "content": self._texts[index] if is_whole else "",
            "tokens": ids,
            "stop": True,
            "model": self._service.model_name,
            "tokens_predicted": len(output.token_ids),
            "tokens_evaluated": output.num_prompt_tokens,
            "generation_settings": self._settings(plan.requests[0].sampling),
            "prompt": self._service.llm.tokenizer.decode(plan.requests[0].prompt_token_ids),
            "has_new_line": "\n" in self._texts[index],
            "truncated": output.num_prompt_tokens < self._lengths[index],
            "stop_type": "word" if word is not None else "limit" if output.finish_reason == "length" else "eos",
            "stopping_word": word or "",
            "tokens_cached": output.num_prompt_tokens + max(len(output.token_ids) - 1, 0),
            "timings": self._timers[index].final(output),
        }
        told = {name: value for name, value in reader.told_stop(output).items() if name == "is_complete"}
        told |= remarks_of(plan) | loops_of(output)
        return final | told | (self._probabilities(output.records) if is_whole else {})

    def _probabilities(self, records: Sequence[TokenRecord]) -> dict[str, Any]:
        return {"completion_probabilities": self._logprobs.llama(records)} if self._body.n_probs and records else {}

    def _settings(self, sampling: SamplingParams) -> dict[str, Any]:
        """What the output was sampled with; what there is not here is left out."""
        body = self._body
        limit = -1 if body.num_wanted is None else body.num_wanted
        seed = {} if sampling.seed is None else {"seed": sampling.seed}
        return seed | {
            **{name: getattr(sampling, name) for name in TOLD},
            "repeat_penalty": sampling.repetition_penalty,
            "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
            "stop": list(body.stop) if isinstance(body.stop, list) else [body.stop] if body.stop else [],
            "max_tokens": limit,
            "n_predict": limit,
            "stream": bool(body.stream),
            "n_probs": body.n_probs or 0,
            "logit_bias": [{"token": token_id, "bias": bias} for token_id, bias in sampling.logit_bias.items()],
            "grammar": body.grammar or "",
            "samplers": list(sampling.stages) or SAMPLERS,
            "timings_per_token": bool(body.timings_per_token),
        }

    def _chosen(self, final: dict[str, Any]) -> dict[str, Any]:
        """The members that were asked for; a slash leads into an object."""
        if not self._body.response_fields:
            return final
        found = {}
        for name in self._body.response_fields:
            value: Any = final
            for step in name.split("/"):
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                found[name] = value
        return found
