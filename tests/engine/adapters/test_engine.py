"""Requests with different adapters in one batch: each gets what it gets alone, however the engine computes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maskwright.constraints import Compiler, Regex
from maskwright.engine.engine import Engine
from maskwright.engine.errors import AdapterError, AdapterInUse, RequestError, SessionError
from maskwright.engine.loops import choice
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.requests.request import Request
from maskwright.engine.search.beams import BeamSearch
from maskwright.engine.sessions.session_file import load_snapshot, save_snapshot
from maskwright.engine.sessions.sessions import Sessions
from maskwright.kernels.sampler import compiled
from maskwright.sampling import SamplingParams

from ..conftest import check_nothing_leaked, run_all, save_tiny_model, tiny_vocabulary
from ..recorded import RecordedCapture
from .making import make_engine, peft_adapter, peft_greedy, request

PROMPTS = [[10, 20, 30, 40, 50, 60, 70, 80, 90], [10, 20, 30, 40, 50, 60, 70, 80, 11], [33, 34, 35]]
LOOPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "overlap": {"overlap": True},
    "device": {"automaton": "device"},
    "visits": {"automaton": "device", "steps_per_visit": 3},
    "visits-overlap": {"automaton": "device", "steps_per_visit": 4, "overlap": True},
    "lookup": {"speculation": "lookup"},
    "no-prefix-cache": {"prefix_cache": False},
    "small-cache": {"num_blocks": 14, "max_model_len": 40},
    "host-memory": {"num_blocks": 14, "max_model_len": 40, "num_host_blocks": 16},
    "short-steps": {"max_batch_tokens": 16, "max_sequences": 16},
}


@pytest.fixture(scope="module")
def made(tiny_model, tmp_path_factory):
    """(folder of the model, folder of each adapter, what greedy decoding gives with each for each prompt)"""
    tiny = tiny_model("llama")
    folders = {name: tmp_path_factory.mktemp(name) for name in ("sql", "chat")}
    models = {
        "sql": peft_adapter(tiny, folders["sql"], seed=1, target_modules="all-linear"),
        "chat": peft_adapter(tiny, folders["chat"], seed=2, r=7, target_modules=["q_proj", "down_proj", "lm_head"]),
        None: tiny.reference,
    }
    expected = {(name, place): peft_greedy(model, prompt, 12) for name, model in models.items() for place, prompt in enumerate(PROMPTS)}
    assert len({tuple(expected[name, 0]) for name in models}) == 3, "each adapter says something else"
    return tiny.folder, folders, expected


def run_mixed(engine: Engine, expected: dict[Any, list[int]], rounds: int = 1) -> None:
    asked = [(name, place) for place in range(len(PROMPTS)) for name in (None, "sql", "chat")] * rounds
    outputs = run_all(engine, {0: [request(PROMPTS[place], name) for name, place in asked]})
    for number, (name, place) in enumerate(asked):
        assert list(outputs[number].token_ids) == expected[name, place], f"{name}, prompt {place}"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_mixed_batch_gives_what_each_gives_alone(loop, made):
    folder, adapters, expected = made
    engine = make_engine(folder, adapters, **LOOPS[loop])
    run_mixed(engine, expected)
    run_mixed(engine, expected)  # with what is known from before
    if "small" in loop or "host" in loop:
        assert engine.statistics.num_preemptions > 0


def test_captured_steps_read_who_wants_what_where_it_is(made, monkeypatch):
    """A step captured with some rows' adapters is replayed for other rows; one captured before stacks grew is not used again."""
    folder, adapters, expected = made
    capture = RecordedCapture()
    monkeypatch.setattr(choice, "capture_for", lambda device: capture)
    monkeypatch.setattr(compiled, "loaded", lambda: None)  # operations of PyTorch alone can be noted
    engine = make_engine(folder, {"sql": adapters["sql"]}, automaton="device", cuda_graphs=True, steps_per_visit=2)
    asked = [("sql", 0), (None, 1), ("sql", 2), (None, 0), ("sql", 1), (None, 2)]

    def run(pairs: list[tuple[str | None, int]]) -> None:
        outputs = run_all(engine, {0: [request(PROMPTS[place], name, ignore_eos=False) for name, place in pairs]})
        found = [list(outputs[number].token_ids) for number in range(len(pairs))]
        assert found == [expected[pair][: len(tokens)] for pair, tokens in zip(pairs, found, strict=True)]
        assert sum(map(len, found)) > 6 * len(found)

    run(asked)
    run(asked[::-1])
    captured, before = len(capture.steps), engine.runner.adapter_version
    engine.load_adapter("chat", engine.registry.read(adapters["chat"]))
    assert engine.runner.adapter_version > before
    run([("chat", 1), *asked[:5]])
    assert 0 < captured < len(capture.steps) < sum(step.num_replays for step in capture.steps)


