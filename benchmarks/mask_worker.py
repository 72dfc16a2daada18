"""Measure one engine on a list of schemas, in a process of its own: `masks.py` starts it and survives whatever happens here.

Reads one JSON object from standard input, {"engine", "tokenizer", "seconds", "gigabytes", "walks", "cases"}; writes one JSON line
with the engine's name and the seconds that loading the tokenizer took, then one for each case. For a cold start ("is_cold_start",
"schema") it makes one mask and ends. The kernel ends the process when a case takes more than `seconds` of processor time: no
handler is involved, so compiled code of any engine is stopped too.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from engines import ENGINES, MaskwrightMatcher, Matcher, load_tokenizer

BATCH, BATCH_STEPS = 256, 32
WALK_TOKENS = 200  # after so many a random walk is given up
CLOSING = frozenset(b'"}],:0 \n')  # tokens made of these alone bring a text to its end
CLOCK_FACTOR = 20  # of the limit in processor time, for an engine that waits for ever

now_ns = time.thread_time_ns  # masks: no engine here leaves the calling thread for them


def used_us() -> float:
    """Processor time of all threads. (`time.process_time` is coarse while a limit is set.)"""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return 1e6 * (usage.ru_utime + usage.ru_stime)


def measure(engine: Any, case: dict[str, Any], walks: Walks) -> dict[str, Any]:
    """Times of one engine on one schema, or grammar, in microseconds, and what it said of every instance.

    compile_us: until the first mask is there. cold_us, warm_us: mask and accept, token by token, in the first and in a second pass
    over the instances. step_us, row_step_us: see `_batched`, for engines with such calls. dead_ends: whether
    each of the random walks came to one.
    """
    begun_us = used_us()
    try:
        make = engine.compile(case["schema"]) if "schema" in case else engine.compile_grammar(case["grammar"])
        make().mask()
    except Exception as error:  # whatever a peer raises for a schema it refuses
        return {"refused": f"{type(error).__name__}: {error}"[:200]}
    compile_us = used_us() - begun_us
    cold: list[float] = []
    warm: list[float] = []
    instances = case["instances"]
    accepted = [_read(make(), one["tokens"], cold) for one in instances]
    for one in instances:
        _read(make(), one["tokens"], warm)
    step_us, row_step_us = _batched(make(), [one["tokens"] for one, answer in zip(instances, accepted, strict=True) if answer])
    return {
        "compile_us": compile_us,
        "cold_us": cold,
        "warm_us": warm,
        "step_us": step_us,
        "row_step_us": row_step_us,
        "dead_ends": [walks.is_dead_end(make()) for _ in range(walks.number)],
        "valid_rejected": sum(one["valid"] and not answer for one, answer in zip(instances, accepted, strict=True)),
        "invalid_accepted": sum(answer and not one["valid"] for one, answer in zip(instances, accepted, strict=True)),
    }


class Walks:
    """Random walks: every token drawn evenly from the mask, every other time from those of its tokens that bring a text to its end,
    where it has some."""

    def __init__(self, number: int, tokenizer: Any) -> None:
        self.number, self._rng = number, random.Random(0)
        texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))]) if number else []
        self._closing = np.array([len(text) > 0 and CLOSING.issuperset(text.encode()) for text in texts], bool)
        self._is_text = np.ones(len(tokenizer), bool)
        self._is_text[tokenizer.all_special_ids] = False

    def is_dead_end(self, matcher: Matcher) -> bool:
        """Whether a walk ends where the mask is empty, or where a token of it is refused."""
        for _ in range(WALK_TOKENS):
            matcher.mask()
            allowed = matcher.allowed()
            if matcher.finished() and self._rng.random() < 0.5:
                return False
            choices = allowed[allowed < self._is_text.size]
            choices = choices[self._is_text[choices]]
            if not choices.size:
                return not matcher.finished()
            closing = choices[self._closing[choices]]
            drawn_of = closing if closing.size and self._rng.random() < 0.5 else choices
            if not matcher.accept(int(self._rng.choice(drawn_of))):
                return True
        return False


def _read(matcher: Matcher, tokens: list[int], times_us: list[float]) -> bool:
    """Whether the engine accepts the whole text; the times of mask and accept for every token until it does not."""
    for token_id in tokens:
        begun = now_ns()
        matcher.mask()
        is_allowed = matcher.accept(token_id)
        times_us.append((now_ns() - begun) / 1e3)
        if not is_allowed:
            return False
    return matcher.finished()


def _batched(matcher: Matcher, texts: list[list[int]]) -> tuple[list[float], list[float]]:
    """Time per sequence of one mask and one token for a batch of sequences, each at its own place of a text, all seen before.

    Once with masks copied out (16 KB each for 131k tokens), once as numbers of rows, which is what a device that keeps them needs.
    """
    texts = [tokens for tokens in texts if tokens]
    if not isinstance(matcher, MaskwrightMatcher) or not texts:
        return [], []
    constraint = matcher.constraint
    paths = []
    for tokens in texts:
        states = [constraint.start()]
        for token_id in tokens:
            states.append(constraint.advance(states[-1], token_id))
        paths.append(states)
    masks = np.zeros((BATCH, constraint.mask(paths[0][0]).size), np.uint32)
    times: list[float] = []
    row_times: list[float] = []
    for step in range(BATCH_STEPS + 1):
        places = [(k % len(texts), (step + 7 * k) % len(texts[k % len(texts)])) for k in range(BATCH)]
        states = [paths[text][place] for text, place in places]
        tokens = [texts[text][place] for text, place in places]
        begun = now_ns()
        constraint.fill_masks(states, masks)
        constraint.advance_batch(states, tokens)
        filled = now_ns()
        constraint.mask_rows(states)
        constraint.advance_batch(states, tokens)
        row_times.append((now_ns() - filled) / 1e3 / BATCH)
        times.append((filled - begun) / 1e3 / BATCH)
    return times[1:], row_times[1:]  # the first one touches the pages of `masks`


def main() -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no result
    job = json.load(sys.stdin)
    limit = int(job["gigabytes"] * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begun = time.perf_counter()
    tokenizer = load_tokenizer(Path(job["tokenizer"]))
    tokenizer_s = time.perf_counter() - begun
    engine = ENGINES[job["engine"]](tokenizer)
    if job.get("is_cold_start"):
        engine.compile(job["schema"])().mask()
        _write(out, {"name": engine.name, "tokenizer_s": tokenizer_s})
        return
    _write(out, {"name": engine.name, "tokenizer_s": tokenizer_s})
    walks = Walks(job["walks"], tokenizer)
    gc.collect()
    gc.disable()
    for case in job["cases"]:
        _limit(job["seconds"])
        measured = measure(engine, case, walks)
        _limit(0)
        _write(out, measured)
        gc.collect()


def _limit(seconds: float) -> None:
    """Die after so much processor time; 0 for no limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, CLOCK_FACTOR * seconds)


def _write(out: TextIO, value: dict[str, Any]) -> None:
    out.write(json.dumps(value) + "\n")
    out.flush()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        raise SystemExit(__doc__)
    main()
