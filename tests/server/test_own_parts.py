"""What plugins have registered comes over HTTP by name, where the operator lets clients name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import Regex
from maskwright.errors import UsageError
from maskwright.extending import GRAMMAR_LANGUAGES, LOGITS_STAGES, STOPPING, Language, LogitsStage, StoppingCriterion
from maskwright.server.own_parts import parts_of
from maskwright.server.settings import ServerSettings

from .serving import served

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
ASKED: dict[str, Any] = {
    CHAT: {"messages": [{"role": "user", "content": "a word"}], "max_tokens": 12},
    COMPLETIONS: {"prompt": "a word", "max_tokens": 12},
    RESPONSES: {"input": "a word", "max_output_tokens": 12},
    MESSAGES: {"messages": [{"role": "user", "content": "a word"}], "max_tokens": 12},
}


@dataclass(frozen=True)
class Favour(LogitsStage):
    """Adds to the logits of one text's token."""

    text: str = "x"

    def __post_init__(self) -> None:
        if len(self.text) != 1:
            raise ValueError("one character")

    def setup(self, request: Any) -> list[int]:
        return [token for token, spelling in enumerate(request.spellings) if spelling == self.text.encode()]

    def apply(self, logits: Any, context: Any) -> Any:
        for row, tokens in zip(logits, context.states, strict=True):
            row[tokens] += 1000.0
        return logits


@dataclass(frozen=True)
class After(StoppingCriterion):
    """Ends behind so many tokens."""

    count: int = 3

    def begin(self, request: Any) -> Any:
        seen: list[int] = []
        return lambda token_id: seen.append(token_id) or len(seen) == self.count


def glob(text: str, start: str | None) -> Regex:
    if "[" in text:
        raise ValueError("no classes")
    return Regex("".join({"*": "[a-z]*", "?": "[a-z]"}.get(char) or re.escape(char) for char in text))


@pytest.fixture(scope="module")
def names() -> Iterator[None]:
    registries: list[tuple[Any, str, Any]] = [
        (LOGITS_STAGES, "favour-http", Favour), (STOPPING, "after-http", After), (GRAMMAR_LANGUAGES, "glob-http", Language(glob, (".globhttp",))),
        (LOGITS_STAGES, "unlisted-http", Favour),
    ]  # fmt: skip
    for registry, name, value in registries:
        registry.register(name, value)
    yield
    for registry, name, _ in registries:
        del registry._values[name]


@pytest.fixture(scope="module")
def http(llm: LLM, names: None) -> Iterator[httpx.Client]:
    settings = ServerSettings(
        client_logits_processors=("favour-http",), client_stopping_criteria=("after-http",), client_grammar_languages=("glob-http",)
    )
    with served(llm, settings) as running, running.http() as connected:
        yield connected


def text_of(path: str, answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    told = answer.json()
    if path == COMPLETIONS:
        return str(told["choices"][0]["text"])
    if path == CHAT:
        return str(told["choices"][0]["message"]["content"])
    parts = told["content"] if path == MESSAGES else told["output"][0]["content"]
    return str(parts[0]["text"])


@pytest.mark.parametrize("path", ASKED)
def test_a_processor_changes_what_is_written(http: httpx.Client, path: str) -> None:
    body = {**ASKED[path], "regex": "[a-z]{4}", "temperature": 0}
    plain = text_of(path, http.post(path, json=body))
    assert text_of(path, http.post(path, json={**body, "logits_processors": ["favour-http"]})) == "xxxx" != plain
    chosen = [{"name": "favour-http", "parameters": {"text": "q"}}]
    assert text_of(path, http.post(path, json={**body, "logits_processors": chosen})) == "qqqq"
    assert text_of(path, http.post(path, json={**body, "logits_processors": []})) == plain


@pytest.mark.parametrize("path", ASKED)
def test_a_criterion_ends_free_text(http: httpx.Client, path: str) -> None:
    body = {**ASKED[path], "temperature": 0}
    answer = http.post(path, json={**body, "stopping_criteria": ["after-http"]}).json()
    usage = answer["usage"]
    assert (usage.get("completion_tokens") or usage.get("output_tokens")) == 3
    chosen = [{"name": "after-http", "parameters": {"count": 2}}]
    usage = http.post(path, json={**body, "stopping_criteria": chosen}).json()["usage"]
    assert (usage.get("completion_tokens") or usage.get("output_tokens")) == 2


def test_grammars_are_written_in_a_language_of_a_plugin(http: httpx.Client) -> None:
    form = {"type": "grammar", "grammar": "??.x", "syntax": "glob-http"}
    assert re.fullmatch("[a-z]{2}[.]x", text_of(CHAT, http.post(CHAT, json={**ASKED[CHAT], "response_format": form})))
    for text, status in (("[a]", 400), ("?" * 5, 200)):
        answer = http.post(CHAT, json={**ASKED[CHAT], "response_format": {**form, "grammar": text}})
        assert answer.status_code == status
    refused = http.post(CHAT, json={**ASKED[CHAT], "response_format": {**form, "syntax": "json-schema"}})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "response_format.syntax"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"logits_processors": ["unlisted-http"]}, "logits_processors[0]"),
        ({"logits_processors": ["favour-http", "os.system"]}, "logits_processors[1]"),
        ({"logits_processors": [{"name": "favour-http", "parameters": {"text": "long"}}]}, "logits_processors[0]"),
        ({"logits_processors": [{"name": "favour-http", "parameters": {"colour": 1}}]}, "logits_processors[0]"),
        ({"logits_processors": [{"name": "favour-http", "qualname": "x"}]}, "logits_processors[0]"),
        ({"logits_processors": "favour-http"}, "logits_processors"),
        ({"stopping_criteria": ["favour-http"]}, "stopping_criteria[0]"),
        ({"stopping_criteria": ["after-http"], "regex": "a"}, "stopping_criteria"),
    ],
    ids=str,
)
def test_what_may_not_be_named_is_refused_by_its_place(http: httpx.Client, more: Any, param: str) -> None:
    answer = http.post(CHAT, json={**ASKED[CHAT], **more})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text


def test_a_server_without_a_list_lets_nobody_name_any(llm: LLM, names: None) -> None:
    with served(llm) as running, running.http() as connected:
        error = connected.post(CHAT, json={**ASKED[CHAT], "logits_processors": ["favour-http"]}).json()["error"]
    assert error["param"] == "logits_processors[0]" and "--client-logits-processors" in error["message"]


def test_names_that_nobody_registered_are_told_at_start(llm: LLM) -> None:
    with pytest.raises(UsageError, match="nothing-like-it"), served(llm, ServerSettings(client_stopping_criteria=("nothing-like-it",))):
        pass


def test_requests_that_ask_for_the_same_share_one_object(names: None) -> None:
    settings = ServerSettings(client_logits_processors=("favour-http",))
    given = [{"name": "favour-http", "parameters": {"text": "q"}}]
    (first,), (second,) = (parts_of(settings, "logits_processors", given) for _ in range(2))
    assert first is second == Favour("q")
