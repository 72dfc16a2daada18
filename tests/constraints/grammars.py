"""Random grammars and the brute-force twin of a constraint: every token tried byte by byte on the slow reference matcher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from hypothesis import strategies as st

from maskwright.constraints import Limits, Vocabulary
from maskwright.constraints.grammar.emptiness import shows_empty
from maskwright.constraints.grammar.expression import EMPTY, Event, Grammar, Node
from maskwright.constraints.grammar.reference import Position, Reference

ALPHABET = "ab\"é"
TOKENS = [bytes([byte]) for byte in range(256)] + [
    b"ab", b"ba", b"aab", b"abab", b'"a"', b'a"', b'","', b"bb(", b"(a", b"))",
    "é".encode(), "aé".encode(), "é".encode()[:1] + b"x", b"a" * 9, b"ab",
]  # fmt: skip
EOS = len(TOKENS)
VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[EOS])


@dataclass(frozen=True)
class Recipe:
    """A grammar written down as nested tuples; a source that lowers itself."""

    parts: Any

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        rule = grammar.rule("nested")
        node = _build(grammar, self.parts, rule)
        inside = grammar.alt(node, grammar.call(rule))
        grammar.define(rule, grammar.seq(grammar.literal("("), inside, grammar.literal(")")))
        return node


def _build(grammar: Grammar, parts: Any, rule: Any) -> Node:
    name, *arguments = parts
    if name == "literal":
        return grammar.literal(arguments[0])
    if name == "chars":
        return grammar.chars([(ord(c), ord(c)) for c in arguments[0]])
    if name == "ranges":
        return grammar.chars(list(arguments[0]))
    if name == "any":
        return grammar.chars([(0x20, 0x10FFFF)])
    if name == "nested":
        return grammar.call(rule)
    if name == "repeat":
        body, low, extra = arguments
        return grammar.repeat(_build(grammar, body, rule), low, None if extra is None else low + extra)
    if name == "bag":
        parts, low, extra = arguments
        made = [(_build(grammar, body, rule), least, None if most is None else least + most) for body, least, most in parts]
        return grammar.bag([part for part in made if not shows_empty(grammar, part[0])], low, None if extra is None else low + extra)
    children = [_build(grammar, argument, rule) for argument in arguments]
    if name == "without":
        return grammar.without(children[0], children[1])
    return {"seq": grammar.seq, "alt": grammar.alt, "both": grammar.both}[name](*children)


_leaves = st.one_of(
    st.tuples(st.just("literal"), st.text(ALPHABET, max_size=3)),
    st.tuples(st.just("chars"), st.text(ALPHABET, min_size=1, max_size=3)),
    st.just(("any",)),
)
_high = st.one_of(st.none(), st.integers(0, 3))


def _regular(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.just("seq"), children, children),
        st.tuples(st.just("alt"), children, children),
        st.tuples(st.just("repeat"), children, st.integers(0, 2), _high),
        st.tuples(st.just("both"), children, children),
        st.tuples(st.just("without"), children, children),
    )


def _recursive(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.just("seq"), children, children),
        st.tuples(st.just("alt"), children, children),
        st.tuples(st.just("repeat"), children, st.integers(0, 2), _high),
    )


regular_recipes = st.recursive(_leaves, _regular, max_leaves=6).map(Recipe)
recipes = st.tuples(
    st.just("seq"),
    st.recursive(st.one_of(_leaves, st.just(("nested",))), _recursive, max_leaves=4),
    st.recursive(_leaves, _regular, max_leaves=3),
).map(Recipe)  # fmt: skip

JSON_CHARS = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF))
_CLASSES = (
    JSON_CHARS,
    JSON_CHARS,
    ((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)),
    ((0x61, 0x63),),
    ((0x61, 0x62), (0xE8, 0x20AC)),  # begins and ends in the middle of a lead byte
    ((0x20, 0x7E), (0xC0, 0xFF)),
)
_TAILS = ("", '"', '"a', '"b', "b", "d", ": ", ', "', '": "', "\\", "é", "\n")
_bounds = (st.sampled_from([0, 0, 0, 1, 2, 3, 5]), st.one_of(st.none(), st.integers(0, 3), st.integers(4, 10)))


def _runs(classes: tuple[tuple[tuple[int, int], ...], ...]) -> st.SearchStrategy[Any]:
    """Characters of a class or of a string with escapes, counted, in unions and sequences side by side."""
    characters = st.tuples(st.just("ranges"), st.sampled_from(classes))
    escaped = st.tuples(st.just("alt"), characters, st.sampled_from([("literal", "\\n"), ("literal", '\\"'), ("literal", '"b')]))
    counted = st.tuples(st.just("repeat"), st.one_of(characters, characters, escaped), *_bounds)
    tail = st.tuples(st.just("literal"), st.sampled_from(_TAILS))
    part = st.one_of(
        st.tuples(st.just("seq"), counted, tail),
        st.tuples(st.just("seq"), tail, counted),
        st.tuples(st.just("seq"), characters, tail),
        counted,
        tail,
    )
    return st.one_of(
        st.tuples(st.just("alt"), part, part),
        st.tuples(st.just("alt"), st.tuples(st.just("alt"), part, part), part),
        st.tuples(st.just("seq"), part, st.tuples(st.just("alt"), part, part)),
        st.tuples(st.just("repeat"), st.tuples(st.just("alt"), part, part), st.integers(0, 1), _high),
    )


_run_parts = st.one_of(_runs(_CLASSES), st.sampled_from(_CLASSES).flatmap(lambda one: _runs((one,))))
runs = st.one_of(
    _run_parts,
    _run_parts,
    st.tuples(st.just("seq"), _run_parts, _run_parts),
    st.tuples(st.sampled_from(["both", "without"]), _run_parts, _run_parts),
    st.tuples(st.sampled_from(["both", "without"]), st.just(("repeat", ("ranges", JSON_CHARS), 0, 12)), _run_parts),
).map(Recipe)


@dataclass
class Twin:
    """Everything the contract promises, by brute force, over a given vocabulary."""

    source: Any
    vocabulary: Vocabulary = VOCABULARY
    alphabet: bytes = b'ab"()x \xc3\xa9\xa0\x80'
    horizon: int = 14  # bytes looked ahead for a completion

    @cached_property
    def reference(self) -> Reference:
        grammar = Grammar()
        grammar.special_tokens = self.vocabulary.special_tokens
        grammar.end_tokens = frozenset(self.vocabulary.eos_token_ids)
        reference = Reference(grammar, self.source.lower(grammar, Limits()))
        reference.step = cache(reference.step)  # type: ignore[method-assign]  # the same steps are asked for again and again
        return reference

    @cached_property
    def is_live(self) -> Callable[[Position], bool]:
        """Whether a position can be completed."""
        return cache(lambda at: bool(at) and self.reference.reaches_acceptance(at, self.alphabet, self.horizon))

    def start(self) -> Position:
        return self.reference.start()

    def mask(self, position: Position) -> set[int]:
        """Token ids that lead to a live position, by trying each one."""
        allowed = set(self.vocabulary.eos_token_ids) if self.reference.is_accepting(position) else set()
        for token_id, token in enumerate(self.vocabulary.spellings):
            if token and self.is_live(self.reference.run(token, position)):
                allowed.add(token_id)
        return allowed

    def min_tokens(self, position: Position, limit: int = 6) -> int:
        """The least number of tokens to an accepting position, breadth first; `limit` when it is not found below that."""
        seen, frontier = {position}, [position]
        for distance in range(limit):
            if any(map(self.reference.is_accepting, frontier)):
                return distance
            reached = {self.reference.run(token, at) for at in frontier for token in set(self.vocabulary.spellings) if token}
            frontier = [at for at in reached - seen if at]
            seen.update(frontier)
        return limit


def object_with_free_keys(grammar: Grammar, key_chars: str = "ab") -> Node:
    """{"key":1,...} with keys that may not repeat, nested objects as values."""
    rule = grammar.rule("object")
    key = grammar.seq(
        grammar.mark(b'"', Event.KEY_OPEN),
        grammar.repeat(grammar.chars([(ord(c), ord(c)) for c in key_chars])),
        grammar.mark(b'"', Event.KEY_CLOSE),
    )
    member = grammar.seq(key, grammar.literal(":"), grammar.alt(grammar.literal("1"), grammar.call(rule)))
    members = grammar.alt(EMPTY, grammar.seq(member, grammar.repeat(grammar.seq(grammar.literal(","), member))))
    grammar.define(rule, grammar.seq(grammar.mark(b"{", Event.OBJECT_OPEN), members, grammar.mark(b"}", Event.OBJECT_CLOSE)))
    return grammar.call(rule)


@dataclass(frozen=True)
class FreeKeys:
    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return object_with_free_keys(grammar)
