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
    "xgrammar: patterns": (Ebnf(r'root ::= Regex("a+(\?<n>b)\\d", flags="i") | Regex("x.z", flags="")'), ["aaB7", "xyz"], ["b7", "x\nz"]),
    "xgrammar: classes of patterns are ASCII": (Ebnf(r'root ::= Regex("\\w.\\s") | Regex("(?i)k")'), ["a\n\t", "K"], ["éa ", "a a\u3000", "\u212a"]),
    "xgrammar: patterns inside of JSON strings": (Ebnf('root ::= Regex("a.|[^b]+", json_string=true)'), ["aé", "cd"], ['a"', "a\\", "c\n", ""]),
    "xgrammar: bounds on characters": (Ebnf('root ::= a "!"\na[max_chars=2] ::= [a-zé]*'), ["!", "éé!"], ["abc!"]),
    "xgrammar: hexadecimal of any length": (Ebnf(r'root ::= "\x1F600" [\x41-\x000043] [\.\*\$]'), ["😀B$"], ["😀D$"]),
    "xgrammar: nothing in parentheses": (Ebnf('root ::= () "a" ( )'), ["a"], [""]),
    "xgrammar: options of captures": (Ebnf('root ::= a\na[capture="x", stop_capture="m", capture_hidden_stop_bytes=1] ::= "a"'), ["a"], [""]),
    "xgrammar: text with tags": (
        Ebnf('root ::= TagDispatch(("<t>", x), ("<u>", y))\nx ::= "1" "2"?\ny ::= "[" root "]"'),
        ["", "a", "<t", "<<t>1", "<t>12a<t>1", "<u>[<t>1]<", "<u>[<u>[é]]"], ["<t>", "<t>2", "<u>", "a<t><t>1", "<u>[<t>]"],
    ),
    "xgrammar: text and one tag": (
        Ebnf('root ::= body "end"\nbody ::= TagDispatch(("<t>", x), loop_after_dispatch=false, excludes=("end", "X",))\nx ::= "1"'),
        ["end", "aen<t>1end", "eend"], ["aendend", "X<t>1end", "<t>1", "<t>1aend", "<t>end"],
    ),
    "xgrammar: text without some": (Ebnf('root ::= TagDispatch(excludes=("ab", "b!"))'), ["", "a", "acb"], ["cab", "b!"]),
    "xgrammar: tags that begin or end alike": (
        Ebnf('root ::= TagDispatch(("<", x), ("<t>", y), ("t>", y))\nx ::= "1"\ny ::= "2"'), ["<1", "<t>2", "t>2"], ["<t>1", "<t", "t>1"],
    ),
    "xgrammar: a tag that ends as what is excluded": (Ebnf('root ::= TagDispatch(("<t>", x), excludes=("t>",))\nx ::= "1"'), ["<t"], ["<t>1"]),
    "xgrammar: runs": (Ebnf('root ::= "<" Substring("ab", "c", "ab") ">"'), ["<>", "<abcab>", "<cab>"], ["<b>", "<abab>"]),
    "xgrammar: nothing to run": (Ebnf("root ::= Substring()"), [""], ["a"]),
    "xgrammar: lazy recursion": (Ebnf('root ::= r ">"\nr[lazy] ::= s\ns ::= [a-z] s | [a-z]'), ["a>"], ["ab>", ">"]),
    "xgrammar: lazy": (Ebnf('root ::= r ">"\nr[lazy, capture="x"] ::= [a-z]+ | "ab"'), ["a>"], ["ab>"]),
    "w3c": (
        Ebnf("""S ::= (#x20 | #x9 | #xD | #xA)+ Name? /* a comment * with stars **/
                Name ::= [A-Z#x61-#x7A] - 'B' "'" | [^a-c#x64] '"' """),
        [" A'", "\t\n", ' e"', ' -"'], [" B'", "A'", ' a"', ' d"'],
    ),
    "w3c: character data of XML": (Ebnf("root ::= [^<&]* - ([^<&]* ']]>' [^<&]*)"), ["", "a]]", "]>"], ["a]]>b", "<"]),
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
    'root ::= "\\u00g4"': (1, 11, "4 hex digits"),
    'root ::= "\\xg"': (1, 11, "hex digits"),
    'root ::= "a" |': (1, 10, 'an alternative is empty, expected ""'),
    'root ::= ("a" | )': (1, 11, "an alternative is empty"),
    "root ::= ": (1, 1, "an alternative is empty"),
    'root ::= a a ::= "x"': (1, 12, "line of its own"),
    'root[lazy, lazy] ::= "a"': (1, 12, "twice"),
    'root[max_chars="2"] ::= "a"': (1, 6, "number of characters"),
    'root ::= Regex("a", "b")': (1, 10, "takes one pattern"),
    'root ::= Regex("a", flags="x")': (1, 10, "flags are out of i s u"),
    'root ::= Regex("a", json_string=yes)': (1, 10, "true or false"),
    'root ::= Regex("a", foo="b")': (1, 10, "no option 'foo', expected flags or json_string"),
    'root ::= "a" TagDispatch("a")': (1, 14, "pairs of a tag and a rule"),
    'root ::= TagDispatch(("", root))': (1, 10, "not empty"),
    'root ::= TagDispatch(("ab", root), excludes=("a",))': (1, 10, "begins the tag"),
    'root ::= TagDispatch(("ab", root), excludes="a")': (1, 10, "excludes is a tuple"),
    "root ::= Token()": (1, 10, "at least one"),
    'root ::= Token("a")': (1, 10, "ids of tokens"),
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
    "root ::= Token(999)": "<[999]>",
    "root ::= ExcludeToken(999)*": "<[999]>",
    "root ::= TokenTagDispatch((3, root))": "TokenTagDispatch",
    'root[temperature=0.7] ::= "a"': "temperature",
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
    with pytest.raises(ConstraintError, match="is a string, not int"):
        Ebnf(3)  # type: ignore[arg-type]


TOKENS = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), None, b"<a>", b"<b>"], eos_token_ids=[256], special_tokens={"<a>": 257, "<b>": 258}
)
A, B = (TOKENS.spellings[token] for token in (257, 258))
WITH_TOKENS = {
    "one of several": ('root ::= Token(257, 258, 256) "x"', [A + b"x", B + b"x", b"x"], [b"<a>x", A]),
    "anything but one": ("root ::= ExcludeToken(257)* Token(257)", [A, b"ab" + B + A, "é".encode() + A], [b"", A + A, b"<a>"]),
    "at least one": ("root ::= (ExcludeToken(257, 256))+", [b"a", B], [b"", A, b"a" + A]),
    "text with tokens": (
        "root ::= TokenTagDispatch((257, x))\nx ::= [0-9]+", [b"", b"a" + A + b"1", A + b"1a" + B + A + b"22"], [A, A + b"a", A + A],
    ),
    "without some": ("root ::= TokenTagDispatch(excludes=(257,))", [b"", b"a" + B], [A]),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_TOKENS)
def test_tokens(name):
    text, accepted, rejected = WITH_TOKENS[name]
    constraint = Compiler(TOKENS).compile(Ebnf(text))
    assert [one for one in accepted if not constraint.accepts(one)] == []
    assert [one for one in rejected if constraint.accepts(one)] == []
