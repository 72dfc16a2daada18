"""The engine beside transformers' `generate` and its continuous batching, on one model, in one run.

    python benchmarks/engine.py [--quick] [--model FOLDER] [--batch 1 8 32] [--parts throughput constraints guesses]
                                [--guesses 4] [--out FILE.json]

1. throughput: --batch prompts that begin with a common text of --shared tokens and go on with 40 of their own; --max-tokens
   greedy tokens each. Seconds until all have their first token, tokens a second until all have ended, tokens that the model read,
   and the share of the prompts that came from the prefix cache.
2. constraints: milliseconds a step and tokens a second without and with a constraint, at the same batch, on the same prompts.
   "words" forces nothing, so its steps tell what a mask costs; a step of "json" takes forced tokens too, so its tokens tell more.
3. forced text and guesses: records of --guesses requests are filled from the prompt, plain, with jump-forward, and with each way
   of guessing.

All contenders take turns, `--repeats` times; medians are given. The first turn, in which masks are built and kernels chosen, is
not counted. --quick: one turn, 24 tokens; three minutes on one quiet core.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
import transformers
from result_files import amount, count, errors_as_messages, result_file
from rich.console import Console
from rich.table import Table

from maskwright.constraints import Compiler, Constraint
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.engine import EngineConfig, EngineFeatures, Request, load
from maskwright.sampling import SamplingParams

PARTS = ("throughput", "constraints", "guesses")
Prompts = list[tuple[int, ...]]
Timing = dict[str, float]
PLAIN = {"prefix_cache": False, "skips_forced": False}
WORDS = r"[a-z ]{1000}"
LONG_JSON = r'(\{"name":"[a-z]{3,20}","age":[0-9]{1,3},"tags":\["[a-z]{2,8}"(,"[a-z]{2,8}"){0,3}\]\}\n){60}'
RECORD = r'\{"name":"[A-Z][a-z]{1,9} [A-Z][a-z]{1,11}","occupation":"[a-z ]{3,20}","born":[0-9]{4},"city":"[A-Z][a-z]{2,12}"\}'
GUESSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "jump-forward": ({}, {"jump_forward": True}),
    "guesses by lookup": ({"speculation": "lookup"}, {}),
    "guesses by the constraint": ({"speculation": "forced", "num_draft_tokens": 8}, {}),
    "guesses by a model (itself)": ({"speculation": "draft"}, {}),
    "jump-forward and lookup": ({"speculation": "lookup"}, {"jump_forward": True}),
}
STORY = (
    "Ada Lovelace was born in 1815 in London and worked as a mathematician. Alan Turing was born in 1912 in London and worked as a "
    "computer scientist. Grace Hopper was born in 1906 in New York and worked as an admiral. "
)


class Ours:
    """An engine with some features."""

    def __init__(self, config: EngineConfig, **features: Any) -> None:
        self.engine, self.tokenizer, _, _ = load(config, EngineFeatures(**features))

    def run(self, prompts: Prompts, constraint: Constraint | None = None, **sampling: Any) -> Timing:
        params = SamplingParams(**{"temperature": 0.0, "ignore_eos": constraint is None, **sampling})
        begun, before = time.perf_counter(), self.engine.statistics
        for prompt in prompts:
            self.engine.add_request(Request(prompt_token_ids=prompt, sampling=params, constraint=constraint))
        waiting, first, tokens = set[int](), 0.0, 0
        while self.engine.has_work:
            for event in self.engine.step():
                tokens += len(event.tokens)
                waiting.add(event.request_id)
                if len(waiting) == len(prompts) and not first:
                    first = time.perf_counter() - begun
        seconds, after = time.perf_counter() - begun, self.engine.statistics
        steps = after.num_steps - before.num_steps
        return {
            "first": first,
            "end": seconds,
            "tokens": tokens,
            "steps": steps,
            "ms a step": 1e3 * seconds / steps,
            "computed": after.num_computed_tokens - before.num_computed_tokens,
            "drafted": after.num_drafted_tokens - before.num_drafted_tokens,
            "accepted": after.num_accepted_tokens - before.num_accepted_tokens,
            "jumped": after.num_jumped_tokens - before.num_jumped_tokens,
            "cached": after.num_cached_tokens - before.num_cached_tokens,
            "prompt": sum(map(len, prompts)),
        }

    def pace(self, prompts: Prompts, constraint: Constraint | None, steps: int) -> Timing:
        """Milliseconds a step, and tokens a second, while all decode."""
        common = SamplingParams(temperature=0.8, max_tokens=1900, ignore_eos=constraint is None)
        params = [replace(common, seed=seed) for seed in range(len(prompts))]
        ids = [
            self.engine.add_request(Request(prompt_token_ids=prompt, sampling=each, constraint=constraint))
            for prompt, each in zip(prompts, params, strict=True)
        ]
        waiting = set(ids)
        while waiting:
            waiting -= {event.request_id for event in self.engine.step()}
        begun, tokens = time.perf_counter(), 0
        for _ in range(steps):
            for event in self.engine.step():
                assert not event.is_final, "all decode to the end"
                tokens += len(event.tokens)
        seconds = time.perf_counter() - begun
        for request_id in ids:
            self.engine.cancel(request_id)
        return {"ms a step": 1e3 * seconds / steps, "tokens/s": tokens / seconds}

    def forget(self) -> None:
        """So that every turn begins with nothing known."""
        self.engine.space.clear()


class Theirs:
    """transformers, with the same weights."""

    def __init__(self, folder: Path) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.model.generation_config = transformers.GenerationConfig(pad_token_id=0)

    def generate(self, prompts: Prompts, max_tokens: int) -> Timing:
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])

        def run(count: int) -> float:
            begun = time.perf_counter()
            with torch.inference_mode():
                out = self.model.generate(ids, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False)
            assert out.shape[1] == longest + count
            return time.perf_counter() - begun

        return {"first": run(1), "end": run(max_tokens), "tokens": max_tokens * len(prompts)}

    def continuous(self, prompts: Prompts, max_tokens: int, block_sharing: bool = True) -> Timing:
        """Every call makes a manager with its cache first; the time begins when the requests are there."""
        pages = sum(-(-(len(prompt) + max_tokens) // 256) for prompt in prompts) + len(prompts)
        batching = transformers.ContinuousBatchingConfig(
            num_blocks=max(pages, 16), max_batch_tokens=512, allow_block_sharing=block_sharing, use_cuda_graph=False
        )

        def run(count: int) -> tuple[float, float]:
            asked = transformers.GenerationConfig(max_new_tokens=count, do_sample=False, eos_token_id=-1, pad_token_id=0)
            out = self.model.generate_batch(
                [list(prompt) for prompt in prompts], asked, continuous_batching_config=batching, record_timestamps=True
            )
            assert all(len(each.generated_tokens) == count for each in out.values())
            begun = min(each.created_time for each in out.values())
            return max(each.timestamps[0] for each in out.values()) - begun, max(e.timestamps[-1] for e in out.values()) - begun

        first, end = run(max_tokens)
        return {"first": first, "end": end, "tokens": max_tokens * len(prompts)}


def turns(repeats: int, contenders: dict[str, Callable[[], Timing]]) -> dict[str, Timing]:
    """Medians of each contender's numbers, the first turn left out."""
    seen: dict[str, list[Timing]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, run in contenders.items():
            timing = run()
            if turn:
                seen[name].append(timing)
    return {name: {key: statistics.median(t[key] for t in timings) for key in timings[0]} for name, timings in seen.items()}


def prompts_of(count: int, shared: int, own: int, vocab_size: int) -> Prompts:
    rng = random.Random(count)
    begin = [rng.randrange(3, vocab_size) for _ in range(shared)]
    return [(*begin, *(rng.randrange(3, vocab_size) for _ in range(own))) for _ in range(count)]


def throughput(ours: Ours, plain: Ours, theirs: Theirs, batch: int, arguments: argparse.Namespace) -> dict[str, Timing]:
    prompts = prompts_of(batch, arguments.shared, 40, 250)
    count = arguments.max_tokens

    def cold() -> Timing:
        ours.forget()
        return ours.run(prompts, max_tokens=count)

    contenders = {
        "engine": cold,
        "engine, prompts met before": lambda: ours.run(prompts, max_tokens=count),
        "engine without prefix cache": lambda: plain.run(prompts, max_tokens=count),
        "transformers generate": lambda: theirs.generate(prompts, count),
    }
    if not arguments.skip_continuous:
        contenders["transformers continuous batching"] = lambda: theirs.continuous(prompts, count)
    return turns(arguments.repeats, contenders)


def constraints(ours: Ours, batch: int, compiler: Compiler, arguments: argparse.Namespace) -> dict[str, Timing]:
    prompts = prompts_of(batch, 40, 40, 250)
    chosen = {"none": None, "words": compiler.compile(Regex(WORDS)), "json": compiler.compile(Regex(LONG_JSON))}
    return turns(
        arguments.repeats,
        {name: partial(ours.pace, prompts, constraint, arguments.max_tokens) for name, constraint in chosen.items()},
    )


def guesses(config: EngineConfig, compiler: Compiler, arguments: argparse.Namespace) -> dict[str, Timing]:
    """Records filled from a text that names what they want: forced text, and text said before."""
    contenders = {}
    for name, (features, sampling) in GUESSES.items():
        if features.get("speculation") == "draft":
            features = {**features, "draft_model": config.model}
        ours = Ours(config, **features)
        names = islice(cycle(("Ada Lovelace", "Alan Turing", "Grace Hopper", "Ada")), arguments.guesses)
        people = [f"{STORY}\n{number} {json.dumps({'name': name})}" for number, name in enumerate(names)]
        prompts = [ours.tokenizer.encode(person) for person in people]
        for kind, constraint in (("record", compiler.compile(Regex(RECORD))), ("story", None)):
            if constraint is not None or "jump_forward" not in sampling:
                options = {"max_tokens": 100, **sampling}
                contenders[f"{kind}: {name}"] = partial(ours.run, prompts, constraint, **options)
    return turns(arguments.repeats, contenders)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).parents[1] / "api" / "embedded")
    parser.add_argument("--batch", type=count, nargs="+", default=[1, 8, 32])
    parser.add_argument("--shared", type=amount, default=200)
    parser.add_argument("--max-tokens", type=count, default=64)
    parser.add_argument("--guesses", type=count, default=4, help="requests of the third part")
    parser.add_argument("--repeats", type=count, default=3)
    parser.add_argument("--quick", action="store_true", help="the same as --repeats 1 --max-tokens 24")
    parser.add_argument("--threads", type=count, default=1)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--skip-continuous", action="store_true")
    parser.add_argument("--out", type=result_file)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repeats, arguments.max_tokens = 1, 24
    torch.set_num_threads(arguments.threads)
    logging.disable(logging.WARNING)

    config = EngineConfig(model=arguments.model, device="cpu", threads=arguments.threads, num_kv_blocks=4096)
    with errors_as_messages():
        results = measured(arguments, config)
    show(results)
    if arguments.out is not None:
        write(arguments, results)


