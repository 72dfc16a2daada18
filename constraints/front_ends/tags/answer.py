"""The answer behind reasoning that a reply may leave out: it does not contain the mark that reasoning begins with.

In: a source or None, and the mark. Out: a source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...grammar.expression import Grammar, Node
from ...grammar.source import Limits, Source
from ...runtime.constraint import Constraint
from ...runtime.front_end import FrontEnd, front_end_of
from ...runtime.values import Values
from .lowering import lower_tree
from .structural import StructuralTag
from .tools import Tools
from .tree import AnyOf, Joined, Labelled, Located, Part, Repeat, Sequence, Text, Triggered

REASONING_MARK = "<think>"  # the mark


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
        return replace(part, not_leading=part.not_leading + REASONING_MARK[0])
    if isinstance(part, Text | Triggered) and part.without_tokens is None:
        return replace(part, excludes=(*part.excludes, REASONING_MARK))
    return part
