"""`maskwright batch` with the embedded model: every endpoint, interrupted and gone on with."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from maskwright import LLM
from maskwright.cli import run
from maskwright.errors import UsageError
from maskwright.server.batches.whole_file import answer_file
from maskwright.server.settings import ServerSettings

FEW: Any = {"temperature": 0, "max_tokens": 4}
SCHEMA = {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}
MESSAGES = [{"role": "user", "content": "hello"}]
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": MESSAGES, "response_format": FORMAT, "temperature": 0}),
    ("/v1/completions", {"prompt": "hello", **FEW}),
    ("/v1/responses", {"input": "hello", "max_output_tokens": 4}),
    ("/v1/messages", {"messages": MESSAGES, "max_tokens": 4, "model": "default"}),
    ("/v1/chat/completions", {"messages": MESSAGES, "model": "another", **FEW}),
    ("/v1/chat/completions", {"messages": [], "temperature": "warm"}),
]
# ends its own process at the third answer, as if it had been killed
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from maskwright import LLM
from maskwright.server.batches.whole_file import answer_file
from maskwright.server.settings import ServerSettings

def watch(counts):
    if counts.answered == 3:
        os.kill(os.getpid(), signal.SIGKILL)

source, target = map(Path, sys.argv[1:])
asyncio.run(answer_file(LLM(), ServerSettings(), "embedded", source, target, at_once=2, watch=watch))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    lines = ({"custom_id": f"r{number}", "method": "POST", "url": url, "body": body} for number, (url, body) in enumerate(BODIES))
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def answers(path: Path) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({line["custom_id"] for line in lines}) == len(lines)
    return {line["custom_id"]: line["response"] for line in lines}


def test_each_request_has_the_answer_of_its_endpoint(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.jsonl"
    assert run(["batch", str(source), "-o", str(target)]) == 1
    found = answers(target)
    assert {name: response["status_code"] for name, response in found.items()} == {"r0": 200, "r1": 200, "r2": 200, "r3": 200, "r4": 404, "r5": 400}
    assert set(json.loads(found["r0"]["body"]["choices"][0]["message"]["content"])) == {"x"}
    assert found["r1"]["body"]["object"] == "text_completion" and found["r2"]["body"]["object"] == "response" and found["r3"]["body"]["type"] == "message"
    assert found["r4"]["body"]["error"]["code"] == "model_not_found"
    said = capfd.readouterr().err
    assert "4 answered, 2 failed" in said and "1 times model_not_found, first r4: there is no model 'another' here" in said
    before = target.read_bytes()
    assert run(["batch", str(source), "-o", str(target)]) == 1
    assert target.read_bytes() == before
    assert run(["batch", str(source), "-o", str(target), "--retry-failed", "--any-model"]) == 1
    assert {name: response["status_code"] for name, response in answers(target).items() if name in ("r4", "r5")} == {"r4": 200, "r5": 400}


def test_a_process_that_was_killed_is_gone_on_from(source: Path, tmp_path: Path, llm: LLM) -> None:
    target = tmp_path / "out.jsonl"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(source), str(target)], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    first = answers(target)
    assert len(first) == 3
    counts = asyncio.run(answer_file(llm, ServerSettings(), "embedded", source, target, at_once=2))
    assert (counts.total, counts.completed, counts.failed) == (6, 4, 2)
    found = answers(target)
    assert len(found) == 6 and first.items() <= found.items()


def test_what_bounds_constraints_reaches_the_model(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Loaded(UsageError):
        pass

    def load(*arguments: object, **options: Any) -> None:
        loaded.update(options)
        raise Loaded("enough")

    loaded: dict[str, Any] = {}
    monkeypatch.setattr("maskwright.cli.model_options.LLM", load)
    asked = ["--compile-seconds", "3", "--compile-memory-bytes", "2000", "--constraint-cache-bytes", "500", "--lora-modules", "a=b"]
    assert run(["batch", str(source), "-o", str(tmp_path / "out"), *asked]) == 2
    assert (loaded["constraint_limits"].seconds, loaded["constraint_limits"].bytes, loaded["constraint_cache_bytes"]) == (3, 1000, 500)
    assert loaded["adapters"] == {"a": Path("b")}


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("{}", [], "line 1: custom_id is a string"),
        ('{"custom_id": "a", "url": "/v1/completions", "body": {}}', ["--at-once", "0"], "--at-once is at least 1"),
    ],
)
def test_what_is_wrong_is_told_before_a_model_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, options: list[str], said: str
) -> None:
    path = tmp_path / "in"
    path.write_text(line)
    assert run(["batch", str(path), "-o", str(tmp_path / "out"), "--model", "no-such-folder", *options]) == 2
    assert said in capsys.readouterr().err
    assert run(["batch", str(tmp_path / "none"), "-o", str(tmp_path / "out")]) == 2
    assert f"{tmp_path / 'none'}: No such file" in capsys.readouterr().err
