"""POST /v1/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from ..engine.requests.output import Event, PromptScore, RequestOutput
from ..planning import Plan
from ..sampling import SamplingParams
from .answering import Events, answer
from .answers import Completion
from .captured import captures_of
from .deltas import ContentDelta
from .documentation import answers
from .errors import ApiError, told_as
from .infilling import infilled
from .prompt_logprobs import check_prompt_logprobs, scored
from .remarks import loops_of, remarks_of
from .replies import reader_of
from .requested_constraint import ConstraintBody, asked_constraint
from .sampling_options import (
    SamplingBody,
    StreamOptions,
    check_stream_options,
    sampling_of,
    tells_usage,
    tells_usage_always,
)
from .searching import SearchParameters, search_of, searched
from .service import Service
from .streams import DONE, data, error_event, unless_gone
from .token_details import ExtendedBody, detail_writer, details_of, head_of, measured, num_top_wanted
from .token_logprobs import LogprobWriter, token_ids_of
from .usage import usage_of, usage_so_far

Prompt = str | list[int]


class CompletionBody(SearchParameters, SamplingBody, ConstraintBody, ExtendedBody):
    """Prompts to be completed. They are rendered as `generate` does: for most models taken as they are."""

    prompt: str | list[str] | list[int] | list[list[int]] = Field(description="A prompt or several, as text or as token ids.")
    best_of: int | None = Field(None, ge=1, description="Outputs generated, of which the n most probable are given.")
    logprobs: int | None = Field(None, ge=0, description="Alternatives of each token.")
    stream_options: StreamOptions | None = None
    add_special_tokens: bool | None = Field(None, description="Whether the tokens that the tokenizer puts around a text are added.")
    max_tokens: int | None = Field(None, ge=0, description="Tokens of one output at most; 0: nothing is written, see echo.")
    echo: bool | None = Field(None, description="Whether the prompt is told before the output, with logprobs its tokens too.")
    prompt_logprobs: int | None = Field(None, ge=0, description="Alternatives of each token of the prompt; not in a stream.")
    suffix: str | None = Field(None, description="What comes behind the output, where the tokenizer has marks for that.")


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
    check_stream_options(body.stream_options, body.stream)
    check_best_of(body.best_of, body.n or 1, service.settings.max_n, is_streamed=bool(body.stream) and not body.use_beam_search)
    body.note_unsearched()
    search = search_of(body, body.n or 1, body.best_of)
    sampling = sampling_of(
        body,
        defaults=service.llm.default_sampling if search is None else SamplingParams(),
        settings=service.settings,
        model_len=service.model_len,
        max_tokens=1 if body.max_tokens == 0 else None,
        logprobs=num_top_wanted(body.logprobs, body.maskwright, service.settings.max_logprobs),
        best_of=body.best_of,
    )
    sampling = sampling if search is None else replace(sampling, n=1, best_of=None)
    allows, languages = service.settings.client_grammars, service.settings.client_grammar_languages
    asked = await service.in_thread(lambda: asked_constraint(body, allows_grammars=allows, languages=languages))
    if body.max_tokens == 0 and (asked.choice.source is not None or body.sampling_extras.get("min_tokens")):
        message = "max_tokens: 0 leaves no room for what the output has to be"
        raise ApiError(400, message, param="max_tokens", code="max_tokens_too_small")
    prompts = _prompts(body.prompt)
    if body.suffix:
        prompts = [await service.in_thread(_infilled, service, prompt, body) for prompt in prompts]
    elif body.add_special_tokens is False:
        prompts = [await service.in_thread(_bare, service, prompt) for prompt in prompts]
    if not 1 <= len(prompts) <= service.settings.max_prompts:
        message = f"prompt: {len(prompts)} prompts, and this server takes 1 to {service.settings.max_prompts}"
        raise ApiError(400, message, param="prompt", code="limit_exceeded")
    num_scored = _num_scored(body, service.settings.max_logprobs)
    plans = [await service.plan_prompt(prompt, asked, sampling, body) for prompt in prompts]
    return [measured(scored(searched(plan, search), num_scored), body.maskwright) for plan in plans]


def _num_scored(body: CompletionBody, most: int) -> int | None:
    """How many alternatives of each token of the prompt are wanted; None if its tokens are not scored."""
    check_prompt_logprobs(body.prompt_logprobs, body.stream, most)
    wanted = [number for number in (body.prompt_logprobs, body.logprobs if body.echo else None) if number is not None]
    return max(wanted, default=None)


def check_best_of(best_of: int | None, num_wanted: int, most: int, *, is_streamed: bool) -> None:
    """Raises ApiError for a number of outputs that cannot be generated, or chosen among."""
    if best_of is None:
        return
    if best_of < num_wanted or best_of > most:
        message = f"best_of is between n={num_wanted} and {most}, not {best_of}"
        raise ApiError(400, message, param="best_of", code="invalid_value")
    if is_streamed and best_of > num_wanted:
        raise ApiError(400, "best_of chooses among finished outputs: it cannot be streamed", param="best_of", code="invalid_value")


def _prompts(prompt: Any) -> list[Prompt]:
    is_one = isinstance(prompt, str) or (bool(prompt) and isinstance(prompt[0], int))
    return [prompt] if is_one else list(prompt)


def _bare(service: Service, prompt: Prompt) -> list[int]:
    """The tokens of a prompt, without those that the tokenizer puts around a text."""
    return list(service.llm.tokenizer.encode(prompt, add_special_tokens=False)) if isinstance(prompt, str) else prompt


def _infilled(service: Service, prompt: Prompt, body: CompletionBody) -> list[int]:
    if body.echo:
        raise ApiError(400, "echo tells a prompt before its output, and a suffix stands behind", param="echo", code="invalid_value")
    return infilled(service.llm, prompt, body.suffix or "", has_begin=body.add_special_tokens is not False)


def _echoed(service: Service, plan: Plan, body: CompletionBody) -> str:
    """The prompt as it is told before the output: the client's text, or what the model has read where that is something else."""
    if not body.echo:
        return ""
    if plan.prompt and service.llm.planner.style == "plain":
        return plan.prompt
    tokens = service.llm.vocabulary.text_tokens
    return b"".join(tokens[token_id] or b"" for token_id in plan.requests[0].prompt_token_ids).decode(errors="replace")


