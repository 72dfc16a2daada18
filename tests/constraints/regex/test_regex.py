"""Regular expressions: every short string against `re`, published ECMA-262 cases, errors, lengths, and speed."""

from __future__ import annotations

import json
import re
import time
from functools import lru_cache
from itertools import product

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex import parser
from maskwright.constraints.front_ends.regex.regex import Regex, lower_pattern, pattern_length
from maskwright.constraints.grammar.expression import FAIL, Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits, Source
from maskwright.constraints.runtime.compiler import Compiler
from maskwright.constraints.vocabulary.vocabulary import Vocabulary


def regex_reference(pattern: str, dialect: str = "python", full: bool = True) -> Reference:
    grammar = Grammar()
    return Reference(grammar, Regex(pattern, dialect, full).lower(grammar, Limits()))


@lru_cache(maxsize=8)
def strings(alphabet: str, length: int) -> list[str]:
    return ["".join(letters) for count in range(length + 1) for letters in product(alphabet, repeat=count)]


def check_against_re(pattern: str, texts: list[str]) -> None:
    """The language is what `re.fullmatch` and `re.search` say, and `pattern_length` bounds it."""
    oracle = re.compile(pattern)
    for full, matches in ((True, oracle.fullmatch), (False, oracle.search)):
        reference = regex_reference(pattern, full=full)
        low, high = pattern_length(pattern, dialect="python", full=full)
        for text in texts:
            expected = matches(text) is not None
            assert reference.accepts(text.encode()) == expected, (full, text)
            assert not expected or (low <= len(text) and (high is None or len(text) <= high)), (full, text)


@pytest.mark.parametrize("pattern", ["(ab|b)*a", "a{2,3}b?", "[^a]+", "((a|b)(b|))+", "a.*b", "[a-b]*(?=b)b"])
def test_agrees_with_the_automata_of_interegular(pattern: str) -> None:
    """A second oracle, made by quite another construction: an automaton over the alphabet, not a search."""
    automaton = interegular.parse_pattern(pattern).to_fsm()
    reference = regex_reference(pattern)
    for text in strings("ab ", 5):
        assert reference.accepts(text.encode()) == automaton.accepts(text), text


