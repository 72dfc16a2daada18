"""Field exact match: how many values of an answer were filled exactly, and how far apart two models are."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from example import Example

JSON_KINDS = {"fill", "call"}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Each value that is neither array nor object, with its path; an empty container is a value of its own."""
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    if not children or not value:
        yield path, value
    else:
        for step, child in children:
            yield from leaves(child, (*path, step))


def is_same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def fields_of(example: Example, text: str) -> dict[tuple[str | int, ...], Any] | None:
    """The fields of an answer text; None when it is not JSON."""
    if example.kind not in JSON_KINDS:
        return {(): text}
    try:
        return dict(leaves(json.loads(text)))
    except ValueError:
        return None


def type_name(value: Any) -> str:
    return "null" if value is None else type(value).__name__


@dataclass(slots=True)
class Score:
    """Counts of fields and of whole answers. A field that was made up counts as a field missed."""

    fields: Counter[str] = field(default_factory=Counter)
    right_fields: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    right_answers: Counter[str] = field(default_factory=Counter)
    malformed: int = 0

    def add(self, example: Example, text: str) -> bool:
        expected, actual = fields_of(example, example.answer), fields_of(example, text)
        assert expected is not None
        self.malformed += actual is None
        actual = actual or {}
        missing = object()
        is_right = all(is_same(actual.get(path, missing), value) for path, value in expected.items()) and actual.keys() <= expected.keys()
        for path, value in expected.items():
            for group in (example.kind, f"{example.kind}:{type_name(value)}"):
                self.fields[group] += 1
                self.right_fields[group] += is_same(actual.get(path, missing), value)
        self.fields[example.kind] += len(actual.keys() - expected.keys())
        self.answers[example.kind] += 1
        self.right_answers[example.kind] += is_right
        return is_right

    def summary(self) -> dict[str, Any]:
        """Shares by kind and by type; `fields` is over schemas and tool calls together."""
        main = [kind for kind in JSON_KINDS if self.fields[kind]]
        total, right = sum(self.fields[kind] for kind in main), sum(self.right_fields[kind] for kind in main)
        return {
            "fields_exact": round(right / total, 4) if total else None,
            "fields": total,
            "malformed": self.malformed,
            "fields_exact_by_kind": {group: round(self.right_fields[group] / count, 4) for group, count in sorted(self.fields.items())},
            "fields_by_kind": dict(sorted(self.fields.items())),
            "answers_exact_by_kind": {kind: round(self.right_answers[kind] / count, 4) for kind, count in sorted(self.answers.items())},
            "answers_by_kind": dict(sorted(self.answers.items())),
        }


def difference(examples: Sequence[Example], first: Sequence[str], second: Sequence[str]) -> dict[str, float]:
    """Points of right fields that the first answers have more, and half the width of the 95 % interval.

    Both answer the same texts, and the fields of one text go wrong together: so texts, not fields, are taken as drawn, and the error is that of a
    quotient of means (Cochran, Sampling Techniques, 2.11), of which each is measured against its own number of fields.
    """
    pairs = [(tally(example, one), tally(example, two)) for example, one, two in zip(examples, first, second, strict=True) if example.kind in JSON_KINDS]
    totals = [sum(pair[side][1] for pair in pairs) for side in (0, 1)]
    shares = [sum(pair[side][0] for pair in pairs) / totals[side] for side in (0, 1)]
    residuals = [[(right - shares[side] * count) / totals[side] for right, count in (pair[side] for pair in pairs)] for side in (0, 1)]
    variance = len(pairs) / (len(pairs) - 1) * sum((one - two) ** 2 for one, two in zip(*residuals, strict=True))
    return {"points": round(100 * (shares[0] - shares[1]), 1), "error": round(196 * math.sqrt(variance), 1), "texts": len(pairs)}


def tally(example: Example, text: str) -> tuple[int, int]:
    """Right fields, and all: those expected and those made up."""
    score = Score()
    score.add(example, text)
    return score.right_fields[example.kind], score.fields[example.kind]
