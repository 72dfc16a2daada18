"""A server to be measured in a process of its own, and a client light enough for hundreds of streams on one core.

    python benchmarks/load_client.py PORT [engine options as name=value]

starts the server: the embedded model, as `maskwright serve` runs it, with two paths more: /bench/steps gives the seconds that each
step has taken since it was asked last, /bench/memory the bytes the process holds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHAT = "/v1/chat/completions"


@dataclass
class Reply:
    """One streamed request. Times in seconds of `time.perf_counter`."""

    label: str
    begun: float
    status: int = 0
    times: list[float] = field(default_factory=list)  # of each chunk with text
    num_tokens: int = 0
    finish_reason: str | None = None
    text: str = ""
    error: str | None = None  # what was lost, if anything
    ended: float = 0.0

    @property
    def is_whole(self) -> bool:
        return self.error is None and self.finish_reason in ("stop", "length", "tool_calls")

    @property
    def first(self) -> float:
        """Time to the first text."""
        return self.times[0] - self.begun

    @property
    def gaps(self) -> list[float]:
        """Between one chunk of text and the next."""
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


async def stream(port: int, body: dict[str, Any], label: str = "") -> Reply:
    """One request over a connection of its own."""
    reply = Reply(label, time.perf_counter())
    content = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode()
    lines = (f"POST {CHAT} HTTP/1.1", "Host: x", "Connection: close", "Content-Type: application/json")
    head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
    is_done = False
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head.encode() + content)
            reply.status = int((await reader.readline()).split()[1])
            async for line in reader:
                if line.startswith(b"data: [DONE]"):
                    is_done = True
                elif line.startswith(b"data: "):
                    _read(reply, line[6:])
                elif reply.status != 200 and line.startswith(b"{"):
                    reply.error = line.decode()
        finally:
            writer.close()
    except (OSError, ValueError, IndexError) as error:
        reply.error = f"{type(error).__name__}: {error}"
    if not is_done and reply.error is None:
        reply.error = "the stream ended early"
    reply.ended = time.perf_counter()
    return reply


def _read(reply: Reply, line: bytes) -> None:
    now, chunk = time.perf_counter(), json.loads(line)
    if "error" in chunk:
        reply.error = json.dumps(chunk["error"])
        return
    if chunk.get("usage"):
        reply.num_tokens = chunk["usage"]["completion_tokens"]
    for choice in chunk["choices"]:
        if text := choice["delta"].get("content"):
            reply.times.append(now)
            reply.text += text
        reply.finish_reason = choice["finish_reason"] or reply.finish_reason


def ask(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
        return json.load(answer)


@contextmanager
def server(**options: Any) -> Iterator[int]:
    """A server in another process; its port."""
    command = [sys.executable, __file__, "0", *(f"{name}={value}" for name, value in options.items())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def resident_bytes() -> int:
    """Of this process, on Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _serve(port: int, options: dict[str, Any]) -> None:
    import socket

    from maskwright import LLM
    from maskwright.server.run import server_of
    from maskwright.server.settings import ServerSettings

    llm = LLM(**options)
    served = server_of(llm, ServerSettings(port=port, max_open=4096), "embedded")
    logging.disable(logging.INFO)
    step, steps = llm.driver.step, list[float]()

    def measured() -> Any:
        begun = time.perf_counter()
        events = step()
        steps.append(time.perf_counter() - begun)
        return events

    def take_steps() -> list[float]:
        taken = steps[:]
        steps.clear()
        return taken

    def memory() -> dict[str, int]:
        gc.collect()
        return {"resident_bytes": resident_bytes(), "objects": len(gc.get_objects())}

    llm.driver.step = measured  # type: ignore[method-assign]
    served.config.app.add_api_route("/bench/steps", take_steps)  # type: ignore[union-attr]
    served.config.app.add_api_route("/bench/memory", memory)  # type: ignore[union-attr]
    listening = socket.create_server(("127.0.0.1", port), backlog=2048)
    print(listening.getsockname()[1], flush=True)
    served.run(sockets=[listening])


def _value(text: str) -> Any:
    return int(text) if text.isdigit() else text


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].isdigit() or not all("=" in pair for pair in sys.argv[2:]):
        raise SystemExit(__doc__)
    _serve(int(sys.argv[1]), {name: _value(value) for name, value in (pair.split("=", 1) for pair in sys.argv[2:])})
