"""Sequences that advance on the device, on the host, and what both must agree on: every token."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.device.uploads import Uploads
from maskwright.engine.device_constraints.automata import DeviceAutomata
from maskwright.engine.device_constraints.mask_pool import MaskPool
from maskwright.engine.device_constraints.state_tables import Capacity, partition
from maskwright.engine.errors import InternalError
from maskwright.kernels.automaton.interface import Flag
from maskwright.kernels.sampler.backend import choose_sampler
from maskwright.kernels.sampler.interface import SamplerRows, Stages
from maskwright.kernels.sampler.parameters import filled

from .host_automata import HostAutomata

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = Capacity(states=1 << 12, rows=256, partitions=16, ladder=1 << 12, exceptions=1 << 14)
EOS = 2


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """400 tokens: every byte, and words of several characters, so that states of strings have more than a few legal tokens."""
    words = [bytes([a, b]) for a in b"abcdefgh" for b in b"ijklmnop"] + [b'{"', b'":', b'","', b'"}', b"name", b"true", b"12", b"ab cd"]
    tokens = [None, None, b"</s>", *(bytes([byte]) for byte in range(256)), *words]
    return Vocabulary(tokens + [b"xy" * n for n in range(1, 401 - len(tokens))], eos_token_ids=[EOS])


@pytest.fixture(scope="module")
def constraints(vocabulary) -> list[Any]:
    compiler = Compiler(vocabulary)
    person = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    sources = [
        Regex(r"[a-z]{3,9}@[a-z]+\.(com|org)"),
        JsonSchema(person),
        JsonSchema({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 1}),
        JsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
        Gbnf('root ::= "(" root ")" | [a-z]*'),
    ]
    return [compiler.compile(source) for source in sources]


class StandIn:
    """In place of a model: logits are a fixed function of the last token and of the slot."""

    def __init__(self, vocab_size: int, num_slots: int) -> None:
        generator = torch.Generator().manual_seed(5)
        self.table = (torch.randn(vocab_size + 1, vocab_size, generator=generator) * 2).to(DEVICE)
        self.by_slot = torch.randn(num_slots, vocab_size, generator=generator).to(DEVICE)

    def forward(self, automata: DeviceAutomata | HostAutomata) -> torch.Tensor:
        slots = automata.slots
        place = ((slots.taken - 1).clamp(min=0) % slots.output.shape[1]).long()[:, None]
        last = torch.where(slots.taken > 0, slots.output.gather(1, place)[:, 0], 0)
        return self.table[last] + self.by_slot


def sampler_rows(num_slots: int, temperature: float) -> SamplerRows:
    return SamplerRows(
        parameters=filled(num_slots, DEVICE, temperature=temperature),
        seed=torch.arange(num_slots, device=DEVICE),
        position=torch.zeros(num_slots, dtype=torch.int64, device=DEVICE),
        stages=Stages(any_draw=temperature > 0),
    )


def one_step(automata: DeviceAutomata | HostAutomata, model: StandIn, rows: SamplerRows, vocab_size: int) -> None:
    sample = choose_sampler(DEVICE)
    logits, slots = model.forward(automata), automata.slots
    drawn = sample(logits, rows._replace(position=slots.draw), automata.mask_rows, slots.mask_index, vocab_size=vocab_size)
    automata.step(drawn.token)


def decode(automata: DeviceAutomata | HostAutomata, jobs: list[tuple[Any, int]], vocab_size: int, temperature: float) -> list[list[int]]:
    """The tokens of each job (constraint or None, budget), all in one batch."""
    model, rows = StandIn(vocab_size, len(jobs)), sampler_rows(len(jobs), temperature)
    for slot, (constraint, budget) in enumerate(jobs):
        automata.attach(slot, constraint, left=budget)
    for _ in range(4000):
        automata.join()
        one_step(automata, model, rows, vocab_size)
        if all(automata.resolve()):
            return [automata.tokens(slot) for slot in range(len(jobs))]
    raise AssertionError("the batch does not end")


def device(num_slots: int, vocab_size: int, capacity: Capacity = SMALL, **options: Any) -> DeviceAutomata:
    return DeviceAutomata(num_slots, vocab_size, DEVICE, capacity=capacity, outputs=128, **options)


def budgets(constraints: list[Any], more: int) -> list[tuple[Any, int]]:
    jobs = [(constraint, constraint.min_tokens(constraint.start()) + more) for constraint in constraints]
    return [*jobs, (None, 5 + more), *jobs[:2]]


@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("more", [0, 3, 60])
def test_device_and_host_take_the_same_tokens(temperature, more, constraints, vocabulary):
    jobs, size = budgets(constraints, more), vocabulary.size
    on_host = decode(HostAutomata(len(jobs), size, DEVICE, outputs=128), jobs, size, temperature)
    on_device = decode(device(len(jobs), size), jobs, size, temperature)
    assert on_device == on_host
    for (constraint, budget), token_ids in zip(jobs, on_device, strict=True):
        text = b"".join(vocabulary.text_tokens[t] or b"" for t in token_ids)
        assert len(token_ids) <= budget
        assert constraint is None or constraint.accepts(text)


def test_little_room_only_costs_time(constraints, vocabulary):
    """Rows, exceptions, states: all must be forgotten again and again, and every token stays the same."""
    jobs, size = budgets(constraints, 40), vocabulary.size
    expected = decode(HostAutomata(len(jobs), size, DEVICE, outputs=128), jobs, size, 2.0)
    for capacity in (
        SMALL._replace(rows=len(jobs) + 8),
        SMALL._replace(exceptions=1024),
        SMALL._replace(partitions=2),
        SMALL._replace(states=400),
        SMALL._replace(ladder=300),
    ):
        assert decode(device(len(jobs), size, capacity), jobs, size, 2.0) == expected


def test_too_little_room_says_so(constraints, vocabulary):
    with pytest.raises(InternalError, match="no room"):
        decode(device(1, vocabulary.size, SMALL._replace(states=3)), [(constraints[1], 60)], vocabulary.size, 1.0)


def test_what_is_known_needs_no_host(constraints, vocabulary):
    """A second batch of the same sequences takes its tokens without asking, except for masks that depend on what is left."""
    size, jobs = vocabulary.size, [(constraints[0], 90), (constraints[4], 90)]
    automata = device(2, size)
    first = decode(automata, jobs, size, 1.0)
    model, rows = StandIn(size, 2), sampler_rows(2, 1.0)
    for slot, (constraint, budget) in enumerate(jobs):
        automata.attach(slot, constraint, left=budget)
    steps = min(map(len, first))
    for _ in range(min(steps, 40)):
        one_step(automata, model, rows, size)
        assert not int(automata.slots.flags.bitwise_and(Flag.NO_TRANSITION | Flag.NO_ROW).max())
    assert [automata.tokens(slot) for slot in range(2)] == [tokens[: min(steps, 40)] for tokens in first]


def test_a_slot_can_be_used_again(constraints, vocabulary):
    size = vocabulary.size
    automata = device(1, size)
    alone = [decode(device(1, size), [(constraint, 70)], size, 1.0) for constraint in constraints]
    for constraint, expected in zip(constraints, alone, strict=True):
        assert decode(automata, [(constraint, 70)], size, 1.0) == expected
        automata.detach(0)
        assert automata.resolve() == [True]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_kernels_take_the_same_tokens(constraints, vocabulary):
    """In the interpreter where there is no GPU."""
    pytest.importorskip("triton")
    size, jobs = vocabulary.size, budgets(constraints, 6)
    expected = decode(device(len(jobs), size, backend="reference"), jobs, size, 1.0)
    assert decode(device(len(jobs), size, backend="triton"), jobs, size, 1.0) == expected


@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a CUDA device")
def test_steps_captured_in_a_cuda_graph_take_the_same_tokens(constraints, vocabulary):
    size, jobs = vocabulary.size, budgets(constraints, 40)
    expected = decode(device(len(jobs), size), jobs, size, 1.0)
    automata, model, rows = device(len(jobs), size), StandIn(size, len(jobs)), sampler_rows(len(jobs), 1.0)
    one_step(automata, model, rows, size)  # compiles the kernels; every slot is idle
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            one_step(automata, model, rows, size)
    for slot, (constraint, budget) in enumerate(jobs):
        automata.attach(slot, constraint, left=budget)
    for _ in range(2000):
        automata.join()
        graph.replay()
        if all(automata.resolve()):
            break
    assert [automata.tokens(slot) for slot in range(len(jobs))] == expected


# ---- the parts


def test_equal_masks_share_a_row_until_its_place_is_needed():
    uploads = Uploads(DEVICE)
    pool = MaskPool(rows=4, reserved=1, words=2, uploads=uploads)
    masks = [np.array([n, n], np.uint32) for n in range(1, 5)]
    first, again, second, third = (pool.keep(mask) for mask in (masks[0], masks[0], masks[1], masks[2]))
    assert first == again and len({first, second, third}) == 3 and 0 not in (first, second, third)
    assert pool.keep(masks[3]) is None
    pool.drop(first)
    assert pool.keep(masks[3]) is None  # one user is left
    pool.drop(first)
    assert pool.keep(masks[0]) == first  # nobody used it, but it was still there
    pool.drop(first)
    assert pool.keep(masks[3]) == first and len(pool) == 3
    uploads.send()
    uploads.join()
    assert pool.rows[[first, second, third]].tolist() == [[4, 4], [2, 2], [3, 3]]


def test_a_pool_of_reserved_rows_only_is_refused():
    with pytest.raises(ValueError, match="more rows"):
        MaskPool(rows=2, reserved=2, words=1, uploads=Uploads(DEVICE))


def test_states_whose_tokens_fall_apart_alike_have_equal_classes():
    classes, distinct = partition(np.array([7, 7, 3, -2, 3], np.int64))
    assert classes.tolist() == [0, 0, 1, 2, 1] and distinct.tolist() == [7, 3, -2]
    assert partition(np.array([1, 1, 9, -2, 9], np.int64))[0].tolist() == classes.tolist()


def test_successors_are_what_advancing_gives(constraints, vocabulary):
    rng = np.random.default_rng(0)
    for constraint in constraints:
        state = constraint.start()
        for _ in range(12):
            after = constraint.successors(state)
            if after is not None:
                expected = [constraint.advance(state, t) for t in range(vocabulary.size)]
                assert [None if s == -2 else s for s in after.tolist()] == expected
            allowed = np.flatnonzero(np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little"))
            state = constraint.advance(state, int(rng.choice(allowed)))


def test_every_text_of_a_random_walk_is_spelled(constraints, vocabulary):
    """The regular constraint's outputs, as Python's own engine reads them."""
    jobs = [(constraints[0], 40)] * 4
    for token_ids in decode(device(4, vocabulary.size), jobs, vocabulary.size, 1.5):
        text = b"".join(vocabulary.text_tokens[t] or b"" for t in token_ids).decode()
        assert re.fullmatch(r"[a-z]{3,9}@[a-z]+\.(com|org)", text)
