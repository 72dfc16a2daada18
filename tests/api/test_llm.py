"""`LLM` and `generate` on a model that knows nothing: every output satisfies its constraint, and failures have names."""

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, WrapValidator

from maskwright import (
    LLM,
    ConfigError,
    ConstraintError,
    Delta,
    Done,
    FieldClosed,
    FieldOpened,
    GenerationIncomplete,
    ModelNotFound,
    RequestError,
    SamplingParams,
    UsageError,
    ValidationFailed,
    generate,
)
from maskwright.constraints import Choice, Compiler, Regex, Vocabulary
from maskwright.engine import UnsupportedModel
from maskwright.engine.errors import ModelFolderError
from maskwright.model_folder import find_model
from maskwright.pieces import TokenPiece


class Person(BaseModel):
    name: Annotated[str, Field(max_length=12)]
    age: Annotated[int, Field(ge=0, le=150)]
    plan: Literal["free", "pro"]


HOT = SamplingParams(temperature=1.5, seed=3, max_tokens=120)


def test_a_model_class_comes_back_as_an_instance(llm: LLM) -> None:
    (output,) = llm.generate("Who?", schema=Person, sampling=HOT)
    assert output.parsed == Person.model_validate_json(output.text)
    assert (output.prompt, output.finish_reason) == ("Who?", "stop")
    assert b"".join(llm.vocabulary.tokens[token_id] or b"" for token_id in output.token_ids).decode() == output.text


def test_a_raw_schema_comes_back_as_json(llm: LLM) -> None:
    schema = {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}
    for options in ({"schema": schema}, {"json_schema": schema}, {"json_schema": json.dumps(schema)}):
        value = llm.generate("x", sampling=HOT, **options)[0].parsed  # type: ignore[arg-type]
        assert len(value) == 2 and {*value} <= {True, False}


def test_several_prompts_may_have_different_constraints(llm: LLM) -> None:
    sources = [Regex("[ab]{3}"), Choice(["yes", "no"]), None]
    first, second, third = llm.generate(["a", "b", "c"], constraint=sources, sampling=SamplingParams(max_tokens=8, seed=1))
    assert re.fullmatch("[ab]{3}", first.parsed) and second.parsed in ("yes", "no") and isinstance(third.parsed, str)


def test_the_answers_come_in_the_order_of_the_prompts_and_progress_is_told(llm: LLM) -> None:
    prompts = [f"prompt {number}" for number in range(20)]
    told: list[tuple[int, int]] = []
    outputs = llm.generate(prompts, regex="[0-9]{1,9}", sampling=HOT, progress=lambda *at: told.append(at))
    assert [output.prompt for output in outputs] == prompts
    assert told == [(number, 20) for number in range(1, 21)]


def test_a_seed_gives_the_same_output_in_any_batch(llm: LLM) -> None:
    alone = llm.generate("x", regex="[a-z]{5,20}", sampling=HOT)[0]
    crowd = llm.generate(["y", "x", "zz"], regex="[a-z]{5,20}", sampling=HOT)[1]
    assert alone.token_ids == crowd.token_ids


def test_every_prompt_may_have_its_own_sampling(llm: LLM) -> None:
    samplings = [SamplingParams(max_tokens=count, ignore_eos=True) for count in (2, 5)]
    assert [len(output.token_ids) for output in llm.generate(["a", "a"], sampling=samplings)] == [2, 5]


def test_an_object_is_finished_within_max_tokens(llm: LLM) -> None:
    (output,) = llm.generate("x", schema=list[str], sampling=SamplingParams(temperature=2.0, seed=5, max_tokens=9))
    assert isinstance(output.parsed, list) and len(output.token_ids) <= 9


def test_logprobs_are_given_when_asked_for(llm: LLM) -> None:
    (output,) = llm.generate("x", regex="[ab]{4}", sampling=SamplingParams(logprobs=2, seed=1))
    assert output.logprobs is not None and len(output.logprobs) == len(output.token_ids)
    assert all(len(record.top) == 2 and record.logprob is not None for record in output.logprobs)
    assert llm.generate("x", regex="[ab]{4}")[0].logprobs is None


