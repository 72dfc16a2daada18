"""What one compile may take: its time and bytes count from its beginning to its end, whatever stages it has."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from maskwright.constraints import Compiler, ConstraintLimit, JsonSchema, Vocabulary
from maskwright.constraints.front_ends.json_schema.documents.policy import Policy
from maskwright.constraints.grammar.expression import EMPTY, Grammar, Kind
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.grammar.stopwatch import (
    OBJECT_BYTES,
    Stopwatch,
    accounted,
    beginning,
    check_bytes,
    held_for_a_while,
    hold,
    look,
)
from maskwright.constraints.runtime.garbage import collection_paused

MEGABYTE = 1 << 20
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


def multiplying(count: int) -> JsonSchema:
    """Pairs of members of which both or none must be there, beside a need that names which may run out leave to remainders."""
    names = [f"{side}{i}" for side in "ab" for i in range(count)]
    few = {"^x[a-z]?$": {"type": "integer"}}
    return JsonSchema({
        "type": "object", "properties": {name: {"type": "integer"} for name in names}, "patternProperties": few,
        "dependentRequired": {name: [other + name[1:]] for name in names for other in "ab" if other != name[0]},
        "not": {"patternProperties": {"^x[a-z]?$": {"minimum": 3}}},
    }, property_order="any")  # fmt: skip


def test_a_compile_has_one_beginning() -> None:
    with accounted(Limits()):
        began = beginning()
        with accounted(Limits(seconds=1)):
            assert beginning() == began
        assert beginning() == began
    assert beginning()[1] > began[1]


def test_time_that_went_before_counts() -> None:
    Stopwatch(Limits(seconds=0.02), "a stage").check()
    with accounted(Limits(seconds=0.02)):
        while True:
            sum(range(1000))
            try:
                Stopwatch(Limits(seconds=0.02), "a stage").check()
            except ConstraintLimit as error:
                assert error.limit == "seconds"
                break


def test_bytes_are_held_until_they_are_given_back() -> None:
    hold(1 << 40)  # nothing is compiled
    with collection_paused(), accounted(Limits(bytes=100 * MEGABYTE)):
        with held_for_a_while():
            hold(60 * MEGABYTE)
            with pytest.raises(ConstraintLimit) as caught:
                hold(60 * MEGABYTE)
            assert (caught.value.limit, caught.value.value) == ("bytes", 100 * MEGABYTE)
        hold(60 * MEGABYTE)
        check_bytes(39 * MEGABYTE)  # the other one is more than this test makes of objects
        with pytest.raises(ConstraintLimit):
            check_bytes(41 * MEGABYTE)


def make_nodes(count: int) -> None:
    grammar = Grammar()
    for number in range(count):
        grammar.intern((Kind.REPEAT, EMPTY, number, number))


LOOKS: dict[str, Callable[[], None]] = {
    "look": look, "hold": lambda: hold(0), "stopwatch": lambda: Stopwatch(Limits(), "a stage").check(),
    "policy": lambda: Policy(Grammar(), False).check_time(None), "nodes": lambda: make_nodes(1_100),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_objects_count_wherever_somebody_looks(name: str) -> None:
    with collection_paused(), accounted(Limits(bytes=MEGABYTE)):
        LOOKS[name]()
        made = [(number, None) for number in range(2 * MEGABYTE // OBJECT_BYTES)]
        with pytest.raises(ConstraintLimit) as caught:
            LOOKS[name]()
        assert caught.value.limit == "bytes"
        made.clear()
        LOOKS[name]()


def test_compiles_of_two_threads_share_what_is_made() -> None:
    with collection_paused(), accounted(Limits(bytes=MEGABYTE)), ThreadPoolExecutor(1) as other:
        both = Barrier(2)

        def compile_too() -> None:
            with accounted(Limits()):
                both.wait()
                both.wait()

        beside = other.submit(compile_too)
        both.wait()
        made = [(number, None) for number in range(3 * MEGABYTE // 2 // OBJECT_BYTES)]
        look()
        both.wait()
        beside.result()
        with pytest.raises(ConstraintLimit):
            look()
        assert made


@pytest.mark.parametrize("num_bytes", [1 << 19, 1 << 22])
def test_what_multiplies_is_refused_by_bytes(num_bytes: int) -> None:
    messages = set()
    for _ in range(2):
        with pytest.raises(ConstraintLimit) as caught:
            Compiler(VOCABULARY, Limits(bytes=num_bytes)).compile(multiplying(12))
        assert (caught.value.limit, caught.value.path) == ("bytes", "#")
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_what_is_large_and_does_not_multiply_is_compiled() -> None:
    schema = {"type": "object", "properties": {f"name{i}": {"type": "string", "maxLength": i} for i in range(400)}}
    assert Compiler(VOCABULARY, Limits(bytes=8 << 20)).compile(JsonSchema(schema)).accepts('{"name1":"x"}')


def test_expressions_count_as_bytes() -> None:
    schema = {"type": "object", "properties": {f"name{i}": {"type": "string", "pattern": f"^[a-{chr(98 + i % 20)}]{{{i},9}}x"} for i in range(9)}}
    with pytest.raises(ConstraintLimit) as caught:
        Compiler(VOCABULARY, Limits(bytes=1 << 14)).compile(JsonSchema(schema))
    assert caught.value.limit == "bytes"
