"""What /infill takes: the texts around a gap, and others that they belong to."""

from __future__ import annotations

from pydantic import BaseModel, Field

from ...llm import LLM
from ..infilling import file_marks_of, infilled, marks_of
from .bodies import LlamaCompletionBody


class LlamaFile(BaseModel):
    """Another file that the model sees."""

    text: str = Field("", description="What is in it, or in a part of it.")
    filename: str = Field("tmp", description="Its name, for models that know names of files.")


class LlamaInfillBody(LlamaCompletionBody):
    """The texts around a gap, with the parameters of /completion."""

    prompt: str = Field("", description="What stands behind input_prefix: how the middle begins already.")
    input_prefix: str = Field(description="The text before the gap.")
    input_suffix: str = Field(description="The text behind the gap.")
    input_extra: list[LlamaFile] = Field([], description="Other files. Where they are too long, their front is left out.")


def gap_prompt(body: LlamaInfillBody, llm: LLM, model_len: int) -> list[int]:
    """The tokens after which the middle is written. model_len: tokens of a context. Raises ApiError."""
    before = [token for text in (body.input_prefix, body.prompt) for token in llm.planner.encode(text, add_special_tokens=False)]
    files = [(each.filename, each.text) for each in body.input_extra]
    most = model_len - (1 if body.num_wanted is None else body.num_wanted)
    return infilled(llm, before, body.input_suffix, has_begin=True, param="input_suffix", files=files, most=most)


def ends_of_gaps(llm: LLM) -> tuple[int, ...]:
    """Marks that a model writes when the middle has ended and another file or gap begins."""
    return (*(marks_of(llm) or ()), *(file_marks_of(llm) or ()))
