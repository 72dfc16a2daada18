"""Custom tools: one text of a grammar, written in every style as an argument called input."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from maskwright.constraints import ConstraintError, Lark, Regex, Source, Tools, UnsupportedKeyword, parse_output
from maskwright.constraints.front_ends.tags.custom_input import InputObject, InputString
from maskwright.constraints.front_ends.tags.styles import STYLES

from .tool_cases import CALLS, PLAIN, WEATHER
from .tool_texts import WRITERS

PATCH = r"""
start: "*** Begin Patch\n" hunk+ "*** End Patch" "\n"?
hunk: "*** Delete File: " NAME "\n" | "*** Add File: " NAME "\n" line+
line: "+" /.*/ "\n"
NAME: /.+/
"""
GOOD = '*** Begin Patch\n*** Add File: a"b\\.txt\n+hi "é"\t\\x\n+\n*** End Patch\n'
CUSTOM: dict[str, Any] = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": PATCH}}
NESTED = {"type": "custom", "custom": {"name": "patch", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": PATCH}}}}
ALPHABET = 'ab"\\\n\t\x01é~f'


@pytest.mark.parametrize(
    "source",
    [
        Regex('[^a]*"x|~'),
        Regex(r'(\n|\t|"|\\|é|\x01){2,3}'),
        Regex("[ab]*") & ~Regex(".*ab.*"),
        ~Regex('.*["\\\\].*'),
        Lark('start: "a" start "\\n" | "\\"" | /[^b~]/'),
    ],
    ids=repr,
)  # fmt: skip
def test_the_string_of_a_text_is_read_exactly_if_the_text_is(source: Source) -> None:
    plain, written = PLAIN.compile(source), PLAIN.compile(InputString(source))
    rng = random.Random(1)
    num_accepted = 0
    for _ in range(1500):
        text = "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(6)))
        num_accepted += plain.accepts(text)
        assert plain.accepts(text) == written.accepts(json.dumps(text, ensure_ascii=False)), text
    assert num_accepted


@pytest.mark.parametrize("tool", [CUSTOM, NESTED], ids=["responses", "chat"])
@pytest.mark.parametrize("style", sorted(set(STYLES) - {"harmony"}))
def test_the_input_satisfies_its_grammar(style: str, tool: Any) -> None:
    constraint = PLAIN.compile(Tools([WEATHER, tool], style=style))
    text = GOOD.replace("</", "")
    for call, is_accepted in ((("patch", {"input": text}), True), (("patch", {"input": "x"}), False), (CALLS[0], True)):
        reply = WRITERS[style]("", [call])
        assert constraint.accepts(reply) == is_accepted
        if is_accepted:
            parsed = parse_output(constraint, reply)
            assert [(each.name, json.loads(each.arguments)) for each in parsed.calls] == [call]


def test_any_text_and_patterns() -> None:
    free = PLAIN.compile(Tools([{"type": "custom", "name": "say"}], style="hermes", choice="required"))
    digits = {"type": "custom", "name": "say", "format": {"type": "grammar", "syntax": "regex", "definition": r"\d{2}"}}
    exact = PLAIN.compile(Tools([digits], style="hermes", choice="required"))
    for text in ("12", 'a "b"\n', ""):
        reply = WRITERS["hermes"]("", [("say", {"input": text})])
        assert free.accepts(reply) and exact.accepts(reply) == (text == "12")


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ({"type": "grammar", "syntax": "ebnf", "definition": "a"}, "#/tools/0/format"),
        ({"type": "grammar", "syntax": "lark"}, "#/tools/0/format"),
        ({"type": "xml"}, "#/tools/0/format"),
        ({"type": "grammar", "syntax": "lark", "definition": "start: missing"}, "#/tools/0/format"),
        ({"type": "grammar", "syntax": "regex", "definition": "("}, "#/tools/0/format"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(form: Any, path: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        PLAIN.compile(Tools([{"type": "custom", "name": "say", "format": form}], style="hermes"))
    assert (caught.value.path or "").startswith(path)


def test_what_counts_members_is_refused() -> None:
    counted = Lark('start: %json {"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 2}')
    with pytest.raises(UnsupportedKeyword, match="input of a tool"):
        PLAIN.compile(InputObject(counted, "compact"))
