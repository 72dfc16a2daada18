"""llama.cpp's own routes. The shapes are those that its server (of October 2026) answered with."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import pytest

from maskwright import LLM
from maskwright.server import infilling
from maskwright.server.llamacpp.answers import LlamaFinal, LlamaPiece, Props, Slot

FEW: Any = {"n_predict": 6, "temperature": 0}
SCHEMA = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}
# Members of its answers. Left out here: id_slot, as requests have no fixed places; of the settings what belongs to samplers that are not there.
FINAL = {
    "index", "content", "tokens", "stop", "model", "tokens_predicted", "tokens_evaluated", "generation_settings", "prompt", "has_new_line",
    "truncated", "stop_type", "stopping_word", "tokens_cached", "timings",
}  # fmt: skip
PIECE = {"index", "content", "tokens", "stop", "tokens_predicted", "tokens_evaluated"}
TIMINGS = {
    "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_token_ms",
    "predicted_per_second",
}  # fmt: skip
SETTINGS = {
    "dynatemp_range", "dynatemp_exponent", "top_n_sigma", "typical_p", "xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base",
    "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "mirostat", "mirostat_tau", "mirostat_eta", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty", "stop", "max_tokens",
    "n_predict", "ignore_eos", "stream", "logit_bias", "n_probs", "grammar", "samplers", "timings_per_token",
}  # fmt: skip


def post(http: httpx.Client, **asked: Any) -> Any:
    answer = http.post("/completion", json={"prompt": "hello", **FEW, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def pieces(http: httpx.Client, **asked: Any) -> list[Any]:
    answer = http.post("/completion", json={"prompt": "hello", **FEW, **asked, "stream": True})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream"), answer.text
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line]


def test_an_answer_has_llamas_members(http: httpx.Client) -> None:
    told = post(http)
    assert set(told) == FINAL and set(told["timings"]) == TIMINGS and set(told["generation_settings"]) == SETTINGS
    LlamaFinal.model_validate(told, strict=True)
    assert told["prompt"] == "hello" and told["stop_type"] == "limit" and told["tokens"] == []
    assert told["tokens_predicted"] == 6 and told["tokens_cached"] == told["tokens_evaluated"] + 5
    assert told["timings"]["predicted_n"] == 6 and told["timings"]["prompt_n"] + told["timings"]["cache_n"] == told["tokens_evaluated"]
    assert http.post("/completions", json={"prompt": "hello", **FEW}).json()["content"] == told["content"]


@pytest.mark.parametrize("more", [{}, {"json_schema": SCHEMA, "n_predict": 30}, {"stop": ["un"]}, {"n_probs": 2}, {"n_predict": 0}], ids=str)
def test_a_stream_tells_the_whole_answer(http: httpx.Client, more: Any) -> None:
    whole = post(http, **more, return_tokens=True)
    *parts, last = pieces(http, **more)
    assert all(set(part) - {"completion_probabilities"} == PIECE for part in parts)
    assert [LlamaPiece.model_validate(part, strict=True).stop for part in parts] == [False] * len(parts)
    assert "".join(part["content"] for part in parts) == whole["content"] and last["content"] == ""
    assert [token for part in parts for token in part["tokens"]] == whole["tokens"]
    probabilities = [each for part in parts for each in part.get("completion_probabilities", ())]
    assert probabilities == whole.get("completion_probabilities", [])
    changing = {"content", "tokens", "timings", "generation_settings", "completion_probabilities"}
    assert {name: last[name] for name in FINAL - changing} == {name: whole[name] for name in FINAL - changing}


def test_json_schema_and_grammar_hold(http: httpx.Client) -> None:
    told = post(http, json_schema=SCHEMA, n_predict=40)
    jsonschema.validate(json.loads(told["content"]), SCHEMA)
    assert told["stop_type"] == "eos"
    told = post(http, grammar='root ::= "yes" | "no"', temperature=1.5, seed=3)
    assert told["content"] in ("yes", "no") and told["generation_settings"]["grammar"] and told["generation_settings"]["seed"] == 3


def test_a_stop_word_is_named(http: httpx.Client) -> None:
    whole = post(http)["content"]
    told = post(http, stop=[whole[3:5]])
    assert told["stop_type"] == "word" and told["stopping_word"] == whole[3:5] and told["content"] == whole[: whole.index(whole[3:5])]


def test_prompts_of_all_forms(http: httpx.Client) -> None:
    ids = http.post("/tokenize", json={"content": "hello", "add_special": True}).json()["tokens"]
    text = post(http)["content"]
    for prompt in (ids, [*ids[:1], "llo"], {"prompt_string": "hello"}, ["hello"]):
        assert post(http, prompt=prompt)["content"] == text, prompt
    both = post(http, prompt=["hello", ids, "a"])
    assert [each["index"] for each in both] == [0, 1, 2] and [each["content"] for each in both[:2]] == [text] * 2
    copies = post(http, prompt="hello", n_cmpl=2)
    assert [each["content"] for each in copies] == [text] * 2
    streamed = pieces(http, prompt=["hello", "a"])
    assert "".join(each["content"] for each in streamed if each["index"] == 0) == text
    assert sum(each["stop"] for each in streamed) == 2


def test_some_fields_of_an_answer(http: httpx.Client) -> None:
    fields = ["content", "generation_settings/n_predict", "nobody/knows"]
    assert set(post(http, response_fields=fields)) == set(fields[:2])
    assert post(http, response_fields=fields)["generation_settings/n_predict"] == 6
    assert set(pieces(http, response_fields=fields)[-1]) == set(fields[:2])
    assert all("predicted_n" in part["timings"] for part in pieces(http, timings_per_token=True))


def test_nothing_is_written_when_nothing_is_asked_for(http: httpx.Client) -> None:
    told = post(http, n_predict=0)
    assert told["content"] == "" and told["tokens_predicted"] == 0 and told["stop_type"] == "limit"


def test_a_bias_by_text_and_one_that_forbids(http: httpx.Client) -> None:
    first = post(http, n_predict=1, return_tokens=True)["tokens"][0]
    assert post(http, n_predict=1, return_tokens=True, logit_bias=[[first, False]])["tokens"][0] != first
    assert post(http, n_predict=2, logit_bias=[["zz", 1000.0]])["content"].startswith("z")
    assert post(http, n_predict=2, logit_bias={"zz": 1000.0})["content"].startswith("z")


def test_samplers_that_are_left_out_are_off(http: httpx.Client) -> None:
    few = {"temperature": 5.0, "top_k": 1, "seed": 1}
    assert post(http, **few, samplers=["temperature", "top_k"])["content"] == post(http)["content"]
    told = post(http, **few, samplers="t")
    assert told["generation_settings"]["top_k"] == 0 and told["generation_settings"]["temperature"] == 5.0
    answer = http.post("/completion", json={"prompt": "x", **FEW, "samplers": ["top_k", "penalties", "temperature"]})
    assert answer.headers["x-maskwright-ignored"] == "samplers (their order)"


def test_samplers_are_applied_in_their_order(http: httpx.Client) -> None:
    few = {"temperature": 4.0, "top_p": 0.6, "typical_p": 0.9, "seed": 5, "n_predict": 12}
    orders = (["top_p", "temperature"], ["temperature", "top_p"], "pt", "yt")
    told = [post(http, **few, samplers=order) for order in orders]
    assert [each["generation_settings"]["samplers"] for each in told] == [
        ["top_p", "temperature"], ["temperature", "top_p"], ["top_p", "temperature"], ["typical_p", "temperature"],
    ]  # fmt: skip
    assert told[0]["content"] == told[2]["content"] != told[1]["content"]
    answer = http.post("/completion", json={"prompt": "x", **FEW, "samplers": ["penalties", "dry", "top_k", "infill"], "dry_multiplier": 0.8})
    assert answer.headers["x-maskwright-ignored"] == "samplers (infill)"


def test_mirostat_leaves_temperature_alone(http: httpx.Client) -> None:
    few = {"temperature": 1.5, "mirostat": 2, "mirostat_tau": 3.0, "seed": 5, "n_predict": 12}
    answer = http.post("/completion", json={"prompt": "hello", **few, "top_k": 1, "repeat_penalty": 3.0})
    assert answer.headers["x-maskwright-ignored"] == "top_k, repeat_penalty"
    assert answer.json()["generation_settings"]["samplers"] == ["temperature", "mirostat"]
    assert answer.json()["content"] == post(http, **few)["content"]


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"mirostat": 3}, "mirostat"),
        ({"typical_p": 0}, "typical_p"),
        ({"xtc_probability": 1.5}, "xtc_probability"),
        ({"temprature": 1}, "temprature"),
        ({"samplers": ["best"]}, "samplers"),
        ({"logit_bias": [[1]]}, "logit_bias[0]"),
        ({"logit_bias": [[1, True]]}, "logit_bias[0]"),
        ({"n_predict": -2}, "n_predict"),
        ({"n_probs": 100}, "n_probs"),
        ({"repeat_penalty": 0}, "repeat_penalty"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [["a", None]]}, "prompt[0]"),
        ({"prompt": [10**9]}, "prompt"),
        ({"prompt": {"prompt_string": "x", "multimodal_data": ["aGk="]}}, "prompt"),
        ({"json_schema": {"type": "robot"}}, "json_schema"),
        ({"json_schema": SCHEMA, "grammar": 'root ::= "a"'}, "grammar"),
        ({"model": "other"}, "model"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(http: httpx.Client, more: Any, param: str) -> None:
    answer = http.post("/completion", json={"prompt": "x", **FEW, **more})
    assert answer.status_code in (400, 404) and answer.json()["error"]["param"] == param, answer.text


def test_neutral_values_of_other_samplers_are_taken(http: httpx.Client) -> None:
    """As its web page sends them all the time."""
    neutral = {
        "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "xtc_probability": 0, "xtc_threshold": 0.1,
        "typical_p": 1, "mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "dynatemp_range": 0, "dynatemp_exponent": 1, "top_n_sigma": -1,
        "repeat_last_n": 64, "min_keep": 0, "n_keep": 0, "id_slot": -1, "cache_prompt": True, "seed": -1, "lora": [], "image_data": [],
    }  # fmt: skip
    answer = http.post("/completion", json={"prompt": "hello", **FEW, **neutral})
    assert answer.status_code == 200 and "x-maskwright-ignored" not in answer.headers, answer.text


def test_how_the_server_is_set_up(http: httpx.Client) -> None:
    props = http.get("/props").json()
    Props.model_validate(props, strict=True)
    assert props["default_generation_settings"]["n_ctx"] == 2048 and props["chat_template"]
    slots = [Slot.model_validate(each, strict=True) for each in http.get("/slots").json()]
    assert len(slots) == props["total_slots"] and [each.id for each in slots] == list(range(len(slots)))
    assert http.get("/health").json() == {"status": "ok"}


GAP: Any = {"input_prefix": "def f():\n", "input_suffix": "\nprint(f())", **FEW}


def test_a_gap_needs_marks_that_the_model_knows(http: httpx.Client) -> None:
    refused = http.post("/infill", json=GAP)
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "input_suffix" and "marks" in refused.json()["error"]["message"]
    for missing in ("input_prefix", "input_suffix"):
        refused = http.post("/infill", json={name: value for name, value in GAP.items() if name != missing})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == missing


@pytest.fixture
def gap_marks(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Special tokens of the embedded model in the part of marks."""
    names = list(llm.vocabulary.special_tokens)
    marks = (names * 3)[:3]
    monkeypatch.setattr(infilling, "MARKS", (tuple(marks),))
    return marks


