"""The benchmark of answers: what counts as right, what is read out of free replies, and work that is done in pieces."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
OWN = ("answers", "answer_engines", "bfcl_tasks", "free_replies", "result_files")
PARAMETERS = {
    "type": "dict",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "limit": {"type": "float"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "dict", "properties": {"a": {"type": "integer"}}},
        "all": {"type": "array", "items": {"type": "dict"}},
    },
    "required": ["city", "days"],
}
ACCEPTED: dict[str, Any] = {
    "city": ["New York, NY", "NYC"], "days": [3], "limit": [1.0, ""], "tags": [["a b", "C"], ""], "more": [{"a": [1], "b": [2, ""]}, ""],
    "all": [[{"k": ["v"]}], ""],
}  # fmt: skip


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield import_module
    for name in OWN:
        sys.modules.pop(name, None)


def task(script: Any, kind: str = "bfcl simple", times: int = 1) -> Any:
    function = {"name": "trip", "description": "A trip.", "parameters": PARAMETERS}
    return script("bfcl_tasks").BfclTask("t", kind, "Where?", (function,), (("trip", ACCEPTED),) * times)


def call(**arguments: Any) -> dict[str, Any]:
    return {"name": "trip", "arguments": {"city": "NYC", "days": 3, **arguments}}


@pytest.mark.parametrize(
    ("given", "is_right"),
    [
        (call(), True),
        (call(city="new york ny"), True),  # without regard to case, spaces and punctuation
        (call(city="Newark"), False),
        (call(days="3"), False),
        (call(days=3.0), False),
        (call(limit=1), True),  # an integer where a float is declared
        (call(limit=2), False),
        (call(tags=["A-B", "c"]), True),
        (call(tags=["c", "a b"]), False),
        (call(tags=[1]), False),
        (call(more={"a": 1}), True),
        (call(more={"a": 1, "b": 2}), True),
        (call(more={"b": 2}), False),
        (call(more={"a": 1, "c": 1}), False),
        (call(all=[{"k": "V"}]), True),
        (call(all=[]), True),  # where it may be left out, nothing is as good
        (call(all=[{"k": "w"}]), False),
        (call(unknown=1), False),
        ({"name": "trip", "arguments": {"city": "NYC"}}, False),
        ({"name": "tour", "arguments": {"city": "NYC", "days": 3}}, False),
        ([call(), call()], False),
        ("trip", False),
        (None, False),
    ],
)
def test_calls_are_right_by_the_rules_of_the_benchmark(script: Any, given: Any, is_right: bool) -> None:
    assert task(script).is_exact(given) == is_right


def test_fields_are_the_name_and_what_is_needed(script: Any) -> None:
    asked = task(script)
    assert asked.num_fields == 3
    assert [asked.right_fields(given) for given in (call(), call(days=4), call(city="x", days=4), {"name": "x", "arguments": {}}, [], None)] == [
        3, 2, 1, 0, 0, 0,
    ]  # fmt: skip


def test_calls_of_a_parallel_set_come_in_any_order(script: Any) -> None:
    tasks = script("bfcl_tasks")
    function = {"name": "trip", "description": "", "parameters": PARAMETERS}
    accepted = [{"city": [city], "days": [1]} for city in ("Oslo", "Rome")]
    both = tasks.BfclTask("t", "bfcl parallel", "?", (function,), tuple(("trip", each) for each in accepted))
    oslo, rome = ({"name": "trip", "arguments": {"city": city, "days": 1}} for city in ("oslo", "rome"))
    assert both.is_exact([rome, oslo]) and not both.is_exact([oslo, oslo]) and not both.is_exact([oslo])
    assert both.right_fields([rome]) == 3 and both.right_fields([rome, oslo]) == both.num_fields == 6
    assert both.schema["type"] == "array" and both.schema["items"]["properties"]["arguments"]["required"] == ["city", "days"]


@pytest.mark.parametrize("is_wheel", [False, True])
def test_tasks_are_read_from_the_wheel_or_a_folder(script: Any, tmp_path: Path, is_wheel: bool) -> None:
    function = {"name": "trip", "description": "A trip.", "parameters": PARAMETERS}
    question = {"id": "simple_python_0", "question": [[{"role": "user", "content": "Where?"}]], "function": [function]}
    answer = {"id": "simple_python_0", "ground_truth": [{"trip": ACCEPTED}]}
    files = {"BFCL_v4_simple_python.json": question, "possible_answer/BFCL_v4_simple_python.json": answer}
    source = tmp_path / "bfcl_eval.whl" if is_wheel else tmp_path
    if is_wheel:
        with zipfile.ZipFile(source, "w") as archive:
            for name, value in files.items():
                archive.writestr(f"bfcl_eval/data/{name}", json.dumps(value) + "\n")
    for name, value in files.items():
        path = tmp_path / "bfcl_eval" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value) + "\n")
    (read,) = script("bfcl_tasks").bfcl(source, "simple", 5)
    assert read.is_exact(call()) and '"trip"' in read.prompt and "Where?" in read.prompt
    limit = read.schema["properties"]["arguments"]["properties"]["limit"]
    assert limit == {"type": "number"} and read.schema["properties"]["name"] == {"const": "trip"}


@pytest.mark.parametrize(
    ("text", "value", "is_repaired"),
    [
        ('{"a": 1}', {"a": 1}, False),
        (' {"a": 1}\n', {"a": 1}, False),
        ('Sure! Here it is:\n```json\n{"a": [1, 2]}\n```', {"a": [1, 2]}, True),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}], True),
        ("{'a': True, 'b': None, 'c': 'it''s'}", {"a": True, "b": None, "c": "its"}, True),
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}, True),
        ('x {"a": {"b": "c', {"a": {"b": "c"}}, True),
        ('{"a": ', None, True),
        ("none at all", None, False),
        ("{1, 2}", None, True),
        ("[" * 100_000, None, True),
    ],
)
def test_replies_are_read_as_people_do_it(script: Any, text: str, value: Any, is_repaired: bool) -> None:
    assert tuple(script("free_replies").read_reply(text)) == (value, is_repaired)


class Engines:
    """Answers every task with its own prompt's number, and counts."""

    def __init__(self, answer_type: Any) -> None:
        self.asked, self._type = list[tuple[str, str, int]](), answer_type

    def answers(self, setting: str, tasks: Any, decoding: Any) -> list[Any]:
        self.asked.append((setting, decoding.name, len(tasks)))
        return [self._type('{"a": 1}', 4, 4, -2.0, None if setting == "llama.cpp's grammar" else -1.0) for _ in tasks]


