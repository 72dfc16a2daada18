"""What SGLang's answers consist of, for the documentation and for tests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from ..answers import EndedLoop, Notes, Residue


class Ending(BaseModel):
    """Why an output ended. matched: the stop string, if one ended it."""

    type: Literal["stop", "length"]
    length: int | None = None
    matched: str | None = None
    is_complete: bool | None = None


ENTRY = "[log-probability, token id, text]; the text is null unless return_text_in_logprobs asks for it."


class MetaInfo(BaseModel):
    id: str
    finish_reason: Ending | None = Field(description="None while a stream goes on.")
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    e2e_latency: float | None = Field(None, description="Seconds.")
    input_token_logprobs: list[list[Any]] | None = Field(None, description=ENTRY)
    output_token_logprobs: list[list[Any]] | None = Field(None, description=ENTRY)
    input_top_logprobs: list[list[list[Any]] | None] | None = None
    output_top_logprobs: list[list[list[Any]]] | None = None
    residue: Residue = None
    notes: Notes = None
    loops: list[EndedLoop] | None = None


class Generated(BaseModel):
    """An output, in a stream as far as it has come; its last event is `[DONE]`, or an error."""

    text: str
    output_ids: list[int]
    meta_info: MetaInfo
    index: int | None = Field(None, description="In a stream of several outputs: which one.")


GeneratedAnswer = Generated | list[Generated]


class ModelInfo(BaseModel):
    model_path: str
    tokenizer_path: str
    is_generation: Literal[True]
    preferred_sampling_params: dict[str, Any] | None
