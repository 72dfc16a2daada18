"""POST /v1/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from ..engine.requests.output import Event, RequestOutput
from ..planning import Plan
from .answering import Events, answer
from .answers import Completion
from .body import Because
from .captured import captures_of
from .deltas import ContentDelta
from .documentation import answers
from .errors import ApiError, told_as
from .remarks import remarks_of
from .replies import reader_of
from .requested_constraint import ConstraintBody, asked_constraint
from .sampling_options import SamplingBody, StreamOptions, sampling_of, tells_usage, tells_usage_always
from .service import Service
from .streams import DONE, data, error_event, unless_gone
from .token_details import ExtendedBody, detail_writer, details_of, head_of, num_top_wanted
from .token_logprobs import LogprobWriter, token_ids_of
from .usage import usage_of, usage_so_far

Prompt = str | list[int]


class CompletionBody(SamplingBody, ConstraintBody, ExtendedBody):
    """Prompts to be completed. They are rendered as `generate` does: for most models taken as they are."""

    prompt: str | list[str] | list[int] | list[list[int]] = Field(description="A prompt or several, as text or as token ids.")
    best_of: int | None = Field(None, ge=1, description="Outputs generated, of which the n most probable are given.")
    logprobs: int | None = Field(None, ge=0, description="Alternatives of each token.")
    stream_options: StreamOptions | None = None
    add_special_tokens: bool | None = Field(None, description="Whether the tokens that the tokenizer puts around a text are added.")
    echo: Annotated[Literal[False] | None, Because("The prompt is not repeated: put it before the text.")] = None
    suffix: Annotated[Literal[""] | None, Because("Text is written behind the prompt; none is fitted in before a suffix.")] = None


router = APIRouter()


@router.post("/v1/completions", summary="Complete prompts", responses=answers(Completion, Completion))
async def create_completion(request: Request, body: CompletionBody) -> Response:
    """OpenAI's completions."""
    service: Service = request.app.state.service
    with told_as({"messages": "prompt"}):
        plans = await unless_gone(request, plan_completion(service, body))
        writer = CompletionWriter(f"cmpl-{body.reply_id or request.state.request_id}", service, body, plans)
        return await answer(request, plans, writer, body.stream, body.ignored, names=body.names)


async def plan_completion(service: Service, body: CompletionBody) -> list[Plan]:
    """All prompts, ready to run."""
    service.check_model(body.model)
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options needs stream=true", param="stream_options", code="invalid_value")
    num_wanted = body.n or 1
    best_of = body.best_of or num_wanted
    if best_of < num_wanted or best_of > service.settings.max_n:
        message = f"best_of is between n={num_wanted} and {service.settings.max_n}, not {best_of}"
        raise ApiError(400, message, param="best_of", code="invalid_value")
    if body.stream and best_of > num_wanted:
        raise ApiError(400, "best_of chooses among finished outputs: it cannot be streamed", param="best_of", code="invalid_value")
    defaults = service.llm.default_sampling
    sampling = sampling_of(
        body,
        defaults=defaults,
        settings=service.settings,
        model_len=service.model_len,
        logprobs=num_top_wanted(body.logprobs, body.maskwright, service.settings.max_logprobs),
        best_of=body.best_of,
    )
    asked = await service.in_thread(lambda: asked_constraint(body, allows_grammars=service.settings.client_grammars))
    prompts = _prompts(body.prompt)
    if body.add_special_tokens is False:
        prompts = [await service.in_thread(_bare, service, prompt) for prompt in prompts]
    if not 1 <= len(prompts) <= service.settings.max_prompts:
        message = f"prompt: {len(prompts)} prompts, and this server takes 1 to {service.settings.max_prompts}"
        raise ApiError(400, message, param="prompt", code="limit_exceeded")
    return [await service.plan_prompt(prompt, asked, sampling, body) for prompt in prompts]


def _prompts(prompt: Any) -> list[Prompt]:
    is_one = isinstance(prompt, str) or (bool(prompt) and isinstance(prompt[0], int))
    return [prompt] if is_one else list(prompt)


def _bare(service: Service, prompt: Prompt) -> list[int]:
    """The tokens of a prompt, without those that the tokenizer puts around a text."""
    return list(service.llm.tokenizer.encode(prompt, add_special_tokens=False)) if isinstance(prompt, str) else prompt


