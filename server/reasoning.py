"""Models that think before they answer: their chat template tells, and the reply is read accordingly."""

from __future__ import annotations

from dataclasses import replace

from ..chat import Turn
from ..constraints import Reasoning, StructuralTag
from ..constraints.tags.tree import Text
from ..engine.tokenizer import Tokenizer

START, END = "<think>", "</think>"


def with_reasoning(turn: Turn, tokenizer: Tokenizer) -> Turn:
    """The turn, whose reply may begin with reasoning, if the model's template knows the marks of it.

    A template that opens the reasoning itself leaves the end mark to the model; one that closes it too leaves nothing.
    """
    if START not in tokenizer.chat_template or END not in tokenizer.chat_template:
        return turn
    definitions = [tool.definition() for tool in turn.tools] or None
    beginning = tokenizer.render_chat(turn.messages, tools=definitions, **turn.variables).rstrip()
    if beginning.endswith(END):
        return turn
    inner = turn.choice.source if turn.choice.source is not None else StructuralTag(Text())
    is_open = beginning.endswith(START)
    source = Reasoning(inner, start="" if is_open else START, end=END, optional=not is_open)
    return replace(turn, choice=replace(turn.choice, source=source))
