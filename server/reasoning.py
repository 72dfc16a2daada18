"""Models that think before they answer: their chat template tells, and the reply is read accordingly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..chat import Turn
from ..constraints import ConstraintError, Reasoning, Source, StructuralTag, Tools
from ..constraints.front_ends.tags.answer import REASONING_MARK, Answer
from ..engine.models.tokenizer import Tokenizer

END = "</think>"


def with_reasoning(turn: Turn, tokenizer: Tokenizer, budget: int | None = None) -> Turn:
    """The turn, whose reply may begin with reasoning if the model's chat template knows the marks of it.

    A template that opens the reasoning itself leaves the end mark to the model; one that closes it too leaves nothing.
    budget: how many tokens the reasoning may take, None for any number.
    """
    if REASONING_MARK not in tokenizer.chat_template or END not in tokenizer.chat_template:
        return turn
    definitions = [tool.definition() for tool in turn.tools] or None
    beginning = tokenizer.render_chat(turn.messages, tools=definitions, is_begun=turn.is_begun, **turn.variables)
    beginning = beginning.removesuffix(turn.begun.lstrip()).rstrip()
    if beginning.endswith(END):
        return turn
    source = reasoned(turn.choice.source, beginning.endswith(REASONING_MARK), budget)
    return replace(turn, choice=replace(turn.choice, source=source))


def reasoned(inner: Source | None, is_open: bool, budget: int | None = None) -> Reasoning:
    """Reasoning, then the answer. is_open: the prompt ends with the mark that begins it; else the model may leave it out."""
    if is_open:
        return Reasoning(Answer(inner), start="", end=END, max_tokens=budget)
    return Reasoning(Answer(inner), start=REASONING_MARK, end=END, max_tokens=budget, optional=True)


def shows_free_text(source: Any) -> bool:
    """Whether the text that the reader is shown, beside calls and reasoning, is the model's own."""
    if isinstance(source, Reasoning) and isinstance(source.inner, Answer):
        return source.inner.inner is None or shows_free_text(source.inner.inner)
    return isinstance(source, Tools) and source.answer is None


def shows_tags(source: Any) -> bool:
    """Whether the content of such a reply is text with structural tags in it."""
    if isinstance(source, Reasoning) and isinstance(source.inner, Answer):
        source = source.inner.inner
    return isinstance(source, StructuralTag)


def custom_tools(source: Any) -> frozenset[str]:
    """The names of the tools that take a text and no JSON."""
    if isinstance(source, Reasoning) and isinstance(source.inner, Answer):
        source = source.inner.inner
    return frozenset(tool.name for tool in source.tools if tool.is_custom) if isinstance(source, Tools) else frozenset()


def is_about_budget(error: Exception, source: Source) -> bool:
    """Whether an error says that the budget of the reasoning is too small for its marks. (Errors about what follows the
    reasoning have a place.)"""
    if not isinstance(source, Reasoning) or not isinstance(error, ConstraintError):
        return False
    return error.keyword == "max_tokens" and error.path is None and error.line is None
