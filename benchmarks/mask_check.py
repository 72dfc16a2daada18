"""Masks against a slow twin on real vocabularies and schemas: no mask may differ in a single token.

    python benchmarks/mask_check.py --schemas dev.jsonl.xz --tokenizer folder --sample 200 --seconds 300 --seed 0

Checked are the masks at random bytes of the valid instances and along random walks. The twin is the same source compiled once
more, which never makes a mask: it is stepped byte by byte, and all tokens are walked through it one transition after the other
(`TokenAutomaton.end_states`). Where keys or items are remembered, tokens that the mask lacks and the automaton alone would take are
advanced one by one, and so is a sample of those that the mask has.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from result_files import chosen, count, errors_as_messages, size, there, tokenizer_folder
from transformers import AutoTokenizer

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.base.kinds import INFINITE
from maskwright.constraints.masks.trie_walk import end_states
from maskwright.constraints.runtime.constraint import State
from maskwright.constraints.vocabulary.char_class_tables import SubTrie

WHITESPACE = ("compact", "flexible", "[ \\n]{0,2}", "[ ]?", "[ \\t\\n\\r]{1,3}")
SEPARATORS = ((",", ":"), (", ", ": "), (" , ", " : "))
TRIED_ALONE = 40  # tokens of a mask that are also advanced, where something is remembered
LONGEST_WALK = 24


class Twin:
    """What a mask should be."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint, self._automaton = constraint, constraint._automaton
        self._size = constraint.vocabulary.size

    def expected(self, text: bytes, mask: NDArray[np.bool_], rng: random.Random) -> NDArray[np.bool_]:
        """bool [V]: the tokens that may follow `text`. mask: what is to be judged; it only chooses what is tried one by one."""
        automaton = self._automaton
        state = self._after(text)
        ends, _ = automaton.end_states(state)
        lives = ends != DEAD
        if not automaton.shared_vocabulary.spells_every_byte:
            lives &= automaton.costs(ends) < INFINITE
        expected = np.zeros(self._size, np.bool_)
        expected[automaton.shared_vocabulary.trie.order[lives]] = True
        expected[list(automaton.shared_vocabulary.eos_ids)] = automaton.is_accepting(state)
        if automaton.remembers:
            self._forget_refused(text, mask, expected, rng)
        return expected

    def _forget_refused(self, text: bytes, mask: NDArray[np.bool_], expected: NDArray[np.bool_], rng: random.Random) -> None:
        at = self._constraint.advance_bytes(self._constraint.start(), text)
        assert at is not None
        both = np.flatnonzero(expected & mask).tolist()
        for token in [*np.flatnonzero(expected & ~mask).tolist(), *rng.sample(both, min(len(both), TRIED_ALONE))]:
            expected[token] = self._constraint.advance(at, token) is not None

    def _after(self, text: bytes) -> int:
        """The automaton's state, by transitions alone: a text is a trie without branches."""
        n, start = len(text), self._automaton.start
        if n == 0:
            return start
        depths = np.arange(1, n + 1, dtype=np.int32)
        first = np.array([0] * n + [1], np.int32)
        path = [np.frombuffer(text, np.uint8), depths, np.full(n, n, np.int32), first, np.zeros(1, np.int32)]
        for array in path:
            array.setflags(write=False)
        ends = np.zeros(1, np.int32)
        nodes = self._automaton._nodes(SubTrie(*path))
        # The compiled loop itself: the method of the automaton goes no deeper than the longest token.
        self._automaton._machine.call(end_states, *nodes, n, start, ends)
        return int(ends[0])


def main() -> None:
    options = parse_arguments()
    vocabulary = Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(options.tokenizer))
    compiler, slow = Compiler(vocabulary, cache_bytes=0), Compiler(vocabulary, cache_bytes=0)
    rng, started, counts = random.Random(options.seed), time.monotonic(), Counter[str]()
    cases = list(chosen(read_cases(options.schemas), "--schemas"))
    for case in rng.sample(cases, min(options.sample, len(cases))):
        if time.monotonic() - started > options.seconds:
            break
        order = rng.choice(["declared", "any"])
        try:
            source = JsonSchema(case["schema"], whitespace=rng.choice(WHITESPACE), property_order=order, on_unsupported="relax")
            constraint, twin = compiler.compile(source), Twin(slow.compile(source))
            counts["constraints"] += 1
            for text, state in positions(constraint, case, rng, options.positions):
                check(constraint, twin, text, state, rng, counts, f"{case['name']} {source.whitespace!r} {order}")
        except ConstraintError as error:
            counts[f"refused: {type(error).__name__}"] += 1
    print(dict(counts), flush=True)


def check(
    constraint: Constraint, twin: Twin, text: bytes, state: State, rng: random.Random, counts: Counter[str], name: str
) -> None:
    mask = unpacked(constraint.mask(state), constraint.vocabulary.size)
    expected = twin.expected(text, mask, rng)
    counts["masks"] += 1
    counts["tokens allowed"] += int(mask.sum())
    if not np.array_equal(mask, expected):
        wrong = np.flatnonzero(mask != expected)
        tokens = [(constraint.vocabulary.tokens[t], bool(mask[t])) for t in wrong[:5].tolist()]
        counts["WRONG"] += 1
        print(f"{name}: {wrong.size} tokens after {text!r}: {tokens}", flush=True)


def positions(constraint: Constraint, case: dict[str, Any], rng: random.Random, number: int) -> Iterator[tuple[bytes, State]]:
    """Texts and the states after them: beginnings of instances, and random walks."""
    texts = [test["data"] for test in case["tests"] if test["valid"]]
    for value in rng.sample(texts, min(len(texts), 2)):
        text = json.dumps(value, ensure_ascii=False, separators=rng.choice(SEPARATORS)).encode("utf-8", "surrogatepass")
        for end in sorted(rng.sample(range(len(text) + 1), min(number, len(text) + 1))):
            state = constraint.advance_bytes(constraint.start(), text[:end])
            if state is not None:
                yield text[:end], state
    yield from walk(constraint, rng, min(number, LONGEST_WALK))


def walk(constraint: Constraint, rng: random.Random, length: int) -> Iterator[tuple[bytes, State]]:
    state, text, tokens = constraint.start(), b"", constraint.vocabulary.text_tokens
    for _ in range(length):
        yield text, state
        allowed = [t for t in np.flatnonzero(unpacked(constraint.mask(state), constraint.vocabulary.size)).tolist() if tokens[t]]
        if not allowed:
            return
        token = min(rng.sample(allowed, min(3, len(allowed))), key=lambda t: len(tokens[t] or b"") * rng.random())
        after = constraint.advance(state, token)
        assert after is not None, "an allowed token is refused"
        state, text = after, text + (tokens[token] or b"")


def unpacked(mask: NDArray[np.uint32], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(mask.view(np.uint8), bitorder="little", count=size).astype(np.bool_)


def read_cases(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as lines:
        return [json.loads(line) for line in lines]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=there, required=True, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True)
    parser.add_argument("--sample", type=count, default=100)
    parser.add_argument("--positions", type=count, default=12, help="of each instance, and of the walk")
    parser.add_argument("--seconds", type=size, default=1e9, help="stop after these")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    with errors_as_messages():
        main()

