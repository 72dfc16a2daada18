"""The extension `maskwright` of answers: how free the choice of each token was, and what the constraint kept the model from.

A request asks with `"maskwright": {"tokens": true}`, and with `"fields": true` for the values of its output (`field_details.py`);
docs/serving.md describes the answer, whose `version` is 1. Nothing here runs when it is not asked for. What it takes is computed
beside the event loop: it follows each output through its constraint once more, so the engine knows nothing of it. Only `candidates`
and `fields` make the engine do more: forced tokens are then asked of the model too.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ..constraints.runtime.front_end import places_of
from ..engine.requests.canonical import CanonicalPairs
from ..engine.requests.guide import with_tokens
from ..engine.requests.output import RequestOutput, TokenRecord
from ..engine.requests.request import Request
from ..engine.requests.steering import steering_for
from ..planning import Plan
from ..sampling import TokenLogprob
from .errors import ApiError
from .field_details import FieldWriter
from .service import Service

VERSION = 1
FREE_SHARE = 0.5  # of the vocabulary: with more of it allowed, as inside a string, a choice counts as free
DECIMALS = 6  # of probabilities
LOOPS = "allowed by the constraint, but the model repeats itself here, so the value is being ended"
SPELT_OTHERWISE = "allowed by the constraint, but the tokenizer would write this text in other tokens"
FINISHED_TOO_LATE = "allowed by the constraint, but from there the output could not finish within max_tokens"


class DetailOptions(BaseModel):
    """What a request wants to know about its tokens."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    fields: bool = Field(False, description="Whether answers say what the constraint did to each value.")
    tokens: bool = Field(False, description="Whether answers say how free the choice of each token was.")
    candidates: int = Field(5, ge=0, description="The model's most probable tokens to be listed; 0 leaves forced tokens unasked.")


class ExtendedBody(BaseModel):
    """Part of a request body."""

    maskwright: DetailOptions | None = Field(None, description="This server's own extension of answers: details of tokens.")


def num_top_wanted(asked: int | None, options: DetailOptions | None, max_logprobs: int) -> int | None:
    """How many of the most probable tokens the engine shall record. `asked`: for log-probabilities in OpenAI's form."""
    if options is not None and options.fields:
        asked = asked or 0
    if options is None or not options.tokens or not options.candidates:
        return asked
    if options.candidates > max_logprobs:
        message = f"maskwright.candidates asks for {options.candidates}, and this server allows {max_logprobs}"
        raise ApiError(400, message, param="maskwright.candidates", code="limit_exceeded", limit=max_logprobs)
    return max(asked or 0, options.candidates)


def measured(plan: Plan, options: DetailOptions | None) -> Plan:
    """The plan, with what the model thinks of each token, if details tell that."""
    if options is None or not options.tokens:
        return plan
    return replace(plan, requests=tuple(replace(request, is_measured=True) for request in plan.requests))