class CompletionWriter:
    """Makes what OpenAI's clients read from events. Choices are numbered over all prompts."""

    def __init__(self, reply_id: str, service: Service, body: CompletionBody, plans: Sequence[Plan]) -> None:
        self._service, self._body, self._plans = service, body, plans
        self._tells_usage, self._tells_usage_always = tells_usage(body.stream_options), tells_usage_always(body.stream_options)
        self._num_prompt = sum(len(plan.requests[0].prompt_token_ids) for plan in plans)
        self._num_written = 0  # tokens of all outputs
        self._head = {"id": reply_id, "object": "text_completion", "created": int(time.time()), "model": service.model_name}
        self._vocabulary = service.llm.vocabulary
        self._details = detail_writer(service, plans, body.maskwright)
        self._readers = [reader_of(plan) for plan in plans for _ in plan.requests]
        self._texts = [""] * len(self._readers)
        self._outputs: dict[int, RequestOutput] = {}

    async def whole(self, events: Events) -> dict[str, Any]:
        """The answer when all outputs have ended."""
        async for index, event in events:
            self._read(index, event)
        choices, number = list[dict[str, Any]](), 0
        numbers = {id(output): index for index, output in self._outputs.items()}
        for plan in self._plans:
            outputs = [self._outputs[number + each] for each in range(len(plan.requests))]
            number += len(outputs)
            for output in plan.chosen(outputs):
                choices.append(await self._choice(len(choices), output, numbers[id(output)], plan))
        return {**self._head, "choices": choices, "usage": self._usage(), **remarks_of(self._plans[0]), **head_of(self._details)}

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The chunks, while they come."""
        writers: dict[int, LogprobWriter] = {}
        usage: dict[str, Any] = {"usage": None} if self._tells_usage else {}
        remarks = {**remarks_of(self._plans[0]), **head_of(self._details)}
        async for index, event in events:
            text = self._read(index, event)
            writer = writers.setdefault(index, self._logprob_writer())
            details = await details_of(self._details, index, event.tokens) if event.tokens else {}
            details |= token_ids_of(self._body, event.tokens)
            self._num_written += len(event.tokens)
            if self._tells_usage_always:
                usage = {"usage": usage_so_far(self._num_prompt, self._num_written)}
            logprobs = writer.completion(event.tokens) if self._body.logprobs is not None else None
            reason = event.output.finish_reason if event.output is not None else None
            if not text and reason is None and logprobs is None and not details:
                continue
            choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason, **details}
            if event.output is not None:
                choice |= self._readers[index].told_stop(event.output)
                choice |= await self._captures(event.output, self._plans[index // len(self._plans[0].requests)])
            yield data({**self._head, "choices": [choice], **usage, **remarks})
            remarks = {}
        if self._tells_usage:
            yield data({**self._head, "choices": [], "usage": self._usage()})
        yield DONE

    def failed(self, error: ApiError) -> bytes:
        return error_event(error)

    def _read(self, index: int, event: Event) -> str:
        """The text that an event adds."""
        text = "".join(delta.text for delta in self._readers[index].read(event) if isinstance(delta, ContentDelta))
        self._texts[index] += text
        if event.output is not None:
            self._outputs[index] = event.output
        return text

    async def _choice(self, index: int, output: RequestOutput, number: int, plan: Plan) -> dict[str, Any]:
        """number: of the output among all that were generated."""
        logprobs = self._logprob_writer().completion(output.records) if self._body.logprobs is not None else None
        more = {**await details_of(self._details, number, output.records), **await self._captures(output, plan)}
        more |= self._readers[number].told_stop(output) | token_ids_of(self._body, output.records)
        if self._body.return_token_ids:
            more["prompt_token_ids"] = list(plan.requests[0].prompt_token_ids)
        reason = output.finish_reason
        return {"index": index, "text": self._texts[number], "logprobs": logprobs, "finish_reason": reason, **more}

    async def _captures(self, output: RequestOutput, plan: Plan) -> dict[str, Any]:
        return await captures_of(self._service, plan, output, output.text)

    def _logprob_writer(self) -> LogprobWriter:
        return LogprobWriter(self._vocabulary, self._body.logprobs or 0, by_id=bool(self._body.return_tokens_as_token_ids))

    def _usage(self) -> dict[str, Any]:
        outputs = [self._outputs[index] for index in sorted(self._outputs)]
        return usage_of(outputs, len(self._plans[0].requests))