# one line = patterns that differ in one feature; texts are strings over "ab", blank and newline
PLAIN = [
    "",
    "a",
    "ab|b",
    "(ab)*",
    "a{2,3}b",
    "a{2}",
    "a{1,}",
    "a{,2}b",
    "a{",
    "a{,}",
    "a{b}",
    "(a*)*",
    "(a?b?)*",
    "(|a)+",
    "(a|ab)(b|)",
]
LAZY = ["a*?b", "a+?", "a??b", "a{1,2}?b", "(?:ab?)+?"]
SETS = [
    ".",
    r"[^a]b?",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[-a]",
    r"[\w]",
    r"[^\s]",
    r"\s\S",
    r"\d|\D",
    r"[\n b]",
    r"\w\W",
    "[^ab]",
    "(?s).a",
    "[[]|a",
]
ESCAPES = [
    r"\x61",
    r"\u0061",
    r"\U00000061",
    r"\141",
    r"\061|\n",
    r"[\141]",
    r"\N{LATIN SMALL LETTER A}",
    r"\ a",
    r"[\b]|b",
    r"\a|\f|\t|a",
]
FLAGS = [
    "(?i)A",
    "(?i:A)b",
    "(?i:A(?-i:B))|a",
    "(?x) a b # c",
    "(?x)[ a]+ # c\n b",
    "(?x: a ) b",
    "(?s:.)(?-s:.)",
    "(?a)\\w",
    "a(?#note)*b",
]
GROUPS = ["(?:a)(b)", "(?P<name>a)b", "((((a))))", "()", "()|()", "(?:)", "(a|(b|( |\n)))*"]
ANCHORS = [
    "^a$",
    "a$",
    "^a|b$",
    "(^a|b$)",
    "(?:^|b)a",
    "a(?:$|b)",
    "^",
    "$",
    "^$",
    "a^",
    "$a",
    r"\Aa\Z",
    "a$\n",
    "$\n",
    "^^a$$",
    "(^)*a",
    "(a|$)(b|$)",
]
LINES = ["(?m)^a$", "(?m)a$|^b", "(?m)^", "(?m)$", "(?m)^a$\n^b", "(?m)(^a\n)?b", "(?m:^)a", "(?m)a$b*", r"(?m)\Aa\Z"]
LOOPS = [
    "(^a|b)*",
    "(a$|b)*",
    r"(a$|\n)*",
    r"(a$|\n)+b?",
    "(^a|b$)+",
    "(?:^a){2}|b",
    "(a|^)*b",
    "(?:a|$){2,3}",
    "(^|a)+b",
]
WORDS = [
    r"\ba\b",
    r"a\Bb",
    r"\Ba",
    r"\B",
    r"\b",
    r"\w\b\W",
    r"(\ba){2}|(b\b ?){2}",
    r"a+\b",
    r"\b\s*\b",
    r"(?a)\ba",
    r"[a ]{1,2}\bb",
    r"(a| )*\bb",
]
AHEAD = [
    "(?!a)b|a",
    "a(?=b)",
    "a(?=b)b",
    "(?=.*b)a.",
    "^(?=a)(?!ab).*$",
    r"^(?!\s*$).+",
    "(?=a)",
    "(?!a)",
    "(?=a)*b",
    "a(?!$)",
    "(?=a|(?!b)).",
]
BEHIND = ["(?<=a)b", "(?<!a)b", "^.*(?<!b)$", "^(?!b)[ab ]{1,3}(?<!a)$", "(?<!^)a", "(?<=[a ])b*(?<![b\n])", "(?<=a)(?<!b)(?=b)", r"(?<=\n)\b", "(a|b)(?<!a)(a|b)", "(?<=)a", "(?:a(?<=a)|b){2}", r"(?<!\w)(?m:^)?a+"]
LOOKBEHIND = [
    "(?<=ab)b", "(?<!ab)b", "a*(?<=aa)b*", "(?<=ab|ba)a", "(?<=^a)b", "(?<!^ab)a", "(?<=aab)(?<!bb)[ab]?", "(a|b)*(?<=bab)\\Z",
    r"(?<=a\n)^b", r"(?<!ab)\bab", "(?=b)(?<=aa)b", "(?<=(?:ab){2})a*", ".*(?<!abb)$", "(?:a(?<=aa)|b){1,3}", "(?<=[^a]b)a*?",
]  # fmt: skip
TEMPERED = ["^((?!ab).)*$", "^(?:(?!a).)*$", r"^((?!b\n)[^ ])+$", "((?!a).)*", "^((?!ab).){2,40}$", "^((?!ab).){1,2}b"]
ALL_PATTERNS = PLAIN + LAZY + SETS + ESCAPES + FLAGS + GROUPS + ANCHORS + LINES + LOOPS + WORDS + AHEAD + BEHIND + LOOKBEHIND + TEMPERED


@pytest.mark.filterwarnings("ignore:Possible nested set")
@pytest.mark.parametrize("pattern", ALL_PATTERNS)
def test_agrees_with_re_on_every_short_string(pattern):
    check_against_re(pattern, strings("ab \n", 3 if pattern in PLAIN else 4))


ATOMS = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", r"\w", r"\s", "", "^", "$", r"\b", r"\B", "(?i:A)", "(?s:.)", "(?m:^)", "(?m:$)", r"[^\W]",
                         "(?<=a)", "(?<![ab])", r"(?<=\s)", r"\d*"])  # fmt: skip


def _grown(inner):
    quantified = st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}?"]))
    joined = st.lists(inner, min_size=1, max_size=3).map("".join)
    either = st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})")
    ahead = st.builds("(?{}{})".format, st.sampled_from(["=", "!"]), inner)
    return st.one_of(joined, either, quantified, ahead)


@settings(max_examples=100, deadline=None)
@given(st.recursive(ATOMS, _grown, max_leaves=7))
def test_generated_patterns_agree_with_re_or_are_refused_by_name(pattern):
    try:
        check_against_re(pattern, strings("a b\n", 3))
    except UnsupportedKeyword as refusal:
        assert refusal.keyword == "assertion in a repetition"


@pytest.mark.parametrize("letter", "dwsDWS")
@pytest.mark.parametrize("flags", ["", "(?a)"])
def test_classes_contain_what_python_says(letter, flags):
    reference = regex_reference(f"{flags}\\{letter}")
    oracle = re.compile(f"{flags}\\{letter}")
    for char in "aZ_09 \t\x0b\x1c\x85\xa0\u2028\u3000\ufeffé\xb2\u0660\u0e50\u4e2d\U0001d7d8\U0001f600":
        assert reference.accepts(char.encode()) == (oracle.fullmatch(char) is not None), char


