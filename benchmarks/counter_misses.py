"""How often the device automaton asks the host where counters are: with registers, and with a state for each count.

    python benchmarks/counter_misses.py [--steps 400] [--sequences 4] [--seed 0]

Sequences one after another write random texts of each constraint: tokens of the embedded model's vocabulary, drawn evenly from
those that are legal, but ends of strings seldom, until they are complete or have so many steps. A step is a miss when the slot
waits for the host after it. States and rows are what the device holds in the end. Runs on any machine, with the same figures.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from result_files import count, errors_as_messages

from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.grammar.source import Source
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.device_constraints.automata import DeviceAutomata
from maskwright.kernels.automaton.interface import Flag
from maskwright.kernels.sampler.interface import MISSING, NO_TOKEN
from maskwright.tokenizer_folder import read_tokenizer

ASKS = Flag.NO_TRANSITION | Flag.NO_ROW | Flag.COUNTED
SELDOM = 0.02  # of the tokens of a text end a string, or more


def closed(**properties: Any) -> JsonSchema:
    return JsonSchema(
        {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    )


def text(**bounds: Any) -> dict[str, Any]:
    return {"type": "string", **bounds}


CASES: dict[str, Source] = {
    "[a-z]*": Regex("[a-z]*"),
    "[a-z]{2,20000}": Regex("[a-z]{2,20000}"),
    "[a-z]{10000,20000}": Regex("[a-z]{10000,20000}"),
    "maxLength 1000000": JsonSchema(text(maxLength=1_000_000)),
    "minLength 5000": JsonSchema(text(minLength=5000)),
    "pattern and maxLength 10000": JsonSchema(text(pattern="^[a-z ]+$", maxLength=10_000)),
    "three members, maxLength 500, 1000, 2000": closed(a=text(maxLength=500), b=text(maxLength=1000), c=text(maxLength=2000)),
    "50 to 1000 objects, maxLength 400": JsonSchema(
        {"type": "array", "minItems": 50, "maxItems": 1000, "items": {
            "type": "object", "properties": {"a": text(maxLength=400), "b": text(maxLength=400)},
            "required": ["a", "b"], "additionalProperties": False,
        }}
    ),
}  # fmt: skip


class Ladder:
    """A constraint that does not tell which states differ in distant counts alone."""

    def __init__(self, constraint: Any) -> None:
        self._constraint = constraint

    def __getattr__(self, name: str) -> Any:
        if name == "distant":
            raise AttributeError(name)
        return getattr(self._constraint, name)


def walk(constraint: Any, vocabulary: Vocabulary, steps: int, sequences: int, seed: int) -> tuple[int, int, int, int]:
    """(steps, misses, states, rows)"""
    automata, rng = DeviceAutomata(1, vocabulary.size, torch.device("cpu")), np.random.default_rng(seed)
    stays = np.array([spelled is not None and b'"' not in spelled for spelled in vocabulary.spellings])
    slots, num_steps, num_misses = automata.slots, 0, 0
    for _ in range(sequences):
        automata.attach(0, constraint, left=1 << 20)
        for _ in range(steps):
            automata.step(torch.tensor([draw(automata, stays, rng)]))
            num_steps += 1
            num_misses += bool(int(slots.flags[0]) & ASKS)
            while not (is_done := automata.resolve()[0]) and int(slots.mask_index[0]) == MISSING:
                automata.step(torch.full_like(slots.pending, NO_TOKEN))
            if is_done:
                break
        automata.detach(0)
    return num_steps, num_misses, automata.num_states, automata.num_rows


def draw(automata: DeviceAutomata, stays: np.ndarray[Any, Any], rng: np.random.Generator) -> int:
    row = automata.mask_rows[int(automata.slots.mask_index[0])].numpy()
    legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    inside = legal[stays[legal]]
    return int(rng.choice(inside if len(inside) and rng.random() > SELDOM else legal))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=count, default=400)
    parser.add_argument("--sequences", type=count, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    vocabulary = read_tokenizer("embedded").vocabulary
    compiler = Compiler(vocabulary)
    print(f"vocabulary of {vocabulary.size} tokens, the longest of {max(len(t or b'') for t in vocabulary.spellings)} bytes")
    print(f"{'constraint':42} {'':9} {'steps':>6} {'misses':>6} {'states':>6} {'rows':>5}")
    for name, source in CASES.items():
        for kind in ("registers", "ladder"):
            constraint: Any = compiler.compile(source)
            found = walk(constraint if kind == "registers" else Ladder(constraint), vocabulary, *vars(options).values())
            print(f"{name:42} {kind:9} {found[0]:6} {found[1]:6} {found[2]:6} {found[3]:5}", flush=True)


if __name__ == "__main__":
    with errors_as_messages():
        main()