def test_without_sampling_the_model_is_greedy(llm: LLM) -> None:
    assert llm.default_sampling.is_greedy
    outputs = llm.generate(["x", "x"], regex="[a-z]{8}")
    assert outputs[0].text == outputs[1].text


def test_generate_returns_the_value(llm: LLM) -> None:
    assert isinstance(generate("x", schema=Person, model=llm, sampling=HOT), Person)
    assert generate(["x", "y"], choice=["only"], model=llm) == ["only", "only"]
    assert isinstance(generate("x", model=llm, sampling=SamplingParams(max_tokens=3)), str)


def test_a_model_named_by_its_folder_stays_loaded(model_folder: Path) -> None:
    assert generate("x", choice=["a"], model=model_folder) == generate("x", choice=["a"], model=str(model_folder))


# -- streams -------------------------------------------------------------------------------------------------------------


def test_a_stream_opens_fills_and_closes_every_field(llm: LLM) -> None:
    events = list(llm.stream("x", schema=Person, sampling=HOT))
    done = events[-1]
    assert isinstance(done, Done)
    person = json.loads(done.output.text)
    assert [event.path for event in events if isinstance(event, FieldOpened)] == [(), ("name",), ("age",), ("plan",)]
    closed = {event.path: event.value for event in events if isinstance(event, FieldClosed)}
    assert closed == {(): person, ("name",): person["name"], ("age",): person["age"], ("plan",): person["plan"]}
    named = "".join(event.text for event in events if isinstance(event, Delta) and event.path == ("name",))
    assert named == person["name"]


def test_a_stream_gives_what_generate_gives(llm: LLM) -> None:
    done = list(llm.stream("x", schema=Person, sampling=HOT))[-1]
    assert isinstance(done, Done)
    assert done.output == llm.generate("x", schema=Person, sampling=HOT)[0]


@pytest.mark.parametrize("options", [{"regex": "[a-z]{30}"}, {}])
def test_other_streams_are_deltas_of_text(llm: LLM, options: Any) -> None:
    *deltas, done = llm.stream("x", sampling=SamplingParams(max_tokens=40, seed=2), **options)
    assert isinstance(done, Done)
    assert "".join(delta.text for delta in deltas if isinstance(delta, Delta)) == done.output.text


def test_streams_of_one_model_may_be_interleaved(llm: LLM) -> None:
    first, second = (llm.stream_text(prompt, regex="[a-z]{20}", sampling=HOT) for prompt in "ab")
    mixed = [event for pair in zip(first, second, strict=False) for event in pair]
    assert len(mixed) > 4
    assert generate("a", regex="[a-z]{20}", sampling=HOT, model=llm) == _text(llm.stream_text("a", regex="[a-z]{20}", sampling=HOT))


def test_a_stream_that_is_closed_early_leaves_nothing_behind(llm: LLM) -> None:
    stream = llm.stream("x", sampling=SamplingParams(max_tokens=400, ignore_eos=True))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert not llm.driver.is_busy


def test_tokens_are_streamed_with_their_freedom(llm: LLM) -> None:
    *pieces, done = llm.stream_tokens("x", json_schema={"enum": ["abc", "abd"]}, sampling=HOT)
    assert isinstance(done, Done)
    tokens = [piece for piece in pieces if isinstance(piece, TokenPiece)]
    assert "".join(piece.text for piece in tokens) == done.output.text
    assert tokens[0].text == '"' and tokens[0].is_forced
    assert tokens[-1].text == '"' and tokens[-1].is_forced and tokens[-1].num_allowed == 1
    choice = next(piece for piece in tokens if piece.text[-1] in "cd")
    assert not choice.is_forced


def test_threads_share_one_model(llm: LLM) -> None:
    expected = [generate(str(n), regex="[a-z]{12}", model=llm) for n in range(6)]
    got: dict[int, str] = {}

    def ask(n: int) -> None:
        got[n] = generate(str(n), regex="[a-z]{12}", model=llm)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[n] for n in range(6)] == expected


def test_a_compiled_constraint_serves_the_model_it_was_compiled_for(llm: LLM) -> None:
    compiled = llm.compiler.compile(Regex("[ab]{3}"))
    assert re.fullmatch("[ab]{3}", llm.generate("x", constraint=compiled)[0].parsed)
    other = Compiler(Vocabulary(llm.vocabulary.tokens, eos_token_ids=[0])).compile(Regex("[ab]{3}"))
    with pytest.raises(UsageError, match="another vocabulary"):
        llm.generate("x", constraint=other)


