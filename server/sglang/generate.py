"""POST /generate: prompts as SGLang takes them, answered in its form. In a stream each event has the text so far."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError

from ...engine.requests.output import Event, PromptScore, RequestOutput, TokenRecord
from ...planning import Plan
from ...sampling import TokenLogprob
from ..answering import Events, answer, renamed
from ..completions import CompletionBody, plan_completion, silent
from ..deltas import ContentDelta
from ..documentation import answers
from ..errors import ApiError, told_as
from ..remarks import loops_of, remarks_of
from ..replies import reader_of
from ..requested_constraint import ConstraintNames
from ..sampling_options import SamplingExtras
from ..service import Service
from ..streams import DONE, data, error_event, unless_gone
from ..token_logprobs import finite
from .answers import Generated, GeneratedAnswer
from .bodies import GenerateBody, PromptWishes, is_batch, num_prompts

# How a completion's parameters are called here.
NAMES = {name: f"sampling_params.{name}" for body in (SamplingExtras, ConstraintNames) for name in body.model_fields} | {
    "max_tokens": "sampling_params.max_new_tokens",
    "n": "sampling_params.n",
    "stop": "sampling_params.stop",
    "structured_outputs": "sampling_params.structural_tag",
    "logprobs": "top_logprobs_num",
    "prompt_logprobs": "top_logprobs_num",
}
router = APIRouter()


@router.post("/generate", summary="Go on with prompts, as SGLang", responses=answers(GeneratedAnswer, Generated))
async def generate(request: Request, body: GenerateBody) -> Response:
    """SGLang's generate, with json_schema, regex, ebnf and structural_tag that always hold. Lists are answered by lists."""
    service: Service = request.app.state.service
    count = num_prompts(body)
    if not 1 <= count <= service.settings.max_prompts:
        message = f"{count} prompts, and this server takes 1 to {service.settings.max_prompts}"
        raise ApiError(400, message, param="text" if body.text is not None else "input_ids", code="limit_exceeded")
    wishes = [PromptWishes(body, number, count) for number in range(count)]
    with told_as(NAMES | {"prompt": "input_ids" if body.text is None else "text", "messages": "text"}):
        plans, ignored = await unless_gone(request, _planned(service, body, wishes))
        request_id = request.state.request_id
        ids = [each.rid or (request_id if count == 1 else f"{request_id}-{number}") for number, each in enumerate(wishes)]
        writer = GenerateWriter(service, body, wishes, plans, ids)
        names = NAMES if body.priority is None else NAMES | {"priority": "priority"}
        told = [*body.all_ignored, *renamed(ignored, names)]
        return await answer(request, plans, writer, body.stream, told, names=ids)


async def _planned(service: Service, body: GenerateBody, wishes: Sequence[PromptWishes]) -> tuple[list[Plan], list[str]]:
    """(a plan for each prompt, what has no effect)"""
    plans, ignored = list[Plan](), list[str]()
    for number, each in enumerate(wishes):
        prompt = await service.in_thread(_tokens, service, body, number)
        try:
            made = CompletionBody.model_validate(each.completion(body, prompt, service.settings.max_tokens))
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from error
        plans += await plan_completion(service, made)
        ignored += made.ignored
    return plans, ignored


def _tokens(service: Service, body: GenerateBody, number: int) -> Sequence[int]:
    given: Any = body.text if body.text is not None else body.input_ids
    prompt = given[number] if is_batch(body) else given
    return service.llm.planner.encode(prompt) if isinstance(prompt, str) else prompt


