"""Text that fits in before a suffix: prompts with the marks that models learn for filling in the middle (arXiv:2207.14255)."""

from __future__ import annotations

from collections.abc import Sequence

from ..llm import LLM
from .errors import ApiError

# Marks before what comes before, before what comes behind, and before the middle, which is written last.
MARKS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen coder, CodeGemma
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    ("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),  # DeepSeek coder
    ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"),  # Code Llama
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM
)


def marks_of(llm: LLM) -> tuple[int, int, int] | None:
    """The ids of a model's marks; None where it has none."""
    known = llm.vocabulary.special_tokens
    found = next((marks for marks in MARKS if all(mark in known for mark in marks)), None)
    return None if found is None else (known[found[0]], known[found[1]], known[found[2]])


def infilled(llm: LLM, prompt: str | Sequence[int], suffix: str, *, has_begin: bool) -> list[int]:
    """The prompt for a text between `prompt` and `suffix`. has_begin: with the token that begins texts, where there is one.

    Raises ApiError for a model without marks.
    """
    marks = marks_of(llm)
    if marks is None:
        message = (
            "suffix: text is written behind the prompt, and the tokenizer of this model has no marks for filling in the middle; "
            "describe the gap in the prompt"
        )
        raise ApiError(400, message, param="suffix", code="unsupported_parameter")
    before = llm.planner.encode(prompt, add_special_tokens=False) if isinstance(prompt, str) else prompt
    return [*(_begin(llm) if has_begin else ()), marks[0], *before, marks[1], *llm.planner.encode(suffix, False), marks[2]]


def _begin(llm: LLM) -> Sequence[int]:
    around = llm.tokenizer.encode("")
    return around[:1] if around and llm.tokenizer.decode(around[:1]) == llm.tokenizer.bos_token else ()