# -- what can go wrong ---------------------------------------------------------------------------------------------------


def _refuse(value: int) -> int:
    raise ValueError("no number is good enough")


def test_a_validator_may_reject_and_the_raw_output_is_kept(llm: LLM) -> None:
    (output,) = llm.generate("x", schema=Annotated[Literal[1, 2], AfterValidator(_refuse)])
    with pytest.raises(ValidationFailed, match="no number is good enough") as raised:
        _ = output.parsed
    assert raised.value.output.text in ("1", "2")


def test_a_length_of_what_has_none_is_a_rejection_too(llm: LLM) -> None:
    (output,) = llm.generate("x", schema=Annotated[Literal[1, 2], WrapValidator(lambda value, _: len(value))])
    with pytest.raises(ValidationFailed, match="has no len"):
        _ = output.parsed


def test_free_text_is_complete_wherever_it_ends(llm: LLM) -> None:
    (output,) = llm.generate("x", sampling=SamplingParams(max_tokens=3, ignore_eos=True))
    assert output.finish_reason == "length" and output.parsed == output.text


def test_an_output_that_ended_early_is_incomplete(llm: LLM) -> None:
    from dataclasses import replace

    (output,) = llm.generate("x", regex="[a-z]{5}")
    cancelled = replace(output, finish_reason="cancelled", text=output.text[:2])
    with pytest.raises(GenerationIncomplete, match='"cancelled" after') as raised:
        _ = cancelled.parsed
    assert raised.value.output is cancelled


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"prompts": "x", "schema": Person, "regex": "a"}, UsageError, "schema= and regex= contradict"),
        ({"prompts": ["x", "y"], "regex": ["a"]}, UsageError, "1 values for 2 prompts"),
        ({"prompts": ["x", "y"], "sampling": [SamplingParams()]}, UsageError, "sampling= has 1 values"),
        ({"prompts": [3]}, UsageError, "a prompt is a str, not int"),
        ({"prompts": [[{"role": "user", "content": "x"}]]}, UsageError, r"conversations go to chat\(\)"),
        ({"prompts": "x" * 600}, RequestError, "prompt has 600 tokens"),
        ({"prompts": "x", "regex": "[a-c]{50}", "sampling": SamplingParams(max_tokens=5)}, RequestError, "max_tokens"),
        ({"prompts": "x", "regex": "a", "sampling": SamplingParams(stop=("b",))}, RequestError, "contradicts a constraint"),
        ({"prompts": "x", "regex": "("}, ConstraintError, "column|position"),
        ({"prompts": "x", "grammar": "start: x"}, ConstraintError, "'x' is not defined"),
    ],
)
def test_wrong_arguments_are_named(llm: LLM, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        llm.generate(options.pop("prompts"), **options)
    assert not llm.driver.is_busy


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./no-such-folder", "there is no such folder"),
        ("nobody/has-this-model", "hf download nobody/has-this-model"),
        ("has spaces/and: colons", "there is no such folder"),
    ],
)
def test_a_model_that_does_not_exist_is_named(name: str, message: str) -> None:
    with pytest.raises(ModelNotFound, match=message) as raised:
        LLM(name)
    assert str(raised.value).startswith(f'model "{name}"')


def test_a_repository_is_looked_up_at_a_revision_and_fetched_when_asked(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[str, str | None, bool]]()

    def snapshot_download(name: str, *, revision: str | None, local_files_only: bool, allow_patterns: list[str]) -> str:
        asked.append((name, revision, local_files_only))
        return str(model_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert find_model("one-segment") == find_model("owner/name", revision="v2", download=True) == model_folder
    assert asked == [("one-segment", None, True), ("owner/name", "v2", False)]
    with pytest.raises(UsageError, match=r'revision="v2": only a repository has revisions'):
        find_model(model_folder, revision="v2")


def test_a_repository_that_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelNotFound, match=r"nobody/nothing.*cannot be fetched"):
        find_model("nobody/nothing", download=True)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"has no config\.json"):
        LLM(tmp_path)


