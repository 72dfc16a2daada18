"""What the check says about crafted faulty grammars, and that it says nothing about others."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import ConstraintError, Vocabulary
from maskwright.constraints.lab.ambiguity import Search
from maskwright.constraints.lab.check import check
from maskwright.constraints.lab.expected import Parse
from maskwright.constraints.lab.findings import ERROR, NOTE, WARNING, Finding
from maskwright.constraints.lab.grammar_file import GrammarFile
from maskwright.constraints.lab.language import Languages, byte_compiler
from maskwright.constraints.lab.net import Net
from maskwright.constraints.lab.outline import Outline, spelled
from maskwright.constraints.runtime.compiler import Compiler

from .derivations import derivations


def findings(text: str, name: str = "x.gbnf", steps: int = 20_000) -> list[Finding]:
    return list(check(GrammarFile.named(name, text), byte_compiler(), steps=steps).findings)


def told(text: str, name: str = "x.gbnf") -> list[tuple[str, str, str | None, int | None]]:
    return [(one.level, one.code, one.rule, one.line) for one in findings(text, name)]


def outline(text: str, name: str = "x.gbnf") -> Outline:
    found = GrammarFile.named(name, text).outline
    assert found is not None
    return found


def test_a_good_grammar() -> None:
    assert told('root ::= "a" ( "," root )?') == []


def test_dead_rules() -> None:
    text = 'root ::= "a"\n\none ::= "b" two\ntwo ::= "c" two | "d"\n'
    assert told(text) == [(WARNING, "dead rule", "one", 3), (WARNING, "dead rule", "two", 4)]
    assert "nothing calls it" in findings(text)[0].message and "only one calls it" in findings(text)[1].message


def test_rules_without_a_text() -> None:
    text = 'root ::= "a" | "b" endless\nendless ::= "x" endless | other\nother ::= "y" endless'
    assert told(text) == [
        (ERROR, "unproductive", "endless", 2),
        (ERROR, "unproductive", "other", 3),
        (WARNING, "unreachable alternative", "root", 1),
    ]
    assert told('root ::= "a" root') == [(ERROR, "unproductive", "root", 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('root ::= "ab" | [0-9] | "ab"', 'alternative 3 of root adds nothing: alternative 1 matches all of "ab"'),
        ("root ::= [a-z]+ | [0-9] | x\nx ::= \"w\" [x-z]{2,3}", "alternative 3 of root adds nothing: alternative 1 matches all of x"),
        ("root ::= [a-n] | [l-z] | [b-w]", "alternative 3 of root adds nothing: the others together match all of [b-w]"),
    ],
)
def test_alternatives_that_add_nothing(text: str, said: str) -> None:
    assert said in [one.message for one in findings(text)]


@pytest.mark.parametrize(
    ("text", "rule", "ambiguous"),
    [
        ('root ::= root "+" root | [0-9]', "root", "0+0+0"),
        ('root ::= s ";"\ns ::= "if " s ( " else " s )? | "x"', "s", "if if x else x"),
        ('root ::= ws "a" ws ws "b"\nws ::= " "*', "root", "a b"),
        ('root ::= ("a"?)*', "root", ""),
        ('root ::= x x "."\nx ::= y\ny ::= "a" | [a-c]', "y", "a"),
    ],
)
def test_ambiguity_names_the_innermost_rule_and_a_short_text(text: str, rule: str, ambiguous: str) -> None:
    (found,) = Search(Net(outline(text), Languages())).ambiguities()
    assert (found.rule, found.text) == (rule, ambiguous)
    assert str(found.first) != str(found.second)


def test_ambiguity_between_terminals_of_lark() -> None:
    text = "start: (WORD | INT)+\nWORD: /[a-z]+/\nINT: /[0-9]+/\n%ignore / +/"
    (found,) = [one for one in findings(text, "x.lark") if one.code == "ambiguity"]
    assert found.rule == "start" and found.details[0].startswith("start(")
    assert told("start: WORD (/,/ WORD)*\nWORD: /[a-z]+/\n%ignore / +/", "x.lark") == []


def test_notes() -> None:
    assert told('root ::= list\nlist ::= list "," "a" | "a"') == [(NOTE, "left recursion", "list", 2)]
    assert told('root ::= "a" ws\nws ::= [ \\t\\n]*') == [(NOTE, "endless blanks", "ws", 2)]
    assert "{0,16} ends them" in findings('root ::= "a" ( " " | "\\n" )*')[0].message


def test_terminals_that_are_ignored_or_named_in_others_are_not_dead() -> None:
    assert told('start: NAME ("," NAME)*\nNAME: /[a-z]+/ & ~KEYWORD\nKEYWORD: "if"\nWS: / /\n%ignore WS', "x.lark") == []


def test_templates_and_parameters_are_written_out() -> None:
    text = 'start: _sep{item, ","} | row::2\nitem: "i"\nrow::_: "q" %if eq(_, 0) | "z" row::decr(_) %if gt(_, 0)\n_sep{x, s}: x (s x)*\n'
    assert set(outline(text, "x.lark").rules) == {"start", "item", '_sep{item, ","}', "row::2", "row::1", "row::0"}
    assert told(text, "x.lark") == []


def test_other_languages() -> None:
    assert told("root = 'a' | { 'b' } , 'b' ; dead = 'c' ;", "x.ebnf") == [(WARNING, "dead rule", "dead", 1)]
    assert told("[a-z]+", "x.regex") == []
    schema = check(GrammarFile.named("x.json", '{"type": "string", "format": "own", "pattern": "(a)\\\\1"}'), byte_compiler())
    assert {one.level for one in schema.findings} == {ERROR, NOTE} and not schema.is_clean


def test_what_does_not_compile_or_parse_is_a_finding() -> None:
    (found,) = findings("root ::= a\n  | other")
    assert (found.level, found.code) == (ERROR, "does not compile") and found.line is not None
    (found,) = findings('root ::= "a')
    assert (found.level, found.code, found.line) == (ERROR, "syntax", 1) and found.message.endswith("^")
    with pytest.raises(ConstraintError, match="says no language"):
        GrammarFile.named("x.txt", "")


def test_counts_that_multiply_are_a_finding() -> None:
    text = 'root ::= (([a-b]{1,50} "b"?){20,50} "c"?){20,50} "d"'
    found = check(GrammarFile.named("x.gbnf", text), Compiler(byte_compiler().vocabulary, _few_nodes()), steps=0)
    assert [one.code for one in found.findings] == ["cost"] and "tell copies apart" in found.findings[0].message


def test_alternatives_that_begin_alike_are_none() -> None:
    chars = "+-<>=!?&^%"  # each in a rule of its own
    rules = "".join(f'\nof{k} ::= "(" ex ")" "{char}" | "a{char}"' for k, char in enumerate(chars))
    text = f'root ::= ex\nex ::= "a" | {" | ".join(f"of{k}" for k in range(len(chars)))}{rules}'
    found = check(GrammarFile.named("x.gbnf", text), Compiler(byte_compiler().vocabulary, _few_nodes()), steps=0)
    assert found.findings == ()


def _few_nodes():  # type: ignore[no-untyped-def]
    from maskwright.constraints import Limits

    return Limits(nodes=20_000)


def test_what_the_tokenizer_cannot_spell() -> None:
    tokens = [bytes([byte]) for byte in range(256) if byte != ord("q")]
    vocabulary = Vocabulary([*tokens, None, None], eos_token_ids=[255], special_tokens={"<|sep|>": 256})
    file = GrammarFile.named("x.gbnf", 'root ::= [p-r] "<|sep|>" "A" "é"')
    spelled_as = {"<|sep|>": [256], "A": [tokens.index(b"a")], "é": [tokens.index(bytes([byte])) for byte in "é".encode()]}
    found = [one for one in check(file, Compiler(vocabulary), spelled_as.__getitem__).findings if one.code == "tokenizer"]
    assert [one.level for one in found] == [WARNING, WARNING, WARNING]
    assert "'q'" in found[0].message
    assert "reads <|sep|> as a special token" in found[1].message
    assert "the tokenizer would write 'a' instead" in found[2].message
    missing = check(GrammarFile.named("y.gbnf", 'root ::= "q"'), Compiler(vocabulary))
    assert missing.cost is None and "cannot spell byte 0x71" in missing.findings[0].message


# -- against the slow twin -------------------------------------------------------------------------------------------------

_ATOMS = st.sampled_from(['"a"', '"b"', '"ab"', "[ab]", "one", "two"])


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" ".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"( {' | '.join(options)} )"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{0,2}"])).map(lambda pair: f"( {pair[0]} ){pair[1]}"),
    )


_BODIES = st.recursive(_ATOMS, _wider, max_leaves=4)
_GRAMMARS = st.tuples(_BODIES, _BODIES, _BODIES).map(lambda three: f"root ::= {three[0]}\none ::= {three[1]}\ntwo ::= {three[2]}")


@settings(max_examples=50)
@given(_GRAMMARS)
def test_every_ambiguity_has_two_derivations(text: str) -> None:
    """And where every short text was looked at and none is ambiguous, the twin finds none either."""
    found = outline(text)
    search = Search(Net(found, Languages()), steps=3_000)
    ambiguities = search.ambiguities()
    for one in ambiguities:
        assert one.first != one.second
        for derivation in (one.first, one.second):
            assert "".join(str(value) for kind, value in derivation.events if kind == "char") == one.text
        if len(one.text) <= 6:
            assert len(derivations(found, one.rule, one.text, most=2)) == 2, spelled(found.rules[one.rule].body)
    if not ambiguities and search.is_complete:
        for short in ("".join(chars) for length in range(4) for chars in product("ab", repeat=length)):
            assert len(derivations(found, "root", short, most=2)) < 2, short


@settings(max_examples=40)
@given(_GRAMMARS, st.lists(st.text("ab", max_size=5), min_size=4, max_size=4))
def test_parsing_agrees_with_the_constraint(text: str, texts: list[str]) -> None:
    found = outline(text)
    try:
        constraint = byte_compiler().compile(GrammarFile.named("x.gbnf", text).source)
    except ConstraintError:
        return
    for one in texts:
        parse = Parse(Net(found, Languages(), one), one)
        assert parse.is_sentence == constraint.accepts(one)
        read = constraint.survives(constraint.start(), one.encode())[0]
        assert parse.read >= read
