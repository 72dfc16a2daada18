"""Getting ready: compile the loops where they are not machine code yet (once per machine, one to three minutes, then kept on disk),
and lower the formats."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .front_ends.json_schema.json_schema import JsonSchema
from .front_ends.json_schema.strings.formats import FORMATS
from .grammar.expression import Event, Grammar, Node
from .grammar.source import Limits
from .masks.mask_rows import MaskRows
from .numba_support.jit import LOOPS
from .runtime.compiler import Compiler
from .vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class _Everything:
    """A grammar that touches every compiled function: rules, counters, intersections, a complement, keys, wide characters."""

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        word = grammar.without(grammar.repeat(grammar.chars([(97, 122)]), 0, 9), grammar.literal("no"))
        key = grammar.key(word)
        text = grammar.seq(grammar.literal('"'), grammar.repeat(grammar.chars([(0x20, 0x21), (0x23, 0x5B)])), grammar.literal('"'))
        other = grammar.chars([(0x20, 0x21), (0x23, 0x60)])
        named = grammar.seq(grammar.literal("-"), grammar.alt(grammar.literal("a="), grammar.seq(other, grammar.repeat(other))))
        letters = grammar.repeat(other)
        counted = grammar.both(grammar.repeat(other, 2, 9), grammar.seq(letters, grammar.literal("b"), letters))
        counted = grammar.seq(grammar.literal("!"), counted)
        value, rule = grammar.alt(text, key, named, counted, grammar.chars([(0x3B1, 0x3C9)])), grammar.rule("value")
        object_ = grammar.seq(grammar.mark(b"{", Event.OBJECT_OPEN), grammar.call(rule), grammar.mark(b"}", Event.OBJECT_CLOSE))
        grammar.define(rule, grammar.alt(value, object_))
        return grammar.call(rule)


@dataclass(frozen=True)
class _Regular:
    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return grammar.repeat(grammar.chars([(97, 122)]), 2, 60)


def warm_up(report: Callable[[str], None] | None = None) -> float:
    """Make sure that what all constraints share is ready; returns the seconds it took (0.1 to 0.4 when nothing had to be compiled).

    report: called with a line for people before each step that may take long.
    """
    begun = time.perf_counter()
    if not LOOPS.is_compiled:
        call_every_entry(report or (lambda line: None))
    for name in FORMATS:
        JsonSchema({"type": "string", "format": name}).lower(Grammar(), Limits())
    return time.perf_counter() - begun


def call_every_entry(say: Callable[[str], None]) -> None:
    """Call every entry point once, so that it is compiled."""
    say("preparing the constraint engine (compiled once per machine) ...")
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b'a"']
    compiler = Compiler(Vocabulary([*tokens, None], eos_token_ids=[len(tokens)]))
    say("  1/3 automaton")
    constraint = compiler.compile(_Everything())
    state = constraint.start()
    multiples = [{"contains": {"multipleOf": step}} for step in (2, 3, 5, 7, 11, 13)]
    compiler.compile(JsonSchema({"type": "array", "allOf": multiples}))
    nested = {"type": "array", "items": {"$ref": "#/$defs/nested"}, "maxItems": 1}
    compiler.compile(JsonSchema({"type": "array", "items": nested, "uniqueItems": True, "$defs": {"nested": nested}}))
    say("  2/3 masks")
    after = constraint.advance_bytes(state, b'{"a')
    assert after is not None
    named = constraint.advance_bytes(state, b"-")
    assert named is not None
    constraint.advance(after, ord("b"))
    for at in (state, after, named):
        constraint.mask(at)
        constraint.mask(at, constraint.min_tokens(at))
        constraint.mask(at, 1 << 20)
        constraint.forced(at)
        constraint.explain(at, ord("b"))
    say("  3/3 batches")
    regular = compiler.compile(_Regular())
    start = regular.start()
    for text in (b"ab", b"abc"):  # two states, one row
        inside = regular.advance_bytes(start, text)
        assert inside is not None
        regular.mask(inside)
        regular.distant(inside)
    regular.min_tokens(start)
    regular.fill_masks([start], np.zeros((1, regular.mask(start).size), np.uint32))
    rows = MaskRows(1, 1)
    rows.keep(np.zeros(1, np.uint32))
    rows.grow()
    regular.advance(start, 97)
    regular.advance_batch([start], [98])
