"""The compiler's cache: what it has counted, which constraints it drops, and what stays valid."""

from __future__ import annotations

import gc
import random
import threading

import pytest

from maskwright.constraints import Compiler, ConstraintError, JsonSchema, Regex, Vocabulary
from maskwright.constraints.grammar.expression import FAIL, Grammar, Node
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.runtime.compiler import _Hashed

from ..grammars import TOKENS

VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)])
SOURCES = [Regex("a" * number + "b*") for number in range(1, 12)]


def check(compiler: Compiler) -> None:
    """What is counted is what is there, and the sum is that of its parts."""
    assert set(compiler._counted) == set(compiler._cache)
    assert compiler._num_bytes == sum(each.num_bytes for each in compiler._counted.values())


@pytest.mark.parametrize("room", [0, 1, 3, 20])
def test_the_least_recently_used_go_first(room: int) -> None:
    one = Compiler(VOCABULARY)
    one.compile(SOURCES[0])
    size = one._num_bytes
    compiler, recent, rng = Compiler(VOCABULARY, cache_bytes=room * size + size // 2), list[Regex](), random.Random(room)
    for _ in range(60):
        source = rng.choice(SOURCES)
        was_known = source in recent
        assert compiler.knows(source) == was_known
        compiler.compile(source)
        recent = [*(other for other in recent if other != source), source][-max(room, 1) :]
        check(compiler)
        assert [hashed.source for hashed in compiler._cache] == recent


def test_what_is_in_use_is_found_again_without_room_for_it() -> None:
    compiler = Compiler(VOCABULARY, cache_bytes=0)
    constraint = compiler.compile(SOURCES[0])
    assert compiler.knows(SOURCES[0]) and compiler.compile(SOURCES[0]) is constraint
    assert not compiler._cache and not compiler._counted and compiler._num_bytes == 0
    state, num_misses = constraint.start(), compiler.num_mask_misses
    constraint.mask(state)
    del constraint
    gc.collect()
    assert not compiler.knows(SOURCES[0]) and compiler.num_mask_misses == num_misses + 1


def test_what_was_dropped_and_is_in_use_is_not_compiled_again() -> None:
    compiler = Compiler(VOCABULARY, cache_bytes=1)  # for the newest one
    kept = [compiler.compile(source) for source in SOURCES[:3]]
    assert [hashed.source for hashed in compiler._cache] == [SOURCES[2]] and all(map(compiler.knows, SOURCES[:3]))
    assert [compiler.compile(source) for source in SOURCES[:3]] == kept
    check(compiler)
    compiler.clear()
    assert not any(map(compiler.knows, SOURCES))


def test_what_constraints_have_grown_by_is_counted_when_others_come() -> None:
    compiler = Compiler(VOCABULARY)
    grown = compiler.compile(Regex("(a|b|ab){0,900}"))
    before = compiler._num_bytes
    assert grown.accepts(b"ab" * 400)
    for source in SOURCES:
        compiler.compile(source)
    check(compiler)
    counted = compiler._counted[_Hashed(Regex("(a|b|ab){0,900}"))]
    assert counted.num_bytes > before and counted.num_bytes >= grown.nbytes


def test_a_cleared_cache_holds_nothing_and_what_is_in_use_stays_valid() -> None:
    compiler = Compiler(VOCABULARY)
    kept, *_ = [compiler.compile(source) for source in SOURCES]
    kept.mask(kept.start())
    num_misses = compiler.num_mask_misses
    compiler.clear()
    check(compiler)
    assert not compiler._cache and compiler._num_bytes == 0 and not any(map(compiler.knows, SOURCES))
    assert compiler.num_mask_misses == num_misses > 0
    assert kept.accepts(b"abb") and compiler.compile(SOURCES[0]) is not kept
    compiler.clear()
    compiler.clear()
    check(compiler)


def test_what_is_refused_is_not_counted() -> None:
    compiler = Compiler(VOCABULARY)
    for _ in range(2):
        with pytest.raises(ConstraintError):
            compiler.compile(JsonSchema({"type": "string", "enum": [1]}))
        check(compiler)
    assert compiler._num_bytes == 0


def test_masks_that_dropped_constraints_made_stay_counted() -> None:
    compiler = Compiler(VOCABULARY, cache_bytes=0)
    for number, source in enumerate(SOURCES, 1):
        constraint = compiler.compile(source)
        constraint.mask(constraint.start())
        assert compiler.num_mask_misses == number


class HashedSlowly:
    """A source that counts how often it is hashed."""

    def __init__(self) -> None:
        self.num_hashed = 0

    def __hash__(self) -> int:
        self.num_hashed += 1
        return 1

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return grammar.literal("a")


def test_a_source_is_hashed_once_a_call() -> None:
    compiler, source = Compiler(VOCABULARY, cache_bytes=0), HashedSlowly()
    for num_calls in (1, 2):
        assert compiler.compile(source) is compiler.compile(source)
        assert source.num_hashed == 2 * num_calls
    compiler.compile(SOURCES[0])
    assert not compiler.knows(source) and source.num_hashed == 5


class Awaited:
    """A source that is lowered when it is let: to a letter, or to what nothing satisfies."""

    def __init__(self, is_possible: bool) -> None:
        self.is_possible, self.num_lowered = is_possible, 0
        self.is_begun, self.may_go_on = threading.Event(), threading.Event()

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        self.num_lowered += 1
        self.is_begun.set()
        self.may_go_on.wait()
        return grammar.literal("a") if self.is_possible else FAIL


@pytest.mark.parametrize("is_possible", [True, False])
def test_those_who_ask_meanwhile_wait_and_hear_the_same(is_possible: bool) -> None:
    compiler, source, heard = Compiler(VOCABULARY), Awaited(is_possible), list[object]()

    def ask() -> None:
        try:
            heard.append(compiler.compile(source))
        except ConstraintError as error:
            heard.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    threads[0].start()
    source.is_begun.wait()
    found = compiler._cache[_Hashed(source)]
    assert not compiler.knows(source)
    waiting = threading.Thread(target=lambda: heard.append(_outcome(found)))
    for thread in (*threads[1:], waiting):
        thread.start()
    source.may_go_on.set()
    for thread in (*threads, waiting):
        thread.join()
    assert len(heard) == 4 and compiler.knows(source) is is_possible
    if is_possible:
        assert source.num_lowered == 1 and len(set(map(id, heard))) == 1
    else:
        assert all(isinstance(each, ConstraintError) for each in heard)
        assert compiler._num_bytes == 0
    check(compiler)


def _outcome(compile_: object) -> object:
    try:
        return compile_.result()  # type: ignore[attr-defined]
    except ConstraintError as error:
        return error
