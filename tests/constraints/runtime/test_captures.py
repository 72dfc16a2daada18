"""Captures of Lark and EBNF grammars, beside a twin that writes down every derivation and takes the one the rule prefers."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Capture,
    Compiler,
    Constraint,
    ConstraintError,
    Ebnf,
    Gbnf,
    IncompleteOutput,
    Lark,
    Limits,
    UnexpectedOutput,
    UnsupportedKeyword,
    Vocabulary,
    captures,
    captures_by_name,
)
from maskwright.constraints.grammar.expression import UNBOUNDED, Grammar, Kind, Node
from maskwright.constraints.grammar.reference import Reference

TOKENS = [*(bytes([i]) for i in range(256)), b"ab", b"cd", b"</s>", b"<tool>"]
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=[258], special_tokens={"<tool>": 259})


@lru_cache
def compiled(source: Lark | Ebnf | Gbnf) -> Constraint:
    return Compiler(VOCABULARY).compile(source)


def told(source: Lark | Ebnf, text: str) -> list[tuple[str, int, str]]:
    return [(one.name, one.start, one.text) for one in captures(compiled(source), text)]


# -- the twin ---------------------------------------------------------------------------------------------------------


class Twin:
    """Every derivation of a text, each with a key by which the preferred one is the least. Exponential."""

    def __init__(self, source: Lark | Ebnf, text: bytes) -> None:
        self.grammar, self.text = Grammar(), text
        self.root, _, self.marks = source.lower_marked(self.grammar, Limits())
        self.leaves: dict[tuple[Node, int, int], bool] = {}

    def captures(self) -> list[tuple[str, int, str]]:
        _, events = min(self.derivations(self.root, 0, len(self.text), frozenset()))
        found: list[tuple[str, int, str] | None] = []
        open_: list[tuple[int, str, int]] = []
        behind = 0
        for event in events:
            if event[0] == "open":
                open_.append((len(found), event[1], event[2]))
                found.append(None)
            elif event[0] == "close":
                place, name, start = open_.pop()
                found[place] = name, start, self.text[start : max(start, behind)].decode()
            else:
                behind = event[1]
        return [one for one in found if one is not None]

    def derivations(self, node: Node, begin: int, end: int, around: frozenset) -> list[tuple]:
        if (node, begin, end) in around:
            return []
        inside = around | {(node, begin, end)}
        kind, (a, b, c) = self.grammar.kind(node), self.grammar.operands(node)
        if kind is Kind.SEQ:
            return self.pairs(a, b, begin, end, inside, range(begin, end + 1))
        if kind is Kind.ALT:
            options = enumerate(self.grammar.alternatives(node))
            return [((k, key), events) for k, x in options for key, events in self.derivations(x, begin, end, inside)]
        if kind is Kind.REPEAT:
            again = self.grammar.repeat(a, max(b - 1, 0), None if c == UNBOUNDED else c - 1)
            found = self.pairs(a, again, begin, end, inside, range(begin + 1, end + 1))
            if begin == end:
                found += [((1,), ())] if b == 0 else [((1, key), e) for key, e in self.derivations(a, begin, end, inside)]
            return found
        if kind is Kind.CALL:
            below = self.derivations(self.grammar.rule_bodies[a], begin, end, inside)
            if a in self.marks.skips:
                return [(key, ()) for key, _ in below]
            if a not in self.marks.of_rule:
                return below
            return [(key, (("open", self.marks.of_rule[a].name, begin), *events, ("close",))) for key, events in below]
        at = node, begin, end
        if at not in self.leaves:
            self.leaves[at] = Reference(self.grammar, node).accepts(self.text[begin:end])
        return [((), (("text", end),) if begin < end else ())] if self.leaves[at] else []

    def pairs(self, a: Node, b: Node, begin: int, end: int, inside: frozenset, middles: range) -> list[tuple]:
        return [
            ((0, -m, first, second), (*before, *behind))
            for m in middles
            for first, before in self.derivations(a, begin, m, inside)
            for second, behind in self.derivations(b, m, end, inside)
        ]


def random_grammar(random: Random) -> Lark:
    def body() -> str:
        items = ['"x"', '"y"', "a", "b", "c", "X"]
        counts = ["", "", "?", "*", "+", "~2", "~1..2"]
        some = [[random.choice(items) + random.choice(counts) for _ in range(random.randint(0, 2))] for _ in range(random.randint(1, 2))]
        return " | ".join(map(" ".join, some))

    rules = [f"{name}[capture]: {body()}" for name in ("start", "a", "b", "c")]
    return Lark("\n".join([*rules, "X: /x+/", random.choice(["", '%ignore "y"'])]))


TEXTS = ["".join(letters) for n in range(4) for letters in product("xy", repeat=n)]


@pytest.mark.parametrize("seed", range(4))
def test_random_grammars(seed):
    random, num_told = Random(seed), 0
    for _ in range(40):
        source = random_grammar(random)
        try:
            constraint = Compiler(VOCABULARY).compile(source)
        except ConstraintError:
            continue  # no text is finite
        for text in filter(constraint.accepts, TEXTS):
            found = [(one.name, one.start, one.text) for one in captures(constraint, text)]
            assert found == Twin(source, text.encode()).captures(), (source.text, text)
            num_told += len(found)
    assert num_told > 20


# -- what is captured ---------------------------------------------------------------------------------------------------

SUM = Lark('start[capture]: n ("+" n)*\nn[capture="number"]: /[0-9]+/\n%ignore " "')


def test_spans_in_bytes_without_what_is_ignored():
    assert captures(compiled(SUM), "12 + 3 ") == [
        Capture("start", 0, 6, "12 + 3"),
        Capture("number", 0, 2, "12"),
        Capture("number", 5, 6, "3"),
    ]
    source = Lark('start: a b\na[capture]: /[äöü]+/\nb[capture]: "x"')
    assert captures(compiled(source), "äüx") == [Capture("a", 0, 4, "äü"), Capture("b", 4, 5, "x")]


def test_by_name_the_last_one_or_a_list():
    source = Lark('start: (a b)+\na[capture="__LIST_APPEND:all"]: /[0-9]/\nb[capture="last"]: ","')
    found = captures(compiled(source), "1,2,3,")
    assert captures_by_name(found) == {"all": ["1", "2", "3"], "last": ","}
    assert [one.appends for one in found] == [True, False] * 3
    nested = Lark('start: e\ne[capture]: "(" e ")" | "x"')
    assert captures_by_name(captures(compiled(nested), "((x))")) == {"e": "((x))"}


def test_left_recursion_keeps_its_shape():
    source = Lark('start: e\ne[capture]: e "+" n | n\nn: /[0-9]/')
    assert told(source, "1+2+3") == [("e", 0, "1+2+3"), ("e", 0, "1+2"), ("e", 0, "1")]


def test_what_ends_a_rule_is_not_in_its_capture():
    source = Lark('start: o\no[capture]: r "z"\nr[capture, suffix="<e>", stop_capture="e"]: /.*/')
    assert told(source, "foo<e>z") == [("o", 0, "foo<e>z"), ("r", 0, "foo"), ("e", 3, "<e>")]
    pattern = Lark('start: r "!"\nr[capture, stop=/a?b/, stop_capture="e"]: /[xab]*/')
    assert told(pattern, "xab!") == [("r", 0, "xa"), ("e", 2, "b")]


CALLS = Lark(
    'start: (foo | bar)* tail\ntail[capture]: TEXT\nTEXT: /(.|\\n)*/\nhead[lazy, capture]: TEXT "<f"\n'
    'foo: head "=foo>" foo_value "</f>"\nfoo_value[capture="foo"]: /[0-9]+/\n'
    'bar: bar_head "=bar>" bar_value "</f>"\nbar_head[lazy]: TEXT "<f"\nbar_value[capture="bar"]: /[a-z]+/'
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["hi", "<", "\n", "<f=foo>12</f>", "<f=bar>ab</f>"]), max_size=6))
def test_lazy_terminals_end_others(pieces):
    text = "".join(pieces)
    found = captures(compiled(CALLS), text)
    assert [(one.name, one.text) for one in found if one.name in ("foo", "bar")] == re.findall(r"<f=(foo|bar)>(\w+)</f>", text)
    assert found[-1].name == "tail" and found[-1].text == re.split(r"<f=\w+>\w+</f>", text)[-1]


def test_ebnf():
    attributes = 'capture="n", capture_hidden_suffix_bytes=1, stop_capture="s"'
    source = Ebnf(f'root ::= a b\na[{attributes}] ::= [0-9]+ ";"\nb[capture] ::= "x" b | "y"')
    assert told(source, "12;xy") == [("n", 0, "12"), ("s", 2, ";"), ("b", 3, "xy"), ("b", 4, "y")]
    lazy = Ebnf('root ::= a "!"\na[lazy, capture] ::= [a-z]* "."')
    assert told(lazy, "ab.!") == [("a", 0, "ab.")]


def test_budgets_take_part_where_tokens_are_known():
    source = Lark("start: a b\na[capture, max_tokens=2]: /[a-z]*/\nb[capture]: /[a-z]*/")
    constraint = compiled(source)
    tokens = [256, 257, ord("e"), 258]  # ab, cd, e, EOS
    assert [one.text for one in captures(constraint, tokens)] == ["abcd", "e"]
    assert [one.text for one in captures(constraint, "abcde")] == ["abcde", ""]
    with pytest.raises(ConstraintError, match="max_tokens"):
        captures(compiled(Lark("start: a\na[capture, max_tokens=2]: /[a-z]*/")), [ord("a")] * 3)


def test_special_tokens_take_no_room():
    source = Lark("start: a <tool> b\na[capture]: /[a-z]*/\nb[capture]: /[0-9]+/")
    tokens = [ord("a"), 259, ord("7")]
    assert captures(compiled(source), tokens) == [Capture("a", 0, 1, "a"), Capture("b", 1, 2, "7")]


def test_inner_grammars_and_json():
    source = Lark('start: p q\np[capture]: %json {"type": "array", "uniqueItems": true}\nq: %lark { start: n "]"\nn[capture]: /[0-9]+/ }')
    assert told(source, "[1, 2]34]") == [("p", 0, "[1, 2]"), ("n", 6, "34")]


def test_a_grammar_without_captures_has_none():
    assert captures(compiled(Lark('start: "x"+')), "xx") == []


# -- what is refused ----------------------------------------------------------------------------------------------------


def test_texts_that_do_not_satisfy_the_constraint():
    with pytest.raises(UnexpectedOutput) as error:
        captures(compiled(SUM), "1+x")
    assert error.value.at == 2
    with pytest.raises(IncompleteOutput):
        captures(compiled(SUM), "1+")


def test_sources_without_captures_are_named(tmp_path):
    with pytest.raises(UnsupportedKeyword, match="Gbnf"):
        captures(compiled(Gbnf('root ::= "x"')), "x")
    compiled(SUM).save(tmp_path / "sum")
    with pytest.raises(UnsupportedKeyword, match="file"):
        captures(Compiler(VOCABULARY).load(tmp_path / "sum"), "1")


def test_captures_that_only_xgrammar_compiles_are_refused_with_their_place():
    source = Ebnf('root ::= a\na[capture, capture_hidden_stop_bytes=1] ::= "x;"')
    with pytest.raises(UnsupportedKeyword, match=r"capture_hidden_stop_bytes.*line 2"):
        captures(compiled(source), "x;")
