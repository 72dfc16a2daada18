"""A request that is put aside and gone on with gives the tokens it would have given anyway, wherever that happens."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from itertools import product

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from maskwright.constraints import Choice, Compiler, Regex
from maskwright.engine.drafts.draft_model import DraftModel
from maskwright.engine.errors import RequestError, SessionError
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.requests.request import Request
from maskwright.engine.sessions import session_file
from maskwright.engine.sessions.session_file import load_snapshot, save_snapshot
from maskwright.engine.sessions.sessions import Sessions
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked, save_tiny_model, tiny_vocabulary

VOCABULARY = tiny_vocabulary()
WORDS_PATTERN = r"([a-z]{1,5} ){2,6}(left|right)[0-9]{1,4}"
COMPILER = Compiler(VOCABULARY)
WORDS = COMPILER.compile(Regex(WORDS_PATTERN))
PROMPT = (10, 20, 30, 40, 50, 10, 20, 30, 40, 50, 10, 20, 30)
FAMILIES = ["llama", "gemma2", "mixtral", "deepseek-v3", "qwen2-half-sliding", "cohere", "llama4", "mamba2"]
SAMPLINGS = {
    "greedy": {"temperature": 0.0},
    "sampled": {"temperature": 0.9, "top_p": 0.9, "seed": 7},
    "penalties": {"temperature": 1.2, "repetition_penalty": 1.3, "frequency_penalty": 0.4, "seed": 1, "logprobs": 2},
}


@pytest.fixture(scope="module")
def folder(tiny_model, tmp_path_factory):
    mamba = {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 8, "initializer_range": 0.4}
    built = {}

    def get(name):
        if name not in built:
            is_mamba = name == "mamba2"
            built[name] = (
                save_tiny_model(tmp_path_factory.mktemp(name), "Mamba2Config", mamba).folder if is_mamba else tiny_model(name).folder
            )
        return built[name]

    return get


def sessions_of(engine, folder, draft=None) -> Sessions:
    return Sessions(engine, lambda: model_fingerprint(folder), draft and (lambda: model_fingerprint(draft)))


def finish(engine, request_id, *, from_start=False):
    """The output; from_start: events tell all of it."""
    text, tokens = "", []
    while engine.has_work:
        for event in engine.step():
            if event.request_id == request_id:
                text, tokens = text + event.text, [*tokens, *(record.token_id for record in event.tokens)]
                output = event.output or None
    check_nothing_leaked(engine)
    assert not from_start or (output.text, list(output.token_ids)) == (text, tokens)
    return output


def same(one, other) -> bool:
    """But for the number of the request."""
    return replace(one, request_id=0) == replace(other, request_id=0)


def request(constraint=None, num_tokens=24, prompt=PROMPT, **sampling) -> Request:
    options = {"max_tokens": num_tokens, "ignore_eos": constraint is None, **sampling}
    return Request(prompt_token_ids=prompt, sampling=SamplingParams(**options), constraint=constraint)


@pytest.mark.parametrize("constraint", [None, WORDS], ids=["free", "constrained"])
@pytest.mark.parametrize(("name", "sampling"), [*((name, "sampled") for name in FAMILIES), *product(("llama", "mamba2"), ("greedy", "penalties"))])
def test_what_comes_is_what_would_have_come(name, sampling, constraint, folder, make_engine, tmp_path):
    where, asked = folder(name), request(constraint, **SAMPLINGS[sampling])
    plain = make_engine(where)
    expected = finish(plain, plain.add_request(asked))
    engine = make_engine(where)
    request_id = engine.add_request(asked)
    for _ in range(9):
        engine.step()
    save_snapshot(sessions_of(engine, where).snapshot(request_id), tmp_path / "session")
    assert same(finish(engine, request_id), expected)  # it goes on as if nothing had happened
    other = make_engine(where, block_size=7)
    num_before = other.statistics.num_computed_tokens
    resumed = sessions_of(other, where).resume(load_snapshot(tmp_path / "session"), constraint)
    assert same(finish(other, resumed, from_start=True), expected)
    assert other.statistics.num_computed_tokens - num_before < len(expected.token_ids)  # the prompt is not computed again


@pytest.mark.parametrize("num_steps", [0, 2, 7, 15])
@pytest.mark.parametrize("cache", ["private", "shared", "recompute"])
def test_at_any_moment_of_a_busy_engine(cache, num_steps, folder, make_engine, tmp_path):
    """A long prompt in chunks, others beside it, few blocks: waiting, half computed, decoding."""
    where, options = folder("llama"), {"num_blocks": 26, "max_model_len": 90, "max_batch_tokens": 16}
    rng = random.Random(num_steps)
    prompts = [tuple(rng.randrange(3, 99) for _ in range(length)) for length in (5, 40, 30, 11)]
    asked = [request(c, prompt=p, temperature=0.8, seed=s) for s, (p, c) in enumerate(zip(prompts, (None, WORDS, None, WORDS), strict=True))]
    plain = make_engine(where, prefix_cache=False)
    alone = [finish(plain, plain.add_request(each)) for each in asked]
    engine = make_engine(where, **options)
    ids = [engine.add_request(each) for each in asked]
    for _ in range(num_steps):
        engine.step()
    saved = []
    for place, request_id in enumerate(ids):
        try:
            save_snapshot(sessions_of(engine, where).snapshot(request_id), tmp_path / str(place))
        except RequestError:
            continue  # it has ended
        saved.append(place)
    other = make_engine(where, **options)
    resumed = {sessions_of(other, where).resume(load_snapshot(tmp_path / str(place)), asked[place].constraint, cache): place for place in saved}
    outputs = {}
    while other.has_work:
        outputs |= {resumed[event.request_id]: event.output for event in other.step() if event.output is not None}
        other.space.validate()
    check_nothing_leaked(other)
    assert {place: output.token_ids for place, output in outputs.items()} == {place: alone[place].token_ids for place in saved}


def test_in_another_process(folder, make_engine, tmp_path):
    where, asked = folder("qwen2-half-sliding"), request(WORDS, temperature=1.0, seed=4)
    engine = make_engine(where)
    request_id = engine.add_request(asked)
    for _ in range(6):
        engine.step()
    save_snapshot(sessions_of(engine, where).snapshot(request_id), tmp_path / "session")
    expected = finish(engine, request_id)
    script = f"""
