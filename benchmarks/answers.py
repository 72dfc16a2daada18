"""What constraints do to answers: a model on tasks with known ones, greedy, by style of white space and without a constraint.

    python benchmarks/answers.py --model SmolLM2-135M-Instruct.Q4_1.gguf [--count 200] [--out benchmarks/results/answers-DATE.json]

Every setting has the same prompts, through the model's chat template. Without a constraint the first JSON object in the reply
counts, with whatever stands around it. A field is right if its value is; an answer is exact if all its fields are.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date
from pathlib import Path
from typing import Any

from answer_tasks import Task, classification, extraction
from result_files import result_file
from rich.console import Console
from rich.table import Table

from maskwright import LLM, SamplingParams
from maskwright.constraints import JsonSchema

FREE = "no constraint"
SETTINGS = (FREE, "compact", "spaced", "flexible", "auto")
MAX_TOKENS = 120


def answer_of(text: str, setting: str) -> Any:
    """The value of an output; None where there is none."""
    try:
        return json.loads(text) if setting != FREE else json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    except ValueError:
        return None


def measured(llm: LLM, tasks: list[Task], setting: str) -> dict[str, Any]:
    """One setting on all tasks, batched."""
    begun = time.perf_counter()
    prompts = [f"{task.instruction}\n\n{task.text}" for task in tasks]
    constraint = {} if setting == FREE else {"constraint": [JsonSchema(task.schema, whitespace=setting) for task in tasks]}
    outputs = llm.generate(prompts, sampling=SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS), **constraint)  # type: ignore[arg-type]
    answers = [answer_of(output.text, setting) for output in outputs]
    right = [task.right_fields(answer) for task, answer in zip(tasks, answers, strict=True)]
    return {
        "kind": tasks[0].kind, "setting": setting, "tasks": len(tasks), "fields": sum(len(task.accepted) for task in tasks),
        "right_fields": sum(right), "exact": sum(n == len(task.accepted) for n, task in zip(right, tasks, strict=True)),
        "without_answer": answers.count(None), "tokens": sum(len(output.token_ids) for output in outputs),
        "seconds": round(time.perf_counter() - begun, 1),
    }  # fmt: skip


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="answers, greedy")
    for column in ("tasks", "white space", "right fields", "exact", "without answer", "tokens", "s"):
        table.add_column(column, justify="left" if column in ("tasks", "white space") else "right")
    for row in rows:
        table.add_row(
            row["kind"], row["setting"], f"{row['right_fields']} of {row['fields']}", f"{row['exact']} of {row['tasks']}",
            str(row["without_answer"]), str(row["tokens"]), str(row["seconds"]),
        )  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a folder or a GGUF file, with a chat template")
    parser.add_argument("--count", type=int, default=200, help="tasks of each kind")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    parser.add_argument("--note", default="", help="about the machine, kept with the results")
    parser.add_argument("--out", type=result_file, metavar="FILE.json")
    arguments = parser.parse_args()
    llm = LLM(arguments.model, prompt_style="chat")
    rows = [
        measured(llm, list(make(arguments.count)), setting)
        for make in (extraction, classification)
        for setting in arguments.settings
    ]  # fmt: skip
    Console().print(table_of(rows))
    found = {"date": str(date.today()), "model": Path(arguments.model).name, "note": arguments.note, "rows": rows}
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
