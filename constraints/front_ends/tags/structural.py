"""Structural tags as a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...grammar.expression import Grammar, Node
from ...grammar.segments import Segment
from ...grammar.source import Limits
from ...grammar.stages import Budgets
from ...runtime.constraint import Constraint
from ...runtime.front_end import FrontEnd
from ...runtime.segmented_places import OwnedPlaces, SegmentedPlaces
from ...runtime.values import JsonValues, Places, SegmentedValues, Values
from ..cfg.budgeted_text import Budgeted
from .lowering import counts_tokens, lower_with_budgets
from .requests import read_structural_tag
from .tree import AnyOf, Joined, Located, Part, Repeat, Separated, Sequence, Tag, Triggered


@dataclass(frozen=True, slots=True)
class StructuralTag(Budgeted):
    """Texts with constrained parts in them.

    format: a tree of `maskwright.constraints.front_ends.tags.tree`, or the JSON form that XGrammar reads (`{"type":
    "structural_tag",
        "format": ...}`, or the older one with "structures" and "triggers"), as a mapping or as text; a `response_format` of
        OpenAI or vLLM too.

    Raises `ConstraintError` with the path of what cannot be read, `UnsupportedKeyword` for what cannot be enforced.
    """

    format: Part | Mapping[str, Any] | str

    def __post_init__(self) -> None:
        if isinstance(self.format, Mapping | str):
            object.__setattr__(self, "format", read_structural_tag(self.format))

    def lower_with_budgets(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        """The texts as a node, and the budgets in it."""
        return lower_with_budgets(self._whole, grammar, limits)

    def places(self, constraint: Constraint) -> Places | None:
        """Those of sources that are the content of tags, behind what their tag begins with."""
        whole = _unlocated(self._whole)
        if isinstance(whole, FrontEnd):
            return whole.places(constraint)
        contents = _contents(whole)

        def places_of(segment: Segment) -> Places | None:
            found = contents.get(segment.owner, ()) if segment.role == "tag" else ()
            inner = [each.places(constraint) for each in found if isinstance(each, FrontEnd)]
            return OwnedPlaces(segment.owner, inner[0]) if len(found) == 1 and inner and inner[0] is not None else None

        return SegmentedPlaces(constraint, places_of) if contents else None

    def values(self, constraint: Constraint) -> Values | None:
        """Those of tags whose content is JSON."""
        whole = _unlocated(self._whole)
        if isinstance(whole, FrontEnd):
            return whole.values(constraint)
        found = {begin: {_is_json(each, constraint) for each in parts} for begin, parts in _contents(whole).items()}
        json_tags = frozenset(begin for begin, are_json in found.items() if are_json == {True})
        return SegmentedValues(constraint, is_text_json=False, json_tags=json_tags) if json_tags else None

    @property
    def may_have_budgets(self) -> bool:
        """Whether some part counts tokens."""
        return counts_tokens(self._whole)

    @property
    def _whole(self) -> Part:
        assert not isinstance(self.format, Mapping | str), "__post_init__ has read it"
        return self.format


def _unlocated(part: Part) -> Part:
    return _unlocated(part.content) if isinstance(part, Located) else part


def _contents(whole: Part) -> dict[str, set[Part]]:
    """By what tags begin with: what may be inside."""
    contents: dict[str, set[Part]] = {}
    for tag in _outermost_tags(whole):
        contents.setdefault(tag.begin, set()).add(_unlocated(tag.content))
    return contents


def _is_json(content: Part, constraint: Constraint) -> bool:
    return isinstance(content, FrontEnd) and isinstance(content.values(constraint), JsonValues)


def _outermost_tags(part: Part) -> Iterator[Tag]:
    match part:
        case Tag():
            yield part
        case Triggered() | Separated():
            yield from (tag for each in part.tags for tag in _outermost_tags(each))
        case Sequence():
            yield from (tag for each in part.parts for tag in _outermost_tags(each))
        case AnyOf():
            yield from (tag for each in part.options for tag in _outermost_tags(each))
        case Joined():
            yield from (tag for each, _ in part.parts for tag in _outermost_tags(each))
        case Repeat() | Located():
            yield from _outermost_tags(part.content)
