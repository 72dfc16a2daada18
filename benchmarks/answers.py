"""What constraints do to answers: a model on tasks with known ones, without a constraint and with those of four engines.

    python benchmarks/answers.py --model SmolLM2-135M-Instruct.Q4_1.gguf [--bfcl bfcl_eval-VERSION-py3-none-any.whl] [--count 200]
        [--settings ...] [--kinds ...] [--seeds 3] [--out benchmarks/results/answers-DATE.json]

Five sets: extraction and classification, of `cli/bench/answer_tasks.py`, and three of BFCL v4 (`bfcl_tasks.py`). Greedy, and by
seeds at one temperature with no filter. Every setting gets the same prompts, through the model's chat template. Without a
constraint the first JSON value in the reply counts, repaired if need be (`free_replies.py`). The work is done in pieces of a few
tasks; each is written down when it is done, and a run with the same `--out` goes on with those that are missing.

For each setting: fields and whole answers that are right; replies without an answer; log-probability of a token under the model
alone; what masks took of it, in nats for a whole output (0: nothing); tokens of an output, and how many were computed for it.
transformers reads GGUF files with the packages `gguf` and `accelerate`; llama.cpp is `xllamacpp`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby, product
from pathlib import Path
from typing import Any, Protocol

from answer_engines import FREE, OTHERS, PARTICLES, SETTINGS, Answer, Decoding, Engines
from bfcl_tasks import SETS, bfcl
from free_replies import Read, read_reply
from result_files import amount, count, errors_as_messages, require, result_file, size, there
from rich.console import Console
from rich.table import Table

from maskwright.cli.bench.answer_tasks import classification, extraction

PIECE = 24  # tasks that are answered and written down together
KINDS = ("extraction", "classification", *(f"bfcl {kind}" for kind in SETS))
KEY = ("setting", "kind", "decoding", "start", "tasks")  # of a piece
NEEDS = dict(zip(OTHERS[1:], (["llguidance"], ["xgrammar"], ["xllamacpp"]), strict=True))  # modules, by setting
COLUMNS = ("set", "setting", "fields", "exact", "no answer", "nats/token", "nats taken", "tokens", "computed", "s")


class Task(Protocol):
    """A question with a known answer."""

    @property
    def kind(self) -> str: ...

    @property
    def prompt(self) -> str: ...

    @property
    def schema(self) -> dict[str, Any]: ...

    @property
    def num_fields(self) -> int: ...

    def right_fields(self, answer: Any) -> int: ...

    def is_exact(self, answer: Any) -> bool: ...


def tasks_of(kind: str, count: int, source: Path | None) -> Sequence[Task]:
    """The first tasks of a set. source: where those of BFCL are."""
    if kind in ("extraction", "classification"):
        return list((extraction if kind == "extraction" else classification)(count))
    if source is None:
        raise SystemExit(f'the set "{kind}" needs --bfcl, or name others with --kinds')
    return bfcl(source, kind.removeprefix("bfcl "), count)


def measured(tasks: Sequence[Task], answers: Sequence[Answer], setting: str) -> dict[str, Any]:
    """The sums over the answers of one piece."""
    read = [_read(answer.text, setting) for answer in answers]
    pairs = [(task, each.value) for task, each in zip(tasks, read, strict=True)]
    return {
        "fields": sum(task.num_fields for task in tasks),
        "right_fields": sum(task.right_fields(value) for task, value in pairs),
        "exact": sum(task.is_exact(value) for task, value in pairs),
        "without_answer": sum(each.value is None for each in read),
        "repaired": sum(each.is_repaired for each in read),
        "tokens": sum(answer.num_tokens for answer in answers),
        "computed": sum(answer.num_computed for answer in answers),
        "logprob": _sum([answer.logprob for answer in answers]),
        "log_kept": _sum([answer.log_kept for answer in answers]),
    }


def _read(text: str, setting: str) -> Read:
    if setting == FREE:
        return read_reply(text)
    try:
        return Read(json.loads(text), False)
    except ValueError:  # an engine that was cut off by the limit of tokens, or refused the schema
        return Read(None, False)


def _sum(values: list[float | None]) -> float | None:
    """None where an engine does not tell them all."""
    told = [value for value in values if value is not None]
    return round(sum(told), 3) if len(told) == len(values) else None


class Pieces:
    """The results so far, in a file if there is one."""

    def __init__(self, path: Path | None, model: str, note: str) -> None:
        self._path = path
        self._found: dict[str, Any] = {"date": str(date.today()), "model": model, "note": note, "rows": []}
        if path is not None and path.is_file() and path.stat().st_size:
            self._found = json.loads(path.read_text()) | {"date": str(date.today())}
            self._found["note"] = note or self._found["note"]
            if self._found["model"] != model:
                raise SystemExit(f"{path} has results of {self._found['model']}, not of {model}: name another --out")

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._found["rows"]
        return rows

    def has(self, key: dict[str, Any]) -> bool:
        return any(all(row[name] == key[name] for name in KEY) for row in self.rows)

    def merge(self, path: Path) -> None:
        """Take the pieces of another file that are missing here."""
        other = json.loads(path.read_text())
        if other["model"] != self._found["model"]:
            raise SystemExit(f"{path} has results of {other['model']}, not of {self._found['model']}")
        self.add(*[row for row in other["rows"] if not self.has(row)])

    def add(self, *rows: dict[str, Any]) -> None:
        self.rows.extend(rows)
        if self._path is not None:
            lines = ",\n".join(f"  {json.dumps(row)}" for row in self.rows)
            head = json.dumps({name: value for name, value in self._found.items() if name != "rows"})
            self._path.write_text(f'{head[:-1]},\n "rows": [\n{lines}\n ]}}\n')


def run(
    engines: Engines, pieces: Pieces, sets: dict[str, Sequence[Task]], settings: Sequence[str], decodings: Sequence[Decoding]
) -> None:
    """Answer what is not answered yet: all settings for the first tasks, greedy and by each seed, then for the next ones."""
    starts = range(0, max(map(len, sets.values())), PIECE)
    for start, decoding, setting, (kind, tasks) in product(starts, decodings, settings, sets.items()):
        chosen = tasks[start : start + PIECE]
        key = {"setting": setting, "kind": kind, "decoding": decoding.name, "start": start, "tasks": len(chosen)}
        if not chosen or pieces.has(key) or (setting == PARTICLES and decoding.seed is None):
            continue
        begun = time.perf_counter()
        answers = engines.answers(setting, chosen, decoding)
        pieces.add(key | measured(chosen, answers, setting) | {"seconds": round(time.perf_counter() - begun, 1)})


def tables(rows: list[dict[str, Any]]) -> Iterator[Table]:
    """One table for greedy answers, one for all seeds together."""
    for title, chosen in (
        ("answers, greedy", [row for row in rows if row["decoding"] == "greedy"]),
        ("answers, by seeds", [row for row in rows if row["decoding"] != "greedy"]),
    ):
        if chosen:
            yield _table(title, chosen)


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:2] else "right")

    def place(row: dict[str, Any]) -> tuple[int, int]:
        return KINDS.index(row["kind"]), SETTINGS.index(row["setting"])

    for (kind, setting), grouped in groupby(sorted(rows, key=place), lambda row: (KINDS[place(row)[0]], SETTINGS[place(row)[1]])):
        table.add_row(kind, setting, *_cells(list(grouped)))
    return table


def _cells(rows: list[dict[str, Any]]) -> list[str]:
    def total(name: str) -> float:
        return sum(row[name] for row in rows)

    def mean(name: str, over: str, sign: int = 1) -> str:
        is_told = all(row[name] is not None for row in rows)
        return f"{sign * total(name) / max(total(over), 1):.2f}" if is_told else "-"

    return [
        f"{total('right_fields'):.0f}/{total('fields'):.0f} ({total('right_fields') / total('fields'):.0%})",
        f"{total('exact'):.0f}/{total('tasks'):.0f}", f"{total('without_answer'):.0f}",
        mean("logprob", "tokens"), mean("log_kept", "tasks", -1), mean("tokens", "tasks"), mean("computed", "tasks"),
        f"{total('seconds'):.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a folder or a GGUF file, with a chat template")
    parser.add_argument("--bfcl", type=there, help="the wheel bfcl-eval, or a folder in which it was unpacked")
    parser.add_argument("--count", type=count, default=200, help="tasks of each set")
    parser.add_argument("--seeds", type=amount, default=3, help="how many seeds are drawn with, beside greedy")
    parser.add_argument("--temperature", type=size, default=0.7, help="of the draws")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--note", default="", help="about the machine, kept with the results")
    parser.add_argument("--out", type=result_file, metavar="FILE.json", help="results; those that are there already are kept")
    parser.add_argument("--merge", nargs="+", type=there, default=(), metavar="FILE.json", help="take pieces of other runs first")
    arguments = parser.parse_args()
    require([module for setting in arguments.settings for module in NEEDS.get(setting, ())], option="--settings")
    pieces = Pieces(arguments.out, Path(arguments.model).name, arguments.note)
    for path in arguments.merge:
        pieces.merge(path)
    sets = {kind: tasks_of(kind, arguments.count, arguments.bfcl) for kind in arguments.kinds}
    decodings = [Decoding(), *(Decoding(seed, arguments.temperature) for seed in range(1, arguments.seeds + 1))]
    run(Engines(arguments.model), pieces, sets, arguments.settings, decodings)
    for table in tables(pieces.rows):
        Console().print(table)


if __name__ == "__main__":
    with errors_as_messages():
        main()