@pytest.mark.parametrize("pattern", ["k", "ſ", "[a-z]", "[^a-z]", "é", "ς", "İ", "ß", "[\u0400-\u04ff]", "µ", "[^k]"])  # noqa: RUF001
@pytest.mark.parametrize("flags", ["(?i)", "(?ia)"])
def test_letters_are_equal_without_case_as_in_python(pattern, flags):
    reference, oracle = regex_reference(flags + pattern), re.compile(flags + pattern)
    for char in "aAkK\u212asSſéÉσςΣiIİıßẞжЖµμΜ\u0345ǅ1 ":  # noqa: RUF001
        assert reference.accepts(char.encode()) == (oracle.fullmatch(char) is not None), char


ECMA_CASES = [  # pattern, found in, not found in
    (r"^\d$", "5", "٣"),
    (r"^\w$", "a", "é"),
    (r"^\s$", "\ufeff", "\x85"),
    (r"^.$", "\U0001f600", "\u2028"),
    (r"^a$", "a", "a\n"),
    (r"^\/\-\_$", "/-_", "\\/"),
    (r"^[^]$", "\n", ""),
    (r"^a[]?$", "a", "a]"),
    (r"^\u0061\u{1F600}$", "a\U0001f600", "u1F600"),
    (r"^\ud83d\ude00$", "\U0001f600", "a"),
    (r"^\p{Lu}\P{L}$", "É1", "é1"),
    (r"^\p{Script=Greek}+$", "αβ", "ab"),
    (r"^\cA\x41\0$", "\x01A\x00", "cA"),
    (r"^(?<year>\d{4})$", "2024", "year"),
    ("(?<$>x)", "x", "$"),
    (r"^\c$", r"\c", "c"),
    (r"^[\c1]$", "\x11", "1"),
    (r"^[\B]$", "B", "b"),
    ("^(?!-)[a-z-]{1,63}(?<!-)$", "a-b", "ab-"),
    ("(?<=a+)b", "ab", "cb"),
    ("(?<=^|,)b$", "a,b", "ab"),
    (r"^a{,2}$", "a{,2}", "a"),
    (r"^{a}$", "{a}", "a"),
    (r"^[\w-.]$", "-", "/"),
    (r"^[\b]$", "\b", "b"),
    (r"\ba", "é a", "ba"),
    (r"^[a\]b]+$", "a]b", "a\\b"),
    ("^(?i:a)b$", "Ab", "AB"),
    ("^(?i:a(?-i:b))$", "Ab", "AB"),
    ("^(?s-i:.)$", "\n", "ab"),
    ("^(?i)[k-m]i$", "\u212aI", "\u212a\u0130"),
    (r"^(?i)\W$", "é", "\u017f"),
    (r"^(?i:a\b)", "A-", "a\u017f"),
    ("^(?s).+$", "a\nb", ""),
    ("^(a(?s)|.)$", "\n", "\n\n"),
    ("^(?:(?s)a).$", "ab", "a\n"),
    ("(?m)^b$", "a\u2028b\nc", "ab"),
]


@pytest.mark.parametrize("pattern, found, absent", ECMA_CASES)
def test_ecma_patterns(pattern, found, absent):
    reference = regex_reference(pattern, "ecma", full=False)
    assert reference.accepts(found.encode()) and not reference.accepts(absent.encode())


def test_published_patterns_have_the_published_matches(shared_data):
    cases = [
        json.loads(line) for line in (shared_data / "grammars" / "dev.jsonl").read_text("utf-8").split("\n") if line
    ]
    cases = [
        case
        for case in cases
        if case["kind"] == "regex" and case["expect"] == "match" and case["verified_by"] != ["re2"]
    ]
    refused = []
    for case in cases:
        dialect = "ecma" if "node" in case["verified_by"] else "python"
        try:
            reference = regex_reference(case["grammar"], dialect, full=case["match"] == "full")
        except ConstraintError:
            refused.append(case["grammar"])
            continue
        for expected, texts in ((True, case["accept"]), (False, case["reject"])):
            for text in (text for text in texts if len(text) < 100 and text.isprintable()):
                assert reference.accepts(text.encode()) == expected, (case["grammar"], text)
    assert len(refused) < 0.03 * len(cases), refused


