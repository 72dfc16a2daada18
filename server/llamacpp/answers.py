"""What llama.cpp's answers consist of, for the documentation and for tests. Members that are not known here are left out."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from ..answers import EndedLoop, Notes, Residue


class Timings(BaseModel):
    """Times in milliseconds. Those of the prompt come with the end."""

    cache_n: int | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    prompt_per_token_ms: float | None = None
    prompt_per_second: float | None = None
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float | None = None
    predicted_per_second: float | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None


class LlamaAlternative(BaseModel):
    id: int
    token: str
    bytes: list[int]
    logprob: float


class LlamaProbability(LlamaAlternative):
    top_logprobs: list[LlamaAlternative]


class LlamaPiece(BaseModel):
    """One event of a stream before its last one."""

    index: int
    content: str
    tokens: list[int]
    stop: Literal[False]
    tokens_predicted: int
    tokens_evaluated: int
    timings: Timings | None = None
    completion_probabilities: list[LlamaProbability] | None = None


class LlamaFinal(BaseModel):
    """An output that has ended, or the last event of a stream, whose content has been told."""

    index: int | None = None
    content: str | None = None
    tokens: list[int] | None = None
    stop: Literal[True] | None = None
    model: str | None = None
    tokens_predicted: int | None = None
    tokens_evaluated: int | None = None
    generation_settings: dict[str, Any] | None = None
    prompt: str | None = None
    has_new_line: bool | None = None
    truncated: bool | None = None
    stop_type: Literal["eos", "limit", "word"] | None = None
    stopping_word: str | None = None
    tokens_cached: int | None = None
    timings: Timings | None = None
    completion_probabilities: list[LlamaProbability] | None = None
    is_complete: bool | None = None
    residue: Residue = None
    notes: Notes = None
    loops: list[EndedLoop] | None = None


LlamaCompletion = LlamaFinal | list[LlamaFinal]


class Props(BaseModel):
    """How the server is set up."""

    default_generation_settings: dict[str, Any]
    total_slots: int
    model_alias: str
    modalities: dict[str, bool]
    endpoint_slots: bool
    endpoint_props: bool
    endpoint_metrics: bool
    chat_template: str
    bos_token: str
    eos_token: str
    build_info: str


class Slot(BaseModel):
    id: int
    n_ctx: int
    speculative: bool
    is_processing: bool


class AppliedTemplate(BaseModel):
    prompt: str
