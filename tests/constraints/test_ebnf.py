"""EBNF in its three notations: what it accepts, what is refused and where."""

from __future__ import annotations

import re

import pytest

from maskwright.constraints import Compiler, ConstraintError, Ebnf, GrammarSyntaxError, UnsupportedKeyword, Vocabulary

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
COMPILER = Compiler(BYTES)

LANGUAGES = {
    "xgrammar: rules end where the next begins": (Ebnf('root ::= a\n  "b"\na ::= "x" |\n "y"'), ["xb", "yb"], ["x"]),
    "xgrammar: any number": (Ebnf('root ::= "a"{2,-1} b{0, 1} c{2}\nb ::= "b"\nc ::= [c]'), ["aacc", "aaabcc"], ["acc", "aacbc"]),
    "xgrammar: escapes": (Ebnf(r'root ::= "\x41\u00e9\u{1F600}\?\"" [^\0-\x1f\"\\\r\n\]-] [\n-\r]'), ['Aé😀?"x\n'], ['Aé😀?"]\n', 'Aé😀?"-\r']),
    "xgrammar: names": (Ebnf('root ::= a_b-c.d # why\na_b-c.d ::= "x"'), ["x"], [""]),
    "xgrammar: any character": (Ebnf('root ::= . "b"'), ["é b".replace(" ", "")], ["b"]),
    "xgrammar: recursion": (Ebnf('root ::= root "+" root | [0-9] | ("(" root ")")'), ["1+2", "(1+1)+2"], ["1+", ""]),
    "xgrammar: patterns": (Ebnf(r'root ::= Regex("a+(\?<n>b)\\d", flags="i") | Regex("x.z")'), ["aaB7", "xyz"], ["b7", "x\nz"]),
    "xgrammar: runs": (Ebnf('root ::= "<" Substring("ab", "c", "ab") ">"'), ["<>", "<abcab>", "<cab>"], ["<b>", "<abab>"]),
    "xgrammar: nothing to run": (Ebnf("root ::= Substring()"), [""], ["a"]),
    "xgrammar: lazy recursion": (Ebnf('root ::= r ">"\nr[lazy] ::= s\ns ::= [a-z] s | [a-z]'), ["a>"], ["ab>", ">"]),
    "xgrammar: lazy": (Ebnf('root ::= r ">"\nr[lazy, capture="x"] ::= [a-z]+ | "ab"'), ["a>"], ["ab>"]),
    "w3c": (
        Ebnf("""S ::= (#x20 | #x9 | #xD | #xA)+ Name? /* a comment * with stars **/
                Name ::= [A-Z#x61-#x7A] - 'B' "'" | [^a-c#x64] '"' """),
        [" A'", "\t\n", ' e"', ' -"'], [" B'", "A'", ' a"', ' d"'],
    ),
    "w3c: strings have no escapes": (Ebnf(r"""root ::= "\" 'n"' [\]""", notation="w3c"), ['\\n"\\'], ["\n"]),
    "iso": (
        Ebnf("""(* lists *) word list = word, { ',', word } ; word = 3 * letter | (letter - 'a'), ["!"] ;
                letter = 'a' | 'b' | "c" ; empty = ;"""),
        ["aab,b!", "b", "ccc,c"], ["a", "aa", "b,", ""],
    ),
    "iso: other brackets": (Ebnf("root = (: 'a' / 'b' :), (/ 'c' ! 'd' /), 'e' ."), ["e", "abce", "bde"], ["cde"]),
    "iso: one or more": (Ebnf("root = { 'a' }- ;"), ["a", "aa"], [""]),
    "iso: recursion": (Ebnf("root = '(', root, ')' | root, root | 'x' ;"), ["x", "(x)x", "((xx))"], ["", "()"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LANGUAGES)
def test_languages(name):
    source, accepted, rejected = LANGUAGES[name]
    constraint = COMPILER.compile(source)
    assert [one for one in accepted if not constraint.accepts(one.encode())] == []
    assert [one for one in rejected if constraint.accepts(one.encode())] == []


def test_lookahead_assertions_are_noted():
    constraint = COMPILER.compile(Ebnf('root ::= "a" (= "b")'))
    assert constraint.accepts(b"a") and "lookahead" in constraint.notes[0]


def test_the_root_is_named_or_the_first_rule():
    assert COMPILER.compile(Ebnf("a = 'x' ; b = 'y' ;")).accepts(b"x")
    assert COMPILER.compile(Ebnf("a = 'x' ; root = 'y' ;")).accepts(b"y")
    assert COMPILER.compile(Ebnf("a = 'x' ; root = 'y' ; b = 'z' ;", root="b")).accepts(b"z")
    with pytest.raises(ConstraintError, match="no rule 'c'"):
        COMPILER.compile(Ebnf("a = 'x' ;", root="c"))


SYNTAX = {
    'root ::= "a"??': (1, 14, "nothing before '?'"),
    'root ::= "a"{1,3}{1,3}': (1, 18, "nothing before '{'"),
    'root ::= ("a"': (1, 14, "ends early, expected )"),
    'root ::= "a': (1, 10, "never closed"),
    "root ::= [a": (1, 10, "never closed"),
    'root ::= "\\q"': (1, 11, "unknown escape"),
    'root ::= "\\x4"': (1, 11, "2 hex digits"),
    "root ::= [b-a]": (1, 10, "ends before it begins"),
    'root ::= "a"{-2}': (1, 14, "not negative"),
    'root ::= "a"\nroot ::= "b"': (2, 1, "defined already"),
    'root ::= Regex("+a")': (1, 16, "nothing to repeat"),
    "root = 'a'": (1, 11, "expected ,"),
    "root = 'a' 'b' ;": (1, 12, "unexpected \"'b'\""),
    "root ::= #x110000": (1, 10, "no character"),
}  # fmt: skip


@pytest.mark.parametrize("text", SYNTAX)
def test_errors_show_the_place(text):
    line, column, message = SYNTAX[text]
    with pytest.raises(GrammarSyntaxError, match=re.escape(message)) as caught:
        COMPILER.compile(Ebnf(text))
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.reason.split("\n")[-1].strip() == "^"


REFUSED = {
    'root ::= TagDispatch(("a", b), loop_after_dispatch=false)\nb ::= "x"': "TagDispatch",
    "root ::= Token(3)": "Token",
    'root ::= Regex("a", json_string=true)': "Regex(json_string)",
    'root ::= "a" <think>': "<think>",
    "root ::= a - 'x'\na ::= 'x' a 'y' | 'y'": "-",
    "root = 'a', ? a space ? ;": "special sequence",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_enforced_is_refused_by_name(text):
    with pytest.raises(UnsupportedKeyword) as caught:
        COMPILER.compile(Ebnf(text))
    assert caught.value.keyword == REFUSED[text] and caught.value.instead and caught.value.line


def test_rules_that_are_not_defined():
    with pytest.raises(ConstraintError, match="not defined") as caught:
        COMPILER.compile(Ebnf('root ::= itme\nitem ::= "a"'))
    assert caught.value.instead == "'item'?" and caught.value.line == 1


def test_options_are_checked():
    with pytest.raises(ConstraintError, match="no notation"):
        Ebnf("a = 'x';", notation="abnf")
    with pytest.raises(ConstraintError, match="strings"):
        Ebnf(3)  # type: ignore[arg-type]
