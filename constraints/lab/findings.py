"""What is wrong, or worth knowing, about a grammar as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..grammar.components import components, is_recursive
from .ambiguity import LONGEST, Search
from .covered import covered_options
from .facts import NO_TEXT, left_recursive, part_length, reached
from .language import Languages
from .net import Net
from .outline import (
    Call,
    Chars,
    Choice,
    Outline,
    OutlineRule,
    Part,
    Repeat,
    Text,
    calls,
    parts_below,
    quoted,
    spelled,
    walk,
)

ERROR, WARNING, NOTE = "error", "warning", "note"
LEFT_RECURSION = "left recursion"
LEVELS = (ERROR, WARNING, NOTE)
_BLANKS = " \t\r\n"
_SHOWN = 60  # characters of an expression in a message


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark. `code` is its kind in one word or two; `line` (from 1) is where, None when it is about the whole."""

    level: str
    code: str
    message: str
    rule: str | None = None
    line: int | None = None
    details: tuple[str, ...] = ()  # lines of their own, such as the derivations of an ambiguous text

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "details": list(self.details)}


def outline_findings(outline: Outline, steps: int) -> list[Finding]:
    """All findings about the rules, those of one kind in the order of their lines.

    steps: how far ambiguity is searched; 0 leaves it out.
    """
    languages = Languages()
    net = Net(outline, languages)
    used = reached(outline)
    groups = [
        sorted(found, key=lambda finding: finding.line or 0)
        for found in (
            _hopeless(outline, net, used),
            _dead(outline, used),
            _hopeless_options(outline, net, used, languages),
            _superfluous_options(outline, used),
            _ambiguous(outline, net, steps),
            _left_recursion(outline, net, used, languages),
            _endless_blanks(outline, used),
        )
    ]
    return [finding for group in groups for finding in group]


def _hopeless(outline: Outline, net: Net, used: set[str]) -> Iterator[Finding]:
    for name, rule in outline.rules.items():
        if name in used and net.least_of_rule[name] >= NO_TEXT:
            why = "it always needs itself again, or a rule that does" if calls(rule) else "no text matches it"
            yield Finding(ERROR, "unproductive", f"rule {name} has no text: {why}", name, outline.line(rule.at))


def _dead(outline: Outline, used: set[str]) -> Iterator[Finding]:
    callers = {name: [one for one, rule in outline.rules.items() if name in calls(rule)] for name in outline.rules.keys() - used}
    for name, by in callers.items():
        others = [one for one in by if one != name]
        who = f"only {_listed(others)} calls it, which is not reached either" if others else "nothing calls it"
        yield Finding(WARNING, "dead rule", f"rule {name} is never reached: {who}", name, outline.line(outline.rules[name].at))


def _hopeless_options(outline: Outline, net: Net, used: set[str], languages: Languages) -> Iterator[Finding]:
    for rule, choice in _choices(outline, used):
        lengths = [part_length(option, net.least_of_rule, languages) for option in choice.options]
        if min(lengths, default=NO_TEXT) >= NO_TEXT:
            continue
        for i, option in enumerate(choice.options):
            if lengths[i] >= NO_TEXT:
                message = f"alternative {i + 1} of {rule.name} can never be completed: {_short(option)}"
                yield Finding(WARNING, "unreachable alternative", message, rule.name, _line(outline, rule, option))


def _superfluous_options(outline: Outline, used: set[str]) -> Iterator[Finding]:
    graph = {name: calls(rule) for name, rule in outline.rules.items()}
    recursive = {name for group in components(graph) if is_recursive(group, graph) for name in group}
    for rule, choice in _choices(outline, used):
        for i, by in covered_options(outline, choice, recursive):
            others = f"alternative {by + 1} matches" if by is not None else "the others together match"
            message = f"alternative {i + 1} of {rule.name} adds nothing: {others} all of {_short(choice.options[i])}"
            yield Finding(WARNING, "unreachable alternative", message, rule.name, _line(outline, rule, choice.options[i]))


def _ambiguous(outline: Outline, net: Net, steps: int) -> Iterator[Finding]:
    if not steps or net.least_of_rule[outline.start] >= NO_TEXT:
        return
    if outline.unread:
        yield Finding(NOTE, "ambiguity", f"not searched: {'; '.join(outline.unread)}")
        return
    search = Search(net, steps)
    ambiguities = search.ambiguities()
    for found in ambiguities:
        message = f"rule {found.rule} derives {quoted(found.text)} in two ways"
        details = (str(found.first), str(found.second))
        yield Finding(WARNING, "ambiguity", message, found.rule, outline.line(outline.rules[found.rule].at), details)
    if not search.is_complete and not ambiguities:
        yield Finding(NOTE, "ambiguity", f"none found, but not all texts of up to {LONGEST} characters were looked at")


def _left_recursion(outline: Outline, net: Net, used: set[str], languages: Languages) -> Iterator[Finding]:
    for group in left_recursive(outline, net.least_of_rule, languages):
        name = min(group, key=lambda name: outline.rules[name].at)
        if name in used:
            how = "itself" if len(group) == 1 else f"itself, through {_listed([one for one in group if one != name])}"
            message = f"rule {name} begins with {how}; that works here, but llama.cpp refuses it"
            yield Finding(NOTE, LEFT_RECURSION, message, name, outline.line(outline.rules[name].at))


def _endless_blanks(outline: Outline, used: set[str]) -> Iterator[Finding]:
    for name, rule in outline.rules.items():
        for part in walk(rule.body) if name in used else ():
            if isinstance(part, Repeat) and part.high is None and _only_blanks(outline, part.body):
                message = f"{_short(part)} in {name} has no bound: a model may write blanks forever; {{{part.low},16}} ends them"
                yield Finding(NOTE, "endless blanks", message, name, outline.line(part.at or rule.at))


def _only_blanks(outline: Outline, body: Part) -> bool:
    while isinstance(body, Call) and body.name in outline.rules and outline.rules[body.name].terminal is None:
        following = outline.rules[body.name].body
        if isinstance(following, Call):
            return False
        body = following
    leaves = [part for part in walk(body) if not parts_below(part)]
    return bool(leaves) and all(_is_blank(leaf) for leaf in leaves)


def _is_blank(leaf: Part) -> bool:
    if isinstance(leaf, Chars):
        return all(high - low < len(_BLANKS) and all(chr(c) in _BLANKS for c in range(low, high + 1)) for low, high in leaf.ranges)
    return isinstance(leaf, Text) and not leaf.text.strip(_BLANKS)


def _choices(outline: Outline, used: set[str]) -> Iterator[tuple[OutlineRule, Choice]]:
    for name, rule in outline.rules.items():
        if name in used and rule.terminal is None:
            yield from ((rule, part) for part in walk(rule.body) if isinstance(part, Choice))


def _line(outline: Outline, rule: OutlineRule, part: Part) -> int:
    """The line where a part stands; an empty part has no place of its own, so that of its rule."""
    return outline.line(next((one.at for one in walk(part) if one.at), rule.at))


def _short(part: Part) -> str:
    text = spelled(part)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 4] + " ..."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