@pytest.mark.parametrize("name", ["model.gguf", "MODEL.GGUF", "blob"])
def test_a_gguf_file_is_known_by_its_name_or_beginning(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(b"GGUF" + bytes(12))
    with pytest.raises(UnsupportedModel, match=f"{name}: GGUF with version 0 is not supported"):
        LLM(file)
    for missing in ("other.gguf", "OTHER.GGUF", "model.safetensors"):
        with pytest.raises(ModelNotFound, match="there is no such file"):
            LLM(tmp_path / missing)


def test_what_a_folder_holds_instead_of_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "model-q4.gguf").write_bytes(b"GGUF" + bytes(12))
    for _ in range(2):
        with pytest.raises(UnsupportedModel, match=r"model-q4\.gguf: GGUF with version 0"):
            LLM(tmp_path)
        (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model-q8.gguf").write_bytes(b"GGUF" + bytes(12))
    with pytest.raises(UnsupportedModel, match=r"2 GGUF models in this folder \(model-q4\.gguf, model-q8\.gguf\)"):
        LLM(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(UnsupportedModel, match="LoRA adapter and no model"):
        LLM(tmp_path)


def test_a_file_of_a_model_is_not_its_folder(model_folder: Path) -> None:
    with pytest.raises(ModelNotFound, match=f"this is a file; .* {model_folder}"):
        LLM(model_folder / "model.safetensors")


def test_the_tokenizer_works_both_ways(llm: LLM) -> None:
    tokenizer, text = llm.tokenizer, "the lab: 3 \u20ac, in\tthere"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and tuple(tokenizer(text)["input_ids"]) == ids
    assert tokenizer(["the", "lab"])["input_ids"] == [list(tokenizer.encode(each)) for each in ("the", "lab")]
    end = llm.vocabulary.eos_token_ids[0]
    assert tokenizer.decode(end) == "<|end|>" and tokenizer.decode([*ids, end], skip_special_tokens=True) == text
    (output,) = llm.generate("x", regex="[a-z]{5} [ab]{3}")
    assert tokenizer.decode(output.token_ids) == output.text
    for wrong in (-1, llm.vocabulary.size):
        with pytest.raises(RequestError, match=f"no token {wrong}"):
            tokenizer.decode([wrong])


def test_engine_options_are_checked(model_folder: Path) -> None:
    with pytest.raises(ConfigError, match='unknown engine option "max_len"'):
        LLM(model_folder, max_len=5)
    with pytest.raises(UsageError, match='prompt_style="loud"'):
        LLM(model_folder, prompt_style="loud")  # type: ignore[arg-type]


def _text(events: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def test_captures_of_a_grammar_come_with_the_output(llm: LLM) -> None:
    grammar = 'start: word "=" value\nword[capture]: /[a-c]+/\nvalue: n ("," n)*\nn[capture="__LIST_APPEND:items"]: /[0-9]/'
    output = llm.generate("x", grammar=grammar, sampling=SamplingParams(max_tokens=12, seed=1))[0]
    word, _, value = output.text.partition("=")
    assert output.captures == {"word": word, "items": value.split(",")}
    assert llm.generate("x", regex="[ab]{3}")[0].captures == {}


@pytest.mark.parametrize("name", ["~nobody-of-that-name/model", "x" * 300])
def test_names_that_are_no_paths_are_models_that_there_are_not(name: str) -> None:
    with pytest.raises(ModelNotFound, match="it cannot be looked for: "):
        find_model(name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"eos_token_id": "x"}', '"eos_token_id" is a token id, a list of them or null, not \'x\''),
        ('{"eos_token_id": [4, 1.5]}', '"eos_token_id" is a token id, a list of them or null'),
        ('{"eos_token_id": true}', '"eos_token_id" is a token id'),
        ('{"do_sample": true, "temperature": "hot"}', "temperature must be a number"),
        ('{"repetition_penalty": []}', "repetition_penalty must be a number"),
        ("[]", "expected a JSON object"),
    ],
)
def test_a_generation_config_that_means_nothing_is_named(content: str, message: str, model_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model_folder, tmp_path / "model")
    (folder / "generation_config.json").write_text(content)
    with pytest.raises(ModelFolderError, match="generation_config.json: " + re.escape(message)):
        LLM(folder)