@pytest.mark.slow
def test_by_triton_kernels(made):
    folder, adapters, expected = made
    engine = make_engine(folder, adapters, backend="triton")
    asked = [(None, 2), ("sql", 2), ("chat", 2)]
    outputs = run_all(engine, {0: [request(PROMPTS[place], name, 3) for name, place in asked]})
    for number, key in enumerate(asked):
        assert list(outputs[number].token_ids) == expected[key][:3]


def test_drafts_of_a_model_without_adapters_change_nothing(made, tmp_path):
    folder, adapters, expected = made
    small = save_tiny_model(tmp_path, "LlamaConfig", {"num_hidden_layers": 1})
    engine = make_engine(folder, adapters, draft=folder, speculation="draft", draft_model=folder)
    run_mixed(engine, expected)
    assert engine.statistics.num_accepted_tokens > 0
    run_mixed(make_engine(folder, adapters, draft=small.folder, speculation="draft", draft_model=small.folder), expected)


def test_masks_hold_with_an_adapter(made):
    folder, adapters, _ = made
    constraint = Compiler(tiny_vocabulary()).compile(Regex("[a-f]{6}"))
    engine = make_engine(folder, adapters)
    greedy = SamplingParams(temperature=0.0, max_tokens=12)
    asked = [Request(prompt_token_ids=tuple(PROMPTS[0]), sampling=greedy, constraint=constraint, adapter=name) for name in (None, "sql")]
    outputs = run_all(engine, {0: asked})
    assert all(len(output.text) == 6 and set(output.text) <= set("abcdef") for output in outputs.values())
    assert outputs[0].text != outputs[1].text


# ---- what is known of prefixes


def test_prefixes_are_shared_with_the_same_adapter_only(made):
    folder, adapters, _ = made
    engine = make_engine(folder, adapters)
    cached = [run_all(engine, {0: [request(PROMPTS[0], name)]})[0].num_cached_tokens for name in ("sql", "chat", None, "sql", "chat", None)]
    assert cached[:3] == [0, 0, 0] and min(cached[3:]) >= 4


def test_other_weights_under_the_same_name_find_nothing_of_the_old_ones(made, tiny_model, tmp_path):
    folder, adapters, expected = made
    engine = make_engine(folder, {"sql": adapters["sql"]})
    assert list(run_all(engine, {0: [request(PROMPTS[0], "sql")]})[0].token_ids) == expected["sql", 0]
    engine.unload_adapter("sql")
    engine.load_adapter("sql", engine.registry.read(adapters["chat"]))
    output = run_all(engine, {0: [request(PROMPTS[0], "sql")]})[0]
    assert output.num_cached_tokens == 0 and list(output.token_ids) == expected["chat", 0]
    engine.unload_adapter("sql")
    engine.load_adapter("again", engine.registry.read(adapters["sql"]))
    output = run_all(engine, {0: [request(PROMPTS[0], "again")]})[0]
    assert output.num_cached_tokens > 0, "the same weights under another name are the same adapter"
    assert list(output.token_ids) == expected["sql", 0]


# ---- loading and unloading while requests run