def measured(arguments: argparse.Namespace, config: EngineConfig) -> dict[str, Any]:
    """The results of each part."""
    ours = Ours(config)
    compiler = Compiler(ours.tokenizer.vocabulary)
    results: dict[str, Any] = {}
    if "constraints" in arguments.parts:
        results["constraints"] = {batch: constraints(ours, batch, compiler, arguments) for batch in arguments.batch}
    if "guesses" in arguments.parts:
        results["guesses"] = guesses(config, compiler, arguments)
    if "throughput" in arguments.parts:
        plain, theirs = Ours(config, **PLAIN), Theirs(arguments.model)
        results["throughput"] = {batch: throughput(ours, plain, theirs, batch, arguments) for batch in arguments.batch}
    return results


def write(arguments: argparse.Namespace, results: dict[str, Any]) -> None:
    """Add these results to the file; each part says how it was measured."""
    written = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    settings = {name: str(value) for name, value in vars(arguments).items() if name not in ("out", "parts", "model")}
    versions = {"date": date.today().isoformat(), "python": platform.python_version()}
    versions |= {"torch": torch.__version__, "transformers": transformers.__version__}
    written |= {part: {"settings": settings | versions, "results": rows} for part, rows in results.items()}
    arguments.out.write_text(json.dumps(written, indent=1) + "\n")


