"""Models that think before they answer: their chat template tells, and the reply is read accordingly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..chat import Turn
from ..constraints import ConstraintError, Limits, Reasoning, Source, Tools
from ..constraints.expression import Grammar, Node
from ..constraints.tags.lowering import lower_tree
from ..constraints.tags.tree import AnyOf, Part, Text, Triggered
from ..engine.tokenizer import Tokenizer

START, END = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Answer:
    """What follows the reasoning: a source, or None for free text. Its text does not contain the mark that begins reasoning,
    so that a reply which begins with the mark is certain to be reasoning first."""

    inner: Source | None

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The answer as a node. Raises `ConstraintError`."""
        if self.inner is not None and not isinstance(self.inner, Tools):
            return self.inner.lower(grammar, limits)
        tree = Text() if self.inner is None else self.inner.tree(grammar, limits)
        return lower_tree(_without_start(tree), grammar, limits)


def with_reasoning(turn: Turn, tokenizer: Tokenizer, budget: int | None = None) -> Turn:
    """The turn, whose reply may begin with reasoning, if the model's template knows the marks of it.

    A template that opens the reasoning itself leaves the end mark to the model; one that closes it too leaves nothing.
    budget: how many tokens the reasoning may take, None for any number.
    """
    if START not in tokenizer.chat_template or END not in tokenizer.chat_template:
        return turn
    definitions = [tool.definition() for tool in turn.tools] or None
    beginning = tokenizer.render_chat(turn.messages, tools=definitions, **turn.variables).rstrip()
    if beginning.endswith(END):
        return turn
    return replace(turn, choice=replace(turn.choice, source=reasoned(turn.choice.source, beginning.endswith(START), budget)))


def reasoned(inner: Source | None, is_open: bool, budget: int | None = None) -> Reasoning:
    """Reasoning, then the answer. is_open: the prompt ends with the mark that begins it; else the model may leave it out."""
    if is_open:
        return Reasoning(Answer(inner), start="", end=END, max_tokens=budget)
    return Reasoning(Answer(inner), start=START, end=END, max_tokens=budget, optional=True)


def shows_free_text(source: Any) -> bool:
    """Whether what the reader is shown of such a reply is the model's own text, beside calls and reasoning."""
    if isinstance(source, Reasoning) and isinstance(source.inner, Answer):
        return source.inner.inner is None or isinstance(source.inner.inner, Tools)
    return isinstance(source, Tools)


def is_about_budget(error: Exception, source: Source) -> bool:
    """Whether it says that the budget of the reasoning is too small for its marks: of what follows, errors have a place."""
    if not isinstance(source, Reasoning) or not isinstance(error, ConstraintError):
        return False
    return error.keyword == "max_tokens" and error.path is None and error.line is None


def _without_start(tree: Part) -> Part:
    if isinstance(tree, Text):
        if tree.not_leading:
            return replace(tree, not_leading=tree.not_leading + START[0])
        return replace(tree, excludes=(*tree.excludes, START))
    if isinstance(tree, Triggered):
        return replace(tree, excludes=(*tree.excludes, START))
    return AnyOf([_without_start(part) for part in tree.options]) if isinstance(tree, AnyOf) else tree