@pytest.mark.parametrize("loop", ["plain", "overlap", "visits-overlap"])
def test_adapters_come_and_go_between_steps(loop, made):
    """A request that runs is not disturbed when others are loaded and unloaded, which makes stacks grow and slots change."""
    folder, adapters, expected = made
    engine = make_engine(folder, {"sql": adapters["sql"]}, **LOOPS[loop])
    running = engine.add_request(request(PROMPTS[0], "sql"))
    outputs = {}
    late = None
    for step in range(200):
        if step == 3:
            engine.load_adapter("chat", engine.registry.read(adapters["chat"]))
            late = engine.add_request(request(PROMPTS[1], "chat"))
            with pytest.raises(AdapterInUse, match=r'adapter "sql" is in use: a request runs'):
                engine.unload_adapter("sql")
        for event in engine.step():
            if event.output is not None:
                outputs[event.request_id] = list(event.output.token_ids)
                engine.unload_adapter("sql" if event.request_id == running else "chat")
        if not engine.has_work:
            break
    assert outputs == {running: expected["sql", 0], late: expected["chat", 1]}
    assert not engine.registry.loaded and engine.statistics.adapter_bytes == 0
    check_nothing_leaked(engine)


def test_a_slot_is_free_for_the_next_one(made):
    folder, adapters, expected = made
    engine = make_engine(folder, max_adapters=1)
    for name in ("sql", "chat", "sql"):
        engine.load_adapter(name, engine.registry.read(adapters[name]))
        with pytest.raises(AdapterError, match="1 adapters are loaded, and max_adapters is 1"):
            engine.load_adapter("more", engine.registry.read(adapters[name]))
        assert list(run_all(engine, {0: [request(PROMPTS[2], name)]})[0].token_ids) == expected[name, 2]
        engine.unload_adapter(name)


def test_a_name_stands_for_another_adapter_from_one_step_to_the_next(made):
    folder, adapters, expected = made
    engine = make_engine(folder, {"sql": adapters["sql"]}, max_adapters=1)
    other, running = engine.registry.read(adapters["chat"]), engine.add_request(request(PROMPTS[0], "sql"))
    with pytest.raises(AdapterInUse):
        engine.replace_adapter("sql", other)
    engine.cancel(running)
    before = engine.registry.loaded
    replaced = engine.replace_adapter("sql", other)
    assert engine.registry.loaded == {"sql": replaced} != before and replaced.path == adapters["chat"]
    output = run_all(engine, {0: [request(PROMPTS[0], "sql")]})[0]
    assert output.num_cached_tokens == 0 and list(output.token_ids) == expected["chat", 0]
    with pytest.raises(AdapterError, match='unknown adapter "x"'):
        engine.replace_adapter("x", other)


def test_what_is_leaving_takes_no_more_requests(made):
    folder, adapters, _ = made
    engine = make_engine(folder, adapters)
    engine.retire_adapter("sql")
    with pytest.raises(RequestError, match='adapter "sql" is being unloaded'):
        engine.add_request(request(PROMPTS[0], "sql"))
    engine.retire_adapter("sql", is_leaving=False)
    engine.add_request(request(PROMPTS[0], "sql"))


def test_names_that_there_are_not(made):
    folder, adapters, _ = made
    engine = make_engine(folder, adapters)
    with pytest.raises(RequestError, match=r'unknown adapter "sq"; did you mean sql\?') as caught:
        engine.add_request(request(PROMPTS[0], "sq"))
    assert caught.value.part == "adapter"
    with pytest.raises(AdapterError, match='unknown adapter "x"'):
        engine.unload_adapter("x")
    with pytest.raises(AdapterError, match='an adapter "sql" is loaded'):
        engine.load_adapter("sql", engine.registry.read(adapters["sql"]))
    for name in ("", "a b", "x" * 257, "\n", 5):
        with pytest.raises(AdapterError, match="name is a str of 1 to 256 characters"):
            engine.load_adapter(name, engine.registry.read(adapters["sql"]))


# ---- several sequences of one request, and sessions


def test_beams_run_with_the_adapter(made):
    folder, adapters, expected = made
    engine = make_engine(folder, adapters)
    asked = Request(prompt_token_ids=tuple(PROMPTS[0]), sampling=SamplingParams(max_tokens=12), adapter="sql")
    search = engine.add_search(asked, BeamSearch(width=1))
    with pytest.raises(AdapterInUse):
        engine.unload_adapter("sql")
    outputs = {}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
    found = list(outputs[search].token_ids)
    assert found == expected["sql", 0][: len(found)] and found, "one beam is greedy decoding"


