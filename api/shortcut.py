"""The one-line front door: a prompt and a schema in, a value out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Unpack

from .constraint_choice import ConstraintOptions
from .llm import LLM
from .model_folder import EMBEDDED, find_model
from .sampling import SamplingParams


def generate(
    prompt: str | Sequence[str],
    *,
    model: LLM | str | os.PathLike[str] = EMBEDDED,
    sampling: SamplingParams | None = None,
    adapter: str | None = None,
    **constraint: Unpack[ConstraintOptions],
) -> Any:
    """What the model answers: an instance for a type, parsed JSON for a raw schema, else a str.

        generate("Ada Lovelace, 36, lives in London.", schema=Person)      -> Person(name="Ada Lovelace", ...)
        generate("Great value!", choice=["positive", "negative"])          -> "positive"
        generate([first, second], schema=Person)                           -> [Person(...), Person(...)]

    Args:
        prompt: one prompt, or several for a list of values.
        model: a loaded `LLM`, or what `LLM` takes; the last one named stays loaded. The model that ships in the package is
            a small demonstration: it fills schemas from short texts.
        sampling: how to choose tokens; None: as the model recommends.
        adapter: the name of an adapter that `model`, a loaded `LLM`, has.
        constraint: schema=, json_schema=, regex=, grammar=, choice= or constraint= (see `constraint_choice.py`).

    Raises:
        ConstraintError: the constraint does not compile; the message says where and what to write instead.
        GenerationIncomplete: generation ended before the output was complete. ValidationFailed: a validator rejected it.
    """
    llm = model if isinstance(model, LLM) else _loaded(str(find_model(model)))
    outputs = llm.generate(prompt, sampling=sampling, adapter=adapter, **constraint)
    return outputs[0].parsed if isinstance(prompt, str) else [output.parsed for output in outputs]


@lru_cache(maxsize=1)
def _loaded(model: str) -> LLM:
    return LLM(model)
