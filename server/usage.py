"""The cost of a request in tokens, in OpenAI's form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.requests.output import RequestOutput


def usage_so_far(num_prompt: int, num_completion: int) -> dict[str, Any]:
    """The tokens of a stream that goes on."""
    return {"prompt_tokens": num_prompt, "completion_tokens": num_completion, "total_tokens": num_prompt + num_completion}


def usage_of(outputs: Sequence[RequestOutput], num_per_prompt: int | None = None) -> dict[str, Any]:
    """The tokens of some outputs. num_per_prompt: how many outputs belong to one prompt, whose tokens count once; None:
    all."""
    first_of_each = outputs[:: num_per_prompt or len(outputs) or 1]
    prompt = sum(output.num_prompt_tokens for output in first_of_each)
    cached = sum(output.num_cached_tokens for output in first_of_each)
    completion = sum(len(output.token_ids) for output in outputs)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
