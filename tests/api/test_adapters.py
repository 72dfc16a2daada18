"""Adapters at the front door: named at the start, loaded and unloaded while others generate, one or none for each prompt."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from maskwright import LLM, AsyncLLM, Done, RequestError, SamplingParams, SessionError, UsageError, generate
from maskwright.cli import run
from maskwright.engine.errors import AdapterError, AdapterInUse, ConfigError

GREEDY = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)
PROMPTS = ["hello there", "one two three"]


def save_adapter(folder: Path, seed: int) -> Path:
    """An adapter of the small model of conftest.py, as peft writes it."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(2):
        for name, (rows, columns) in {"self_attn.q_proj": (32, 32), "self_attn.v_proj": (16, 32), "mlp.down_proj": (32, 48)}.items():
            module = f"base_model.model.model.layers.{layer}.{name}"
            tensors[f"{module}.lora_A.weight"] = torch.randn(4, columns, generator=generator)
            tensors[f"{module}.lora_B.weight"] = torch.randn(rows, 4, generator=generator)
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj", "down_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save_adapter(tmp_path_factory.mktemp(name), seed) for seed, name in enumerate(("sql", "chat"), 1)}


@pytest.fixture(scope="module")
def adapted(model_folder: Path, adapters: Mapping[str, Path]) -> LLM:
    return LLM(model_folder, adapters=adapters)


@pytest.fixture(scope="module")
def alone(adapted: LLM) -> dict[tuple[str | None, str], str]:
    """The text that each prompt gets with each adapter, asked one by one."""
    asked = [(name, prompt) for name in (None, "sql", "chat") for prompt in PROMPTS]
    return {(name, prompt): adapted.generate(prompt, sampling=GREEDY, adapter=name)[0].text for name, prompt in asked}


def test_one_or_none_for_each_prompt_of_a_list(adapted: LLM, alone: dict[tuple[str | None, str], str]) -> None:
    assert len({alone[name, PROMPTS[0]] for name in (None, "sql", "chat")}) == 3
    names = [None, "sql", "chat", "sql", None, "chat"]
    prompts = [PROMPTS[place % 2] for place in range(6)]
    outputs = adapted.generate(prompts, sampling=GREEDY, adapter=names)
    assert [output.text for output in outputs] == [alone[pair] for pair in zip(names, prompts, strict=True)]
    same = adapted.generate(PROMPTS, sampling=GREEDY, adapter="sql")
    assert [output.text for output in same] == [alone["sql", prompt] for prompt in PROMPTS]


def test_every_way_to_ask_takes_an_adapter(adapted: LLM, alone: dict[tuple[str | None, str], str], tmp_path: Path) -> None:
    prompt, text = PROMPTS[0], alone["sql", PROMPTS[0]]
    ended = [event.output.text for event in adapted.stream(prompt, sampling=GREEDY, adapter="sql") if isinstance(event, Done)]
    ended += [event.output.text for event in adapted.stream_text(prompt, sampling=GREEDY, adapter="sql") if isinstance(event, Done)]
    ended += [event.output.text for event in adapted.stream_tokens(prompt, sampling=GREEDY, adapter="sql") if isinstance(event, Done)]
    ended.append(generate(prompt, model=adapted, sampling=GREEDY, adapter="sql"))
    with adapted.open(prompt, sampling=GREEDY, adapter="sql") as session:
        next(session)
        session.save(tmp_path / "saved")
    ended.append(adapted.resume(tmp_path / "saved", adapter="sql").result().text)
    assert ended == [text] * 5
    with pytest.raises(SessionError, match="made with an adapter, and none was given"):
        adapted.resume(tmp_path / "saved")
    greedy = SamplingParams(temperature=0.0, max_tokens=12)
    replies = {adapted.chat("hello", sampling=greedy, adapter=name).text for name in (None, "sql", "chat")}
    streamed = [e.output.text for e in adapted.stream_chat("hello", sampling=greedy, adapter="sql") if isinstance(e, Done)]
    assert len(replies) == 3 and streamed[0] in replies
    beams = [adapted.beam_search(prompt, width=2, sampling=SamplingParams(max_tokens=5), adapter=name)[0].text for name in (None, "sql")]
    drawn = SamplingParams(max_tokens=5, seed=1, temperature=1.0)
    particles = [adapted.particles(prompt, count=2, sampling=drawn, adapter=name)[0].text for name in (None, "sql")]
    assert beams[0] != beams[1] and particles[0] != particles[1]


def test_asyncio(adapted: LLM, alone: dict[tuple[str | None, str], str], adapters: Mapping[str, Path]) -> None:
    async def run() -> list[str]:
        llm = AsyncLLM(adapted)
        await llm.load_adapter("more", adapters["sql"])
        assert list(llm.adapters) == ["sql", "chat", "more"]
        many = await asyncio.gather(*(llm.generate(PROMPTS[0], sampling=GREEDY, adapter=name) for name in ("more", "chat", None)))
        texts = [outputs[0].text for outputs in many]
        texts += [e.output.text async for e in llm.stream_text(PROMPTS[0], sampling=GREEDY, adapter="more") if isinstance(e, Done)]
        async with await llm.open(PROMPTS[0], sampling=GREEDY, adapter="more") as session:
            texts.append((await session.result()).text)
        await llm.unload_adapter("more", wait=True)
        assert list(llm.adapters) == ["sql", "chat"]
        return texts

    sql = alone["sql", PROMPTS[0]]
    assert asyncio.run(run()) == [sql, alone["chat", PROMPTS[0]], alone[None, PROMPTS[0]], sql, sql]


