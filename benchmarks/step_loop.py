"""Tokens per second of each step loop, free and constrained, side by side in one run.

    python benchmarks/step_loop.py [--model FOLDER] [--device cpu] [--batch 32 256] [--steps 30] [--turns 3] [--loops plain overlap]

All sequences of a batch decode; constrained ones write JSON records without end. Loops take turns, --turns times, and medians are
given: milliseconds and processor milliseconds for a token of every sequence, and tokens per second. The first turn, in which masks
are made, is not counted. Forced tokens make a step worth more than a token a sequence, so loops are compared by tokens.

--pretend MS: the forward pass is a wait of so many milliseconds, and logits are a fixed function of the last token: what is left is
the host's part, beside a device that is none of the CPU. The sampler and the automaton still run on the CPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch
from result_files import count, errors_as_messages, result_file, size
from rich.console import Console
from rich.table import Table

from maskwright.constraints import Compiler
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.engine import Constraint, Engine, EngineConfig, EngineFeatures, Request, load
from maskwright.sampling import SamplingParams

RECORDS = r'(\{"name":"[a-z]{3,20}","age":[0-9]{1,3},"tags":\["[a-z]{2,8}"(,"[a-z]{2,8}"){0,3}\]\}\n){18}'
MAX_TOKENS = 570
LOOPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "overlap": {"overlap": True},
    "device": {"automaton": "device"},
    "device overlap": {"automaton": "device", "overlap": True},
    "device 8 steps": {"automaton": "device", "steps_per_visit": 8},
    "device 8 steps overlap": {"automaton": "device", "steps_per_visit": 8, "overlap": True},
    "graphs overlap": {"automaton": "device", "cuda_graphs": True, "overlap": True},
    "graphs 8 steps overlap": {"automaton": "device", "cuda_graphs": True, "steps_per_visit": 8, "overlap": True},
}


class Pace(NamedTuple):
    wall: float  # milliseconds for a token of every sequence
    processor: float  # of all threads
    tokens: float  # a second


def pace(engine: Engine, batch: int, constraint: Constraint | None, steps: int, temperature: float) -> Pace:
    """While all decode."""
    rng, waiting, tokens = random.Random(0), set[int](), 0
    for seed in range(batch):
        prompt = tuple(rng.randrange(3, 250) for _ in range(20))
        sampling = SamplingParams(temperature=temperature, seed=seed, max_tokens=MAX_TOKENS, ignore_eos=constraint is None)
        waiting.add(engine.add_request(Request(prompt_token_ids=prompt, sampling=sampling, constraint=constraint)))
    requests = list(waiting)
    while waiting:
        waiting -= {event.request_id for event in engine.step()}
    for _ in range(3):
        engine.step()
    begun, processor, first = time.perf_counter(), time.process_time(), engine.statistics.num_steps
    while engine.statistics.num_steps - first < steps or not tokens:  # an overlapped visit tells of the one before
        tokens += sum(len(event.tokens) for event in engine.step())
    wall, processor = time.perf_counter() - begun, time.process_time() - processor
    for request_id in requests:
        engine.cancel(request_id)
    engine.settle()
    return Pace(1e3 * wall * batch / tokens, 1e3 * processor * batch / tokens, tokens / wall)


def pretend(engine: Engine, milliseconds: float) -> None:
    """Let forward passes take that long, and nothing else."""
    size = engine.vocabulary.size
    table = torch.randn(size, size, generator=torch.Generator().manual_seed(0)) * 3
    runner: Any = engine.runner

    def logits_behind(token_ids: torch.Tensor) -> torch.Tensor:
        time.sleep(milliseconds / 1e3)
        return table[token_ids.clamp_min(0).long()]

    engine._plain._whole_steps, runner._forward_lists = None, lambda *_: None  # which compute by themselves
    runner.compute = lambda batch: logits_behind(batch.token_ids[batch.logit_rows])
    runner.decode = lambda batch: logits_behind(batch.token_ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).parents[1] / "api" / "embedded")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch", type=count, nargs="+", default=[32, 256])
    parser.add_argument("--steps", type=count, default=30)
    parser.add_argument("--turns", type=count, default=3)
    parser.add_argument("--temperature", type=size, default=0.8)
    parser.add_argument("--threads", type=count, default=1)
    parser.add_argument("--loops", nargs="+", choices=LOOPS, default=[name for name in LOOPS if "graphs" not in name])
    parser.add_argument("--pretend", type=size, metavar="MS", help="forward passes of this many milliseconds")
    parser.add_argument("--out", type=result_file)
    arguments = parser.parse_args()

    results = []
    for batch in arguments.batch:
        config = EngineConfig(
            model=arguments.model, device=arguments.device, threads=arguments.threads, max_sequences=batch,
            max_batch_tokens=max(512, batch), max_model_len=600, num_kv_blocks=40 * batch,
        )  # fmt: skip
        loaded = {name: load(config, EngineFeatures(**LOOPS[name])) for name in arguments.loops}
        for each in loaded.values() if arguments.pretend else ():
            pretend(each.engine, arguments.pretend)
        vocabulary = next(iter(loaded.values())).tokenizer.vocabulary
        kinds = {"free": None, "records": Compiler(vocabulary).compile(Regex(RECORDS))}
        seen: dict[tuple[str, str], list[Pace]] = {}
        for turn in range(arguments.turns + 1):
            for kind, constraint in kinds.items():
                for name, each in loaded.items():
                    measured = pace(each.engine, batch, constraint, arguments.steps, arguments.temperature)
                    if turn:
                        seen.setdefault((kind, name), []).append(measured)
        table = Table(title=f"batch {batch}, {platform.processor()}, torch {torch.__version__}, {arguments.device}")
        for column in ("rows", "loop", "ms", "processor ms", "tokens/s", "least ms"):
            table.add_column(column, justify="right")
        for (kind, name), paces in seen.items():
            middle = Pace(*map(statistics.median, zip(*paces, strict=True)))
            least = min(each.wall for each in paces)
            table.add_row(kind, name, f"{middle.wall:.1f}", f"{middle.processor:.1f}", f"{middle.tokens:.0f}", f"{least:.1f}")
            results.append({"batch": batch, "rows": kind, "loop": name, **middle._asdict(), "least": least})
        Console(width=120).print(table)
    if arguments.out:
        settings = {name: str(value) for name, value in vars(arguments).items() if name not in ("out", "model")}
        versions = {"date": date.today().isoformat(), "python": platform.python_version(), "torch": torch.__version__}
        arguments.out.write_text(json.dumps({"settings": settings | versions, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    with errors_as_messages():
        main()