def test_work_is_done_in_pieces_that_are_gone_on_with(script: Any, tmp_path: Path) -> None:
    pytest.importorskip("rich")
    answers, engines, tasks = script("answers"), script("answer_engines"), import_module("maskwright.cli.bench.answer_tasks")
    sets = {"extraction": list(tasks.extraction(30)), "classification": list(tasks.classification(30))}
    out, decodings = tmp_path / "found.json", [engines.Decoding(), engines.Decoding(1)]
    made = Engines(engines.Answer)
    answers.run(made, answers.Pieces(out, "m", ""), sets, ["auto", "auto, 8 particles"], decodings[:1])
    assert made.asked == [("auto", "greedy", 24)] * 2 + [("auto", "greedy", 6)] * 2  # particles need a seed
    again = Engines(engines.Answer)
    pieces = answers.Pieces(out, "m", "busy")
    answers.run(again, pieces, sets, ["auto", "llama.cpp's grammar"], decodings)
    assert ("auto", "greedy", 24) not in again.asked and len(again.asked) == 12
    other = answers.Pieces(tmp_path / "merged.json", "m", "")
    other.merge(out)
    other.merge(out)
    assert other.rows == pieces.rows == json.loads(out.read_text())["rows"] and len(other.rows) == 16
    first, _ = answers.tables(pieces.rows)
    cells = [list(column.cells) for column in first.columns]
    assert cells[0] == ["extraction"] * 2 + ["classification"] * 2 and cells[6] == ["1.00", "-"] * 2
    with pytest.raises(SystemExit, match="has results of m"):
        answers.Pieces(out, "another", "")


def test_what_is_generated_has_one_answer(script: Any) -> None:
    tasks: ModuleType = import_module("maskwright.cli.bench.answer_tasks")
    for each in [*tasks.extraction(40), *tasks.classification(40)]:
        right = {field: values[0] for field, values in each.accepted.items()}
        assert each.is_exact(right) and not each.is_exact({**right, next(iter(right)): "?"}) and each.num_fields == len(right)
        assert each.prompt.endswith(each.text)