def silent(event: Event) -> Event:
    """An event of an output of which nothing is wanted: the engine draws one token all the same."""
    output = event.output
    if output is not None:
        output = replace(output, token_ids=(), records=(), text="", finish_reason="length", stop_string=None)
    return replace(event, tokens=(), text="", output=output)


def _joined(begun: dict[str, Any], logprobs: dict[str, Any] | None) -> dict[str, Any] | None:
    """The log-probabilities of a prompt and of what follows it."""
    return {name: [*begun.get(name, ()), *values] for name, values in logprobs.items()} if logprobs is not None else None


class CompletionWriter:
    """Makes what OpenAI's clients read from events. Choices are numbered over all prompts."""

    def __init__(self, reply_id: str, service: Service, body: CompletionBody, plans: Sequence[Plan]) -> None:
        self._service, self._body, self._plans = service, body, plans
        self._tells_usage, self._tells_usage_always = tells_usage(body.stream_options), tells_usage_always(body.stream_options)
        self._num_prompt = sum(len(plan.requests[0].prompt_token_ids) for plan in plans)
        self._num_written = 0  # tokens of all outputs
        told = service.told_name(plans[0])
        self._head = {"id": reply_id, "object": "text_completion", "created": int(time.time()), "model": told}
        self._vocabulary = service.llm.vocabulary
        self._details = detail_writer(service, plans, body.maskwright, reply_id)
        self._readers = [reader_of(plan) for plan in plans for _ in plan.requests]
        self._texts = [""] * len(self._readers)
        self._scores: dict[int, Sequence[PromptScore]] = {}
        self._outputs: dict[int, RequestOutput] = {}

    @cached_property
    def _echoed(self) -> list[str]:
        """What is told before each output. Before a request is admitted its tokens may be none of the vocabulary."""
        return [_echoed(self._service, plan, self._body) for plan in self._plans for _ in plan.requests]

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
            is_first = index not in writers
            writer = writers.setdefault(index, self._logprob_writer())
            event, text = self._read(index, event)
            begun = self._begun(index, writer) if is_first and self._body.echo else None
            details = await details_of(self._details, index, event.tokens, event.output)
            details |= token_ids_of(self._body, event.tokens)
            self._num_written += len(event.tokens)
            if self._tells_usage_always:
                usage = {"usage": usage_so_far(self._num_prompt, self._num_written)}
            logprobs = writer.completion(event.tokens) if self._body.logprobs is not None else None
            if begun is not None:
                text, logprobs = self._echoed[index] + text, _joined(begun, logprobs)
            reason = event.output.finish_reason if event.output is not None else None
            if not text and reason is None and logprobs is None and not details:
                continue
            choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason, **details}
            if event.output is not None:
                choice |= self._readers[index].told_stop(event.output) | loops_of(event.output)
                choice |= await self._captures(event.output, self._plans[index // len(self._plans[0].requests)])
            yield data({**self._head, "choices": [choice], **usage, **remarks})
            remarks = {}
        if self._tells_usage:
            yield data({**self._head, "choices": [], "usage": self._usage()})
        yield DONE

    def failed(self, error: ApiError) -> bytes:
        return error_event(error)

    def _read(self, index: int, event: Event) -> tuple[Event, str]:
        """(what is told of an event, the text that it adds)"""
        if event.prompt_scores is not None:
            self._scores[index] = event.prompt_scores
        if self._body.max_tokens == 0:
            event = silent(event)
        text = "".join(delta.text for delta in self._readers[index].read(event) if isinstance(delta, ContentDelta))
        self._texts[index] += text
        if event.output is not None:
            self._outputs[index] = event.output
        return event, text

    def _begun(self, index: int, writer: LogprobWriter) -> dict[str, Any]:
        """The log-probabilities of the prompt that is told before an output; {} if they are not wanted."""
        if self._body.logprobs is None:
            return {}
        prompt = self._plans[index // len(self._plans[0].requests)].requests[0].prompt_token_ids
        return writer.prompt(prompt, self._scores[index])

    async def _choice(self, index: int, output: RequestOutput, number: int, plan: Plan) -> dict[str, Any]:
        """number: of the output among all that were generated."""
        writer = self._logprob_writer()
        begun = self._begun(number, writer) if self._body.echo else {}
        logprobs = _joined(begun, writer.completion(output.records)) if self._body.logprobs is not None else None
        more = {**await details_of(self._details, number, output.records, output), **await self._captures(output, plan)}
        more |= self._readers[number].told_stop(output) | loops_of(output) | token_ids_of(self._body, output.records)
        if self._body.return_token_ids:
            more["prompt_token_ids"] = list(plan.requests[0].prompt_token_ids)
        if self._body.prompt_logprobs is not None:
            more["prompt_logprobs"] = self._logprob_writer(self._body.prompt_logprobs).ranked(self._scores[number])
        reason, text = output.finish_reason, self._echoed[number] + self._texts[number]
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason, **more}

    async def _captures(self, output: RequestOutput, plan: Plan) -> dict[str, Any]:
        return await captures_of(self._service, plan, output, output.text)

    def _logprob_writer(self, num_top: int | None = None) -> LogprobWriter:
        num_top = (self._body.logprobs or 0) if num_top is None else num_top
        return LogprobWriter(self._vocabulary, num_top, by_id=bool(self._body.return_tokens_as_token_ids))

    def _usage(self) -> dict[str, Any]:
        outputs = [self._outputs[index] for index in sorted(self._outputs)]
        return usage_of(outputs, len(self._plans[0].requests))
