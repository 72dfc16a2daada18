"""What the engine takes for prompts and tokens: latency, throughput, prefill and decode.

Prompts are random tokens and outputs have a fixed length, so that nothing but the machine decides how long it takes. Every repeat
has prompts of its own; figures are medians over repeats where they are not percentiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ...llm import LLM
from ...sampling import SamplingParams
from . import answer_tasks
from .runs import Case
from .timing import Timeline, check_room, percentiles, plans_of, prompts, timed, warm_up


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked for."""

    batches: tuple[int, ...]  # requests at once
    lengths: tuple[int, ...]  # tokens of a prompt
    num_tokens: int  # of an output
    repeats: int
    temperature: float = 0.0


def latency(llm: LLM, load: Load) -> Iterator[Case]:
    """Requests that arrive together: the first token, the time between two, the whole."""
    for length in load.lengths:
        check_room(llm, length + load.num_tokens)
        warm_up(llm, length, load.temperature)
        for batch in load.batches:
            runs = [
                timed(llm, plans_of(llm, prompts(llm, batch, length, number), load.num_tokens, load.temperature))
                for number in range(load.repeats)
            ]
            of_all = [timeline for run in runs for timeline in run]
            yield Case(
                f"{batch} x {length} + {load.num_tokens} tokens",
                {
                    **percentiles("first_token", [each.first for each in of_all]),
                    **percentiles("between_tokens", [gap for each in of_all for gap in each.gaps]),
                    "whole_ms": median(max(each.ended for each in run) - run[0].begun for run in runs) * 1e3,
                },
            )


def throughput(llm: LLM, load: Load) -> Iterator[Case]:
    """Many requests at once, free and under schemas: tokens and requests a second."""
    for length in load.lengths:
        check_room(llm, length + load.num_tokens)
        warm_up(llm, length, load.temperature)
        for batch in load.batches:
            yield _rates(f"free, {batch} x {length} + {load.num_tokens} tokens", [
                timed(llm, plans_of(llm, prompts(llm, batch, length, number), load.num_tokens, load.temperature))
                for number in range(load.repeats)
            ], batch * length)  # fmt: skip
    for batch in load.batches:
        yield _under_schemas(llm, batch, load)


def _under_schemas(llm: LLM, batch: int, load: Load) -> Case:
    """Extraction under as many different schemas as there are kinds of texts; the second run knows their masks."""
    tasks = list(answer_tasks.extraction(batch))
    sampling = SamplingParams(temperature=load.temperature, max_tokens=256, seed=0)
    texts, schemas = [task.prompt for task in tasks], [task.schema for task in tasks]
    plans = llm.planner.plan_all(texts, sampling, {"json_schema": schemas})
    timed(llm, plans)
    num_prompt_tokens = sum(len(plan.request.prompt_token_ids) for plan in plans)
    return _rates(f"schemas, {batch} extractions", [timed(llm, plans) for _ in range(load.repeats)], num_prompt_tokens)


def _rates(name: str, runs: Sequence[Sequence[Timeline]], num_prompt_tokens: int) -> Case:
    seconds = [max(each.ended for each in run) - run[0].begun for run in runs]
    tokens = [sum(len(each.times) for each in run) for run in runs]
    return Case(
        name,
        {
            "output_tokens_per_s": median(count / taken for count, taken in zip(tokens, seconds, strict=True)),
            "all_tokens_per_s": median((count + num_prompt_tokens) / taken for count, taken in zip(tokens, seconds, strict=True)),
            "requests_per_s": median(len(run) / taken for run, taken in zip(runs, seconds, strict=True)),
        },
    )


def prefill(llm: LLM, load: Load) -> Iterator[Case]:
    """One prompt to its first token, by its length."""
    check_room(llm, max(load.lengths) + 1)
    warm_up(llm, min(load.lengths), load.temperature)
    for length in load.lengths:
        texts = [prompts(llm, 1, length, number) for number in range(load.repeats)]
        firsts = [timed(llm, plans_of(llm, text, 1, load.temperature))[0].first for text in texts]
        yield Case(f"{length} tokens", {"prefill_ms": median(firsts) * 1e3, "prompt_tokens_per_s": length / median(firsts)})


def decode(llm: LLM, load: Load) -> Iterator[Case]:
    """One step of all sequences, by how many there are and how long their contexts: from when all have a token until one ends."""
    for length in load.lengths:
        check_room(llm, length + load.num_tokens)
        warm_up(llm, length, load.temperature)
        for batch in load.batches:
            gaps: list[float] = []
            for number in range(load.repeats):
                run = timed(llm, plans_of(llm, prompts(llm, batch, length, number), load.num_tokens, load.temperature))
                begin, end = max(each.times[0] for each in run), min(each.times[-1] for each in run)
                stamps = sorted({stamp for stamp in run[0].times if begin <= stamp <= end})
                gaps += [after - before for before, after in pairwise(stamps)]
            figures = percentiles("step", gaps)
            if gaps:
                figures["output_tokens_per_s"] = batch / median(gaps)
            yield Case(f"{batch} sequences of {length} tokens", figures)
