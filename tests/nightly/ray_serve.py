"""Replicas on Ray Serve under requests of mixed constraints, while they are killed, added, updated and taken away.

    python tests/nightly/ray_serve.py [--requests 400] [--concurrency 8] [--seed 0]

`make ray-serve` runs it, in an environment with `ray[serve]`. None is lost: each is answered as one engine answers it (all draw
with a seed), or is a stream that had begun and ends with `replica_lost`. None is answered twice. Then what prefix affinity gives
over random routing, a stream whose client goes, a conversation that goes on when its replica is gone, adapters that take turns
in replicas with room for few, and scaling by load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import ray
import torch
from ray import serve
from safetensors.torch import save_file

from maskwright import LLM
from maskwright.model_folder import embedded_model
from maskwright.server.app import create_app
from maskwright.server.ray import app

NAME = "maskwright"
ENGINE = b"ray::ServeReplica:maskwright:Engine"
ENGINE_OPTIONS = {"threads": 1, "replica_cpus": 1, "report_seconds": 1, "upscale_seconds": 1, "downscale_seconds": 600}
TIMEOUT = 120.0
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Case:
    """A request, and the text that one engine answers."""

    path: str
    body: dict[str, Any]


def cases(rng: random.Random, count: int) -> list[Case]:
    return [_case(rng, number) for number in range(count)]


def _case(rng: random.Random, number: int) -> Case:
    system = f"Rule {number % 5}: " + "read the text with care and answer in the form that is asked for. " * 4
    text = f"{system}\nAda {number}, {rng.randrange(99)} years old, lives in London."
    drawn = {"model": "embedded", "seed": number, "max_tokens": 60, "stream": rng.random() < 0.5}
    messages = [{"role": "user", "content": text}]
    schema = json.loads(json.dumps(PERSON).replace("12", str(8 + number % 6)))
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("/v1/chat/completions", {"messages": messages, "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}}),
        ("/v1/chat/completions", {"messages": messages, "regex": f"[a-z]{{3,{4 + number % 7}}} [0-9]+"}),
        ("/v1/completions", {"prompt": text, "guided_choice": ["London", "Paris", f"city {number % 4}"]}),
        ("/v1/completions", {"prompt": text, "grammar": 'root ::= "age " [0-9]{1,3} ("!" | ".")'}),
        ("/v1/completions", {"prompt": text, "ignore_eos": True, "max_tokens": 400}),
        ("/v1/completions", {"prompt": text, "ignore_eos": True, "max_tokens": 800}),
        ("/v1/messages", {"messages": messages, "output_config": {"format": {"type": "json_schema", "schema": schema}}}),
    ]
    path, own = kinds[rng.randrange(len(kinds))]
    if path == "/v1/messages":
        drawn.pop("seed")
        drawn["temperature"] = 0
    return Case(path, drawn | own)


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    ends: int  # how often the end was told
    error: str | None = None  # its code


async def asked(client: httpx.AsyncClient, case: Case) -> Answer:
    """Send a request, and read all that comes. Raises httpx.HTTPError where the connection breaks."""
    async with client.stream("POST", case.path, json=case.body) as response:
        lines = [line async for line in response.aiter_lines()]
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        told = json.loads("\n".join(lines))
        code = told["error"]["code"] if "error" in told else None
        return Answer(response.status_code, "" if code else _text(told), 1, code)
    text, ends, error = "", 0, None
    for line in lines:
        if line == "data: [DONE]":
            ends += 1
        elif line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            ends += event.get("type") == "message_stop"
            if event.get("error"):
                error = event["error"]["code"]
            text += _delta(event)
    return Answer(response.status_code, text, ends, error)


def _text(told: Mapping[str, Any]) -> str:
    if "content" in told:
        return "".join(part["text"] for part in told["content"])
    choice = told["choices"][0]
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


def _delta(event: Mapping[str, Any]) -> str:
    if event.get("type") == "content_block_delta":
        return str(event["delta"].get("text", ""))
    for choice in event.get("choices", ()):
        return str(choice["delta"].get("content") or "" if "delta" in choice else choice["text"])
    return ""


async def expected(wanted: list[Case], adapters: Mapping[str, Path] | None = None) -> list[Answer]:
    """What one engine answers, which has all adapters."""
    application = create_app(LLM(threads=1, adapters=adapters or {}, max_adapters=max(1, len(adapters or {}))))
    transport = httpx.ASGITransport(application)
    async with application.router.lifespan_context(application), httpx.AsyncClient(transport=transport, base_url="http://one") as one:
        return [await asked(one, Case(case.path, case.body | {"stream": False})) for case in wanted]


# ---- the cluster


class Cluster:
    """Ray on this machine, and a client of what it serves."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": self.port})

    async def deploy(self, **options: Any) -> None:
        """Bring the application to these options; requests that run go on."""
        made = app({**ENGINE_OPTIONS, **options})
        await asyncio.to_thread(serve.run, made, name=NAME, route_prefix="/")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=0)  # a proxy may close a connection that is idle
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=TIMEOUT, limits=limits) as client:
            yield client

    def kill_one(self, rng: random.Random) -> int:
        pid = rng.choice(engine_pids())
        os.kill(pid, signal.SIGKILL)
        return pid


