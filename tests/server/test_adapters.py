"""Adapters over HTTP: named as the model in every route, listed, loaded and unloaded where the operator allows it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from safetensors.torch import save_file

from maskwright import LLM, UsageError
from maskwright.server.settings import ServerSettings, named_paths

from .serving import Served, served

HELLO: Any = [{"role": "user", "content": "hello"}]
FEW = {"max_tokens": 8, "temperature": 0}


def save_adapter(llm: LLM, folder: Path, seed: int) -> Path:
    """An adapter of all down projections of the embedded model, strong enough to be noticed."""
    generator, tensors = torch.Generator().manual_seed(seed), {}
    spec = llm.driver._engine.runner.decoder.spec
    for layer in range(spec.num_layers):
        module = f"base_model.model.model.layers.{layer}.mlp.down_proj"
        tensors[f"{module}.lora_A.weight"] = torch.randn(2, spec.intermediate_size, generator=generator)
        tensors[f"{module}.lora_B.weight"] = torch.randn(spec.hidden_size, 2, generator=generator)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["down_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def folders(llm: LLM, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save_adapter(llm, tmp_path_factory.mktemp(name), seed) for seed, name in enumerate(("sql", "other"))}


@pytest.fixture(scope="module")
def open_server(folders: dict[str, Path]) -> Iterator[Served]:
    """A server with an adapter, which lets clients load others."""
    with served(LLM(adapters={"sql": folders["sql"]}), ServerSettings(runtime_adapters=True)) as running:
        yield running


@pytest.fixture(scope="module")
def client(open_server: Served) -> Iterator[httpx.Client]:
    with open_server.http() as connected:
        yield connected


def post(client: httpx.Client, path: str, **body: Any) -> httpx.Response:
    return client.post(path, json=body)


def told(client: httpx.Client, path: str, model: str) -> tuple[str, str]:
    """(what the answer calls the model, its text)"""
    if path == "/v1/completions":
        answer = post(client, path, model=model, prompt="hello", **FEW).json()
        return answer["model"], answer["choices"][0]["text"]
    if path == "/v1/chat/completions":
        answer = post(client, path, model=model, messages=HELLO, **FEW).json()
        return answer["model"], answer["choices"][0]["message"]["content"]
    if path == "/v1/responses":
        answer = post(client, path, model=model, input="hello", max_output_tokens=16, temperature=0).json()
        return answer["model"], answer["output"][0]["content"][0]["text"]
    if path == "/v1/messages":
        answer = post(client, path, model=model, messages=HELLO, max_tokens=8, temperature=0).json()
        return answer["model"], answer["content"][0]["text"]
    options = {"num_predict": 8, "temperature": 0}
    if path == "/api/chat":
        answer = post(client, path, model=model, messages=HELLO, stream=False, options=options).json()
        return answer["model"], answer["message"]["content"]
    answer = post(client, path, model=model, prompt="hello", stream=False, options=options).json()
    return answer["model"], answer["response"]


ROUTES = ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate"]


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_runs_with_the_adapter_that_is_named_as_the_model(path: str, client: httpx.Client) -> None:
    plain, adapted = told(client, path, "embedded"), told(client, path, "sql")
    assert (plain[0], adapted[0]) == ("embedded", "sql") and plain[1] != adapted[1]
    assert told(client, path, "sql") == adapted


def test_streams_tell_the_adapter(client: httpx.Client) -> None:
    answer = post(client, "/v1/chat/completions", model="sql", messages=HELLO, stream=True, **FEW)
    chunks = [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert {chunk["model"] for chunk in chunks} == {"sql"}


def test_adapters_are_listed_with_their_parent(client: httpx.Client, folders: dict[str, Path]) -> None:
    listed = {model["id"]: model for model in client.get("/v1/models").json()["data"]}
    assert listed["sql"]["parent"] == "embedded" and listed["sql"]["root"] == str(folders["sql"])
    assert listed["embedded"]["parent"] is None
    assert client.get("/v1/models/sql").json() == listed["sql"]
    assert "sql" in {model["name"] for model in client.get("/api/tags").json()["models"]}
    for path in ("/tokenize", "/api/show"):
        assert post(client, path, model="sql", **({"prompt": "a"} if path == "/tokenize" else {})).status_code == 200
    unknown = post(client, "/v1/completions", model="nobody", prompt="a")
    assert unknown.status_code == 404 and "'embedded' and 'sql'" in unknown.json()["error"]["message"]


def test_metrics(client: httpx.Client) -> None:
    told(client, "/v1/completions", "sql")
    text = client.get("/metrics").text
    assert 'maskwright:adapters{engine="0",model_name="embedded"} 1.0' in text
    assert "maskwright:adapter_bytes" in text and 'vllm:lora_requests_info{engine="0",max_lora="8"' in text


def test_an_adapter_is_loaded_used_and_unloaded(client: httpx.Client, folders: dict[str, Path]) -> None:
    done = post(client, "/v1/load_lora_adapter", lora_name="other", lora_path=str(folders["other"]))
    assert done.status_code == 200 and done.text == "Success: LoRA adapter 'other' added successfully."
    assert told(client, "/v1/completions", "other")[1] != told(client, "/v1/completions", "sql")[1]
    again = post(client, "/v1/load_lora_adapter", lora_name="other", lora_path=str(folders["sql"]))
    assert again.status_code == 400 and 'an adapter "other" is loaded' in again.json()["error"]["message"]
    assert post(client, "/v1/load_lora_adapter", lora_name="other", lora_path=str(folders["sql"]), load_inplace=True).status_code == 200
    assert told(client, "/v1/completions", "other")[1] == told(client, "/v1/completions", "sql")[1]
    for path in ("nowhere", str(folders["sql"] / "adapter_config.json")):  # then the one that is there stays
        assert post(client, "/v1/load_lora_adapter", lora_name="other", lora_path=path, load_inplace=True).status_code == 400
    assert told(client, "/v1/completions", "other")[1] == told(client, "/v1/completions", "sql")[1]
    gone = post(client, "/v1/unload_lora_adapter", lora_name="other")
    assert gone.status_code == 200 and gone.text == "Success: LoRA adapter 'other' removed successfully."
    assert post(client, "/v1/completions", model="other", prompt="a").status_code == 404
    missing = post(client, "/v1/unload_lora_adapter", lora_name="other")
    assert missing.status_code == 404 and missing.json()["error"]["code"] == "adapter_not_found"


def test_what_cannot_be_loaded_is_told(client: httpx.Client, tmp_path: Path, folders: dict[str, Path]) -> None:
    for name, path, param, message in (
        ("x", str(tmp_path / "nowhere"), "lora_path", "there is no such folder"),
        ("embedded", str(folders["sql"]), "lora_name", "the model itself is called"),
        ("a b", str(folders["sql"]), "lora_path", "1 to 256 characters"),
    ):
        refused = post(client, "/v1/load_lora_adapter", lora_name=name, lora_path=path)
        error = refused.json()["error"]
        assert refused.status_code == 400 and error["param"] == param and message in error["message"]


def test_unloading_refuses_while_in_use_or_waits(client: httpx.Client, open_server: Served, folders: dict[str, Path]) -> None:
    post(client, "/v1/load_lora_adapter", lora_name="busy", lora_path=str(folders["other"])).raise_for_status()
    body = {"model": "busy", "prompt": "hello", "max_tokens": 300, "ignore_eos": True, "stream": True}
    with open_server.http() as other, other.stream("POST", "/v1/completions", json=body) as streaming:
        lines = streaming.iter_lines()
        next(lines)
        refused = post(client, "/v1/unload_lora_adapter", lora_name="busy")
        waited: list[int] = []
        waiting = threading.Thread(target=lambda: waited.append(post(client, "/v1/unload_lora_adapter", lora_name="busy", wait=True).status_code))
        waiting.start()
        rest = list(lines)
        waiting.join()
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "adapter_in_use"
    assert rest[-1] == "data: [DONE]" or rest[-2] == "data: [DONE]"
    assert waited == [200] and "busy" not in {model["id"] for model in client.get("/v1/models").json()["data"]}


def test_clients_may_not_unless_the_operator_allows_it(http: httpx.Client, folders: dict[str, Path]) -> None:
    for path, body in (("/v1/load_lora_adapter", {"lora_name": "x", "lora_path": str(folders["sql"])}), ("/v1/unload_lora_adapter", {"lora_name": "x"})):
        refused = http.post(path, json=body)
        assert refused.status_code == 403 and "--runtime-adapters" in refused.json()["error"]["message"]


def test_names_and_paths_of_the_command_line() -> None:
    assert named_paths(["a=b", "c=d=e"]) == {"a": Path("b"), "c": Path("d=e")}
    assert named_paths(['{"name": "a", "path": "b", "base_model_name": "c"}']) == {"a": Path("b")}
    for wrong, message in ((['{"name": "a"}'], "NAME=PATH"), (["{"], "NAME=PATH"), (["a"], "NAME=PATH"), (["=b"], "NAME=PATH"), (["a="], "NAME=PATH"), (["a=b", "a=c"], "two adapters are named")):
        with pytest.raises(UsageError, match=message):
            ServerSettings(lora_modules=tuple(wrong))


def test_a_model_and_an_adapter_may_not_share_a_name(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match='the model itself is called "embedded"'), served(LLM(adapters={"embedded": folders["sql"]})):
        pass
