"""Facts about an outline: what its start reaches, what can be completed, what begins with itself."""

from __future__ import annotations

from collections.abc import Mapping

from ..grammar.components import components, is_recursive
from .language import Languages
from .outline import Call, Chars, Choice, Outline, Part, Pattern, Repeat, Series, Text, calls, fold, parts_below

NO_TEXT = 1 << 40  # the least length of what has no text


def reached(outline: Outline) -> set[str]:
    """The rules that the start needs, itself included, and the terminals that are skipped."""
    seen = {outline.start, *outline.skipped} & outline.rules.keys()
    work = list(seen)
    while work:
        for name in calls(outline.rules[work.pop()]):
            if name in outline.rules and name not in seen:
                seen.add(name)
                work.append(name)
    return seen


def least_lengths(outline: Outline, languages: Languages, toll: int = 0) -> dict[str, int]:
    """The characters of the shortest text of every rule; NO_TEXT where there is none. toll: what each call costs in
    addition."""
    least = dict.fromkeys(outline.rules, NO_TEXT)
    for component in components({name: calls(rule) for name, rule in outline.rules.items()}):
        is_moving = True
        while is_moving:
            is_moving = False
            for name in component:
                rule = outline.rules[name]
                length = part_length(rule.terminal or rule.body, least, languages, toll)
                is_moving |= length < least[name]
                least[name] = min(length, least[name])
    return least


def part_length(body: Part, least: Mapping[str, int], languages: Languages, toll: int = 0) -> int:
    """The characters of the shortest text of a part."""

    def combine(part: Part, below: list[int]) -> int:
        if isinstance(part, Text):
            return len(part.text)
        if isinstance(part, Chars):
            return 1 if part.ranges else NO_TEXT
        if isinstance(part, Pattern):
            return languages.of(part).least_length
        if isinstance(part, Call):
            return min(least[part.name] + toll, NO_TEXT)
        if isinstance(part, Choice):
            return min(below, default=NO_TEXT)
        total = below[0] * part.low if isinstance(part, Repeat) else sum(below)
        return min(total, NO_TEXT)

    return fold(body, combine)


def first_calls(body: Part, least: Mapping[str, int], languages: Languages) -> list[str]:
    """The rules that may be called before the first character of a part."""
    found: dict[str, None] = {}
    work = [body]
    while work:
        part = work.pop()
        if isinstance(part, Call):
            found[part.name] = None
        elif isinstance(part, Series):
            for one in part.parts:
                work.append(one)
                if part_length(one, least, languages) > 0:
                    break
        else:
            work.extend(parts_below(part))
    return list(found)


def left_recursive(outline: Outline, least: Mapping[str, int], languages: Languages) -> list[list[str]]:
    """Groups of rules that may begin with themselves."""
    first = {name: first_calls(rule.body, least, languages) for name, rule in outline.rules.items()}
    return [component for component in components(first) if is_recursive(component, first)]
