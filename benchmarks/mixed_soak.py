"""Does the server hold under everything at once? Asserts it, and fails where it does not.

    python benchmarks/mixed_soak.py [--requests 10000] [--together 24] [--seconds 800] [--out build/soak.json]        (make soak)

`maskwright serve` with the embedded model gets --requests requests of the kinds in `soak_kinds.py`, --together at a time. Of those
that are streams or take long, a share is asked by clients that vanish: before the first byte of the answer, in the middle of it, or
in the middle of their own request; others read slowly. Asserted:

- every answer that ended is what its kind wants: output that satisfies its constraint, or the documented error; no 500;
- none is lost (an answer comes within ANSWER_SECONDS) and none comes twice (one head, one end, no byte more, one [DONE]);
- when all have ended: no request runs or waits, no KV block is in use, no constraint waits to be compiled;
- memory, open files, threads and processes of its own are then within their bounds of what they were after the first fifth, the
  warm-up;
- /metrics has counted what the clients have, exactly but for those that vanished.

With --seconds no request is begun after so many, and all of this is asserted of those that were: a long run in pieces, each of them
with a server of its own and other requests (--first).

`soak.py` measures slopes of growth over one kind of request; this asserts bounds over all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import re
import subprocess
import sys
import time
import traceback
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from result_files import amount, count, errors_as_messages, size
from rich.console import Console
from soak_kinds import CHAT, COMPLETIONS, MOST_OUTPUTS, Answer, Ask, request, said

MEMORY_BOUND = 1.15  # times what it was after the warm-up, and the cache of constraints beside it
FILES_BOUND = 8  # open files more than after the warm-up: connections that are just being closed
THREADS_BOUND = 2  # threads more than after the warm-up: pools that had not begun all of theirs
PROCESSES_BOUND = 3  # processes below the server more than after the warm-up: those that compile, and one that waits ready
CACHE_BYTES = 64 << 20  # of constraints; filled within a run
NUM_KV_BLOCKS = 1024  # as many as the warm-up fills: remembered prompts take memory until there is no more room for them
ANSWER_SECONDS = 300.0
IDLE_SECONDS = 60.0  # for what clients have left behind to end
WARM_SHARE = 0.2
HANDLERS = {CHAT, COMPLETIONS, "/v1/responses", "/v1/messages", "/v1/models", "/health", "/version"}

console = Console()
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass
class Count:
    """What the clients have seen."""

    kinds: Counter[str] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)  # of answers that were read to the end, by handler
    vanished: Counter[str] = field(default_factory=Counter)  # by handler
    cut: Counter[str] = field(default_factory=Counter)  # of these, in the middle of their request, which the server counts as bad
    outputs: Counter[str] = field(default_factory=Counter)  # by finish reason
    tokens: int = 0  # generated, as answers of chats and completions say
    failures: list[str] = field(default_factory=list)

    def fail(self, ask: Ask, client: str, told: str) -> None:
        self.failures.append(f"{ask.kind}, {client}: {told}")
        console.print(f"[red]{self.failures[-1][:600]}[/red]", markup=True, highlight=False)


def handler_of(ask: Ask) -> str:
    return ask.path if ask.path in HANDLERS else "none"


# -- one client


CLIENTS = (("whole", 84), ("slow reader", 5), ("gone at once", 4), ("gone in the stream", 5), ("gone in the request", 2))


def client_of(ask: Ask, chance: random.Random) -> str:
    if ask.kind in ("bad input", "list"):
        return "whole"  # their statuses are counted exactly
    if ask.is_long:
        return chance.choice(("gone in the stream", "gone at once", "slow reader", "whole"))
    return chance.choices([name for name, _ in CLIENTS], [share for _, share in CLIENTS])[0]


async def serve_one(port: int, number: int, count: Count) -> None:
    ask, chance = request(number), random.Random(-number - 1)
    client = client_of(ask, chance)
    count.kinds[ask.kind] += 1
    count.clients[client] += 1
    request_id = f"soak-{number}"
    lines = [f"{ask.method} {ask.path} HTTP/1.1", "Host: x", "Connection: close", "Content-Type: application/json"]
    lines += [f"X-Request-Id: {request_id}", f"Content-Length: {len(ask.content)}", "", ""]
    sent = "\r\n".join(lines).encode() + ask.content
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                if client.startswith("gone"):
                    count.vanished[handler_of(ask)] += 1
                    count.cut[handler_of(ask)] += client == "gone in the request"
                    await vanish(client, sent, reader, writer, chance)
                    return
                writer.write(sent)
                raw = await read(reader, 0.01 if client == "slow reader" else 0.0)
            finally:
                writer.close()
    except TimeoutError:
        count.fail(ask, client, f"no answer within {ANSWER_SECONDS} s")
        return
    except OSError as error:
        count.fail(ask, client, f"{type(error).__name__}: {error}")
        return
    judge(ask, client, raw, request_id, count)


async def vanish(
    client: str, sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: random.Random
) -> None:
    """Ask, and go before the answer has ended."""
    if client == "gone in the request":
        writer.write(sent[: len(sent) - 1 - chance.randrange(min(len(sent) // 2, 40))])
        await asyncio.sleep(0.02 * chance.random())
        return
    writer.write(sent)
    if client == "gone at once":
        await asyncio.sleep(0.1 * chance.random())
        return
    for _ in range(chance.randrange(1, 4)):
        await reader.read(400)


async def read(reader: asyncio.StreamReader, pause: float) -> bytes:
    """All that comes, until the server closes the connection."""
    parts = []
    while part := await reader.read(700 if pause else 1 << 16):
        parts.append(part)
        await asyncio.sleep(pause)
    return b"".join(parts)


def judge(ask: Ask, client: str, raw: bytes, request_id: str, count: Count) -> None:
    try:
        answer = parsed(raw)
        count.statuses[handler_of(ask), answer.status] += 1
        assert answer.headers.get("x-request-id") == request_id, f"the answer to {answer.headers.get('x-request-id')}"
        ask.check(answer)
        if answer.status == 200 and ask.method == "POST":
            tally(ask, answer, count)
    except Exception:  # whatever is wrong with an answer is a failure of the run, and told with its place
        count.fail(ask, client, traceback.format_exc(limit=-2)[-900:] + f"\n{ask.content[:300]!r}\n{raw[:300]!r}")


def tally(ask: Ask, answer: Answer, count: Count) -> None:
    """Count outputs and tokens of an answer, as it tells them."""
    told = answer.events[-1] if answer.is_stream else answer.body
    if ask.path in (CHAT, COMPLETIONS):
        count.outputs.update(one.finish_reason or "none" for one in said(answer).values())
    else:  # they end by a constraint, so whole
        told = told.get("response", told)
        count.outputs["stop"] += 1
    usage = told.get("usage") or {}
    count.tokens += usage.get("completion_tokens", usage.get("output_tokens", 0))


def parsed(raw: bytes) -> Answer:
    """One answer, and nothing behind it."""
    head, separator, rest = raw.partition(b"\r\n\r\n")
    assert separator, "no answer"
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = dechunked(rest) if headers.get("transfer-encoding") == "chunked" else rest
    if "content-length" in headers:
        assert len(body) == int(headers["content-length"]), "more or less than one body"
    answer = Answer(int(lines[0].split()[1]), headers, None)
    if answer.is_stream:
        data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
        answer.num_done = data.count(b"[DONE]")
        answer.events = [json.loads(each) for each in data if each != b"[DONE]"]
    else:
        answer.body = json.loads(body) if body else None
    return answer


def dechunked(rest: bytes) -> bytes:
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert rest == b"\r\n", "bytes behind the last chunk"
            return body
        body, rest = body + rest[:length], rest[length:]
        assert rest.startswith(b"\r\n"), "a chunk that is longer than it says"
        rest = rest[2:]


# -- the server


@contextlib.contextmanager
def serving(log: Path) -> Iterator[tuple[int, int]]:
    """`maskwright serve`: its port and process id."""
    options = ("serve", "--port", "0", "--constraint-cache-bytes", str(CACHE_BYTES), "--num-kv-blocks", str(NUM_KV_BLOCKS))
    command = [sys.executable, "-c", "from maskwright.cli import main; main()", *options]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield _port(process, log), process.pid
        finally:
            process.terminate()
            process.wait(60)


def _port(process: subprocess.Popen[str], log: Path) -> int:
    while process.poll() is None:
        found = re.search(r"running on http://[\d.]+:(\d+)", log.read_text())
        if found:
            return int(found[1])
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{log.read_text()[-2000:]}")


def crowd(pid: int) -> tuple[int, int]:
    """(threads of a process, processes below it), on Linux; (0, 0) elsewhere."""
    if not Path("/proc/self/stat").exists():
        return 0, 0
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
    below, found = [pid], set[int]()
    while below:
        parent = below.pop()
        below += (children := {one for one, other in parents.items() if other == parent} - found)
        found |= children
    return len(list(Path(f"/proc/{pid}/task").iterdir())), len(found)


def metrics(port: int) -> Series:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    series: Series = {}
    for name, labels, value in re.findall(r"^([\w:]+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
        series[name, tuple(re.findall(r'(\w+)="([^"]*)"', labels))] = float(value)
    return series


def total(series: Series, name: str, **labels: str) -> float:
    """The sum over all series of a name that have these labels."""
    return sum(value for (one, found), value in series.items() if one == name and labels.items() <= dict(found).items())


GAUGES = (
    "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "maskwright:constraint_compile_queue",
)  # fmt: skip


REASONS = {"stop": ("stop", "tool_calls"), "length": ("length",)}  # of the engine, and what clients are told then


def idle(port: int) -> Series:
    """The metrics when nothing runs any more, or those after IDLE_SECONDS."""
    deadline = time.monotonic() + IDLE_SECONDS
    while True:
        series = metrics(port)
        if not any(total(series, name) for name in GAUGES) or time.monotonic() > deadline:
            return series
        time.sleep(0.25)


# -- what has to hold


def crowd_findings(warm: tuple[int, int], after: tuple[int, int]) -> dict[str, Any]:
    """The same of threads and processes."""
    bounds = {"threads are bounded": THREADS_BOUND, "processes are bounded": PROCESSES_BOUND}
    numbers = zip(bounds.items(), warm, after, strict=True)
    return {name: (now <= before + bound, [before, now]) for (name, bound), before, now in numbers}


def findings(count: Count, before: Series, warm: Series, after: Series) -> dict[str, Any]:
    """Names of what has to hold, each with whether it does and the figures."""
    found: dict[str, Any] = {"every answer is right": (not count.failures, len(count.failures))}
    for name in GAUGES:
        found[f"{name} is 0"] = (total(after, name) == 0, total(after, name))
    memory = [total(series, "process_resident_memory_bytes") for series in (warm, after)]
    found["memory is bounded"] = (memory[1] <= MEMORY_BOUND * memory[0] + CACHE_BYTES, [round(each / 2**20) for each in memory])
    files = [total(series, "process_open_fds") for series in (warm, after)]
    found["open files are bounded"] = (files[1] <= files[0] + FILES_BOUND, files)
    found["no 5xx"] = (total(after, "http_requests_total", status="5xx") == 0, total(after, "http_requests_total", status="5xx"))

    def grown(name: str, **labels: str) -> float:
        return total(after, name, **labels) - total(before, name, **labels)

    for (handler, status), number in sorted(count.statuses.items()):
        seen = grown("http_requests_total", handler=handler, code=str(status))
        spare = count.vanished[handler] if status == 200 else count.cut[handler] if status == 400 else 0
        found[f"{handler} {status} is counted"] = (number <= seen <= number + spare, [number, seen, spare])
    for reason, numbers in REASONS.items():
        number = sum(count.outputs[each] for each in numbers)
        seen = grown("vllm:request_success_total", finished_reason=reason)
        spare = MOST_OUTPUTS * count.vanished.total()
        found[f"outputs that ended by {reason} are counted"] = (number <= seen <= number + spare, [number, seen, spare])
    generated = grown("vllm:generation_tokens_total")
    found["tokens generated are counted"] = (generated >= count.tokens, [count.tokens, generated])
    return found


async def all_of(port: int, numbers: range, together: int, count: Count, deadline: float) -> None:
    """deadline: of `time.perf_counter`; no request is begun after it."""
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            if time.perf_counter() > deadline:
                return
            await serve_one(port, number, count)

    await asyncio.gather(*(work() for _ in range(together)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=count, default=10_000)
    parser.add_argument("--together", type=count, default=24)
    parser.add_argument("--seconds", type=size, default=math.inf, help="after which no request is begun")
    parser.add_argument("--first", type=amount, default=0, help="the number of the first request: other requests")
    parser.add_argument("--out", type=Path, default=Path("build/soak.json"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    counted, begun = Count(), time.perf_counter()
    with serving(options.out.with_suffix(".log")) as (port, pid):
        before, num_warm, deadline = metrics(port), int(options.requests * WARM_SHARE), begun + options.seconds
        asyncio.run(all_of(port, range(options.first, options.first + num_warm), options.together, counted, deadline))
        warm, warm_crowd = idle(port), crowd(pid)
        for start in range(num_warm, options.requests, 1000):
            numbers = range(options.first + start, options.first + min(start + 1000, options.requests))
            asyncio.run(all_of(port, numbers, options.together, counted, deadline))
            now = metrics(port)
            memory = total(now, "process_resident_memory_bytes") / 2**20
            seconds, wrong = time.perf_counter() - begun, len(counted.failures)
            console.print(f"{counted.kinds.total()} requests, {seconds:.0f} s, {memory:.0f} MB, {wrong} wrong")
        found = findings(counted, before, warm, idle(port)) | crowd_findings(warm_crowd, crowd(pid))
    results = {
        "requests": counted.kinds.total(), "together": options.together, "cpus": os.cpu_count(),
        "seconds": round(time.perf_counter() - begun, 1),
        "kinds": counted.kinds, "clients": counted.clients, "outputs": counted.outputs,
        "findings": {name: {"holds": holds, "figures": figures} for name, (holds, figures) in found.items()},
        "failures": counted.failures[:50],
    }  # fmt: skip
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    for name, (holds, figures) in found.items():
        console.print(f"{'ok   ' if holds else 'WRONG'} {name}: {figures}", style=None if holds else "red")
    console.print(f"written: {options.out}")
    sys.exit(not all(holds for holds, _ in found.values()))


if __name__ == "__main__":
    with errors_as_messages():
        main()