REFUSED = [  # dialect, pattern, the name it is refused by
    ("python", r"(a)\1", r"\1"),
    ("python", "(?P<x>a)(?P=x)", "(?P="),
    ("python", "(a)?(?(1)b|c)", "(?("),
    ("python", "(?>a+)a", "(?>"),
    ("python", "a++", "possessive quantifier"),
    ("python", "(?<=a{17})b", "(?<="),
    ("ecma", "(?<!ab*)b", "(?<!"),
    ("ecma", r"(?<=a\b.)b", "(?<="),
    ("ecma", r"(?<x>a)\k<x>", r"\k"),
    ("ecma", r"(a)\1", r"\1"),
    ("ecma", r"\Aa\Z", r"\A"),
    ("ecma", "(?x)a", "(?x"),
    ("ecma", "(?i-i:a)", "(?i"),
    ("ecma", "(?-:a)", "(?-"),
    ("ecma", "(?-i)a", "(?-"),
    ("ecma", r"\p{L}\_", r"\p{"),
    ("ecma", r"[\w-.]\u{61}", r"\u{"),
]


@pytest.mark.parametrize("dialect, pattern, keyword", REFUSED)
def test_what_is_not_regular_is_refused_by_name(dialect, pattern, keyword):
    with pytest.raises(UnsupportedKeyword) as raised:
        regex_reference(pattern, dialect)
    assert raised.value.keyword == keyword and raised.value.instead


SYNTAX_ERRORS = [  # dialect, pattern, column
    ("python", "(ab", 1),
    ("python", "ab)", 3),
    ("python", "a[b", 2),
    ("python", "a**", 3),
    ("python", "*a", 1),
    ("python", "a{3,2}", 1),
    ("python", "[b-a]", 2),
    ("python", r"[\d-z]", 2),
    ("python", r"a\q", 2),
    ("python", r"\u12", 1),
    ("python", "a(?i)b", 2),
    ("python", "(?Pa)", 2),
    ("python", "^*", 2),
    ("python", "a\\", 2),
    ("ecma", "(ab", 1),
    ("ecma", r"\p{Nonsense}", 1),
    ("ecma", r"\u{110000}", 1),
    ("ecma", "a**", 3),
    ("ecma", "[a", 1),
]


@pytest.mark.parametrize("dialect, pattern, column", SYNTAX_ERRORS)
def test_syntax_errors_show_where_they_are(dialect, pattern, column):
    with pytest.raises(GrammarSyntaxError) as raised:
        regex_reference(pattern, dialect)
    assert (raised.value.line, raised.value.column) == (1, column)
    assert pattern in str(raised.value) and "^" in str(raised.value)


def test_the_position_of_an_error_counts_lines():
    with pytest.raises(GrammarSyntaxError) as raised:
        regex_reference("(?x) a\n  b (c")
    assert (raised.value.line, raised.value.column) == (2, 5)


def test_arguments_are_checked():
    with pytest.raises(ConstraintError, match="no dialect 'pcre'"):
        Regex("a", dialect="pcre")
    with pytest.raises(ConstraintError, match="not Pattern"):
        Regex(re.compile("a"))
    assert isinstance(Regex("a"), Source) and hash(Regex("a")) == hash(Regex("a"))


def test_limits_are_named():
    for pattern, limits, name in (
        ("a{2000001}", Limits(), "repetition"),
        ("a{1,99999999999999999999999}", Limits(), "repetition"),
        ("(" * 300 + ")" * 300, Limits(), "nesting"),
        ("aaaa", Limits(pattern_characters=3), "pattern_characters"),
    ):
        with pytest.raises(ConstraintLimit) as raised:
            Regex(pattern).lower(Grammar(), limits)
        assert raised.value.limit == name


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-z]{2,20000}",
        "(((a{1,1000}){1,1000}){1,1000}b?)*",
        "(a*)*" * 50,
        "(" * 190 + "^a|b$" + ")" * 190,
        "a?" * 3000,
    ],
)
def test_counts_and_nesting_cost_nothing_to_lower(pattern):
    grammar, start = Grammar(), time.process_time()
    Regex(pattern, full=False).lower(grammar, Limits())
    assert time.process_time() - start < 2 and len(grammar) < 20_000


@pytest.mark.parametrize("pattern", ["a^b", "a(?!)", "[^\\s\\S]"])
def test_a_pattern_that_matches_nothing_is_fail(pattern):
    grammar = Grammar()
    node = Regex(pattern).lower(grammar, Limits())
    assert node == FAIL or not Reference(grammar, node).can_continue(b"", b"ab")


