"""/v1/files and /v1/batches, as OpenAI's client asks: run, cancelled, expired, gone on with, bounded, and apart by API key."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from maskwright import LLM
from maskwright.server.batches.batch import ENDED
from maskwright.server.batches.files import UPLOADED
from maskwright.server.batches.running import Batches
from maskwright.server.errors import ApiError
from maskwright.server.settings import ServerSettings

from ..serving import Served, served

URL = "/v1/completions"
BODY = {"prompt": "hello", "max_tokens": 3, "temperature": 0}


def lines(*bodies: Any, url: str = URL) -> io.BytesIO:
    made = ({"custom_id": f"r{number}", "method": "POST", "url": url, "body": body} for number, body in enumerate(bodies))
    file = io.BytesIO("\n".join(map(json.dumps, made)).encode())
    file.name = "in.jsonl"
    return file


def custom_ids(client: openai.OpenAI, file_id: str | None) -> list[str]:
    assert file_id is not None
    return sorted(json.loads(line)["custom_id"] for line in client.files.content(file_id).text.splitlines())


def ended(client: openai.OpenAI, batch_id: str) -> Any:
    while (batch := client.batches.retrieve(batch_id)).status not in ENDED:
        pass
    return batch


@pytest.fixture(scope="module")
def keyed(llm: LLM, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("batches")
    with served(llm, ServerSettings(batch_folder=folder, api_key=("one", "two"), max_file_bytes=5000, max_files_bytes=9000)) as running:
        yield running


def test_a_batch_runs(keyed: Served) -> None:
    with keyed.openai("one") as client:
        file = client.files.create(file=lines(BODY, {"prompt": 3}, BODY), purpose="batch")
        assert (file.filename, file.purpose, client.files.retrieve(file.id)) == ("in.jsonl", "batch", file)
        batch = client.batches.create(input_file_id=file.id, endpoint=URL, completion_window="24h", metadata={"a": "b"})
        assert batch.status in ("validating", "in_progress", "finalizing", "completed") and batch.metadata == {"a": "b"}
        batch = ended(client, batch.id)
        assert batch.status == "completed" and batch.request_counts is not None
        assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (3, 2, 1)
        assert custom_ids(client, batch.output_file_id) == ["r0", "r2"] and custom_ids(client, batch.error_file_id) == ["r1"]
        assert batch.output_file_id is not None
        answer = json.loads(client.files.content(batch.output_file_id).text.splitlines()[0])
        alone = client.completions.create(model="default", **BODY)  # type: ignore[call-overload]
        assert answer["response"]["status_code"] == 200 and answer["error"] is None
        assert answer["response"]["body"]["choices"][0]["text"] == alone.choices[0].text
        assert batch.id in [each.id for each in client.batches.list().data]
        names = {each.purpose for each in client.files.list().data}
        assert names == {"batch", "batch_output"} and [each.id for each in client.files.list(purpose="batch").data] == [file.id]
        with pytest.raises(openai.ConflictError, match="it is completed"):
            client.batches.cancel(batch.id)
        for file_id in (file.id, batch.output_file_id, batch.error_file_id):
            assert file_id is not None and client.files.delete(file_id).deleted
        with pytest.raises(openai.NotFoundError):
            client.files.retrieve(file.id)


def test_a_file_that_is_wrong_fails_with_its_lines(keyed: Served) -> None:
    with keyed.openai("one") as client:
        file = client.files.create(file=lines(BODY, {"stream": True}), purpose="batch")
        batch = ended(client, client.batches.create(input_file_id=file.id, endpoint=URL, completion_window="24h").id)
        assert batch.status == "failed" and [(each.line, each.param) for each in batch.errors.data] == [(2, "body")]
        other = client.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
        assert "url is one of /v1/responses" in ended(client, other.id).errors.data[0].message
        client.files.delete(file.id)


def test_clients_find_what_is_theirs(keyed: Served) -> None:
    with keyed.openai("one") as one, keyed.openai("two") as two:
        file = one.files.create(file=lines(BODY), purpose="batch")
        batch = ended(one, one.batches.create(input_file_id=file.id, endpoint=URL, completion_window="24h").id)
        for refused in (two.files.retrieve, two.files.content, two.files.delete):
            with pytest.raises(openai.NotFoundError):
                refused(file.id)
        for refused_batch in (two.batches.retrieve, two.batches.cancel):
            with pytest.raises(openai.NotFoundError):
                refused_batch(batch.id)
        with pytest.raises(openai.BadRequestError, match="there is no file"):
            two.batches.create(input_file_id=file.id, endpoint=URL, completion_window="24h")
        assert not [*two.files.list().data, *two.batches.list().data]
        for file_id in (file.id, batch.output_file_id):
            assert file_id is not None and one.files.delete(file_id).deleted


def test_what_is_asked_wrongly_or_too_large_is_refused(keyed: Served) -> None:
    with keyed.openai("one") as client, keyed.http() as http:
        http.headers["authorization"] = "Bearer one"
        for form, param in (({"purpose": "batch"}, "file"), ({"purpose": "fine-tune"}, "purpose"), ({"purpose": "batch", "expires_after": "1"}, "expires_after")):
            files = {} if param == "file" else {"file": ("in.jsonl", b"{}")}
            answer = http.post("/v1/files", data=form, files=files)
            assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text
        assert http.post("/v1/files", content=b"--x", headers={"content-type": "multipart/form-data; boundary=y"}).status_code == 400
        with pytest.raises(openai.APIStatusError, match="the body is larger than"):
            client.files.create(file=io.BytesIO(b"x" * 20_000), purpose="batch")
        first = client.files.create(file=io.BytesIO(b"x" * 4_900), purpose="batch")
        with pytest.raises(openai.BadRequestError, match="this server keeps 9000; delete some"):
            client.files.create(file=io.BytesIO(b"x" * 4_900), purpose="batch")
        client.files.delete(first.id)
        with pytest.raises(openai.BadRequestError, match="endpoint"):
            client.batches.create(input_file_id="x", endpoint="/v1/embeddings", completion_window="24h")


def test_a_server_without_a_folder_says_what_to_do(http: httpx.Client) -> None:
    for path in ("/v1/files", "/v1/batches", "/v1/batches/x", "/v1/files/x/content"):
        answer = http.get(path)
        assert answer.status_code == 400 and "--batch-folder" in answer.json()["error"]["message"]


class Held:
    """An application that answers when it is let, and counts who asks."""

    def __init__(self, num_answered: int) -> None:
        self.num_answered = num_answered  # requests; those that come later wait
        self.num_asked = 0
        self.waiting = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        self.num_asked += 1
        if self.num_asked > self.num_answered:
            self.waiting.set()
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


def opened(folder: Path, now: float = 1000.0) -> Batches:
    return Batches(folder, ServerSettings(max_batch_requests=1, max_batches=2), now=lambda: now)


def added(batches: Batches, num_lines: int = 3) -> Any:
    file = batches.files.add("", "in", UPLOADED, lines(*[BODY] * num_lines))
    return batches.add("", URL, file.id, None)


async def wait_for_end(batch: Any) -> None:
    while batch.status not in ENDED:
        await asyncio.sleep(0)


def answered(batches: Batches, file_id: str | None) -> list[str]:
    if file_id is None:
        return []
    path = batches.files.path(batches.files.get("", file_id))
    return sorted(json.loads(line)["custom_id"] for line in path.read_text().splitlines())


def test_a_server_that_is_started_again_goes_on(tmp_path: Path) -> None:
    async def stop_in_the_middle() -> str:
        batches, app = opened(tmp_path), Held(2)
        batch = added(batches)
        batches.start(app)
        await app.waiting.wait()
        await batches.stop()
        assert batch.status == "in_progress"
        return str(batch.id)

    async def go_on(batch_id: str) -> None:
        batches, app = opened(tmp_path, now=2000.0), Held(9)
        batch = batches.get("", batch_id)
        batches.start(app)
        await wait_for_end(batch)
        await batches.stop()
        assert app.num_asked == 1 and (batch.status, batch.completed, batch.failed) == ("completed", 3, 0)
        assert answered(batches, batch.output_file_id) == ["r0", "r1", "r2"] and batch.error_file_id is None

    asyncio.run(go_on(asyncio.run(stop_in_the_middle())))
    assert opened(tmp_path).of("")[0].status == "completed"


def test_a_batch_that_is_cancelled_keeps_what_is_answered(tmp_path: Path) -> None:
    async def cancel_two() -> None:
        batches, app = opened(tmp_path), Held(2)
        running, waiting = added(batches), added(batches)
        with pytest.raises(ApiError, match="2 batches run or wait"):
            added(batches)
        batches.start(app)
        await app.waiting.wait()
        batches.cancel(waiting)
        assert waiting.status == "cancelled"
        batches.cancel(running)
        batches.cancel(running)  # once more does nothing
        assert running.status == "cancelling"
        await wait_for_end(running)
        await batches.stop()
        assert running.status == "cancelled" and answered(batches, running.output_file_id) == ["r0", "r1"]
        with pytest.raises(ApiError, match="ended already"):
            batches.cancel(running)

    asyncio.run(cancel_two())


def test_a_batch_whose_time_is_over_tells_each_request_so(tmp_path: Path) -> None:
    async def expire() -> None:
        batch = added(opened(tmp_path, now=1000.0))
        batches = opened(tmp_path, now=1000.0 + 24 * 3600)
        batches.start(Held(9))
        again = batches.get("", batch.id)
        await wait_for_end(again)
        await batches.stop()
        assert again.status == "expired" and again.output_file_id is None
        assert answered(batches, again.error_file_id) == ["r0", "r1", "r2"]
        path = batches.files.path(batches.files.get("", again.error_file_id or ""))
        assert {json.loads(line)["error"]["code"] for line in path.read_text().splitlines()} == {"batch_expired"}

    asyncio.run(expire())


def test_files_that_were_not_written_whole_are_gone_and_wrong_ones_are_passed_over(tmp_path: Path) -> None:
    batches = opened(tmp_path)
    batch = added(batches)
    for name in ("files/file-half", "files/.file-x.json.part", "files/file-bad.json", "batches/batch_bad.json"):
        (tmp_path / name).write_text("{")
    again = opened(tmp_path)
    assert [each.id for each in again.of("")] == [batch.id] and [each.id for each in again.files.of("")] == [batch.input_file_id]
    assert len(list((tmp_path / "files").iterdir())) == 2


def test_a_batch_without_its_file_fails(tmp_path: Path) -> None:
    async def run() -> None:
        batches = opened(tmp_path)
        batch = added(batches)
        batches.files.delete(batches.files.get("", batch.input_file_id))
        batches.start(Held(9))
        await wait_for_end(batch)
        await batches.stop()
        assert batch.status == "failed" and "was deleted" in batch.told()["errors"]["data"][0]["message"]

    asyncio.run(run())