import json, sys
sys.path.insert(0, {str(tmp_path)!r})
from pathlib import Path
import torch
from maskwright.constraints import Compiler, Regex
from maskwright.constraints import Vocabulary
from maskwright.engine.limits import Limits
from maskwright.engine.engine import Engine
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.steps.runner import ModelRunner
from maskwright.engine.sessions.session_file import load_snapshot
from maskwright.engine.sessions.sessions import Sessions
folder = Path({str(where)!r})
tokens = [None, None, b"</s>"] + [bytes([32 + i]) for i in range(96)]
vocabulary = Vocabulary(tokens, eos_token_ids=[2], special_tokens={{"<pad>": 0, "<s>": 1}})
limits = Limits(block_size=16, num_blocks=20, max_batch_tokens=64, max_sequences=4, max_model_len=128)
decoder = load_model(folder, read_spec(folder), torch.float32, torch.device("cpu"), 128)
engine = Engine(ModelRunner(decoder, decoder.allocate_cache(20, 16)), vocabulary, limits)
constraint = Compiler(vocabulary).compile(Regex({WORDS_PATTERN!r}))
Sessions(engine, lambda: model_fingerprint(folder)).resume(load_snapshot({str(tmp_path / "session")!r}), constraint)
outputs = []
while engine.has_work:
    outputs += [event.output for event in engine.step() if event.output]