def test_units_spell_characters_as_the_caller_wants():
    grammar = Grammar()

    def doubled(ranges):
        return grammar.alt(
            *(grammar.literal(chr(code) * 2) for low, high in ranges for code in range(low, min(high, 0x7F) + 1))
        )

    node = lower_pattern(grammar, "^(?!ab)[a-c]+$", dialect="ecma", full=False, unit=doubled, limits=Limits())
    reference = Reference(grammar, node)
    assert reference.accepts(b"aacc") and not reference.accepts(b"aabb") and not reference.accepts(b"ac")


@pytest.mark.parametrize(
    "pattern, full, expected",
    [
        ("a{2,3}|b", True, (1, 3)),
        ("a*", True, (0, None)),
        ("^ab?$", False, (1, 3)),
        ("ab?", False, (1, None)),
        ("(^a|^b)$", False, (1, 2)),
    ],
)
def test_lengths(pattern, full, expected):
    assert pattern_length(pattern, dialect="python", full=full) == expected


def test_the_end_of_an_ecma_pattern_is_the_end_of_the_text():
    assert pattern_length("^ab?$", dialect="ecma", full=False) == (1, 2)


def test_patterns_can_be_combined():
    source = Regex("[a-c]+") & ~Regex(".*(ab|c).*") | Regex("x")
    grammar = Grammar()
    reference = Reference(grammar, source.lower(grammar, Limits()))
    for text in strings("abcx", 4):
        expected = text == "x" or (set(text) <= set("abc") and bool(text) and "ab" not in text and "c" not in text)
        assert reference.accepts(text.encode()) == expected, text
    with pytest.raises(UnsupportedKeyword, match="call themselves"):
        (Regex("a") & Gbnf('root ::= "(" root ")" | ""')).lower(Grammar(), Limits())
    with pytest.raises(TypeError):
        Regex("a") & "b"


@pytest.mark.parametrize("body", ["a", "(?:ab|b)"])
@pytest.mark.parametrize("outer", ["?", "*", "+", "{2}", "{0,2}", "{1,3}", "{2,3}", "{2,}"])
@pytest.mark.parametrize("inner", ["?", "*", "+", "{2}", "{1,2}", "{2,3}", "{3,4}", "{2,}"])
def test_repetitions_of_repetitions_agree_with_re(body, inner, outer):
    pattern = f"(?:{body}{inner}){outer}"
    grammar = Grammar()
    reference = Reference(grammar, Regex(pattern).lower(grammar, Limits()))
    for text in [*strings("ab", 4), *("a" * n for n in range(5, 14)), *("b" * n for n in range(5, 14))]:
        assert reference.accepts(text.encode()) == bool(re.fullmatch(pattern, text)), text


def test_counters_right_inside_each_other_are_one():
    constraint = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])).compile(
        Regex("((a{1,100}){1,100}){1,100}")
    )
    assert constraint.accepts("a" * 5000) and not constraint.accepts("a" * 5000 + "b")


def test_assertions_in_nested_repetitions_take_no_longer_than_allowed():
    with pytest.raises(ConstraintLimit, match="takes too long") as caught:
        Regex(r"(((\ba\b ){1,30}){1,30}){1,30}").lower(Grammar(), Limits(seconds=0.2))
    assert caught.value.limit == "seconds"


REPEATED = ["(?:a|b{2})", "(?:[()]a|\\(b)", "(?:(?:a|(?:bc)?)d)+?", "(a|b)", "(?:a(b))", "(?:a(?=b)b|(?:c|a))", "(?:[^\\](]|a)?", "(?:^a|b$)"]


@pytest.mark.parametrize("dialect", ["ecma", "python"])
@pytest.mark.parametrize("part", REPEATED)
def test_groups_that_are_written_several_times_are_read_once(part: str, dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = "(?:" + f"(?:{part}c?{part}|d){{2}}" * 14 + "|(?:(?:e|f)(?:e|f)))"
    grammar, found = Grammar(), []
    for long in (300, 1 << 20):
        monkeypatch.setattr(parser, "_LONG", long)
        found.append(lower_pattern(grammar, pattern, dialect=dialect, full=True, unit=grammar.chars, limits=Limits()))
    assert len(pattern) > 300
    assert found[0] == found[1]  # equal expressions of a grammar are one node