class GenerateWriter:
    """Makes SGLang's answers of the events of all outputs, numbered over all prompts."""

    def __init__(
        self, service: Service, body: GenerateBody, wishes: Sequence[PromptWishes], plans: Sequence[Plan], ids: Sequence[str]
    ) -> None:
        """ids: of the prompts."""
        places = [place for place, plan in enumerate(plans) for _ in plan.requests]
        self._vocabulary, self._tells_texts = service.llm.vocabulary, bool(body.return_text_in_logprobs)
        self._plans, self._wishes = [plans[place] for place in places], [wishes[place] for place in places]
        self._ids = [ids[place] for place in places]
        self._is_list = is_batch(body) or len(places) > 1
        self._readers = [reader_of(plan) for plan in self._plans]
        self._texts = [""] * len(places)
        self._records: list[list[TokenRecord]] = [[] for _ in places]
        self._scores: dict[int, Sequence[PromptScore]] = {}
        self._outputs: dict[int, RequestOutput] = {}
        self._started = time.perf_counter()

    async def whole(self, events: Events) -> dict[str, Any] | list[dict[str, Any]]:
        """The answer when all outputs have ended: one, or a list."""
        ended: dict[int, dict[str, Any]] = {}
        async for index, event in events:
            self._read(index, event)
            if event.output is not None:
                ended[index] = self._told(index)
        told = [ended[index] for index in sorted(ended)]
        return told if self._is_list else told[0]

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """Each output so far, whenever it has grown."""
        async for index, event in events:
            if self._read(index, event):
                yield data(self._told(index) | ({"index": index} if self._is_list else {}))
        yield DONE

    def failed(self, error: ApiError) -> bytes:
        return error_event(error)

    def _read(self, index: int, event: Event) -> bool:
        """Whether an event adds something."""
        if event.prompt_scores is not None:
            self._scores[index] = event.prompt_scores
        if self._wishes[index].sampling.max_new_tokens == 0:
            event = silent(event)
        text = "".join(delta.text for delta in self._readers[index].read(event) if isinstance(delta, ContentDelta))
        self._texts[index] += text
        self._records[index] += event.tokens
        if event.output is not None:
            self._outputs[index] = event.output
        return bool(text or event.tokens or event.output)

    def _told(self, index: int) -> dict[str, Any]:
        records, output = self._records[index], self._outputs.get(index)
        meta = {
            "id": self._ids[index],
            "finish_reason": None if output is None else self._reason(index, output),
            "prompt_tokens": len(self._plans[index].requests[0].prompt_token_ids),
            "completion_tokens": len(records),
            **({} if output is None else {"cached_tokens": output.num_cached_tokens}),
            **({} if output is None else {"e2e_latency": time.perf_counter() - self._started}),
            **(self._logprobs(index, records) if self._wishes[index].has_logprobs else {}),
            **remarks_of(self._plans[index]),
            **({} if output is None else loops_of(output)),
        }
        return {"text": self._texts[index], "output_ids": [record.token_id for record in records], "meta_info": meta}

    def _reason(self, index: int, output: RequestOutput) -> dict[str, Any]:
        if output.finish_reason == "length":
            return {"type": "length", "length": len(output.token_ids)}
        stop = self._readers[index].told_stop(output)
        matched = {"matched": stop.pop("stop_reason")} if stop else {}
        return {"type": output.finish_reason, **matched, **stop}

    def _logprobs(self, index: int, records: Sequence[TokenRecord]) -> dict[str, Any]:
        wish = self._wishes[index]
        written = [self._entry(record.token_id, record.logprob) for record in records]
        told: dict[str, Any] = {"input_token_logprobs": [], "output_token_logprobs": written}
        if wish.num_top:
            told["output_top_logprobs"] = [self._top(record.top[: wish.num_top]) for record in records]
        if wish.start >= 0 and index in self._scores:
            scores = self._scores[index]
            first = self._plans[index].requests[0].prompt_token_ids[0]
            entries = [[None, first, self._text(first)], *(self._entry(score.token_id, score.logprob) for score in scores)]
            told["input_token_logprobs"] = entries[wish.start :]
            if wish.num_top:
                told["input_top_logprobs"] = [None, *(self._top(score.top[: wish.num_top]) for score in scores)][wish.start :]
        return told

    def _top(self, top: Sequence[TokenLogprob]) -> list[list[Any]]:
        return [self._entry(each.token_id, each.logprob) for each in top]

    def _entry(self, token_id: int, logprob: float | None) -> list[Any]:
        return [finite(logprob), token_id, self._text(token_id)]

    def _text(self, token_id: int) -> str | None:
        return (self._vocabulary.tokens[token_id] or b"").decode(errors="replace") if self._tells_texts else None
