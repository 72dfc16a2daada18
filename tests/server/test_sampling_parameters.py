"""Sampling over HTTP: stages, bans by text and by id, searches, salts, templates and suffixes that a request brings along."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from maskwright import LLM, SamplingParams
from maskwright.constraints import Vocabulary
from maskwright.server import infilling
from maskwright.server.settings import ServerSettings

from .serving import served
from .test_streams import events_of

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
SAID: Any = [{"role": "user", "content": "hello"}]
ASKED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": SAID, "max_tokens": 8},
    COMPLETIONS: {"prompt": "hello", "max_tokens": 8},
    RESPONSES: {"input": "hello", "max_output_tokens": 8},
    MESSAGES: {"messages": SAID, "max_tokens": 8},
}
TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"


def asked(http: httpx.Client, path: str, **more: Any) -> Any:
    answer = http.post(path, json={**ASKED[path], **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def texts(answer: Any) -> list[str]:
    if "choices" in answer:
        return [choice.get("text", (choice.get("message") or {}).get("content")) for choice in answer["choices"]]
    return [answer["output"][0]["content"][0]["text"] if "output" in answer else answer["content"][0]["text"]]


# ---- stages and edits


STAGED: list[dict[str, Any]] = [
    {"typical_p": 0.5}, {"xtc_probability": 0.5, "xtc_threshold": 0.05}, {"mirostat": 2, "mirostat_tau": 3.0},
    {"stages": ["top_p", "temperature"], "top_p": 0.6, "temperature": 3.0}, {"dry_multiplier": 1.0, "dry_sequence_breakers": ["\n"]},
    {"no_repeat_ngram_size": 2}, {"smoothing_factor": 0.3, "dynatemp_range": 0.5, "top_n_sigma": 2.0, "top_a": 0.1},
    {"repeat_last_n": 3, "repetition_penalty": 2.0},
]  # fmt: skip


@pytest.mark.parametrize("path", ASKED)
def test_every_endpoint_draws_by_the_same_stages(http: httpx.Client, llm: LLM, path: str) -> None:
    for options in STAGED:
        more = {"temperature": 1.5, "seed": 4, **options}
        told = texts(asked(http, path, **more))
        if path == COMPLETIONS:
            expected = llm.generate("hello", sampling=SamplingParams(max_tokens=8, **more))[0].text
            assert told == [expected], options
        else:
            assert told == texts(asked(http, CHAT, **more)), options


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_what_may_come_and_what_may_not(http: httpx.Client, llm: LLM, path: str) -> None:
    allowed = [llm.tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "abc"]
    (text,) = texts(asked(http, path, allowed_token_ids=allowed, seed=1))
    assert len(text) == 8 and set(text) <= set("abc")
    (text,) = texts(asked(http, path, allowed_token_ids=allowed, bad_words=["a", "bc"], seed=1, temperature=3))
    assert set(text) <= set("bc") and "bc" not in text
    (text,) = texts(asked(http, path, logit_bias={"zz": 1000.0}, temperature=0))
    assert set(text.strip()) == {"z"}
    (text,) = texts(asked(http, path, regex="b{2,9}|c{3}", bad_words=["c"], min_tokens=3))
    assert text.startswith("bb")


def test_values_that_mean_nothing_are_named(http: httpx.Client) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"stages": ["best"]}, "stages"), ({"mirostat": 3}, "mirostat"), ({"xtc_threshold": -1}, "xtc_threshold"),
        ({"bad_words": [""]}, "bad_words"), ({"allowed_token_ids": [10**9]}, "allowed_token_ids"), ({"typical_p": 0}, "typical_p"),
        ({"bad_words": ["a"] * 1001}, "bad_words"), ({"logit_bias": {"": 1.0}}, "logit_bias"),
    ]  # fmt: skip
    for more, param in wrong:
        answer = http.post(CHAT, json={**ASKED[CHAT], **more})
        assert answer.status_code == 400 and answer.json()["error"]["param"].startswith(param), answer.text


# ---- searches


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("constraint", [{}, {"regex": "[a-e]{1,4}"}], ids=["free", "constrained"])
def test_beams_are_those_of_the_library(http: httpx.Client, llm: LLM, path: str, constraint: dict[str, Any]) -> None:
    more = {"n": 2, "best_of": 4, "use_beam_search": True, "length_penalty": 0.5, **constraint}
    told = asked(http, path, **more)
    assert [choice["index"] for choice in told["choices"]] == [0, 1]
    if path == COMPLETIONS:
        sampling = SamplingParams(max_tokens=8)
        (found,) = llm.beam_search("hello", width=4, n=2, length_penalty=0.5, sampling=sampling, **constraint)  # type: ignore[arg-type]
        assert texts(told) == [found.text, *(other.text for other in found.alternatives)]
        both = asked(http, path, **{**more, "prompt": ["hello", "hello"]})
        assert texts(both) == texts(told) * 2
    pieces = {0: "", 1: ""}
    for event in events_of(http, path, {**ASKED[path], **more}):
        (choice,) = event["choices"]
        pieces[choice["index"]] += choice.get("text") or choice.get("delta", {}).get("content") or ""
    assert list(pieces.values()) == texts(told)


def test_what_a_search_does_not_understand_is_refused(http: httpx.Client) -> None:
    for more, named in (({"top_p": 0.5}, "top_p"), ({"stop": "x"}, "stop"), ({"n": 3, "regex": "a"}, "n=3|wanted")):
        answer = http.post(CHAT, json={**ASKED[CHAT], "use_beam_search": True, **more})
        assert answer.status_code == 400 and any(part in answer.text for part in named.split("|")), answer.text
    answer = http.post(CHAT, json={**ASKED[CHAT], "length_penalty": 2.0, "early_stopping": True})
    assert answer.headers["x-maskwright-ignored"] == "length_penalty, early_stopping"


def test_the_most_probable_of_several_replies(http: httpx.Client, llm: LLM) -> None:
    more = {"best_of": 5, "n": 2, "temperature": 1.5, "seed": 3, "logprobs": True}
    chosen = asked(http, CHAT, **more)["choices"]
    assert [choice["index"] for choice in chosen] == [0, 1]
    means = [sum(each["logprob"] for each in choice["logprobs"]["content"]) / len(choice["logprobs"]["content"]) for choice in chosen]
    everything = asked(http, CHAT, **{**more, "n": 5})["choices"]
    best = sorted(
        (sum(each["logprob"] for each in choice["logprobs"]["content"]) / len(choice["logprobs"]["content"]) for choice in everything),
        reverse=True,
    )
    assert means == pytest.approx(best[:2])
    refused = http.post(CHAT, json={**ASKED[CHAT], "best_of": 2, "stream": True}).json()["error"]
    assert refused["param"] == "best_of"


# ---- prompts


def test_a_prompt_is_shared_among_requests_of_one_salt_alone(http: httpx.Client) -> None:
    prompt = "a text of its own that is long enough for some blocks of the cache, which nobody else has sent to this server " * 2

    def cached(**more: Any) -> int:
        told = asked(http, COMPLETIONS, prompt=prompt, max_tokens=1, **more)
        return (told["usage"].get("prompt_tokens_details") or {}).get("cached_tokens", 0)

    assert cached() == 0 < cached()
    assert cached(cache_salt="mine") == 0 < cached(cache_salt="mine")
    assert cached(cache_salt="yours") == 0
    assert http.post(CHAT, json={**ASKED[CHAT], "cache_salt": "x" * 257}).status_code == 400


def test_a_chat_tells_the_log_probabilities_of_its_prompt(http: httpx.Client, llm: LLM) -> None:
    told = asked(http, CHAT, prompt_logprobs=1, return_token_ids=True)
    first, *others = told["prompt_logprobs"]
    ids = told["prompt_token_ids"]
    assert first is None and len(others) == len(ids) - 1
    assert all(str(token_id) in each for token_id, each in zip(ids[1:], others, strict=True))
    expected = asked(http, COMPLETIONS, prompt=ids, prompt_logprobs=1)["choices"][0]["prompt_logprobs"]
    assert [each[str(token_id)]["rank"] for token_id, each in zip(ids[1:], others, strict=True)] == [
        each[str(token_id)]["rank"] for token_id, each in zip(ids[1:], expected[1:], strict=True)
    ]
    refused = http.post(CHAT, json={**ASKED[CHAT], "prompt_logprobs": 1, "stream": True}).json()["error"]
    assert refused["param"] == "prompt_logprobs"


def test_a_template_of_the_request_where_the_operator_allows_it(http: httpx.Client, llm: LLM) -> None:
    refused = http.post(CHAT, json={**ASKED[CHAT], "chat_template": TEMPLATE})
    assert refused.status_code == 400 and "--trust-request-chat-template" in refused.json()["error"]["message"]
    with served(llm, ServerSettings(port=0, trust_request_chat_template=True)) as server, server.http() as trusting:
        rendered = trusting.post("/apply-template", json={**ASKED[CHAT], "chat_template": TEMPLATE}).json()["prompt"]
        assert rendered == "<user>hello"
        told = asked(trusting, CHAT, chat_template=TEMPLATE, return_token_ids=True, temperature=0)
        assert tuple(told["prompt_token_ids"]) == llm.tokenizer.encode("<user>hello", add_special_tokens=False)
        named = {"chat_template": TEMPLATE + "{{ mood }}", "chat_template_kwargs": {"mood": "glad", "tone": "low"}}
        answer = trusting.post(CHAT, json={**ASKED[CHAT], **named})
        assert answer.headers["x-maskwright-ignored"] == "chat_template_kwargs.tone"
        for bad in ("{{ 1 / 0 }}", "{% for", "{{ ''.__class__.__mro__ }}" * 2 + "{{ messages.__init__.__globals__ }}", "{{ 'x' * 99999999999 }}"):
            answer = trusting.post(CHAT, json={**ASKED[CHAT], "chat_template": bad})
            assert answer.status_code in (200, 400), answer.text
            assert "globals" not in answer.text.replace("__globals__", "")
        reserved = trusting.post(CHAT, json={**ASKED[CHAT], "chat_template_kwargs": {"chat_template": "x"}})
        assert reserved.status_code == 400


def test_a_suffix_needs_marks_that_the_model_knows(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = http.post(COMPLETIONS, json={**ASKED[COMPLETIONS], "suffix": "the end"}).json()["error"]
    assert refused["param"] == "suffix" and "marks" in refused["message"]
    asked(http, COMPLETIONS, suffix="")
    names = list(llm.vocabulary.special_tokens)
    marks = (names[0], names[1 % len(names)], names[2 % len(names)])
    monkeypatch.setattr(infilling, "MARKS", (("<missing>",) * 3, marks))
    pre, behind, middle = (llm.vocabulary.special_tokens[mark] for mark in marks)
    told = asked(http, COMPLETIONS, prompt="def f():", suffix="return x", return_token_ids=True)["choices"][0]
    encode = llm.tokenizer.encode
    expected = [pre, *encode("def f():", add_special_tokens=False), behind, *encode("return x", add_special_tokens=False), middle]
    assert told["prompt_token_ids"][-len(expected) :] == expected
    assert http.post(COMPLETIONS, json={**ASKED[COMPLETIONS], "suffix": "x", "echo": True}).json()["error"]["param"] == "echo"


@pytest.mark.parametrize("marks", infilling.MARKS, ids=lambda marks: marks[0])
def test_marks_are_found_by_their_names(marks: tuple[str, str, str]) -> None:
    class Known:
        vocabulary = Vocabulary([b"a", None, None, None], special_tokens={name: place for place, name in enumerate(marks, 1)})

    assert infilling.marks_of(Known()) == (1, 2, 3)  # type: ignore[arg-type]
