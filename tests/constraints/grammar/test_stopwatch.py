"""What one compile may take: its time and bytes count from its beginning to its end, whatever stages it has."""

from __future__ import annotations

import pytest

from maskwright.constraints import Compiler, ConstraintLimit, JsonSchema, Vocabulary
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.grammar.stopwatch import (
    Stopwatch,
    accounted,
    beginning,
    check_bytes,
    held_for_a_while,
    hold,
)

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
    with accounted(Limits(bytes=100)):
        with held_for_a_while():
            hold(60)
            with pytest.raises(ConstraintLimit) as caught:
                hold(60)
            assert (caught.value.limit, caught.value.value) == ("bytes", 100)
        hold(60)
        check_bytes(40)
        with pytest.raises(ConstraintLimit):
            check_bytes(41)


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
