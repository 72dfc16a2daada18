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

FILE_MARKS = (  # before the name of a repository, and before the name of each of its files (arXiv:2402.19173, arXiv:2409.12186)
    ("<|repo_name|>", "<|file_sep|>"),  # Qwen coder
    ("<repo_name>", "<file_sep>"),  # StarCoder 2
    ("<reponame>", "<filename>"),  # StarCoder, Granite
)
REPOSITORY, THIS_FILE = "myproject\n", "filename\n"  # what llama.cpp calls them, which is not told either
BETWEEN_FILES = "\n\n--- snippet ---\n\n"  # as there, for models without such marks


def marks_of(llm: LLM) -> tuple[int, int, int] | None:
    """The ids of a model's marks; None where it has none."""
    known = llm.vocabulary.special_tokens
    found = next((marks for marks in MARKS if all(mark in known for mark in marks)), None)
    return None if found is None else (known[found[0]], known[found[1]], known[found[2]])


def infilled(
    llm: LLM,
    prompt: str | Sequence[int],
    suffix: str,
    *,
    has_begin: bool,
    param: str = "suffix",
    files: Sequence[tuple[str, str]] = (),
    most: int = 0,
) -> list[int]:
    """The prompt for a text between `prompt` and `suffix`.

    has_begin: with the token that begins texts, where there is one. param: what the client calls the suffix. files: names and
    texts of others that the text belongs to. most: tokens that the whole may have; what the files have over that goes, from their
    front. Raises ApiError for a model without marks.
    """
    marks = marks_of(llm)
    if marks is None:
        message = (
            f"{param}: text is written behind the prompt, and the tokenizer of this model has no marks for filling in the middle; "
            "describe the gap in the prompt"
        )
        raise ApiError(400, message, param=param, code="unsupported_parameter")
    begin = list(_begin(llm)) if has_begin else []
    before = llm.planner.encode(prompt, add_special_tokens=False) if isinstance(prompt, str) else prompt
    gap = [marks[0], *before, marks[1], *llm.planner.encode(suffix, False), marks[2]]
    others = _files(llm, files) if files else []
    room = max(most - len(begin) - len(gap), 0)
    return [*begin, *others[max(len(others) - room, 0) :], *gap]


def file_marks_of(llm: LLM) -> tuple[int, int] | None:
    """The ids of a model's marks for repositories and files; None where it has none."""
    known = llm.vocabulary.special_tokens
    return next(((known[first], known[second]) for first, second in FILE_MARKS if first in known and second in known), None)


def _files(llm: LLM, files: Sequence[tuple[str, str]]) -> list[int]:
    def encode(text: str) -> list[int]:
        return list(llm.planner.encode(text, add_special_tokens=False))

    marks = file_marks_of(llm)
    if marks is None:
        return [token for _, text in files for part in (BETWEEN_FILES, text) for token in encode(part)]
    each = [token for name, text in files for token in (marks[1], *encode(f"{name}\n"), *encode(text))]
    return [marks[0], *encode(REPOSITORY), *each, marks[1], *encode(THIS_FILE)]


def _begin(llm: LLM) -> Sequence[int]:
    around = llm.tokenizer.encode("")
    return around[:1] if around and llm.tokenizer.decode(around[:1]) == llm.tokenizer.bos_token else ()