def show(results: dict[str, Any]) -> None:
    console = Console(width=120)
    table = Table("batch", "", "first token s", "tokens/s", "tokens read", "prompt from cache", title="throughput")
    for batch, rows in results.get("throughput", {}).items():
        for name, row in rows.items():
            known = (f"{row['computed']:.0f}", f"{row['cached'] / row['prompt']:.0%}") if "computed" in row else ("", "")
            table.add_row(str(batch), name, f"{row['first']:.3f}", f"{row['tokens'] / row['end']:.0f}", *known)
    print_filled(console, table)
    table = Table("batch", "none", "words", "json", title="ms a step, tokens/s, by constraint")
    for batch, rows in results.get("constraints", {}).items():
        table.add_row(str(batch), *(f"{row['ms a step']:.2f}, {row['tokens/s']:.0f}" for row in rows.values()))
    print_filled(console, table)
    table = Table("", "seconds", "tokens", "steps", "jumped", "guessed", "accepted", title="forced text and guesses")
    for name, row in results.get("guesses", {}).items():
        counts = (f"{row[key]:.0f}" for key in ("tokens", "steps", "jumped", "drafted", "accepted"))
        table.add_row(name, f"{row['end']:.3f}", *counts)
    print_filled(console, table)


def print_filled(console: Console, table: Table) -> None:
    if table.row_count:
        console.print(table)


if __name__ == "__main__":
    with errors_as_messages():
        main()
