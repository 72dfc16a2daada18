"""Models that think before they answer: their chat template tells, and the reply is read accordingly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..chat import Turn
from ..constraints import Constraint, ConstraintError, Limits, Reasoning, Source, StructuralTag, Tools
from ..constraints.front_ends.tags.lowering import lower_tree
from ..constraints.front_ends.tags.tree import AnyOf, Joined, Labelled, Located, Part, Repeat, Sequence, Text, Triggered
from ..constraints.grammar.expression import Grammar, Node
from ..constraints.runtime.front_end import FrontEnd, front_end_of
from ..constraints.runtime.values import Values
from ..engine.models.tokenizer import Tokenizer

START, END = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Answer(FrontEnd):
    """What follows the reasoning: a source, or None for free text. Its text does not contain the mark that begins reasoning,
    so that a reply which begins with the mark is certain to be reasoning first."""

    inner: Source | None

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The answer as a node. Raises `ConstraintError`."""
        if isinstance(self.inner, StructuralTag):
            tree: Part = self.inner.format  # type: ignore[assignment]  # read by its __post_init__
        elif isinstance(self.inner, Tools):
            tree = self.inner.tree(grammar, limits)
        elif self.inner is not None:
            return self.inner.lower(grammar, limits)
        else:
            tree = Text()
        return lower_tree(_without_start(tree), grammar, limits)

    def values(self, constraint: Constraint) -> Values | None:
        """Those of what it is."""
        return None if self.inner is None else front_end_of(self.inner).values(constraint)


def with_reasoning(turn: Turn, tokenizer: Tokenizer, budget: int | None = None) -> Turn:
    """The turn, whose reply may begin with reasoning if the model's chat template knows the marks of it.

    A template that opens the reasoning itself leaves the end mark to the model; one that closes it too leaves nothing.
    budget: how many tokens the reasoning may take, None for any number.
    """
    if START not in tokenizer.chat_template or END not in tokenizer.chat_template:
        return turn
    definitions = [tool.definition() for tool in turn.tools] or None
    beginning = tokenizer.render_chat(turn.messages, tools=definitions, is_begun=turn.is_begun, **turn.variables)
    beginning = beginning.removesuffix(turn.begun.lstrip()).rstrip()
    if beginning.endswith(END):
        return turn
    return replace(turn, choice=replace(turn.choice, source=reasoned(turn.choice.source, beginning.endswith(START), budget)))


def reasoned(inner: Source | None, is_open: bool, budget: int | None = None) -> Reasoning:
    """Reasoning, then the answer. is_open: the prompt ends with the mark that begins it; else the model may leave it out."""
    if is_open:
        return Reasoning(Answer(inner), start="", end=END, max_tokens=budget)
    return Reasoning(Answer(inner), start=START, end=END, max_tokens=budget, optional=True)


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


def _without_start(tree: Part) -> Part:
    """A tree of the texts of `tree` that do not have the mark in text outside of tags."""
    made: list[Part] = []
    work: list[tuple[Part, bool]] = [(tree, False)]
    while work:
        part, is_ready = work.pop()
        inner = _inner(part)
        if is_ready:
            changed = made[len(made) - len(inner) :]
            del made[len(made) - len(inner) :]
            made.append(_with_inner(part, changed))
        elif inner:
            work += [(part, True), *((each, False) for each in reversed(inner))]
        else:
            made.append(_leaf(part))
    return made[0]


def _inner(part: Part) -> list[Part]:
    """The parts of a part in which text may stand that is not inside of a tag."""
    if isinstance(part, Located | Labelled | Repeat):
        return [part.content]
    if isinstance(part, AnyOf):
        return list(part.options)
    if isinstance(part, Joined):
        return [each for each, _ in part.parts]
    return list(part.parts) if isinstance(part, Sequence) else []


def _with_inner(part: Part, inner: list[Part]) -> Part:
    if isinstance(part, AnyOf):
        return AnyOf(inner)
    if isinstance(part, Sequence):
        return Sequence(inner)
    if isinstance(part, Joined):
        return replace(part, parts=[(new, needed) for new, (_, needed) in zip(inner, part.parts, strict=True)])
    assert isinstance(part, Located | Labelled | Repeat), "no other part has something inside"
    return replace(part, content=inner[0])


def _leaf(part: Part) -> Part:
    if isinstance(part, Text) and part.not_leading:
        return replace(part, not_leading=part.not_leading + START[0])
    if isinstance(part, Text | Triggered) and part.without_tokens is None:
        return replace(part, excludes=(*part.excludes, START))
    return part
