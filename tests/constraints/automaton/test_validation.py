"""Records keep their invariants after every compiled call, and one that breaks an invariant is found and told."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Lark, Limits, Regex
from maskwright.constraints.automaton import machine, validation
from maskwright.constraints.automaton.machine import Machine
from maskwright.constraints.automaton.validation import BrokenRecord, state_text, validate

from ..grammars import VOCABULARY

NAME = {"type": "string", "pattern": "^[a-z]+$", "maxLength": 6}
VALIDATING = Limits(seconds=1e9)  # looking at all records after each call takes many times what the call takes
SOURCES: dict[str, Any] = {
    "literals": Regex('(ab|ba|"a"){1,3}'),
    "bodies": Regex('"[^"]{0,40}"a{2,30}'),
    "complements": Regex("(?!ab)(?!.*bb)[a-c]{3,9}"),
    "calls": Lark('start: "(" start* ")" | "a"'),
    "objects": JsonSchema({"properties": {"a": NAME, "ab": {"type": "integer"}}, "required": ["a"]}),
    "unique": JsonSchema({"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3}),
    "places": JsonSchema({"$defs": {"v": {"anyOf": [NAME, {"type": "null"}]}}, "properties": {k: {"$ref": "#/$defs/v"} for k in "abc"}}),
    "dates": JsonSchema({"type": "array", "items": {"type": "string", "format": "date"}}),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many states there were at each of the calls that were validated."""
    found: list[int] = []

    def counted(arena: Any) -> None:
        validate(arena)
        found.append(arena.n.states)

    monkeypatch.setattr(machine, "VALIDATES", True)
    monkeypatch.setattr(machine, "validate", counted)
    return found


def walked(constraint: Constraint, seed: int, steps: int = 12) -> None:
    """Ask for masks along a random text."""
    rng, state = random.Random(seed), constraint.start()
    for _ in range(steps):
        allowed = np.flatnonzero(np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little")).tolist()
        tokens = [token for token in allowed if token < len(VOCABULARY) - 1]
        if not tokens:
            return
        state = constraint.advance(state, rng.choice(tokens))


@pytest.mark.parametrize("name", SOURCES)
def test_records_keep_their_invariants(name: str, calls: list[int]) -> None:
    constraint = Compiler(VOCABULARY, limits=VALIDATING).compile(SOURCES[name])
    for seed in range(2):
        walked(constraint, seed)
    assert len(calls) > 5 and max(calls) > 2


@pytest.fixture(scope="module")
def walked_machine() -> Machine:
    constraint = Compiler(VOCABULARY).compile(SOURCES["places"])
    for seed in range(6):
        walked(constraint, seed, 30)
    made: Machine = constraint._automaton._machine
    return made


@pytest.fixture
def small(walked_machine: Machine) -> Iterator[tuple[Machine, int]]:
    """A machine and one of its frames; the machine is as it was afterwards."""
    frames = np.flatnonzero(walked_machine.states("frame")[: walked_machine.n.states])
    before = {name: walked_machine.table(name)[: 1 << 18].copy() for name in ("nodes", "states", "pool", "next", "state_hash")}
    yield walked_machine, int(frames[0])
    for name, table in before.items():
        walked_machine.table(name)[: table.size] = table


def _set(kind: str, field: str, value: int) -> Callable[[Machine, int], None]:
    def change(made: Machine, state: int) -> None:
        column = made.states(field) if kind == "state" else made.nodes(field)
        column[state if kind == "state" else made.n.nodes - 1] = value

    return change


def _swap_items(made: Machine, _: int) -> None:
    state = int(np.flatnonzero(made.states("length")[: made.n.states] > 1)[0])
    start = int(made.states("start")[state])
    pool = made.table("pool")
    pool[start], pool[start + 1] = pool[start + 1], pool[start]


def _lead_away(made: Machine, state: int) -> None:
    made.table("next")[256 * state + 65] = made.n.states


def _forget(made: Machine, _: int) -> None:
    made.table("state_hash")[np.flatnonzero(made.table("state_hash"))[0]] = 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("state", "cost", -1), "cost and accept"),
        (_set("state", "accept", 1), "cost and accept"),
        (_set("state", "body_class", 1 << 20), "the body class"),
        (_set("state", "after_literal", 1 << 20), "the state behind its literal"),
        (_set("state", "length", 1), "the number of items"),
        (_set("state", "has_too_many_ends", 2), "the ends"),
        (_set("node", "kind", 99), "the kind"),
        (_set("node", "size", -2), "the size or cost"),
        (_swap_items, "the items"),
        (_lead_away, "a transition"),
        (_forget, "in the hash table"),
    ],
)
def test_what_is_broken_is_told(change: Callable[[Machine, int], None], told: str, small: tuple[Machine, int]) -> None:
    made, state = small
    validate(made._arena)
    change(made, state)
    with pytest.raises(BrokenRecord, match=told):
        validate(made._arena)


def test_a_state_is_told_by_its_frame_and_items(small: tuple[Machine, int]) -> None:
    made, state = small
    text = state_text(made._arena, state)
    assert "StateRecord(" in text and "Frame(" in text and "inner StateRecord(" in text and "tail " in text and "item " in text


def test_nothing_is_validated_unless_it_is_asked_for() -> None:
    assert validation.VALIDATES == machine.VALIDATES