@pytest.mark.parametrize("options", [{}, {"overlap": True}])
def test_threads_load_and_unload_while_others_generate(
    options: dict[str, bool], model_folder: Path, adapters: Mapping[str, Path], alone: dict[tuple[str | None, str], str]
) -> None:
    llm = LLM(model_folder, adapters={"sql": adapters["sql"]}, max_adapters=3, **options)
    errors: list[BaseException] = []

    def generating(name: str | None) -> None:
        for round_ in range(6):
            prompt = PROMPTS[round_ % 2]
            assert llm.generate(prompt, sampling=GREEDY, adapter=name)[0].text == alone[name, prompt]

    def coming_and_going(number: int) -> None:
        for round_ in range(5):
            name, which = f"{number}-{round_}", ("sql", "chat")[round_ % 2]
            llm.load_adapter(name, adapters[which])
            assert llm.generate(PROMPTS[1], sampling=GREEDY, adapter=name)[0].text == alone[which, PROMPTS[1]]
            llm.unload_adapter(name)

    def watched(work: object, argument: object) -> None:
        try:
            work(argument)  # type: ignore[operator]
        except BaseException as error:
            errors.append(error)

    work = [(generating, None), (generating, "sql"), (coming_and_going, 1), (coming_and_going, 2)]
    threads = [threading.Thread(target=watched, args=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert list(llm.adapters) == ["sql"] and not llm.driver.is_busy


def test_unloading_refuses_or_waits(model_folder: Path, adapters: Mapping[str, Path], alone: dict[tuple[str | None, str], str]) -> None:
    llm = LLM(model_folder, adapters=adapters)
    session = llm.open(PROMPTS[0], sampling=GREEDY, adapter="sql")
    next(session)
    with pytest.raises(AdapterInUse, match='adapter "sql" is in use: a request runs or waits with it') as caught:
        llm.unload_adapter("sql")
    assert caught.value.num_requests == 1
    llm.unload_adapter("sql", wait=True)
    assert list(llm.adapters) == ["chat"]
    assert session.result().text == alone["sql", PROMPTS[0]], "what ran has run to its end"
    with pytest.raises(RequestError, match='unknown adapter "sql"; known: chat'):
        llm.generate(PROMPTS[0], adapter="sql")
    with pytest.raises(AdapterError, match='unknown adapter "sql"'):
        llm.unload_adapter("sql", wait=True)


def test_what_is_loaded_can_be_seen(adapted: LLM, adapters: Mapping[str, Path]) -> None:
    loaded = adapted.adapters["sql"]
    assert (loaded.name, loaded.path, loaded.rank) == ("sql", adapters["sql"], 4)
    assert adapted.statistics.num_adapters == 2 and adapted.statistics.adapter_bytes > 0


def test_wrong_values_are_told(adapted: LLM, model_folder: Path, adapters: Mapping[str, Path]) -> None:
    with pytest.raises(UsageError, match="adapter= has 1 values for 2 prompts"):
        adapted.generate(PROMPTS, adapter=["sql"])
    for wrong in (5, [5], {"sql"}):
        with pytest.raises(UsageError, match="adapter= is "):
            adapted.generate("a", adapter=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="adapters= is a mapping from names to folders, not list"):
        LLM(model_folder, adapters=["x"])  # type: ignore[arg-type]
    with pytest.raises(AdapterError, match="there is no such folder"):
        LLM(model_folder, adapters={"x": model_folder / "nowhere"})
    with pytest.raises(AdapterError, match="1 adapters are loaded, and max_adapters is 1"):
        LLM(model_folder, adapters=adapters, max_adapters=1)
    with pytest.raises(AdapterError, match="it has rank 4, and max_adapter_rank is 2"):
        LLM(model_folder, adapters=adapters, max_adapter_rank=2)
    with pytest.raises(AdapterError, match="set max_adapters to how many"):
        LLM(model_folder, adapters=adapters, max_adapters=0)
    for name, value in (("max_adapters", -1), ("max_adapters", True), ("max_adapter_rank", 0)):
        with pytest.raises(ConfigError, match=f"{name}.* must be an integer of at least 1"):
            LLM(model_folder, **{name: value})


def test_without_slots_there_are_none(model_folder: Path, adapters: Mapping[str, Path]) -> None:
    llm = LLM(model_folder, max_adapters=0)
    assert llm.adapters == {}
    with pytest.raises(AdapterError, match="made without adapters; set max_adapters"):
        llm.load_adapter("sql", adapters["sql"])
    with pytest.raises(RequestError, match='adapter "sql": this engine has no adapters'):
        llm.generate("a", adapter="sql")


def test_the_command_line(
    model_folder: Path, adapters: Mapping[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompts.txt").write_text("one\ntwo\n")
    common = ["--model", str(model_folder), "--greedy", "-n", "10"]
    told = []
    for given in ([], ["--adapter", str(adapters["sql"])], ["--adapter", str(adapters["chat"])]):
        for asked in (["-p", PROMPTS[0]], ["-p", PROMPTS[0], "--no-stream"], ["--prompt-file", str(tmp_path / "prompts.txt")]):
            assert run(["generate", *common, *given, *asked]) == 0
            told.append(capsys.readouterr().out)
        monkeypatch.setattr("sys.stdin", io.StringIO("hello\n\n"))
        assert run(["chat", *common, *given]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] and told[4] == told[5] and len(set(told)) == 9
    assert run(["generate", *common, "--adapter", str(tmp_path), "-p", "a"]) == 2
    assert "no adapter_config.json in this folder" in capsys.readouterr().err
