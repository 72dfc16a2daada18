"""What constraints cost and give: masks of real schemas on this model's tokens, and how many answers are right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from ...constraint_choice import ConstraintOptions
from ...constraints import Compiler, ConstraintError, JsonSchema
from ...errors import UsageError
from ...llm import LLM
from ...sampling import SamplingParams
from . import answer_tasks
from .answer_tasks import Task
from .runs import Case
from .timing import percentiles

MAX_TOKENS = 256  # of an answer


def masks(llm: LLM, count: int, path: Path | None) -> Iterator[Case]:
    """Schemas with an instance each: compiling, the first masks of its tokens, and the same masks once more.

    path: JSON lines with "schema" and "tests", as MaskBench has them; None: what `answers` asks for.
    """
    taken: dict[str, list[float]] = {"compile": [], "first": [], "known": []}
    num_refused = 0
    for schema, instance in _schemas(count) if path is None else _schemas_of(path, count):
        tokens = llm.tokenizer.encode(json.dumps(instance, ensure_ascii=False), add_special_tokens=False)
        begun = perf_counter()
        try:
            constraint = Compiler(llm.vocabulary, cache_bytes=0).compile(JsonSchema(schema))
        except ConstraintError:
            num_refused += 1
            continue
        taken["compile"].append(perf_counter() - begun)
        for kind in ("first", "known"):
            taken[kind] += _walked(constraint, tokens)
    if not taken["compile"]:
        raise UsageError("bench masks: no schema could be compiled")
    figures = percentiles("compile", taken["compile"])
    for kind in ("first", "known"):
        figures |= percentiles(f"{kind}_mask", taken[kind], "us")
    yield Case(f"{len(taken['compile'])} schemas", {**figures, "refused_schemas": num_refused})


def _walked(constraint: Any, tokens: Sequence[int]) -> list[float]:
    """Seconds for each mask along a text, as far as the schema goes with it."""
    state, seconds = constraint.start(), list[float]()
    for token in tokens:
        begun = perf_counter()
        constraint.mask(state)
        seconds.append(perf_counter() - begun)
        state = constraint.advance(state, token)
        if state is None:
            break
    return seconds


def _schemas(count: int) -> Iterator[tuple[Any, Any]]:
    for task in answer_tasks.extraction(count):
        yield task.schema, {name: values[0] for name, values in task.accepted.items()}


def _schemas_of(path: Path, count: int) -> Iterator[tuple[Any, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"--schemas {path}: {error.strerror or error}") from None
    for number, line in enumerate(lines[:count], 1):
        try:
            read = json.loads(line)
            instance = next((test["data"] for test in read.get("tests", ()) if test["valid"]), None)
            yield read["schema"], instance
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f'--schemas {path}, line {number}: no JSON object with "schema" and "tests" ({error})') from None


def answers(llm: LLM, count: int) -> Iterator[Case]:
    """Extraction and classification with known answers, greedily, without a constraint and under the schema."""
    for kind, make in (("extraction", answer_tasks.extraction), ("classification", answer_tasks.classification)):
        tasks = list(make(count))
        for setting in ("free", "schema"):
            yield _answered(llm, f"{kind}, {setting}", tasks, is_constrained=setting == "schema")


def _answered(llm: LLM, name: str, tasks: Sequence[Task], *, is_constrained: bool) -> Case:
    sampling = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS)
    constraint: ConstraintOptions = {"json_schema": [task.schema for task in tasks]} if is_constrained else {}
    begun = perf_counter()
    outputs = llm.generate([task.prompt for task in tasks], sampling=sampling, **constraint)
    seconds = perf_counter() - begun
    read = [_object(output.text) for output in outputs]
    right = sum(task.right_fields(answer) for task, answer in zip(tasks, read, strict=True))
    exact = sum(task.is_exact(answer) for task, answer in zip(tasks, read, strict=True))
    return Case(
        name,
        {
            "right_fields_share": right / sum(task.num_fields for task in tasks),
            "exact_share": exact / len(tasks),
            "output_tokens": sum(len(output.token_ids) for output in outputs) / len(tasks),
            "whole_s": seconds,
        },
    )


def _object(text: str) -> Any:
    """The first JSON object in a reply, None where there is none."""
    decoder, start = json.JSONDecoder(), text.find("{")
    while start >= 0:
        try:
            return decoder.raw_decode(text[start:])[0]
        except ValueError:
            start = text.find("{", start + 1)
    return None
