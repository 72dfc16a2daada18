"""Steps and tokens per second of the engine, free and constrained, at several batch sizes.

    python benchmarks/constrained_decode.py [--model FOLDER] [--device cpu] [--dtype auto] [--threads N] [--batch 1 8 32 64]

Every request has a prompt of its own and is sampled at temperature 0.7. Free ones generate --max-tokens tokens; constrained
ones fill a record, whose keys are fixed text and whose values are free strings, and end when it is complete. Of two runs the
first, which builds masks and states, is not counted.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from pathlib import Path
from typing import NamedTuple

import torch
from result_files import count, errors_as_messages
from rich.console import Console
from rich.table import Table

from maskwright.constraints import Compiler
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.engine import Constraint, Engine, EngineConfig, Request, load
from maskwright.sampling import SamplingParams

RECORD = r'\{"name":"[a-z ]{40,80}","city":"[a-z ]{40,80}","occupation":"[a-z ]{40,80}"\}'


class Measured(NamedTuple):
    seconds: float
    num_steps: int
    num_tokens: int
    num_unsampled: int  # tokens taken because they were the only legal ones


def request(engine: Engine, rng: random.Random, seed: int, length: int, max_tokens: int, constraint: Constraint | None) -> Request:
    prompt = tuple(rng.choices(range(min(256, engine.vocabulary.size)), k=length))
    sampling = SamplingParams(temperature=0.7, seed=seed, max_tokens=max_tokens, ignore_eos=constraint is None)
    return Request(prompt_token_ids=prompt, sampling=sampling, constraint=constraint)


def check(engine: Engine, prompt_length: int, max_tokens: int, constraint: Constraint) -> None:
    """Raises RequestError for what the engine would refuse in the middle of the runs."""
    for chosen in (None, constraint):
        engine.cancel(engine.add_request(request(engine, random.Random(0), 0, prompt_length, max_tokens, chosen)))


def run(engine: Engine, batch: int, prompt_length: int, max_tokens: int, constraint: Constraint | None) -> Measured:
    rng = random.Random(0)
    for seed in range(batch):
        engine.add_request(request(engine, rng, seed, prompt_length, max_tokens, constraint))
    num_steps, outputs, begun = 0, [], time.perf_counter()
    while engine.has_work:
        outputs += [event.output for event in engine.step() if event.output is not None]
        num_steps += 1
    seconds = time.perf_counter() - begun
    records = [record for output in outputs for record in output.records]
    return Measured(seconds, num_steps, len(records), sum(record.is_only_choice for record in records))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).parents[1] / "api" / "embedded")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--threads", type=count)
    parser.add_argument("--batch", type=count, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--prompt-length", type=count, default=80, help="tokens")
    parser.add_argument("--max-tokens", type=count, default=128)
    arguments = parser.parse_args()

    config = EngineConfig(
        model=arguments.model, device=arguments.device, dtype=arguments.dtype, threads=arguments.threads
    )
    with errors_as_messages():
        engine, tokenizer, _, resolved = load(config)
        constraint = Compiler(tokenizer.vocabulary).compile(Regex(RECORD))
        check(engine, arguments.prompt_length, arguments.max_tokens, constraint)
    table = Table(title=f"{resolved.device} {resolved.dtype}, {platform.processor()}, torch {torch.__version__}")
    for column in ("batch", "constraint", "ms/step", "tokens/s", "not sampled"):
        table.add_column(column, justify="right")
    for batch in arguments.batch:
        for name, chosen in (("none", None), ("record", constraint)):
            run(engine, batch, arguments.prompt_length, arguments.max_tokens, chosen)
            seen = run(engine, batch, arguments.prompt_length, arguments.max_tokens, chosen)
            per_step, rate = seen.seconds / seen.num_steps * 1e3, seen.num_tokens / seen.seconds
            share = seen.num_unsampled / seen.num_tokens
            table.add_row(str(batch), name, f"{per_step:.1f}", f"{rate:.0f}", f"{share:.0%}")
    Console().print(table)


if __name__ == "__main__":
    with errors_as_messages():
        main()
