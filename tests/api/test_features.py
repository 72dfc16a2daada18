"""Several outputs of a prompt, and what makes the engine fast, where users look for it."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import pickle
import re
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from maskwright import LLM, AsyncLLM, ConfigError, SamplingParams, UsageError
from maskwright.cli import run
from maskwright.engine import EngineConfig, EngineFeatures


class Point(BaseModel):
    x: int
    y: int


PROMPT = "the thing in there " * 3
FORCED = r"(x|y) there in the then \d"  # "the" and "th" are tokens, so there are many spellings


def params(**options: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 1.0, "seed": 5, "max_tokens": 12, **options})


def test_n_outputs_of_one_prompt(llm: LLM) -> None:
    before = llm.statistics
    (output,) = llm.generate(PROMPT, sampling=params(n=4))
    texts = [output.text, *(each.text for each in output.alternatives)]
    assert len(texts) == len(set(texts)) == 4
    assert output.text == llm.generate(PROMPT, sampling=params())[0].text
    assert [each.usage.cached_tokens > 0 for each in output.alternatives] == [True] * 3
    after = llm.statistics
    assert after.num_cached_tokens - before.num_cached_tokens >= 3 * (output.usage.prompt_tokens // 16 * 16)
    assert llm.generate(PROMPT, sampling=params(n=4))[0].alternatives[2].text == texts[3]


def test_best_of_gives_the_most_probable(llm: LLM) -> None:
    (best,) = llm.generate(PROMPT, sampling=params(best_of=5, logprobs=0))
    (several,) = llm.generate(PROMPT, sampling=params(n=5, logprobs=0))
    everyone = [several, *several.alternatives]

    def mean(output: Any) -> float:
        return sum(record.logprob for record in output.logprobs) / len(output.logprobs)

    assert best.text == max(everyone, key=mean).text and best.alternatives == ()
    (two,) = llm.generate(PROMPT, sampling=params(n=2, best_of=5))
    assert [two.text, two.alternatives[0].text] == [each.text for each in sorted(everyone, key=mean, reverse=True)[:2]]


def test_n_with_a_constraint_and_asyncio(llm: LLM) -> None:
    sampling = params(n=3, max_tokens=60)
    (output,) = llm.generate(PROMPT, schema=Point, sampling=sampling)
    assert all(isinstance(each.parsed, Point) for each in (output, *output.alternatives))
    (same,) = asyncio.run(AsyncLLM(llm).generate(PROMPT, schema=Point, sampling=sampling))
    assert [each.text for each in same.alternatives] == [each.text for each in output.alternatives]


def test_a_stream_or_a_reply_is_one_output(llm: LLM) -> None:
    with pytest.raises(UsageError, match="a stream is of one; use generate"):
        next(llm.stream(PROMPT, sampling=params(n=2)))
    with pytest.raises(UsageError, match="n=2 asks for several"):
        llm.chat("hello", sampling=params(n=2))


@pytest.mark.parametrize(
    "features",
    [
        {"prefix_cache": False, "skips_forced": False},
        {"speculation": "lookup", "num_draft_tokens": 3},
        {"speculation": "forced"},
        {"speculation": "draft"},
        {"policy": "priority", "num_host_blocks": 8, "num_kv_blocks": 24},
    ],
)
def test_features_change_no_output(features: dict[str, Any], llm: LLM, model_folder: Path) -> None:
    if features.get("speculation") == "draft":
        features = {**features, "draft_model": model_folder}
    other = LLM(model_folder, **features)
    prompts = [PROMPT, PROMPT + "again", "in there"]
    for constraint in ({}, {"schema": Point}, {"regex": FORCED}):
        sampling = params(max_tokens=60)
        expected = [output.text for output in llm.generate(prompts, sampling=sampling, **constraint)]
        assert [output.text for output in other.generate(prompts, sampling=sampling, **constraint)] == expected
    if "speculation" in features:
        assert other.statistics.num_drafted_tokens > 0 or features["speculation"] == "lookup"
    if features.get("speculation") == "draft":
        assert other.statistics.acceptance_rate > 0.9


def test_jump_forward_gives_valid_outputs_in_fewer_steps(llm: LLM) -> None:
    steps = []
    for jump_forward in (False, True):
        before = llm.statistics.num_steps
        (output,) = llm.generate(PROMPT, regex=FORCED, sampling=params(max_tokens=60, jump_forward=jump_forward))
        assert re.fullmatch(FORCED, output.text) and (output.usage.jumped_tokens > 0) == jump_forward
        steps.append(llm.statistics.num_steps - before)
    assert steps[1] < steps[0]


def test_the_command_line_has_them_too(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--n", "3", "--seed", "1", "--temperature", "1", "--max-tokens", "60", "--jump-forward", "--regex", r"\d{3,5}"]
    code = run(["generate", PROMPT, "--model", str(model_folder), "--speculation", "forced", "--no-prefix-cache", *asked])
    lines = capsys.readouterr().out.splitlines()
    assert not code and len(lines) == 3 and all(3 <= len(line) <= 5 and line.isdigit() for line in lines)


def test_a_wrong_feature_is_named_before_a_model_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", PROMPT, "--model", "/nowhere", "--speculation", "psychic"])
    assert 'speculation must be one of off, lookup, forced, draft, got "psychic"' in " ".join(capsys.readouterr().err.split())


def test_several_outputs_of_a_file_of_prompts(model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = tmp_path / "prompts"
    prompts.write_text("one\ntwo\n")
    run(["generate", "--prompt-file", str(prompts), "--model", str(model_folder), "--n", "2", "--max-tokens", "3"])
    assert [json.loads(line)["prompt"] for line in capsys.readouterr().out.splitlines()] == ["one", "one", "two", "two"]


def test_an_urgent_prompt_goes_first(model_folder: Path) -> None:
    llm = LLM(model_folder, policy="priority", max_sequences=1, max_batch_tokens=64)
    slow = llm.planner.plan_all(PROMPT, params(max_tokens=40), {})[0].ranked(1, "")
    (request_id,) = llm.driver.submit([slow.request])
    llm.driver.next_event(request_id)
    llm.generate("now", sampling=params(max_tokens=3), priority=0)
    assert llm.statistics.num_preemptions == 1
    llm.driver.cancel(request_id)
    assert llm.statistics.num_blocks_in_use == 0


@pytest.mark.parametrize("command", ["generate", "chat"])
def test_commands_take_every_engine_option(command: str, model_folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))
    prompt = ["x"] if command == "generate" else []
    asked = ["-m", str(model_folder), "--regex", "[ab]{3}", "--num-kv-blocks", "6", "--block-size", "8", "--max-model-len", "48"]
    assert run([command, *prompt, *asked]) == 0 and re.fullmatch("[ab]{3}", capsys.readouterr().out.strip())
    assert run([command, *prompt, "-m", "/nowhere", "--kv-layout", "round"]) == 2
    assert "kv_layout must be one of paged, contiguous" in " ".join(capsys.readouterr().err.split())
    names = {option for parameter in command_of(command).params for option in parameter.opts}
    own = {"--" + field.name.replace("_", "-") for cls in (EngineConfig, EngineFeatures, SamplingParams) for field in fields(cls) if not field.metadata.get("in_python")}
    assert names >= own | {"-m", "-t", "-n", "--temp", "--greedy"} | ({"-p", "--prompt"} if command == "generate" else set())


# Of each field of EngineConfig and EngineFeatures a value that is not its default, and what has to stand beside it.
ENGINE_OPTIONS: dict[str, tuple[object, dict[str, object]]] = {
    "device": ("cuda:1", {}), "dtype": ("bfloat16", {}), "block_size": (8, {}), "kv_layout": ("contiguous", {}),
    "attention": ("naive", {}), "kernels": ("reference", {}), "kv_dtype": ("fp8", {}), "max_batch_tokens": (256, {}),
    "max_sequences": (3, {}), "max_model_len": (48, {}), "num_kv_blocks": (6, {}), "kv_memory_fraction": (0.25, {}),
    "threads": (2, {}), "quantization": ("int8", {}), "quantized_activations": (False, {}), "products": ("float32", {}),
    "cpu_offload_gb": (1.5, {}), "tensor_parallel": (2, {}), "rank_seconds": (9.0, {}), "max_adapters": (3, {}), "max_adapter_rank": (8, {}), "prefix_cache": (False, {}), "num_host_blocks": (8, {}), "skips_forced": (False, {}),
    "policy": ("priority", {}), "speculation": ("lookup", {}), "num_draft_tokens": (3, {}),
    "draft_acceptance": ("distribution", {"speculation": "draft", "draft_model": Path("small")}), "overlap": (True, {}),
    "automaton": ("device", {}), "steps_per_visit": (4, {"automaton": "device"}), "cuda_graphs": (True, {"automaton": "device"}),
    "draft_model": (Path("small"), {"speculation": "draft"}),
}  # fmt: skip


@pytest.mark.parametrize("command", ["generate", "chat", "serve"])
@pytest.mark.parametrize("name", [field.name for cls in (EngineConfig, EngineFeatures) for field in fields(cls) if field.name != "model"])
def test_each_engine_option_reaches_the_model(command: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    class Loaded(UsageError):
        pass

    def load(*arguments: object, **options: object) -> None:
        loaded.update(options)
        raise Loaded("enough")

    loaded: dict[str, object] = {}
    monkeypatch.setattr("maskwright.cli.model_options.LLM", load)
    value, beside = ENGINE_OPTIONS[name]
    asked = {name: value, **beside}
    assert run([command, *(["x"] if command == "generate" else []), *_as_arguments(asked)]) == 2
    assert capsys.readouterr().err.endswith("maskwright: enough\n")
    assert {each: loaded[each] for each in asked} == asked


def _as_arguments(options: dict[str, object]) -> list[str]:
    arguments = []
    for name, value in options.items():
        written = name.replace("_", "-")
        arguments += [f"--{written}" if value else f"--no-{written}"] if isinstance(value, bool) else [f"--{written}", str(value)]
    return arguments


@pytest.mark.parametrize("command", ["generate", "chat", "serve"])
def test_only_what_leaves_the_output_alone_is_filed_so(command: str) -> None:
    panels = {parameter.name: getattr(parameter, "rich_help_panel", None) for parameter in command_of(command).params}
    changing = {"draft_acceptance"}
    assert {panels[name] for name in changing} == {"Engine"}
    assert {panels[each.name] for each in fields(EngineFeatures) if each.name not in changing} == {"Speed (the output is the same)"}


def test_short_names(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def generated(*options: str) -> str:
        assert run(["generate", "-m", str(model_folder), "--regex", "[a-z]{6}", "--seed", "1", *options]) == 0
        return capsys.readouterr().out

    def refused(*options: str) -> str:
        assert run(["generate", "-m", "/nowhere", *options]) == 2
        return " ".join(capsys.readouterr().err.split())

    long = generated("x", "--threads", "1", "--temperature", "2", "--max-tokens", "7")
    assert generated("-t", "1", "-p", "x", "--temp", "2", "-n", "7") == generated("--prompt", "x", "--temp", "2", "-n", "7") == long
    assert generated("x", "--greedy") == generated("x", "--temp", "0") == generated("x", "--greedy", "--temp", "0")
    assert "--greedy is --temperature 0; it contradicts --temperature 1.0" in refused("x", "--greedy", "--temp", "1")
    assert "there are two prompts: 'y' after --prompt, and 'x'" in refused("x", "-p", "y")
    assert "Invalid value for '--threads' / '-t'" in refused("x", "-t", "0.7")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"speculaton": "off"}, ConfigError, 'unknown engine option "speculaton"; did you mean speculation?'),
        ({"max_modellen": 5}, ConfigError, "did you mean max_model_len?"),
        ({"prompt_stile": "chat"}, ConfigError, "did you mean prompt_style?"),
        ({"zzz": 5}, ConfigError, 'unknown engine option "zzz"; known: model, .*prefix_cache'),
        ({"temperature": 0}, UsageError, r"temperature= is a sampling option: .*sampling=SamplingParams\(temperature="),
    ],
)
def test_options_that_there_are_not(model_folder: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        LLM(model_folder, **options)


def test_options_that_there_are_not_where_they_are_written_down(llm: LLM) -> None:
    with pytest.raises(UsageError, match=r'unknown sampling option "temprature"; did you mean temperature\?'):
        SamplingParams(temprature=0.5)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"SamplingParams takes options by name, such as temperature=..., not 0.5"):
        SamplingParams(0.5)  # type: ignore[call-arg,misc]
    with pytest.raises(UsageError, match=r'unknown engine option "overlapp"; did you mean overlap\?'):
        EngineFeatures(overlapp=True)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"unknown argument max_token=.*did you mean max_tokens"):
        llm.generate("x", max_token=3)  # type: ignore[call-arg]
    params = SamplingParams(top_k=3)
    assert pickle.loads(pickle.dumps(params)) == copy.deepcopy(params) == replace(params, top_k=3) == params


def command_of(name: str) -> Any:
    return import_module(f"maskwright.cli.{name}").command()