def test_a_fork_goes_on_with_the_adapter(made):
    folder, adapters, expected = made
    engine = make_engine(folder, adapters)
    parent = engine.add_request(request(PROMPTS[0], "chat"))
    for _ in range(4):
        engine.step()
    child, outputs = engine.fork(parent), {}
    while engine.has_work:
        outputs |= {event.request_id: list(event.output.token_ids) for event in engine.step() if event.output is not None}
    assert outputs == {parent: expected["chat", 0], child: expected["chat", 0]}


@pytest.mark.parametrize("cache", ["private", "shared", "recompute"])
def test_a_session_goes_on_with_its_adapter_and_no_other(cache, made, tmp_path):
    folder, adapters, expected = made
    engine = make_engine(folder, adapters)
    sessions = Sessions(engine, lambda: model_fingerprint(folder))
    running, plain = engine.add_request(request(PROMPTS[0], "sql")), engine.add_request(request(PROMPTS[0]))
    for _ in range(4):
        engine.step()
    for name, request_id in (("sql", running), ("plain", plain)):
        save_snapshot(sessions.snapshot(request_id), tmp_path / name)
    other = make_engine(folder, {"renamed": adapters["sql"], "chat": adapters["chat"]})
    resumed = Sessions(other, lambda: model_fingerprint(folder))
    saved = load_snapshot(tmp_path / "sql")
    with pytest.raises(SessionError, match="made with an adapter, and none was given") as caught:
        resumed.resume(saved, cache=cache)
    assert caught.value.keyword == "adapter"
    with pytest.raises(SessionError, match='made with an adapter, and "chat" has other weights'):
        resumed.resume(saved, cache=cache, adapter="chat")
    with pytest.raises(SessionError, match='unknown adapter "sql"'):
        resumed.resume(saved, cache=cache, adapter="sql")
    with pytest.raises(SessionError, match="made without an adapter; give none"):
        resumed.resume(load_snapshot(tmp_path / "plain"), cache=cache, adapter="renamed")
    request_id = resumed.resume(saved, cache=cache, adapter="renamed")
    outputs = {}
    while other.has_work:
        outputs |= {event.request_id: list(event.output.token_ids) for event in other.step() if event.output is not None}
    assert outputs == {request_id: expected["sql", 0]}
    after = run_all(other, {0: [request(PROMPTS[0]), request(PROMPTS[0], "renamed")]})
    assert after[0].num_cached_tokens == 0 and list(after[1].token_ids) == expected["sql", 0]


def test_an_ended_session_keeps_what_its_adapter_computed(made, tmp_path):
    folder, adapters, _ = made
    engine = make_engine(folder, adapters)
    sessions = Sessions(engine, lambda: model_fingerprint(folder))
    asked = request(PROMPTS[0], "sql")
    output = run_all(engine, {0: [asked]})[0]
    saved = sessions.snapshot_of_ended(asked, output)
    assert saved.cache is not None and saved.cache.num_tokens >= 8
    other = make_engine(folder, adapters)
    Sessions(other, lambda: model_fingerprint(folder)).resume(saved, cache="shared", adapter="sql")
    while other.has_work:
        other.step()
    cached = [run_all(other, {0: [request(PROMPTS[0], name)]})[0].num_cached_tokens for name in ("chat", None, "sql")]
    assert cached[:2] == [0, 0] and cached[2] >= 8


def test_a_step_that_fails_ends_the_guilty_alone(made, monkeypatch):
    """Sequences that begin anew after a failure go on with their adapters."""
    folder, adapters, expected = made
    engine = make_engine(folder, adapters, overlap=True)
    schedule, calls = engine.scheduler.schedule, []

    def failing():
        calls.append(1)
        if len(calls) == 5:
            raise RuntimeError("once")
        return schedule()

    monkeypatch.setattr(engine.scheduler, "schedule", failing)
    run_mixed(engine, expected)


def test_logits_do_not_depend_on_the_slot(made):
    folder, adapters, _ = made
    engine = make_engine(folder, {"a": adapters["sql"], "b": adapters["chat"], "c": adapters["sql"]})
    outputs = run_all(engine, {0: [replace(request(PROMPTS[0], name), is_measured=True) for name in "ac"]})
    assert outputs[0].token_ids == outputs[1].token_ids
    logprobs = [[record.logprob for record in outputs[number].records] for number in (0, 1)]
    assert logprobs[0] == pytest.approx(logprobs[1], abs=1e-4)