class DetailReader:
    """Follows one output through its constraint. Its tokens are `read` in order; that may take milliseconds for each."""

    def __init__(
        self,
        request: Request,
        constraint: Any,
        vocabulary: Any,
        model_len: int,
        num_candidates: int,
        canonical: Callable[[], CanonicalPairs] | None = None,
    ) -> None:
        """canonical: the pairs of the model's tokenizer, for requests that keep to its spelling."""
        self._constraint, self._tokens, self._num_candidates = constraint, vocabulary.tokens, num_candidates
        self._spellings = vocabulary.spellings
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._state = None if constraint is None else constraint.advance_bytes(constraint.start(), request.begun)
        self._places = None if constraint is None else places_of(constraint)
        if self._places is not None:
            self._places.read(request.begun)
        self._num_left = min(request.sampling.max_tokens, model_len - len(request.prompt_token_ids))
        self._extra_end_ids = request.sampling.stop_token_ids
        self._canonical = canonical() if canonical is not None and request.sampling.canonical else None
        self._before = request.prompt_token_ids[-1]
        self._steering = None if constraint is None else steering_for(constraint, request.sampling.loop_bound, request.begun)

    def read(self, records: Iterable[TokenRecord]) -> list[dict[str, Any]]:
        """The details of the next tokens."""
        return [self._read(record) for record in records]

    def _read(self, record: TokenRecord) -> dict[str, Any]:
        mask = self._mask(record)
        candidates = [self._candidate(each, mask) for each in record.top[: self._num_candidates]]
        details = {
            "id": record.token_id,
            "token": self._spelling(record.token_id),
            "text": self._decoder.decode(self._tokens[record.token_id] or b""),
            "kind": self._kind(record),
            "num_allowed": record.num_allowed,
            "probability": _probability(record.logprob),
            "kept_mass": None if record.kept_mass is None else round(record.kept_mass, DECIMALS),
            "paths": self._paths(record.token_id),
            "candidates": candidates,
        }
        self._num_left, self._before = self._num_left - 1, record.token_id
        if self._constraint is not None:
            self._state = self._constraint.advance(self._state, record.token_id)
        if self._steering is not None:
            self._steering.take(record.token_id, self._state, self._constraint.min_tokens(self._state), self._num_left)
        return details

    def _paths(self, token_id: int) -> list[str]:
        """Marks of calls and tags may be special tokens, which are no text, but part of the constraint."""
        if self._places is None or token_id in self._extra_end_ids:
            return []
        return list(self._places.read(self._spellings[token_id] or b""))

    def _kind(self, record: TokenRecord) -> str:
        data = self._tokens[record.token_id] or b""
        if self._constraint is None:
            return "free"
        if record.is_only_choice or (data and self._constraint.forced(self._state).startswith(data)):
            return "forced"
        return "free" if record.num_allowed >= FREE_SHARE * len(self._tokens) else "constrained"

    def _mask(self, record: TokenRecord) -> NDArray[np.uint32] | None:
        """The mask that was in force. It has as many tokens as the record says; near the limit these are not all tokens
        that are legal."""
        if self._constraint is None or not record.top or not self._num_candidates:
            return None
        mask: NDArray[np.uint32] = self._constraint.mask(self._state)
        steered = None if self._steering is None else self._steering.mask
        if steered is not None:
            mask = steered
        if self._extra_end_ids and self._constraint.is_accepting(self._state):
            mask = with_tokens(mask, self._extra_end_ids)
        if steered is None and int(np.bitwise_count(self._spelt(mask)).sum()) != record.num_allowed:
            mask = mask & self._constraint.mask(self._state, budget=self._num_left)
        return self._spelt(mask)

    def _spelt(self, mask: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """What of a mask is left where the tokenizer's spelling is kept to."""
        return mask if self._canonical is None else self._canonical.narrowed(mask, self._before)

    def _candidate(self, candidate: TokenLogprob, mask: NDArray[np.uint32] | None) -> dict[str, Any]:
        token_id = candidate.token_id
        is_allowed = mask is None or bool(mask[token_id // 32] >> np.uint32(token_id % 32) & np.uint32(1))
        told = {
            "id": token_id,
            "token": self._spelling(token_id),
            "probability": _probability(candidate.logprob),
            "allowed": is_allowed,
        }
        return told if is_allowed else told | self._why(token_id)

    def _why(self, token_id: int) -> dict[str, Any]:
        found = self._constraint.explain(self._state, token_id, num_nearest=0)
        if found.allowed:
            if self._steering is not None and self._steering.mask is not None:
                return {"reason": LOOPS}
            after = None if self._canonical is None else self._constraint.advance(self._state, token_id)
            is_in_time = after is not None and self._constraint.min_tokens(after) < self._num_left
            return {"reason": SPELT_OTHERWISE if is_in_time else FINISHED_TOO_LATE}
        return {"reason": found.reason, "dies_at": found.dies_at, "expected": found.expected}

    def _spelling(self, token_id: int) -> str | None:
        """The text of a token; None for tokens that are never text."""
        data = self._tokens[token_id]
        return None if data is None else data.decode(errors="replace")


class DetailWriter:
    """Writes the details of all outputs of a request."""

    def __init__(self, service: Service, plans: Sequence[Plan], options: DetailOptions, reply_id: str) -> None:
        """reply_id: names the answer in the log."""
        self._service, self._plans, self._options = service, plans, options
        self._readers, self._fields = list[DetailReader](), list[FieldWriter | None]()
        for plan, request in [(each, request) for each in plans for request in each.requests]:
            known = service.llm.vocabulary, service.model_len, options.candidates, service.llm.canonical
            self._readers.append(DetailReader(request, plan.constraint, *known))
            has_values = options.fields and plan.constraint is not None
            self._fields.append(FieldWriter(request, plan.constraint, reply_id) if has_values else None)

    def head(self) -> dict[str, Any]:
        """The details that are told once."""
        seconds = [plan.compile_seconds for plan in self._plans if plan.compile_seconds is not None]
        constraint = self._plans[0].constraint
        told: dict[str, Any] = {"version": VERSION, "vocabulary_size": self._service.llm.vocabulary.size, "constraint": None}
        if constraint is not None:
            told["constraint"] = {
                "compile_seconds": round(sum(seconds), DECIMALS),
                "min_tokens": constraint.min_tokens(constraint.start()),
                "residue": list(constraint.residue),
                "notes": list(constraint.notes),
            }
        return told

    async def of(self, index: int, records: Sequence[TokenRecord], ended: RequestOutput | None) -> dict[str, Any]:
        """The members with the details of the next tokens of output `index`, and of the values that are complete with them."""
        told: dict[str, Any] = {}
        if self._options.tokens and (records or ended is not None):
            told["tokens"] = await self._service.in_thread(self._readers[index].read, records)
        if (fields := self._fields[index]) is not None and (values := await self._service.in_thread(fields.read, records, ended)):
            told["fields"] = values
        return {"version": VERSION, **told} if told else {}


def detail_writer(service: Service, plans: Sequence[Plan], options: DetailOptions | None, reply_id: str) -> DetailWriter | None:
    """A writer of details; None unless they were asked for."""
    is_asked = options is not None and (options.tokens or options.fields)
    return DetailWriter(service, plans, options, reply_id) if options is not None and is_asked else None


def head_of(details: DetailWriter | None) -> dict[str, Any]:
    """The member of an answer, or of the first chunk of a stream, that stands beside its choices; nothing when it was
    not asked for."""
    return {} if details is None else {"maskwright": details.head()}


async def details_of(
    details: DetailWriter | None, index: int, records: Sequence[TokenRecord], ended: RequestOutput | None
) -> dict[str, Any]:
    """The member of a choice with the details of its tokens and values; nothing when there are none, or nobody asked."""
    told = {} if details is None else await details.of(index, records, ended)
    return {"maskwright": told} if told else {}


def _probability(logprob: float | None) -> float | None:
    return None if logprob is None else round(math.exp(logprob), DECIMALS)
