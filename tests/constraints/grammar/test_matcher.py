"""Questions about strings while a schema is being lowered: the same answers as from the sets of all short strings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.grammar.cardinality import count_words, list_words
from maskwright.constraints.grammar.expression import Event, Grammar, Node
from maskwright.constraints.grammar.matcher import Matcher, Steps
from maskwright.constraints.grammar.reference import Reference
from tests.constraints.grammar.bounded_languages import all_strings, strings_of

ALPHABET, LONGEST = b"ab", 5
Tree = tuple[object, ...]

LEAVES = st.one_of(
    st.tuples(st.just("literal"), st.sampled_from([b"a", b"b", b"ab", b"bba"])),
    st.tuples(st.just("chars"), st.sampled_from([((97, 97),), ((97, 98),), ((98, 200),)])),
)


def _around(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    bounds = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 3, None]))
    return st.one_of(
        st.tuples(st.sampled_from(["seq", "alt", "both", "without"]), trees, trees),
        st.tuples(st.just("negate"), trees),
        st.tuples(st.just("repeat"), trees, bounds),
        st.tuples(st.just("bag"), LEAVES, LEAVES, bounds),
    )


TREES = st.recursive(LEAVES, _around, max_leaves=6)


def built(grammar: Grammar, tree: Tree) -> Node:
    kind, *parts = tree
    if kind == "literal":
        return grammar.literal(parts[0])
    if kind == "chars":
        return grammar.chars(list(parts[0]))
    if kind == "repeat":
        low, more = parts[1]
        return grammar.repeat(built(grammar, parts[0]), low, None if more is None else low + more)
    if kind == "bag":
        low, more = parts[2]
        return grammar.bag([(built(grammar, part), 0, 2) for part in parts[:2]], low, None if more is None else low + more)
    return getattr(grammar, str(kind))(*(built(grammar, part) for part in parts))


@given(TREES)
def test_matches_what_the_twin_matches(tree: Tree) -> None:
    grammar = Grammar()
    node = built(grammar, tree)
    matcher, twin = Matcher(Steps(grammar), node), Reference(grammar, node)
    for text in [*all_strings(ALPHABET, LONGEST), "é".encode(), b"a\xff"]:
        assert matcher.accepts(text) == twin.accepts(text), (tree, text)


@given(TREES.filter(lambda tree: "bag" not in str(tree)))  # of which the sets know nothing
def test_counts_and_lists_all_strings(tree: Tree) -> None:
    grammar = Grammar()
    narrow = grammar.repeat(grammar.chars([(97, 98)]), 0, LONGEST)
    node = grammar.both(built(grammar, tree), narrow)
    wanted, steps = strings_of(grammar, node, LONGEST, ALPHABET), Steps(grammar)
    assert count_words(steps, node, 1000, positions=10_000) == len(wanted)
    assert list_words(steps, node, 100) is None or set(list_words(steps, node, 100) or ()) == wanted
    assert count_words(steps, node, 2) == min(2, len(wanted))


def test_one_memory_serves_many_expressions() -> None:
    grammar = Grammar()
    steps, any_letter = Steps(grammar), grammar.chars([(97, 122)])
    words = [b"if", b"in", b"int", b"interface"]
    rest = grammar.unlisted(grammar.repeat(any_letter, 1, None), words)
    nodes = [rest, grammar.words(words), grammar.negate(rest), grammar.without(rest, grammar.literal(b"inn"))]
    for text in [*words, b"i", b"inn", b"interfaces", b"", b"\xff"]:
        for node in nodes:
            assert Matcher(steps, node).accepts(text) == Reference(grammar, node).accepts(text), (text, node)


def test_marks_mean_nothing() -> None:
    grammar = Grammar()
    key = grammar.seq(grammar.mark(b"{", Event.OBJECT_OPEN), grammar.key(grammar.words([b"a", b"b"])))
    assert Matcher(Steps(grammar), key).accepts(b'{"b"')
    assert not Matcher(Steps(grammar), key).accepts(b'{"c"')
