"""Keys and unique items out of finite sets: everything is compared with the list of all texts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Limits, Vocabulary
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.grammar.expression import EMPTY, Event, Grammar, Node
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.runtime.constraint import State, as_token_ids
from maskwright.constraints.uniqueness.register_product import ExtraCost

PIECES = [
    b'{"', b'":', b'"a"', b'a"', b'a":1', b',"', b'","', b'{"a":1,"', b'{"a":1,"a', b'":1,"', b"1}", b'b":1}', b'a":1,"b', b'cc":', b'""',
    b"[1", b"1,", b"12", b"2,1", b"1,1", b"2,2]", b"true", b"true,", b"[true,", b"false]", b",true", b"],[", b"[[", b"]]", b"],", b"1],[1",
    b"1]", b'},{"', b'"b":', b"[{", b"}]", b"[]", b"[],[", b"00", b"01,0", b"1,0", b" ,", b" ]", b", ",
]  # fmt: skip
TOKENS = [bytes([byte]) for byte in range(256)] + PIECES
VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)])
COMPILER = Compiler(VOCABULARY)


@dataclass(frozen=True)
class Written:
    """A grammar given by a function."""

    build: Callable[[Grammar], Node]

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return self.build(grammar)


def object_of(grammar: Grammar, key: Node, low: int, high: int, value: Node | None = None, gap: Node = EMPTY) -> Node:
    """An object of `low` to `high` members with such keys."""
    member = grammar.seq(grammar.key(key), gap, grammar.literal(":"), gap, value or grammar.literal("1"), gap)
    more = grammar.repeat(grammar.seq(grammar.literal(","), gap, member), max(low - 1, 0), high - 1)
    members = grammar.alt(EMPTY if low == 0 else 0, grammar.seq(member, more))  # type: ignore[arg-type]
    return grammar.seq(grammar.mark(b"{", Event.OBJECT_OPEN), gap, members, grammar.mark(b"}", Event.OBJECT_CLOSE))


def unique_array(grammar: Grammar, item: Node, low: int, high: int, gap: Node = EMPTY) -> Node:
    """An array of `low` to `high` items that all differ."""
    last = grammar.mark(b"]", Event.ARRAY_CLOSE)
    more = grammar.repeat(
        grammar.seq(grammar.mark(b",", Event.ITEM_CLOSE, grammar.seq(gap, item)), gap), max(low - 1, 0), high - 1
    )
    items = grammar.alt(EMPTY if low == 0 else 0, grammar.seq(item, gap, more))  # type: ignore[arg-type]
    return grammar.seq(grammar.mark(b"[", Event.ARRAY_OPEN), gap, items, last)


def array(grammar: Grammar, item: Node, low: int, high: int) -> Node:
    more = grammar.repeat(grammar.seq(grammar.literal(","), item), max(low - 1, 0), high - 1)
    items = grammar.alt(EMPTY if low == 0 else 0, grammar.seq(item, more))  # type: ignore[arg-type]
    return grammar.seq(grammar.literal("["), items, grammar.literal("]"))


def words(grammar: Grammar, *texts: str) -> Node:
    return grammar.words(text.encode() for text in texts)


def members_in_any_order(grammar: Grammar, **values: str) -> Node:
    """A closed object with all of these names, each with its own value, in any order: states are subsets."""
    names = sorted(values)

    def rest(missing: frozenset[str], is_first: bool) -> Node:
        if not missing:
            return grammar.mark(b"}", Event.OBJECT_CLOSE)
        comma = EMPTY if is_first else grammar.literal(",")
        options = [
            grammar.seq(comma, grammar.literal(f'"{name}":'), words(grammar, *values[name].split()), rest(missing - {name}, False))
            for name in names if name in missing
        ]  # fmt: skip
        return grammar.alt(*options)

    return grammar.seq(grammar.mark(b"{", Event.OBJECT_OPEN), rest(frozenset(names), True))


def digits(grammar: Grammar, chars: str, low: int, high: int) -> Node:
    return grammar.repeat(grammar.chars([(ord(char), ord(char)) for char in chars]), low, high)


def spaces(grammar: Grammar) -> Node:
    return grammar.repeat(grammar.bytes_in([(32, 32)]), 0, 1)


FINITE: dict[str, Callable[[Grammar], Node]] = {
    "names in any order": lambda g: object_of(g, words(g, "a", "bb", "cc"), 3, 3),
    "some names": lambda g: object_of(g, words(g, "a", "ab", "b"), 0, 3),
    "one name": lambda g: object_of(g, words(g, "a"), 0, 1),
    "a regular set": lambda g: object_of(g, digits(g, "ab", 2, 2), 0, 3),
    "all of a regular set": lambda g: object_of(g, digits(g, "ab", 2, 2), 4, 4),
    "an empty key": lambda g: object_of(g, digits(g, "a", 0, 2), 1, 3),
    "objects in objects": lambda g: object_of(g, words(g, "a", "b"), 1, 2, object_of(g, words(g, "a", "cc"), 0, 2)),
    "white space": lambda g: object_of(g, words(g, "a", "b"), 2, 2, gap=spaces(g)),
    "booleans": lambda g: unique_array(g, words(g, "true", "false"), 0, 2),
    "both booleans": lambda g: unique_array(g, words(g, "true", "false"), 2, 2),
    "more items than values": lambda g: unique_array(g, words(g, "true", "false"), 1, 5),
    "numbers": lambda g: unique_array(g, words(g, "0", "1", "2", "10", "11", "12"), 0, 3),
    "strings": lambda g: unique_array(g, words(g, '""', '"a"', '"a,"', '"]"', '"\\""'), 1, 3),
    "a gap in arrays": lambda g: unique_array(g, words(g, "1", "12"), 0, 2, spaces(g)),
    "arrays": lambda g: unique_array(g, array(g, words(g, "1", "2"), 0, 2), 0, 2),
    "fixed arrays": lambda g: unique_array(g, array(g, words(g, "true", "1"), 2, 2), 3, 4),
    "unique arrays in one": lambda g: unique_array(g, unique_array(g, words(g, "1", "2"), 0, 3), 0, 2),
    "objects in an array": lambda g: unique_array(g, object_of(g, words(g, "a", "b"), 1, 2, words(g, "1")), 0, 9),
    "any order in an array": lambda g: unique_array(g, members_in_any_order(g, a="1 2", b="1"), 0, 9),
    "an array in an object": lambda g: object_of(
        g, words(g, "a", "b"), 2, 2, unique_array(g, words(g, "1", "2"), 1, 3)
    ),
    "an array in an object in an array": lambda g: unique_array(
        g, object_of(g, words(g, "a", "b"), 1, 1, unique_array(g, words(g, "1", "2"), 1, 2)), 1, 2
    ),
    "mixed": lambda g: unique_array(
        g, g.alt(words(g, "1", '"1"', "[1]", '{"a":1}'), object_of(g, words(g, "a"), 0, 1)), 2, 4
    ),
}


class AllTexts:
    """A finite language by brute force over bytes, on the slow reference."""

    def __init__(self, build: Callable[[Grammar], Node]) -> None:
        grammar = Grammar()
        self.reference = Reference(grammar, build(grammar))

    @cached_property
    def texts(self) -> set[bytes]:
        found, work = set(), [(b"", self.reference.start())]
        while work:
            text, position = work.pop()
            if self.reference.is_accepting(position):
                found.add(text)
            for byte in b'{}[]":, \\abc012trufalse':
                after = self.reference.step(position, byte)
                if after:
                    work.append((text + bytes([byte]), after))
        return found

    @cached_property
    def prefixes(self) -> set[bytes]:
        return {text[:length] for text in self.texts for length in range(len(text) + 1)}


LANGUAGES = {name: AllTexts(build) for name, build in FINITE.items()}


def allowed(constraint: Constraint, state: State, budget: int | None = None) -> set[int]:
    return set(as_token_ids(constraint.mask(state, budget)))


def after(constraint: Constraint, state: State, token_id: int) -> State:
    successor = constraint.advance(state, token_id)
    assert successor is not None
    return successor


def reachable(constraint: Constraint, language: AllTexts, seed: int, at_most: int) -> list[tuple[bytes, State]]:
    """Texts that tokens lead to, with their states: all of them, or a random choice."""
    rng, seen, work, out = random.Random(seed), {b""}, [(b"", constraint.start())], []
    while work and len(out) < at_most:
        text, state = work.pop(rng.randrange(len(work)))
        out.append((text, state))
        for token_id in sorted(allowed(constraint, state) - {len(TOKENS)}):
            longer = text + TOKENS[token_id]
            if longer not in seen:
                seen.add(longer)
                work.append((longer, after(constraint, state, token_id)))
    return out


@pytest.mark.parametrize("name", FINITE)
def test_masks_are_the_tokens_that_lead_to_a_text(name: str) -> None:
    constraint, language = COMPILER.compile(Written(FINITE[name])), LANGUAGES[name]
    seen = reachable(constraint, language, seed=0, at_most=250)
    for text, state in seen:
        expected = {i for i, token in enumerate(TOKENS) if text + token in language.prefixes}
        if text in language.texts:
            expected.add(len(TOKENS))
        assert allowed(constraint, state) == expected, text
        assert constraint.is_accepting(state) == (text in language.texts), text
    if len(seen) < 250:
        assert {text for text, _ in seen} >= language.texts


@pytest.mark.parametrize("name", FINITE)
def test_no_member_and_no_item_comes_twice(name: str) -> None:
    for text in LANGUAGES[name].texts:
        json.loads(text, object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("name", FINITE)
def test_min_tokens_suffices_and_budgets_keep_what_can_finish(name: str) -> None:
    constraint = COMPILER.compile(Written(FINITE[name]))
    for text, state in reachable(constraint, LANGUAGES[name], seed=1, at_most=60):
        distance = constraint.min_tokens(state)
        assert distance < 200 and (distance == 0) == constraint.is_accepting(state), text
        successors = {
            token_id: after(constraint, state, token_id) for token_id in allowed(constraint, state) - {len(TOKENS)}
        }
        costs = {token_id: constraint.min_tokens(successor) for token_id, successor in successors.items()}
        assert distance == 0 or min(costs.values()) <= distance - 1, text
        for budget in {1, distance - 1, distance, distance + 1, distance + 2, distance + 9} - {-1, 0}:
            expected = {token_id for token_id, cost in costs.items() if cost <= budget - 1}
            assert allowed(constraint, state, budget) - {len(TOKENS)} == expected, (text, budget)


LISTED_BESIDE_OTHERS = [
    {"type": "object", "anyOf": [{"required": ["s"]}, {"minProperties": 6}]},
    {"type": "object", "anyOf": [{"required": ["ab", "b"]}, {"minProperties": 4}, {"required": ["cc"], "maxProperties": 2}]},
    {"properties": {"a": {"required": ["ab"]}}, "if": {"required": ["b"]}, "then": {"minProperties": 3}, "else": {"required": ["a", "cc"]}},
    {"type": "object", "required": ["ab", "b"], "not": {"patternProperties": {"^(?!a)": {"enum": [2]}}, "properties": {"cc": {"minimum": 1}}}},
    {"type": "object", "required": ["a", "b"], "dependencies": {"a": ["circle", "triangle"], "b": ["square"]}},
]  # fmt: skip


@pytest.mark.parametrize("schema", LISTED_BESIDE_OTHERS)
@pytest.mark.parametrize("order", ["any", "declared"])
def test_listed_keys_that_begin_like_remembered_ones_keep_the_budget(schema: dict[str, object], order: str) -> None:
    constraint = COMPILER.compile(JsonSchema(schema, property_order=order))  # type: ignore[arg-type]
    rng = random.Random(json.dumps(schema))
    for _ in range(12):
        state = constraint.start()
        for _ in range(25):
            tokens = allowed(constraint, state) - {len(TOKENS)}
            successors = {token_id: after(constraint, state, token_id) for token_id in tokens}
            distance = constraint.min_tokens(state)
            costs = {token_id: constraint.min_tokens(successor) for token_id, successor in successors.items()}
            assert distance == 0 or min(costs.values()) < distance
            for budget in {distance, distance + 1, distance + 5} - {0}:
                kept = {token_id for token_id, cost in costs.items() if cost < budget}
                assert allowed(constraint, state, budget) - {len(TOKENS)} == kept
            if not costs:
                break
            state = successors[rng.choice(sorted(costs))]


FREE_STRINGS = {
    "strings": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "long ones": {"type": "array", "items": {"type": "string", "minLength": 2}, "uniqueItems": True, "minItems": 1},
    "beside keys": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
        "additionalProperties": {"type": "string"},
    },
    "in arrays": {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    "after a number": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "uniqueItems": True},
    "beside numbers": {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True},
    "beside other strings": {
        "type": "object", "required": ["a", "b"], "additionalProperties": False,
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True}},
    },
    "beside patterns": {
        "type": "object", "patternProperties": {"^a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
        "additionalProperties": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    },
    "short ones": {"type": "array", "items": {"type": "string", "maxLength": 1}, "uniqueItems": True},
}
QUOTED = [
    b'a"', b'"a', b'a","', b'a","a', b'a","a"', b'"a","a"', b'["a","a"', b'","', b'",""', b'",""]', b'"",""', b'["', b'""', b'aa', b'"aa"',
    b'", "', b'a", "a"', b'", "a", "a"', b'"a", "', b'{"a":["', b'"]}', b'"],["', b'a"],["a"', b'"],["a","a"', b'","a":"', b'"a":', b',1', b'1,"',
    b'1,"1","1"', b'","b":"a","b"', b'["a"],["a"]', b'["a","a', b':["a","b",', b'[1,1', b'"b":[1,"a",1', b'a","b":[1,1',
]  # fmt: skip
QUOTED_VOCABULARY = Vocabulary([*TOKENS[:256], *QUOTED, None], eos_token_ids=[256 + len(QUOTED)])


@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
@pytest.mark.parametrize("name", FREE_STRINGS)
def test_tokens_of_strings_that_must_differ_are_judged_like_their_bytes(name: str, whitespace: str) -> None:
    """Whether a token may come is told by its mask from a part of the vocabulary, and by its bytes one after the other."""
    constraint = Compiler(QUOTED_VOCABULARY).compile(JsonSchema(FREE_STRINGS[name], whitespace=whitespace))
    rng, eos = random.Random(name), QUOTED_VOCABULARY.eos_token_ids[0]
    likely = [token for token, text in enumerate([*TOKENS[:256], *QUOTED]) if text.strip(b'ab1",[]{}: ') == b""]
    for _ in range(12):
        state: State | None = constraint.start()
        for _ in range(14):
            assert state is not None
            mask = set(as_token_ids(constraint.mask(state))) - {eos}
            assert mask == {token for token in range(eos) if constraint.advance(state, token) is not None}
            choices = sorted(mask.intersection(likely))
            if not choices:
                break
            state = constraint.advance(state, rng.choice(choices))


LONGER = [f"{head}{tail}".encode() for head in ("", "k", "ka", "é", "日本", '"') for tail in ("b", "bc", "ü", "語", ' "', '":', '":"', '","k', "\\n", " ")]
WIDE = Compiler(Vocabulary([*TOKENS, *LONGER, *(char.encode()[:2] for char in "日語"), None], eos_token_ids=[len(TOKENS) + len(LONGER) + 2]))


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("value", [{}, {"type": "string"}, {"enum": ["ab", "b"]}, {"type": "string", "maxLength": 5}, {"type": "integer"}])
def test_searches_look_at_the_tokens_that_matter(value: dict[str, object], order: str) -> None:
    """Tokens that stay inside of a string change nothing, and behind a key only the cheapest does. What all tokens lead to, found in
    one walk, is what each leads to by itself."""
    schema = {"type": "object", "properties": {"ka": value}, "required": ["ka", "kb"], "additionalProperties": value}
    constraint = WIDE.compile(JsonSchema(json.dumps(schema), property_order=order))
    automaton, places = constraint._automaton, 0
    ids = automaton.shared_vocabulary.trie.order
    for text in ('{"', '{"k', '{"ka', '{"ka":"', '{"x":"ab","', '{"k":"b","k', '{"k":"ab","ka', '{"k":"b","é', '{"é":"b","é', '{"k":12,"k'):
        state = constraint.advance_bytes(constraint.start(), text.encode())
        if state is None:
            continue
        place = state & (1 << 32) - 1, state >> 32
        ends, extra, hard = automaton.judge(*place)
        assert ends.tolist() == [automaton.advance_remembering(*place, token_id)[0] for token_id in ids.tolist()]
        least, tokens = automaton.next_costs(*place)
        is_known = (ends != DEAD) & (extra >= 0)
        assert least == (automaton.costs(ends) + extra)[is_known].min()
        is_near = extra == int(ExtraCost.ONE_MORE)
        wanted = {(token.token_id, token.state, token.extra) for token in hard}
        wanted |= set(zip(ids[is_near].tolist(), ends[is_near].tolist(), extra[is_near].tolist(), strict=True))
        found = set(zip(tokens[0].tolist(), tokens[1].tolist(), tokens[3].tolist(), strict=True))
        assert found <= wanted
        behind_the_key = [WIDE.vocabulary.tokens[token_id] for token_id, _, _ in wanted - found]
        assert all(b'"' in spelled for spelled in behind_the_key) and (not behind_the_key or automaton.key_place(place[1]) is not None)
        places += 1
    assert places > 2