print(json.dumps([outputs[0].token_ids, outputs[0].text]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [list(expected.token_ids), expected.text]


@pytest.mark.parametrize("kind", ["lookup", "draft", "distribution"])
def test_guesses_go_on_too(kind, folder, make_engine, tmp_path):
    where, small = folder("llama"), folder("qwen2-half-sliding")

    def make():
        if kind == "lookup":
            return make_engine(where, speculation="lookup"), None
        drafter = DraftModel(make_engine(small).runner, VOCABULARY.size, keeps_tokens=kind == "draft")
        return make_engine(where, speculation="lookup", drafter=drafter), small

    (engine, draft), (other, _) = make(), make()
    request_id = engine.add_request(request(temperature=0.7, seed=3))
    for _ in range(5):
        engine.step()
    save_snapshot(sessions_of(engine, where, draft).snapshot(request_id), tmp_path / "session")
    expected = finish(engine, request_id)
    snapshot = load_snapshot(tmp_path / "session")
    assert same(finish(other, sessions_of(other, where, draft).resume(snapshot)), expected)  # guesses and acceptance, too
    if draft:
        with pytest.raises(SessionError, match="draft model"):
            sessions_of(other, where, where).resume(snapshot)
        bare = make_engine(where)
        assert finish(bare, sessions_of(bare, where).resume(snapshot)).token_ids == expected.token_ids or kind == "distribution"


def test_the_budget_and_what_it_closed_go_along(folder, make_engine):
    """Snapshots after every step, near a limit that narrows what may come."""
    where = folder("llama")
    tight = COMPILER.compile(Regex(r"(a[a-z]*;|b[a-z]{5,9}[0-9]{9,12};)+"))
    asked = [request(tight, 24, temperature=2.0, seed=seed, logit_bias={ord("b") - 29: 9.0}) for seed in range(4)]
    engine, other = (make_engine(where, prefix_cache=False) for _ in range(2))
    for each in asked:
        request_id = engine.add_request(each)
        snapshots = []
        while True:
            try:
                snapshots.append(sessions_of(engine, where).snapshot(request_id))
            except RequestError:
                break
            events = engine.step()
        expected = events[0].output
        for snapshot in snapshots[::2]:
            assert same(finish(other, sessions_of(other, where).resume(snapshot, tight)), replace(expected, num_cached_tokens=0))


def test_a_conversation_that_ended_is_known_again(folder, make_engine, tmp_path):
    where, engine = folder("llama"), make_engine(folder("llama"))
    asked = request(temperature=0.0)
    output = finish(engine, engine.add_request(asked))
    save_snapshot(sessions_of(engine, where).snapshot_of_ended(asked, output), tmp_path / "session")
    snapshot = load_snapshot(tmp_path / "session")
    longer = request(prompt=(*PROMPT, *output.token_ids, 5, 6, 7), temperature=0.0)
    for cache, is_known in (("private", False), ("shared", True)):
        other = make_engine(where)
        assert same(finish(other, sessions_of(other, where).resume(snapshot, cache=cache)), output)
        again = finish(other, other.add_request(longer))
        assert again.num_cached_tokens == (len(PROMPT) + len(output.token_ids) - 1 if is_known else 0)
        fresh = make_engine(where)
        assert again.token_ids == finish(fresh, fresh.add_request(longer)).token_ids


def test_foreign_keys_and_values_stay_with_their_request(folder, make_engine):
    """A file may say anything; who begins with the same tokens must not see it, nor must forks give it away."""
    where, engine = folder("llama"), make_engine(folder("llama"))
    asked = request(temperature=0.0)
    request_id = engine.add_request(asked)
    for _ in range(12):
        engine.step()
    snapshot = sessions_of(engine, where).snapshot(request_id)
    expected = finish(engine, request_id)
    assert snapshot.cache is not None
    wrong = replace(
        snapshot.cache, content=snapshot.cache.content._replace(model=tuple(torch.full_like(t, 3.0) for t in snapshot.cache.content.model))
    )
    other = make_engine(where)
    resumed = sessions_of(other, where).resume(replace(snapshot, cache=wrong))
    other.step()
    other.fork(resumed)
    finish(other, resumed)
    again = finish(other, other.add_request(asked))
    assert again.token_ids == expected.token_ids and again.num_cached_tokens == 0


# ---- what is refused


@pytest.fixture
def saved(folder, make_engine, tmp_path):
    engine = make_engine(folder("llama"))
    request_id = engine.add_request(request(WORDS, temperature=0.0, logprobs=1))
    for _ in range(8):
        engine.step()
    save_snapshot(sessions_of(engine, folder("llama")).snapshot(request_id), tmp_path / "session")
    return tmp_path / "session"


def test_what_does_not_belong_is_named(saved, folder, make_engine):
    snapshot, where = load_snapshot(saved), folder("llama")
    engine = make_engine(where)
    sessions = sessions_of(engine, where)
    with pytest.raises(SessionError, match="none was given") as none:
        sessions.resume(snapshot)
    with pytest.raises(SessionError, match="another one was given") as other:
        sessions.resume(snapshot, COMPILER.compile(Choice(["a", "b"])))
    with pytest.raises(SessionError, match="another model") as model:
        sessions_of(make_engine(folder("gemma2")), folder("gemma2")).resume(snapshot, WORDS)
    with pytest.raises(SessionError, match="may grow to") as length:
        sessions_of(make_engine(where, max_model_len=30), where).resume(snapshot, WORDS)
    vocabulary = type(VOCABULARY)([*VOCABULARY.tokens[:-1], b"~~"], eos_token_ids=[2], special_tokens={"<pad>": 0, "<s>": 1})
    with pytest.raises(SessionError, match="another tokenizer") as tokenizer:
        sessions_of(make_engine(where, vocabulary=vocabulary), where).resume(snapshot, Compiler(vocabulary).compile(Regex(WORDS_PATTERN)))
    assert snapshot.cache is not None
    half = replace(snapshot, cache=replace(snapshot.cache, layout=snapshot.cache.layout._replace(parts=(("bfloat16", (2, 8)),) * 6)))
    with pytest.raises(SessionError, match=r"bfloat16 \[2, 8\], this engine 6 tensors of a token, the first float32") as layout:
        sessions.resume(half, WORDS)
    with pytest.raises(SessionError, match="cache must be one of") as asked:
        sessions.resume(snapshot, WORDS, cache="all")
    errors = (none, other, model, length, tokenizer, layout, asked)
    named = ["constraint", "constraint", "model", "max_model_len", "tokenizer", "cache", "request"]
    assert [error.value.keyword for error in errors] == named
    assert not engine.has_work
    assert finish(engine, sessions.resume(half, WORDS, cache="recompute")).finish_reason == "stop"


def test_a_model_is_recognised_by_its_weights(tiny_model, tmp_path):
    import shutil

    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        shutil.copytree(tiny_model("llama").folder, folder)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "transformers_version": "9"}))
    weights = load_file(other / "model.safetensors")
    save_file(weights, other / "model.safetensors", {"format": "pt", "note": "written anew"})
    assert model_fingerprint(one) == model_fingerprint(other)
    weights["model.norm.weight"][3] += 1
    changed = tmp_path / "changed"
    shutil.copytree(one, changed)
    save_file(weights, changed / "model.safetensors", {"format": "pt"})
    assert model_fingerprint(one) != model_fingerprint(changed)


