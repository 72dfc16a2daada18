"""Alternatives whose every text another alternative matches too, where none of them is recursive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from ..base.errors import ConstraintError, ConstraintLimit
from ..grammar.expression import EMPTY, FAIL, Grammar, Node
from ..grammar.source import Limits
from ..runtime.compiler import Compiler
from .language import byte_compiler
from .outline import Call, Chars, Choice, Outline, Part, Pattern, Repeat, Series, Text, calls, fold, spelled, walk

_MOST_OPTIONS = 40
_MOST_PARTS = 300  # of a choice, the rules that it calls included
_LIMITS = Limits(search_states=2_000, seconds=1.0)


@dataclass(frozen=True, eq=False)
class _Remainder:
    """The texts of one part that none of some others matches."""

    outline: Outline
    part: Part
    others: Sequence[Part]

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        others = [_node(grammar, self.outline, other) for other in self.others]
        return grammar.without(_node(grammar, self.outline, self.part), grammar.alt(*others))


def covered_options(outline: Outline, choice: Choice, recursive: Set[str]) -> Iterator[tuple[int, int | None]]:
    """The alternatives that add nothing, each with one that covers it: an earlier one, or else a later one; None: only
    all others together."""
    options = choice.options
    first: dict[str, int] = {}
    doubles = {i: by for i, option in enumerate(options) if (by := first.setdefault(spelled(option), i)) != i}
    yield from doubles.items()
    if outline.skip is not None or not _is_small(outline, choice, recursive):
        return  # what is skipped stands between terminals, so their texts alone do not tell
    compiler = Compiler(byte_compiler().vocabulary, _LIMITS)
    left = [i for i in range(len(options)) if i not in doubles]
    for i in [*left]:
        others = [j for j in left if j != i]
        if others and _is_covered(compiler, outline, options[i], [options[j] for j in others]):
            yield i, next((j for j in others if _is_covered(compiler, outline, options[i], [options[j]])), None)
            left.remove(i)


def _is_covered(compiler: Compiler, outline: Outline, part: Part, others: Sequence[Part]) -> bool:
    try:
        compiler.compile(_Remainder(outline, part, others))
    except ConstraintLimit:
        return False
    except ConstraintError as error:
        return error.reason.startswith("nothing satisfies")
    return False


def _is_small(outline: Outline, choice: Choice, recursive: Set[str]) -> bool:
    """Whether a choice calls no recursive rule and no special token, and is not large once rules are put in place of names."""
    if not 2 <= len(choice.options) <= _MOST_OPTIONS:
        return False
    count, work = 0, [choice]
    seen: list[Part] = list(work)
    while seen:
        for part in walk(seen.pop()):
            count += 1
            if isinstance(part, Pattern) or count > _MOST_PARTS:
                return False  # patterns may hold anything; the search for ambiguity sees them
            if isinstance(part, Call):
                if part.name in recursive or outline.rules[part.name].terminal is not None:
                    return False
                seen.append(outline.rules[part.name].body)
    return True


def _node(grammar: Grammar, outline: Outline, part: Part) -> Node:
    """The node of a part without recursion; the rules that it calls are lowered first."""
    nodes: dict[str, Node] = {}
    work = [name for one in walk(part) if isinstance(one, Call) for name in [one.name]]
    while work:
        name = work[-1]
        missing = [callee for callee in calls(outline.rules[name]) if callee not in nodes]
        if missing and name not in nodes:
            work.extend(missing)
            continue
        work.pop()
        nodes.setdefault(name, _lowered(grammar, outline.rules[name].body, nodes))
    return _lowered(grammar, part, nodes)


def _lowered(grammar: Grammar, body: Part, rules: dict[str, Node]) -> Node:
    def combine(part: Part, below: list[Node]) -> Node:
        if isinstance(part, Text):
            return grammar.literal(part.text)
        if isinstance(part, Chars):
            return grammar.chars(part.ranges)
        if isinstance(part, Call):
            return rules[part.name]
        if isinstance(part, Series):
            return grammar.seq(*below) if below else EMPTY
        if isinstance(part, Repeat):
            return grammar.repeat(below[0], part.low, part.high)
        return grammar.alt(*below) if below else FAIL

    return fold(body, combine)