def test_a_gap_is_filled_behind_both_texts(http: httpx.Client, llm: LLM, gap_marks: list[str]) -> None:
    told = http.post("/infill", json={**GAP, "prompt": "  return"}).json()
    LlamaFinal.model_validate(told, strict=True)
    shown = "".join((gap_marks[0], GAP["input_prefix"], "  return", gap_marks[1], GAP["input_suffix"], gap_marks[2]))
    assert told["prompt"].endswith(shown) and told["tokens_predicted"] == 6
    told = http.post("/infill", json={**GAP, "grammar": 'root ::= "yes" | "no"'}).json()
    assert told["content"] in ("yes", "no")


def test_other_files_come_before_a_gap_as_far_as_there_is_room(
    http: httpx.Client, llm: LLM, gap_marks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [{"text": "x = 1\n" * 900, "filename": "first.py"}, {"text": "y = 2", "filename": "second.py"}]
    told = http.post("/infill", json={**GAP, "input_extra": files}).json()
    assert infilling.BETWEEN_FILES + "y = 2" + gap_marks[0] in told["prompt"] and "x = 1" in told["prompt"]
    assert told["tokens_evaluated"] + FEW["n_predict"] == 2048 and "second.py" not in told["prompt"]
    monkeypatch.setattr(infilling, "FILE_MARKS", ((gap_marks[1], gap_marks[2]),))
    told = http.post("/infill", json={**GAP, "input_extra": files[1:]}).json()
    repository, this = gap_marks[1] + infilling.REPOSITORY, gap_marks[2] + infilling.THIS_FILE
    assert f"{repository}{gap_marks[2]}second.py\ny = 2{this}{gap_marks[0]}" in told["prompt"]


def test_a_template_that_is_applied_is_what_chat_reads(http: httpx.Client) -> None:
    messages = [{"role": "user", "content": "hi"}]
    prompt = http.post("/apply-template", json={"messages": messages}).json()["prompt"]
    assert prompt == "<|user|>hi<|assistant|>"
    chat = http.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 5, "temperature": 0}).json()
    ids = http.post("/tokenize", json={"content": prompt}).json()["tokens"]
    assert post(http, prompt=ids, n_predict=5)["content"] == chat["choices"][0]["message"]["content"]
    assert len(ids) == chat["usage"]["prompt_tokens"]


def test_its_form_of_tokenizing(http: httpx.Client) -> None:
    ids = http.post("/tokenize", json={"content": "häl"}).json()
    assert set(ids) == {"tokens"}
    told = http.post("/tokenize", json={"content": "häl", "with_pieces": True}).json()["tokens"]
    assert [each["id"] for each in told] == ids["tokens"]
    joined = b"".join(each["piece"].encode() if isinstance(each["piece"], str) else bytes(each["piece"]) for each in told)
    assert joined.decode() == "häl" == http.post("/detokenize", json=ids).json()["content"]
    assert http.post("/tokenize", json={"content": "a", "prompt": "b"}).status_code == 400