def test_any_changed_byte_is_found(saved):
    data = saved.read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        changed = bytearray(data)
        if rng.random() < 0.3:
            changed = changed[: rng.randrange(len(changed))]
        else:
            place = rng.randrange(len(changed) if rng.random() < 0.5 else 4000)
            changed[place] ^= 1 << rng.randrange(8)
        saved.write_bytes(changed)
        with pytest.raises(SessionError) as error:
            load_snapshot(saved)
        assert error.value.keyword == "file"


def test_other_files_are_none_of_ours(tmp_path, tiny_model):
    with pytest.raises(SessionError, match="not a saved session"):
        load_snapshot(tiny_model("llama").folder / "model.safetensors")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(SessionError, match="not a safetensors file"):
        load_snapshot(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        load_snapshot(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        load_snapshot(tmp_path)


HOSTILE = [3, -1, 2**62, 1.5, True, None, "x", [], {}, [1, 2], [[]], {"a": 1}, "tokens", float("nan"), [["float32", [2, 8]]] * 6]


def test_a_hostile_header_is_refused_or_harmless(saved, folder, make_engine):
    """Any value of the header replaced, under a right checksum: a SessionError, or a session that runs to an end."""
    where = folder("llama")
    with safe_open(saved, "pt") as file:
        header, tensors = json.loads(file.metadata()["header"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    rng, engine = random.Random(1), make_engine(where)
    outcomes = {"refused": 0, "ran": 0}
    for _ in range(200):
        changed = json.loads(json.dumps(header))
        parent, key = rng.choice(list(places(changed)))
        parent[key] = rng.choice(HOSTILE)
        arrays = dict(tensors)
        if rng.random() < 0.5:
            name = rng.choice(list(arrays))
            arrays[name] = rng.choice([arrays[name][:-1], arrays[name].flatten()[:1], torch.zeros(0), torch.full_like(arrays[name], 3), -arrays[name]])
        outcomes[attempt(changed, arrays, saved, sessions_of(engine, where), engine)] += 1
    assert outcomes["refused"] > 120


def test_a_file_from_before_loops_were_ended_ends_none(saved, tmp_path):
    with safe_open(saved, "pt") as file:
        header, tensors = json.loads(file.metadata()["header"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert header["sampling"].pop("loop_bound") is None
    text = json.dumps(header)
    save_file(tensors, tmp_path / "old", {"maskwright": "session", "header": text, "digest": session_file._digest(text, tensors)})
    assert load_snapshot(tmp_path / "old").sampling == replace(load_snapshot(saved).sampling, loop_bound=0)


def places(value):
    """(container, key) of every value in a document."""
    stack = [value]
    while stack:
        each = stack.pop()
        for key in list(each) if isinstance(each, dict) else range(len(each)):
            yield each, key
            if isinstance(each[key], dict | list):
                stack.append(each[key])


def attempt(header, tensors, path, sessions, engine) -> str:
    text = json.dumps(header)
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, path, {"maskwright": "session", "header": text, "digest": session_file._digest(text, tensors)})
    try:
        resumed = sessions.resume(load_snapshot(path), WORDS)
    except SessionError as error:
        assert error.keyword in ("content", "format", "model", "tokenizer", "constraint", "cache", "max_model_len")
        return "refused"
    finish(engine, resumed)
    return "ran"
