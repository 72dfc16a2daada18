"""The parameters of a request that say how tokens are chosen: OpenAI's, and those that other servers add."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..sampling import SamplingParams
from .body import Because, Body
from .errors import ApiError
from .settings import ServerSettings


class SamplingExtras(Body):
    """Part of every request body that generates: what no endpoint of OpenAI or Anthropic calls by another name."""

    min_p: float | None = Field(None, ge=0, le=1)
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = Field(None, gt=0)
    logit_bias: dict[str, float] | None = Field(None, description="Token id to what is added to its logit.")
    seed: int | None = Field(None, description="The same seed gives the same tokens, whatever else the server does.")
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    min_tokens: int | None = Field(None, ge=0)
    jump_forward: bool | None = Field(None, description="Forced text enters without asking the model for each token.")
    priority: int | None = Field(None, description="Smaller is more urgent, with --policy priority.")
    skip_special_tokens: Annotated[Literal[True] | None, Because("Special tokens are never text.")] = None
    spaces_between_special_tokens: Annotated[Literal[True] | None, Because("Special tokens are never text.")] = None

    @property
    def sampling_extras(self) -> dict[str, Any]:
        """The extras that are given."""
        return {name: getattr(self, name) for name in SamplingExtras.model_fields if getattr(self, name) is not None}


class SamplingBody(SamplingExtras):
    """Part of the request bodies of completions. A parameter that is not known is refused by name."""

    model: str | None = Field(None, description="The name of the model, as /v1/models lists it.")
    max_tokens: int | None = Field(None, ge=1, description="Tokens of one output at most; else as many as the model has room for.")
    temperature: float | None = Field(None, ge=0, description="0 takes the most probable token.")
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1, description="The k most probable tokens; 0 or -1 is off.")
    stop: str | list[str] | None = Field(None, description="Strings that end the output; not with a constraint.")
    n: int | None = Field(None, ge=1, description="Outputs for the prompt.")
    stream: bool | None = None
    user: str | None = Field(None, description="Who shares the engine with others, with --policy fair.")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False
    include_obfuscation: bool | None = Field(None, description="Has no effect: nothing is padded.")


def tells_usage(options: StreamOptions | None) -> bool:
    """Whether the last chunk of a stream tells the usage."""
    return options is not None and options.include_usage


NAMES = {
    name: name
    for name in (
        "temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "ignore_eos", "min_tokens",
        "jump_forward", "n",
    )
} | {"include_stop_str_in_output": "include_stop_in_output"}  # fmt: skip


def sampling_of(
    body: SamplingBody,
    *,
    defaults: SamplingParams,
    settings: ServerSettings,
    model_len: int,
    max_tokens: int | None = None,
    logprobs: int | None = None,
    best_of: int | None = None,
) -> SamplingParams:
    """The sampling that the engine is asked for. Raises ApiError beyond the operator's limits, SamplingError for values
    that mean nothing.

    max_tokens: the limit, where the endpoint has another name for it than the body. logprobs: how many alternatives of
    each token are wanted, None for no log-probabilities.
    """
    given: dict[str, Any] = {}
    for name, ours in NAMES.items():
        if (value := getattr(body, name)) is not None:
            given[ours] = value
    if body.top_k is not None:
        given["top_k"] = max(body.top_k, 0)
    if body.seed is not None:
        given["seed"] = body.seed % 2**64
    if body.logit_bias:
        given["logit_bias"] = {_token_id(name): value for name, value in body.logit_bias.items()}
    if body.stop_token_ids:
        given["stop_token_ids"] = tuple(body.stop_token_ids)
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    _check("stop", len(stop), settings.max_stop, "stop strings")
    _check("n", body.n or 1, settings.max_n, "outputs of one request")
    _check("logprobs", logprobs or 0, settings.max_logprobs, "alternatives of a token")
    asked = body.max_tokens if max_tokens is None else max_tokens
    _check("max_tokens", asked or 1, settings.max_tokens, "tokens of one output")
    given["max_tokens"] = max(asked or settings.max_tokens or model_len, body.min_tokens or 0 if asked is None else 1)
    return replace(defaults, **given, stop=stop, logprobs=logprobs, best_of=best_of)


def _check(param: str, value: int, limit: int | None, what: str) -> None:
    if limit is not None and value > limit:
        message = f"{param} asks for {value} {what}, and this server allows {limit}"
        raise ApiError(400, message, param=param, code="limit_exceeded")


def _token_id(name: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise ApiError(400, f"logit_bias: {name!r} is not a token id", param="logit_bias", code="invalid_value")
    return int(name)
