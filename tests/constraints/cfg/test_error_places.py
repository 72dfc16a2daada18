"""Errors of texts show where they are: the line, and a caret under the column."""

from __future__ import annotations

from typing import Any

import pytest

from maskwright.constraints import Compiler, ConstraintError, Ebnf, Gbnf, Lark, Regex, Vocabulary

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))


@pytest.mark.parametrize(
    "source",
    [
        Gbnf('root ::= "a"\n  | word'),
        Gbnf('root ::= "a"\n  | "b'),
        Ebnf('root ::= "a"\n  | word'),
        Ebnf('root ::= "aa"\n ExcludeToken(300) "dd"'),
        Lark('start: "a"\n  | word'),
        Lark('start: word\nword[temperature=0.5]: "b"'),
        Regex("a\n(b)\\1"),
        Regex("a\n(b"),
    ],
    ids=repr,
)
def test_errors_show_their_place(source: Any) -> None:
    with pytest.raises(ConstraintError) as caught:
        COMPILER.compile(source)
    error, text = caught.value, source.pattern if isinstance(source, Regex) else source.text
    *_, shown, caret = str(error).split("\n")
    assert error.line == 2 and error.column and shown == f"    {text.split(chr(10))[1]}"
    assert caret == " " * (4 + error.column - 1) + "^"


def test_a_long_line_is_shown_around_the_place() -> None:
    with pytest.raises(ConstraintError) as caught:
        COMPILER.compile(Gbnf('root ::= "' + "a" * 500 + '" word'))
    shown, caret = str(caught.value).split("\n")[-2:]
    assert len(shown) < 100 and shown[len(caret) - 1 :] == "word"