def engine_pids() -> list[int]:
    """The processes of engines on this machine that are ours."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (each / "cmdline").read_bytes().startswith(ENGINE) and each.stat().st_uid == os.getuid():
                found.append(int(each.name))
    return sorted(found)


async def until(condition: Any, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, f"{condition.__name__} does not hold after {seconds} s"
        await asyncio.sleep(0.2)


async def totals(client: httpx.AsyncClient, *names: str) -> list[float]:
    """Sums over all replicas."""
    text = (await client.get("/metrics")).text
    return [sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:_total)?\{{[^}}]*\}} (\S+)$", text, re.M)) for name in names]


# ---- what is tried


async def nothing_is_lost(cluster: Cluster, wanted: list[Case], told: list[Answer], count: int, concurrency: int, rng: random.Random) -> Counter[str]:
    """`count` requests while replicas go and come."""
    kinds: Counter[str] = Counter()
    coming, num_done = iter(range(count)), 0
    kill = ("a replica is killed", lambda: asyncio.to_thread(cluster.kill_one, rng))
    acts: dict[int, tuple[str, Callable[[], Coroutine[Any, Any, Any]]]] = {
        count * 1 // 10: kill,
        count * 3 // 10: kill,
        count * 4 // 10: ("scaled to three", lambda: cluster.deploy(replicas=3)),
        count * 5 // 10: kill,
        count * 6 // 10: ("all replicas are replaced", lambda: cluster.deploy(replicas=3, max_logprobs=19)),
        count * 7 // 10: kill,
        count * 8 // 10: ("scaled to two", lambda: cluster.deploy(replicas=2, max_logprobs=19)),
        count * 9 // 10: kill,
    }
    acting: list[asyncio.Task[Any]] = []

    async def work(client: httpx.AsyncClient) -> None:
        nonlocal num_done
        for number in coming:
            case, right = wanted[number % len(wanted)], told[number % len(wanted)]
            answer = await asked(client, case)
            kinds[_verdict(case, answer, right)] += 1
            num_done += 1
            if num_done in acts:
                say, act = acts.pop(num_done)
                print(f"  {num_done}: {say}", flush=True)
                acting.append(asyncio.create_task(act()))

    async def watch(client: httpx.AsyncClient) -> None:
        """Count what ingresses counted, which begin anew when they are replaced."""
        last = 0.0
        while True:
            (lost,) = await totals(client, "maskwright:lost_replicas")
            kinds["(times that a replica was lost over a request)"] += int(lost - last if lost >= last else lost)
            last = lost
            await asyncio.sleep(0.5)

    async with cluster.client() as client:
        watching = asyncio.create_task(watch(client))
        await asyncio.gather(*(work(client) for _ in range(concurrency)))
        await asyncio.gather(*acting)
        await asyncio.sleep(1)
        assert not watching.done(), watching.exception()
        watching.cancel()
    return kinds


def _verdict(case: Case, answer: Answer, right: Answer) -> str:
    if answer.error == "replica_lost" and case.body["stream"] and answer.status == 200:
        assert right.text.startswith(answer.text) and not answer.ends, (case, answer, right)
        return "ended with replica_lost"
    assert (answer.status, answer.error) == (200, None), (case, answer)
    assert answer.ends == 1, (case, answer)
    assert answer.text == right.text, (case, answer, right)
    return "answered"


async def hit_rate(cluster: Cluster, router: str, count: int, seed: int) -> float:
    """Share of prompt tokens that were in a prefix cache, over prompts with one of twelve long beginnings."""
    await cluster.deploy(replicas=3, router=router)
    rng = random.Random(seed)
    async with cluster.client() as client:
        await client.post("/reset_prefix_cache")
        before = await totals(client, "vllm:prefix_cache_queries", "vllm:prefix_cache_hits")
        for _ in range(count):
            subject = rng.randrange(12)
            prompt = f"Subject {subject}. " + f"What is known of {subject} and of {subject * 7} is told here. " * 12 + str(rng.random())
            answer = await client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 1, "temperature": 0})
            assert answer.status_code == 200, answer.text
        after = await totals(client, "vllm:prefix_cache_queries", "vllm:prefix_cache_hits")
    return (after[1] - before[1]) / (after[0] - before[0])


async def a_client_that_goes_ends_its_request(cluster: Cluster) -> None:
    async with cluster.client() as client:
        body = {"prompt": "x", "max_tokens": 1500, "ignore_eos": True, "stream": True}
        async with client.stream("POST", "/v1/completions", json=body) as response:
            await anext(response.aiter_lines())

        async def nothing_runs() -> bool:
            return (await client.get("/load")).json() == {"server_load": 0} and await totals(client, "vllm:num_requests_running") == [0.0]

        await until(nothing_runs, 20)


async def a_conversation_outlives_its_replica(cluster: Cluster) -> None:
    async with cluster.client() as client:
        first = (await client.post("/v1/responses", json={"input": "My name is Ada.", "max_output_tokens": 5})).json()
        for pid in engine_pids():
            os.kill(pid, signal.SIGKILL)
        body = {"input": "Go on.", "previous_response_id": first["id"], "max_output_tokens": 5}
        answer = await client.post("/v1/responses", json=body)
        assert answer.status_code == 200 and answer.json()["previous_response_id"] == first["id"], answer.text


def save_adapter(folder: Path, seed: int) -> Path:
    """An adapter of all down projections of the embedded model, strong enough to be noticed."""
    folder.mkdir()
    generator, tensors = torch.Generator().manual_seed(seed), {}
    sizes = json.loads((embedded_model() / "config.json").read_text())
    for layer in range(sizes["num_hidden_layers"]):
        module = f"base_model.model.model.layers.{layer}.mlp.down_proj"
        tensors[f"{module}.lora_A.weight"] = torch.randn(2, sizes["intermediate_size"], generator=generator)
        tensors[f"{module}.lora_B.weight"] = torch.randn(sizes["hidden_size"], 2, generator=generator)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["down_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


async def adapters_take_turns(cluster: Cluster, adapters: Mapping[str, Path], count: int, rng: random.Random) -> Counter[str]:
    """Requests for more adapters than a replica has room for, and for none, while a replica is killed."""
    models = ["embedded", *adapters]
    wanted = [Case(each.path, each.body | {"model": rng.choice(models)}) for each in cases(rng, 80) if each.body["max_tokens"] < 100]
    told = await expected(wanted, adapters)
    assert len({right.text for right in told}) > len(models), "adapters make no difference"
    await cluster.deploy(replicas=2, lora_modules=[f"{name}={path}" for name, path in adapters.items()], max_adapters=2)
    kinds, coming = Counter[str](), iter(range(count))

    async def work(client: httpx.AsyncClient) -> None:
        for number in coming:
            if number == count // 2:
                cluster.kill_one(rng)
            case, right = wanted[number % len(wanted)], told[number % len(wanted)]
            kinds[_verdict(case, await asked(client, case), right)] += 1

    async with cluster.client() as client:
        await asyncio.gather(*(work(client) for _ in range(8)))
    return kinds


async def load_starts_replicas(cluster: Cluster) -> None:
    await cluster.deploy(replicas=1, max_replicas=2, target_open=2, downscale_seconds=1)

    async def one_is_left() -> bool:
        return len(engine_pids()) == 1

    async def two_run() -> bool:
        return len(engine_pids()) == 2

    await until(one_is_left)
    async with cluster.client() as client:
        body = {"prompt": "x", "max_tokens": 1500, "ignore_eos": True}
        running = [asyncio.create_task(client.post("/v1/completions", json=body)) for _ in range(12)]
        await until(two_run)
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _requests(cluster: Cluster, arguments: argparse.Namespace) -> str:
    rng, started = random.Random(arguments.seed), time.perf_counter()
    wanted = cases(rng, 60)
    told = await expected(wanted)
    assert all(each.status == 200 for each in told), next(each for each in told if each.status != 200)
    kinds = await nothing_is_lost(cluster, wanted, told, arguments.requests, arguments.concurrency, rng)
    return f"{arguments.requests} in {time.perf_counter() - started:.0f} s: {dict(kinds)}"


async def _routing(cluster: Cluster, arguments: argparse.Namespace) -> str:
    rates = {router: await hit_rate(cluster, router, arguments.routed, arguments.seed) for router in ("prefix", "random")}
    assert rates["prefix"] > rates["random"], rates
    return "prompt tokens found in a prefix cache: " + ", ".join(f"{name} {rate:.1%}" for name, rate in rates.items())


async def _leaving(cluster: Cluster, arguments: argparse.Namespace) -> str:
    await a_client_that_goes_ends_its_request(cluster)
    return "a client that goes ends its request"


async def _conversation(cluster: Cluster, arguments: argparse.Namespace) -> str:
    await a_conversation_outlives_its_replica(cluster)
    return "it goes on when its replicas are gone"


async def _adapters(cluster: Cluster, arguments: argparse.Namespace) -> str:
    rng, count = random.Random(arguments.seed), 5
    with tempfile.TemporaryDirectory() as folder:
        made = {f"adapter-{number}": save_adapter(Path(folder) / str(number), number) for number in range(count)}
        kinds = await adapters_take_turns(cluster, made, arguments.requests, rng)
    return f"{arguments.requests} requests for {count} adapters and none, two at a time in a replica: {dict(kinds)}"


async def _scaling(cluster: Cluster, arguments: argparse.Namespace) -> str:
    await load_starts_replicas(cluster)
    return "load starts another replica"


PARTS = {"requests": _requests, "routing": _routing, "leaving": _leaving, "conversation": _conversation, "adapters": _adapters, "scaling": _scaling}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--routed", type=int, default=120, help="requests for each router whose hits are compared")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    cluster = Cluster()
    try:
        started = time.perf_counter()
        await cluster.deploy(replicas=2)
        print(f"two replicas are up after {time.perf_counter() - started:.0f} s", flush=True)
        for part in arguments.parts:
            print(f"{part}: {await PARTS[part](cluster, arguments)}", flush=True)
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
