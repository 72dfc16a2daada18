"""Grammars in lark's notation: what they accept, what is refused and how, against lark's and llguidance's documentation."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    GrammarSyntaxError,
    Lark,
    Limits,
    UnsupportedKeyword,
    Vocabulary,
)
from maskwright.constraints.front_ends.cfg.lark_common import COMMON
from maskwright.constraints.front_ends.cfg.lark_parameters import Condition, Parameter
from maskwright.constraints.front_ends.cfg.lark_syntax import parse
from maskwright.constraints.grammar.expression import Grammar

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
COMPILER = Compiler(BYTES)


def check(text: str, accepted: list[str], rejected: list[str], start: str = "start") -> None:
    constraint = COMPILER.compile(Lark(text, start=start))
    assert [one for one in accepted if not constraint.accepts(one.encode())] == []
    assert [one for one in rejected if constraint.accepts(one.encode())] == []


LANGUAGES = {
    "alternatives on lines of their own": ('start: "a"\n     | "b" -> second\n\n  | item // why\nitem: "c" # or\n', ["a", "b", "c"], ["", "second"]),
    "an empty alternative first": ('start: | "a"', ["", "a"], ["aa"]),
    "modifiers": ('?start: item\n!item: "x"\n?!_other: "y"', ["x"], ["y", ""]),
    "optional in brackets": ('start: ["+" | "-"] DIGIT\n%import common.DIGIT', ["1", "+1"], ["+-1", ""]),
    "repetitions": ('start: "a"~2 "b"~1..2 "c"{2,} "d"{,1} "e"{2}', ["aabccee", "aabbcccdee"], ["abccee", "aabcee", "aabccdddee"]),
    "names with hyphens": ('start: foo-bar FOO-BAR\nfoo-bar: "a"\nFOO-BAR: "b"', ["ab"], ["a-b"]),
    "strings": (r'start: "\n\t\"\\\x41\u00e9\U0001F600" "é"i', ['\n\t"\\AéU'.replace("U", "😀") + "É"], ["n"]),
    "strings without case": ('start: "Straße"i', ["straSSe".replace("SS", "ß"), "STRAẞE"], ["strasse"]),
    "ranges": ('start: "a".."c" T\nT: "0".."9"', ["a0", "c9"], ["d0", "ab"]),
    "patterns with flags": (r"start: /a.b/s /c d/x /É\//i", ["a\nbcdé/"], ["a\nbc dé/"]),
    "patterns as Rust writes them": (r"start: /(?<n>x)\u{1F600}\x{41}\p{Lu}\pN(?i:y)\z/", ["x😀AÉ7Y"], ["x😀aÉ7Y"]),
    "a choice binds weaker than &": ("start: T\nT: /[ab]/+ | /[cd]/+ & /[de]/+", ["ab", "dd"], ["c", "e"]),
    "~ binds stronger than +": ("start: T\nT: (~A)+ & /[ab]{0,3}/\nA: /a/", ["b", "ab", "aa", ""], ["a" * 4]),
    "not containing": ("start: T\nT: /(?s:.*)/ & ~/(?s:.*)AAA(?s:.*)/", ["AA", "é\nAABAA", ""], ["AAA", "xAAAx"]),
    "what is ignored stands between": ('start: "a" B\nB: "b" "c"\n%ignore " "\n%ignore /#[^\\n]*\\n/', ["abc", "a bc", "a #x\n bc ", "abc  "], [" abc", "ab c"]),
    "ignored at the beginning": ('%llguidance {"allow_initial_skip": true}\nstart: "a"\n%ignore " "', ["a", "  a "], ["b"]),
    "ignored once": ('%llguidance {"skip_repetition": "once"}\nstart: "a" "b"\n%ignore / {1,2}/', ["ab", "a b", "a  b"], ["a   b"]),
    "nothing is ignored behind nothing": ('start: A "b"\nA: /a*/\n%ignore " "', ["b", "aa b"], [" b"]),
    "imports": ("%import common (INT, WS_INLINE)\n%import common.CNAME -> NAME\n%ignore WS_INLINE\nstart: NAME INT", ["a1 2", "x 3"], ["1 2"]),
    "override": ('%import common.INT\n%override INT: "one" | "two"\nstart: INT', ["one"], ["1"]),
    "extend": ('%import common.INT\n%extend INT: "many"\nstart: x\nx: INT\n%extend x: "none"', ["12", "many", "none"], ["m"]),
    "templates": ('_sep{x, s}: x (s x)*\npair{k}: k "=" k\nstart: _sep{pair{NAME}, ","} | _sep{("1" | "2"), ";"}\nNAME: /[a-z]+/', ["a=b", "a=b,c=d", "1;2;1"], ["a=b;c=d", "1,2", ""]),
    "a template that calls itself": ('nest{x}: x | "(" nest{x} ")"\nstart: nest{"a"}', ["a", "((a))"], ["(a", "b"]),
    "recursion of all kinds": ('start: start "+" term | term\nterm: "(" start ")" | /[0-9]/+ | empty term "!"\nempty: | "~"', ["1+2", "(1+~2!)", "1!!"], ["+", "1+", "()"]),
    "one json value": ('start: "x=" %json {"type": "object", "properties": {"a": {"enum": ["}", 1]}}, "required": ["a"]} ";"', ['x={"a":"}"};', 'x={ "a": 1 };'], ['x={"a":2};', "x={};"]),
    "json on the next line": ('start: %json\n\n  {"enum": [1, 2]}\n  | %regex\n{"substring_chars": "ab"} "!"\n%llguidance\n{}', ["1", "2", "ab!", "!"], ["3", "ba!", ""]),
    "a surrogate pair, as JSON writes it": (r'start: "x\ud83d\uDE00" "y"', ["x😀y"], ["xy"]),
    "no attributes in brackets": ('start: a\na[]: "a"', ["a"], ["aa"]),
    "runs of chunks": ('start: "A" S "B"\nS: %regex {"substring_chunks": ["abc", "de", "fg"]}', ["AB", "AabcB", "AabcdefgB", "AdeB"], ["AabB", "AcdeB", "AdeabcB"]),
    "runs of words": ('start: %regex {"substring_words": "The quick, brown."}', ["The quick", ", brown", ""], ["he", "Thequick"]),
    "an inline grammar": ('start: %lark { start: "a" x\n x: "b" } "!"\nx: "c"', ["ab!"], ["ac!", "ab"]),
    "a lazy rule is as short as can be": ('start: "<" r ">"\nr[lazy]: /[a-z]+/ | "ab"', ["<a>"], ["<ab>", "<>"]),
    "suffix": ('start: r "z"\nr[suffix="END"i]: /[a-z]*/', ["abcENDz", "EnDz"], ["abcENz", "endendz"]),
    "stop": ('start: "<" r ">"\nr[capture, stop=END, stop_capture="end"]: /[a-z]+/\nEND: /!!+/ | "??"', ["<a!!>", "<word??>"], ["<a!!!>", "<a!>"]),
    "stop at the end": ('start: foo\nfoo[stop=""]: /a*/', ["", "aa"], ["b"]),
    "a lazy head ends free text": (
        'start: (foo | bar)* TEXT\nfoo_head[lazy]: TEXT "<f"\nfoo: foo_head "=foo>" /[a-z]+/ "</f>"\n'
        'bar_head[lazy]: TEXT "<f"\nbar: bar_head "=bar>" /[A-Z]+/ "</f>"\nTEXT: /(\\n|.)*/',
        ["free", "partial <", "a<f=foo>abc</f>b", "<f=bar>ABC</f><f=foo>x</f>", "a<f=bar>B</f> < f"],
        ["<f", "<f=baz>abc</f>", "<f=foo>ABC</f>", "<f=foo>abc</f><f"],
    ),
    "a lazy terminal beside a greedy one": ('start: h "!" | T "?"\nh[lazy]: /a*b/\nT: /[ab]+/', ["b!", "aab!", "aa?"], ["b?", "ab?", "aba?", "bb!"]),
    "a lazy head before recursion": (
        'start: h value\nh[lazy]: /.*:/\nvalue: "x" | "(" value ")" | "[" _sep{value} "]"\n_sep{v}: v | _sep{v} "," v',
        [":x", "ab:(x)", ":[x,(x)]"], ["x", "a:b:x", ":()"],
    ),
    "a lazy terminal in brackets": (
        'start: "(" start ")" | item\nitem: q /[a-z]/\nq[lazy]: "\\"" /.*/ "\\""', ['("a"b)', '""x'], ['"a"b"c', '("a"b'],
    ),
    "parameters count": (
        'start: aa::0 "X"\naa::_: a aa::incr(_) %if lt(_, 3)\n     | bb::_\nbb::_: b bb::incr(_) %if lt(_, 3)\n     | ""\na: "a"\nb: "b"',
        ["X", "aX", "abX", "abbX", "bbbX"], ["aaaaX", "aabbX", "baX"],
    ),
    "parameters remember": (
        'start: perm::0x0\nperm::_: "" %if is_ones([0:3])\n | "a" perm::set_bit(0) %if bit_clear(0)\n'
        ' | "b" perm::set_bit(1) %if bit_clear(1)\n | "c" perm::set_bit(2) %if and(bit_clear(2), true)',
        ["abc", "cab", "bca"], ["ab", "aabc", "abcc"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LANGUAGES)
def test_languages(name):
    check(*LANGUAGES[name])


def test_another_start_rule():
    check('start: "a"\nother: T\nT: "b"', ["b"], ["a"], start="other")
    check('start: "a"\nother: T\nT: "b"', ["b"], ["a"], start="T")


SYNTAX = {
    'start "a"': (1, 7, "expected : or"),
    'start: ("a"': (1, 12, "ends early"),
    'start: "a" ->': (1, 14, "ends early"),
    'start: "a\n': (1, 8, "a string that is never closed"),
    "start: /a\n": (1, 8, "a regular expression that is never closed"),
    "start: 'a'": (1, 8, "double quotes"),
    'start: "a"\nitem missing': (2, 6, "unexpected 'missing'"),
    'start: "a"??': (1, 12, "nothing before '?'"),
    'start: | * "a"': (1, 10, "nothing before '*'"),
    'start: "\\q"': (1, 9, "unknown escape"),
    'start: "\\u12"': (1, 9, "4 hex digits"),
    'start: "\\ud83d"': (1, 9, "is no character"),
    'start: "\\ude00\\ud83d"': (1, 9, "is no character"),
    "start: a\na[,]: /a/": (2, 3, "expected ] or a rule name"),
    'start: "ab".."c"': (1, 8, "one character"),
    'start: "a"i.."c"': (1, 8, "one character"),
    'start: "z".."a"': (1, 8, "is empty"),
    'start: "a"{3,2}': (1, 11, "impossible"),
    "start: /a[b/": (1, 10, "never closed"),
    "start: /abc/l": (1, 8, "no flag"),
    "Foo: /a/": (1, 1, "all lower case"),
    "start: %json { foo": (1, 14, "never closed"),
    'start: %json "x"': (1, 14, "JSON object"),
    "start: %regex {'a': 1}": (1, 16, "no JSON"),
    "%foo": (1, 1, "there is no %foo"),
    'start: "a"\nstart: "b"': (2, 1, "defined already"),
    "start: T\nT: x\nx: \"a\"": (2, 4, "is a rule"),
    'start: "a" %if true': (1, 12, "no parameter"),
    "start: foo::0\nfoo: \"a\"": (1, 8, "has no parameter"),
    "start: foo\nfoo::_: \"a\"": (1, 8, "which is missing"),
    "start: foo::_\nfoo::_: \"a\"": (1, 11, "no parameter to hand on"),
    "start: foo::0\nfoo::_: \"a\" %if odd(_)": (2, 13, "is no condition"),
    "start: foo::0\nfoo::_: foo::set_bit(64)": (2, 12, "there is no bit 64"),
    "start: foo::0\nfoo::1: \"a\"": (2, 4, "written ::_"),
    "start: foo\nfoo[size=3]: /a/": (2, 5, "there is no attribute"),
    "start: foo\nfoo[lazy, lazy]: /a/": (2, 11, "twice"),
    "start: foo\nfoo[stop_capture=\"x\"]: /a/": (2, 5, "belongs to stop"),
    "start: foo\nfoo[stop=3]: /a/": (2, 10, "cannot be 3"),
    "start: T\nT[lazy]: /a/": (2, 1, "no attributes"),
    "start: r\nr[lazy]: \"a\" r": (2, 14, "is a rule"),
    "start: t{\"a\", \"b\"}\nt{x}: x": (1, 8, "takes 1 arguments"),
    "start: t\nt{x}: x": (1, 8, "arguments are missing"),
    "%import common.INTT\nstart: INTT": (1, 16, "but 'INT'"),
    "%import python.expr_stmt\nstart: expr_stmt": (1, 16, "has no terminal 'expr_stmt'"),
    "%override x: \"a\"\nstart: x": (1, 11, "could replace"),
}  # fmt: skip


@pytest.mark.parametrize("text", SYNTAX)
def test_errors_show_the_place(text):
    line, column, message = SYNTAX[text]
    with pytest.raises(GrammarSyntaxError, match=re.escape(message)) as caught:
        COMPILER.compile(Lark(text))
    assert (caught.value.line, caught.value.column) == (line, column)
    shown, caret = caught.value.reason.split("\n")[-2:]
    assert shown.strip() in text.split("\n")[line - 1] and caret.strip() == "^"


REFUSED = {
    "start: <|tool|>": "<|tool|>",
    "start: <[999]>": "<[999]>",
    "start: @other": "@other",
    'start: %json {"type": "string", "not": {"const": "a"}, "x-guidance": {"json_allow_general_unicode_escapes": true}}': "x-guidance",
    'start: %json {"uniqueItems": true, "x-guidance": {"item_separator": ";"}}': "x-guidance",
    'start: %json {"const": "\\t", "x-guidance": {"json_allowed_escapes": "n"}}': "x-guidance",
    "start: a\na[temperature=3]: /a*/": "temperature",
    "start: a\na[temperature=0.5]: /a*/": "temperature",
    "start: A & B\nA: /a/\nB: /b/": "&",
    "start: ~a\na: /a/": "~",
    "%declare A\nstart: A": "%declare",
    "%import grammar.NAME\nstart: NAME": "%import",
    "%import .common.INT\nstart: INT": "%import",
    "start: T{\"a\"}\nT{x}: \"b\"": "template",
    '%llguidance {"no_forcing": true}\nstart: "a"': "no_forcing",
    '%llguidance {"allow_initial_skip": 1}\nstart: "a"': "allow_initial_skip",
    "start: /[a-z&&[^b]]/": "&&",
    "start: /[[:alpha:]]/": "[:",
    r"start: /(a)\1/": r"\1",
    'start: h "(" start ")" | TEXT\nh[lazy]: TEXT "x"\nTEXT: /.*/': "lazy",
    'start: h | %json {"type": "object"}\nh[lazy]: /.*x/': "lazy",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_enforced_is_refused_by_name(text):
    with pytest.raises(UnsupportedKeyword) as caught:
        COMPILER.compile(Lark(text))
    assert caught.value.keyword == REFUSED[text] and caught.value.instead


def test_names_that_are_not_defined():
    with pytest.raises(ConstraintError, match="'itme' is not defined") as caught:
        COMPILER.compile(Lark('start: itme\nitem: "a"'))
    assert (caught.value.line, caught.value.column, caught.value.instead) == (1, 8, "'item'?")
    with pytest.raises(ConstraintError, match="no rule 'start'"):
        COMPILER.compile(Lark('root: "a"'))
    with pytest.raises(ConstraintError, match="made of itself") as caught:
        COMPILER.compile(Lark("start: A\nA: B\nB: A"))
    assert caught.value.path in ("A", "B")


def test_an_error_in_a_schema_tells_the_place():
    with pytest.raises(ConstraintError) as caught:
        COMPILER.compile(Lark('start: "a"\n  | %json {"type": "strin"}'))
    assert (caught.value.line, caught.value.column) == (2, 11)


def test_limits_are_named():
    for text, limit in (
        ('start: "a"{99999999999999999999}', "repetition"),
        ("start: " + "(" * 300 + '"a"' + ")" * 300, "nesting"),
        ("start: T\nT: " + "(" * 300 + '"a"' + ")" * 300, "nesting"),
        ("start: a::0\na::_: a::incr(_)", "nodes"),
        ('start: t{"a"}\nt{x}: t{("b" x)}', "nodes"),
    ):
        with pytest.raises(ConstraintLimit) as caught:
            Compiler(BYTES, limits=Limits(nodes=20_000)).compile(Lark(text))
        assert caught.value.limit == limit


COMMON_TEXTS = {
    "ESCAPED_STRING": (['""', '"a\\"b"', '"\\\\"'], ['"a"b"', '"\\"', '"a\nb"']),
    "C_COMMENT": (["/**/", "/* a * b */", "/***/", "/* / */"], ["/*/", "/* */ */", "/* a"]),
    "SIGNED_NUMBER": (["1", "-1.5e3", "+.5", "1."], ["", ".", "1e"]),
    "WS": ([" ", " \t\n\f\r"], ["", "a"]),
    "CPP_COMMENT": (["//", "// a"], ["// a\n", "/"]),
    "NEWLINE": (["\n", "\r\n\n"], ["\r", ""]),
}


PYTHON_TEXTS = {
    "NAME": (["a1", "é"], ["1a", ""]),
    "STRING": (['"a"', "rb'x'", 'U"\\""', "''", 'f"\\\\"'], ['"a" "b"', '"a\nb"', '"""a"""', "bu''", '"\\"']),
    "LONG_STRING": (['"""a"b""c\n"""', "\'\'\'\\\'\'\'\'", 'r""""""'], ['"""a""""', '"""a""" """b"""', '""']),
    "DEC_NUMBER": (["0", "0_0", "10", "1_0"], ["01", "_1", "1_"]),
    "FLOAT_NUMBER": (["1.", ".5", "1_0.0e-3", "1e5"], ["1", "."]),
    "IMAG_NUMBER": (["1j", "1.5J"], ["j"]),
}


@pytest.mark.parametrize("name", PYTHON_TEXTS)
def test_terminals_of_python(name):
    check(f"%import python.{name}\nstart: {name}", *PYTHON_TEXTS[name])
    lark = pytest.importorskip("lark").Lark(f"%import python.{name}\nstart: {name}", parser="earley", lexer="dynamic")
    for text in PYTHON_TEXTS[name][0]:
        lark.parse(text)


@pytest.mark.parametrize(("text", "line", "column"), [
    ('start: T\nT: "x" T', 2, 8), ('start: a\na: "b" & "c"', 2, 4), ("start: ~a\na: /b/", 1, 9),
])  # fmt: skip
def test_places_of_what_is_refused(text, line, column):
    with pytest.raises(ConstraintError) as caught:
        COMPILER.compile(Lark(text))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_complements_of_terminals_in_rules():
    check('start: "<" ~("a" | B) ">" | (~/[ab]+/)+ "!"\nB: "b"', ["<>", "<ab>", "c!", "ca!"], ["<a>", "<b>", "<b"])


def test_nothing_is_ignored():
    with pytest.raises(ConstraintError, match="names nothing"):
        COMPILER.compile(Lark('start: "a"\n%ignore'))


def test_imports_by_other_names():
    check("%import common.WS -> space\n%import unicode (WS_INLINE)\nstart: space WS_INLINE", ["\n\xa0"], ["\xa0\n"])


@pytest.mark.parametrize("name", COMMON_TEXTS)
def test_common_terminals(name):
    check(f"%import common.{name}\nstart: {name}", *COMMON_TEXTS[name])


def test_the_common_library_has_the_names_of_larks():
    from importlib.resources import files

    theirs = parse(files("lark.grammars").joinpath("common.lark").read_text(encoding="utf-8"))
    assert {str(tree.children[0]) for tree in theirs} == {str(tree.children[0]) for tree in parse(COMMON)}


@given(st.integers(0, 255), st.integers(0, 7), st.integers(1, 8))
def test_parameters_by_their_definition(value, low, size):
    bits = f"[{low}:{low + size}]"
    part = value >> low & (1 << size) - 1
    assert Condition(f"is_ones({bits})").holds(value) == (part == (1 << size) - 1)
    assert Condition(f"not(or(lt({bits}, 3), eq({bits}, 0x4)))").holds(value) == (part > 2 and part != 4)
    assert Condition(f"bit_count_ge({bits}, 2)").holds(value) == (bin(part).count("1") >= 2)
    assert Parameter(f"incr({bits})").of(value) == (value if part == (1 << size) - 1 else value + (1 << low))
    assert Parameter(f"decr({bits})").of(value) == (value if part == 0 else value - (1 << low))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=6))
def test_runs_by_their_definition(pieces):
    quoted = ", ".join(f'"{piece}"' for piece in pieces)
    constraint = COMPILER.compile(Lark(f'start: "!" S\nS: %regex {{"substring_chunks": [{quoted}]}}'))
    text = "".join(pieces)
    expected = {text[low:high] for low in range(len(text) + 1) for high in range(low, len(text) + 1)}
    for one in [*expected, "aa", "ab", "ca", "abc", "cba"]:
        assert constraint.accepts(b"!" + one.encode()) == (one in expected)


@pytest.mark.parametrize(
    ("pattern", "keyword"),
    [
        (r"a\b", r"\b"), (r"\ba", r"\b"), (r"a\B", r"\B"), (r"(a\b)?b", None), (r"(b?\b)a", r"\b"), (r"a(b\b|c)d?", r"\b"), (r"a\b-b", None),
        (r"a(?!b)", "(?!"), (r"a(?=b)", "(?="), (r"a(?=b)c?", "(?="), (r"(?!b)[a-z]+", None), (r"(?!ab\b)[a-z]+", None),
        (r"(?<!b)a", "(?<"), (r"(?<=b)a|c", "(?<"), (r"a(?<!b)b", None), (r"^a$", None), (r"a$|^b", None),
    ],
)  # fmt: skip
def test_assertions_that_look_beyond_a_terminal_are_refused(pattern, keyword):
    grammars = [f'start: /{pattern}/ "x"', f'start: A "x"\nA: /{pattern}/', f'start: "x"\n%ignore /{pattern}/', f'start: "x" a\na[stop=/;/]: /{pattern}/']
    for text in grammars if keyword == "(?<" else grammars[:3]:  # with a stop, it is the stop that stands behind
        if keyword is None:
            COMPILER.compile(Lark(text))
            continue
        with pytest.raises(UnsupportedKeyword) as caught:
            COMPILER.compile(Lark(text))
        assert caught.value.keyword == keyword and caught.value.line


def test_a_part_of_a_terminal_may_look_at_the_next_part():
    constraint = COMPILER.compile(Lark('start: WORD "-"\nWORD: PART "."\nPART: /a+\\b/'))
    assert constraint.accepts(b"aa.-") and not constraint.accepts(b"aa-")


def test_priorities_leave_the_texts_alone():
    constraint = COMPILER.compile(Lark('start.3: A | B "!" | c\nA.2: "if"\nB.-1: /[a-z]+/\nc.1: "if" "!"'))
    assert all(constraint.accepts(text) for text in (b"if", b"if!", b"ab!"))
    assert len(constraint.notes) == 4 and "priority of start" in constraint.notes[0]


def test_patterns_on_several_lines():
    check('start: /a # first\n  b/x "c"\n', ["abc"], ["a b c"])


JSON = {
    "no white space around a value": ({"const": 1}, ["1"], [" 1", "1 "]),
    "control characters in either spelling": ({"type": "string"}, ['"\\n"', '"\\u000A"', '"\\u001e"', '"é"'], ['"\\u00e9"', '"\\/"']),
    "one spelling where strings are compared": ({"type": "string", "not": {"const": "\n"}}, ['"\\t"'], ['"\\n"', '"\\u000a"', '"\\u0009"']),
    "white space": ({"x-guidance": {"whitespace_flexible": False}}, ["[1,2]"], ["[1, 2]"]),
    "white space by a pattern": ({"x-guidance": {"whitespace_pattern": " {1,2}"}}, ["[1,2]", "[ 1  ,2]"], ["[1,   2]", "[1\n]"]),
    "separators": (
        {"x-guidance": {"item_separator": " ?; ?", "key_separator": "=", "whitespace_flexible": False}},
        ['{"a"=1; "b"=[1;2]}'], ["[1,2]", '{"a":1}', "[1;  2]"],
    ),
    "some escapes": (
        {"type": ["string", "object"], "x-guidance": {"json_allowed_escapes": "n"}},
        ['"\\n"', '{"\\n":"\\n"}'], ['"\\t"', '"\\u0000"', '{"\\t":""}', '"\\""'],
    ),
    "all escapes": (
        {"maxLength": 1, "x-guidance": {"json_allow_general_unicode_escapes": True}},
        ['"\\u00e9"', '"\\u00E9"', '"\\uD83D\\uDE00"', '"\\udbff\\uDFFF"', '"\\uffff"', '"\\n"', '{"\\u0041b":1}'],
        ['"\\uD800"', '"\\uDE00\\uD83D"', '"\\u00e9x"', '"\\u12"', '"\\ud7ff\\udc00"', '"\\uD83D\\u0041"'],
    ),
    "all escapes, known names": (
        {"properties": {"known": {"const": 1}}, "additionalProperties": {"const": 2}, "x-guidance": {"json_allow_general_unicode_escapes": True}},
        ['{"known":1,"\\u006bnowm":2}'], ['{"\\u006bnown":2}', '{"know\\u006e":2}', '{"known":2}'],
    ),
    "alternatives": ({"oneOf": [{"type": "integer"}, {"minimum": 3}], "x-guidance": {"coerce_one_of": True}}, ["5", "1"], ["1.5"]),
    "what is not enforced": ({"type": "string", "pattern": r"^(.)\1$", "x-guidance": {"lenient": True}}, ['"ab"'], ["1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON)
def test_inline_json(name):
    schema, accepted, rejected = JSON[name]
    check(f"start: %json {json.dumps(schema)}", accepted, rejected)


@pytest.mark.parametrize("options", ['{"foo": 1}', "3", '{"lenient": "x"}', '{"json_allowed_escapes": "nx"}', '{"whitespace_flexible": null}'])
def test_options_of_inline_json_are_checked(options):
    with pytest.raises(ConstraintError) as caught:
        COMPILER.compile(Lark(f'start: %json {{"x-guidance": {options}}}'))
    assert caught.value.keyword == "x-guidance" and (caught.value.line, caught.value.column) == (1, 14)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=3), st.randoms(use_true_random=False))
def test_every_spelling_of_a_string(text, random):
    constraint = COMPILER.compile(Lark('start: %json {"type": "string", "x-guidance": {"json_allow_general_unicode_escapes": true}}'))
    spelled = "".join(json.dumps(char)[1:-1].upper().replace("U", "u") if ord(char) > 126 and random.random() < 0.5 else
                      json.dumps(char, ensure_ascii=random.random() < 0.5)[1:-1] for char in text)  # fmt: skip
    assert constraint.accepts(f'"{spelled}"'.encode()) and json.loads(f'"{spelled}"') == text


@pytest.mark.parametrize("value", [None, 5, "a", [5], {"a": 5}])
@pytest.mark.parametrize("keyword", ["allOf", "oneOf", "properties", "enum"])
def test_wrong_values_of_keywords_beside_guidance_are_typed_errors(keyword: str, value: object) -> None:
    schema = {"type": "object", keyword: value, "x-guidance": {"coerce_one_of": True, "json_allowed_escapes": "nrt"}}
    source = Lark(f"start: %json {json.dumps(schema)}")
    if value is None:
        source.lower(Grammar(), Limits())
    else:
        with pytest.raises(ConstraintError):
            source.lower(Grammar(), Limits())
