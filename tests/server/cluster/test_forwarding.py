"""One request and replicas that are lost over it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.server.client import Caller
from maskwright.server.cluster.asked import Asked, Head
from maskwright.server.cluster.forwarding import Forwarding, ReplicaLost
from maskwright.server.errors import ApiError

STREAM = Head(200, ((b"content-type", b"text/event-stream; charset=utf-8"),))
WHOLE = Head(200, ((b"content-type", b"application/json"),))
BUSY = Head(503, ((b"content-type", b"application/json"),))
LOST = "lost"


@dataclass
class Scene:
    """Replicas that do, one after another, what a script says, and a client that keeps what it is sent."""

    scripts: Sequence[Sequence[Head | bytes | str]]
    path: str = "/v1/chat/completions"
    sent: list[dict[str, Any]] = field(default_factory=list)
    num_asked: int = 0
    num_open: int = 0

    async def ask(self, asked: Asked) -> AsyncGenerator[Head | bytes, None]:
        script = self.scripts[self.num_asked]
        self.num_asked += 1
        self.num_open += 1
        try:
            for each in script:
                await asyncio.sleep(0)
                if isinstance(each, str):
                    raise ReplicaLost(each)
                yield each
        finally:
            self.num_open -= 1

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    def run(self, max_retries: int = 3) -> Forwarding:
        forwarding = Forwarding(self.asked, self.ask, max_retries)

        async def receive() -> Any:
            await asyncio.Event().wait()

        asyncio.run(forwarding.run(receive, self.send))
        assert self.num_open == 0
        return forwarding

    @property
    def asked(self) -> Asked:
        return Asked("POST", self.path, b"", ((b"x-request-id", b"r1"),), b"{}", None, Caller())

    @property
    def body(self) -> bytes:
        starts = [each["type"] == "http.response.start" for each in self.sent]
        assert starts == [True] + [False] * (len(starts) - 1), "one head, and it comes first"
        assert [each["more_body"] for each in self.sent[1:]] == [True] * (len(self.sent) - 2) + [False], "one end"
        return b"".join(each["body"] for each in self.sent[1:])


def test_a_stream_is_told_as_it_comes() -> None:
    scene = Scene([[STREAM, b"a", b"b"]])
    assert (scene.run().num_lost, scene.body, len(scene.sent)) == (0, b"ab", 4)


@pytest.mark.parametrize("first", [[LOST], [STREAM, LOST], [WHOLE, b'{"a"', LOST], [BUSY, b"x"]], ids=["at once", "head", "piece", "busy"])
def test_another_one_answers_while_nothing_was_sent(first: list[Any]) -> None:
    scene = Scene([first, first, [WHOLE, b'{"a"', b": 1}"]])
    forwarding = scene.run()
    assert (scene.body, scene.num_asked, forwarding.num_lost, forwarding.is_broken) == (b'{"a": 1}', 3, 2 * (first[0] is not BUSY), False)


def test_when_all_are_lost_the_error_has_a_name() -> None:
    scene = Scene([[LOST]] * 4)
    with pytest.raises(ApiError) as caught:
        scene.run()
    assert (caught.value.status, caught.value.code, scene.num_asked, scene.sent) == (503, "replica_lost", 4, [])


def test_the_last_refusal_is_told_as_it_is() -> None:
    scene = Scene([[BUSY, b"1"], [BUSY, b"2"]])
    scene.run(max_retries=1)
    assert (scene.sent[0]["status"], scene.body) == (503, b"2")


@pytest.mark.parametrize(
    ("path", "kind", "read"),
    [
        ("/v1/chat/completions", STREAM, lambda last: json.loads(last.removeprefix("data: "))["error"]["code"]),
        ("/v1/messages", STREAM, lambda last: json.loads(last.split("data: ")[1])["error"]["code"]),
        ("/v1/responses", STREAM, lambda last: json.loads(last.split("data: ")[1])["code"]),
        ("/api/chat", Head(200, ((b"content-type", b"application/x-ndjson"),)), lambda last: "replica_lost" * ("lost" in json.loads(last)["error"])),
    ],
)
def test_a_stream_that_had_begun_ends_with_an_error_that_its_client_reads(path: str, kind: Head, read: Any) -> None:
    scene = Scene([[kind, b"begun\n\n", LOST], [kind, b"never"]], path)
    forwarding = scene.run()
    assert scene.num_asked == 1 and forwarding.is_broken and scene.body.startswith(b"begun\n\n")
    assert read(scene.body.removeprefix(b"begun\n\n").decode().strip()) == "replica_lost"


def test_a_client_that_goes_closes_the_answer() -> None:
    scene = Scene([[STREAM, *[b"x"] * 100_000]])

    async def receive() -> Any:
        while len(scene.sent) < 5:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def run() -> None:
        await Forwarding(scene.asked, scene.ask, 3).run(receive, scene.send)
        assert scene.num_open == 0

    asyncio.run(run())
    assert 5 <= len(scene.sent) < 100


PIECES = st.lists(st.binary(min_size=1, max_size=3), max_size=4)


@given(st.lists(st.tuples(st.sampled_from([STREAM, WHOLE]), PIECES, st.booleans()), min_size=4, max_size=4), st.integers(0, 3))
def test_there_is_one_answer_of_one_replica_whatever_happens(plan: list[tuple[Head, list[bytes], bool]], max_retries: int) -> None:
    scene = Scene([[head, *pieces, *([LOST] if is_lost else [])] for head, pieces, is_lost in plan])
    tried = plan[: max_retries + 1]
    wanted = next((each for each in tried if not each[2] or (each[0] is STREAM and each[1])), None)
    if wanted is None:
        with pytest.raises(ApiError):
            scene.run(max_retries)
        assert scene.sent == []
        return
    scene.run(max_retries)
    assert scene.num_asked == tried.index(wanted) + 1
    _, pieces, is_lost = wanted
    assert scene.body.startswith(b"".join(pieces)) and (scene.body == b"".join(pieces)) == (not is_lost)
