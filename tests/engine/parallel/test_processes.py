"""Ranks as they run: processes that are started, follow, die, and are ended with whoever started them."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwright import LLM, SamplingParams
from maskwright.cli import run
from maskwright.engine.adapters.adapter import Adapter, LowRank
from maskwright.engine.adapters.modules import Place
from maskwright.engine.config import EngineConfig
from maskwright.engine.errors import ConfigError, RankLost
from maskwright.engine.features import EngineFeatures
from maskwright.engine.models.tokenizer import load_tokenizer
from maskwright.engine.parallel.messages import Done, FreeAdapter, LoadAdapter, Move
from maskwright.engine.parallel.team import Follower, Team
from maskwright.engine.sharding.progress import Progress, Standing
from maskwright.engine.sharding.ranks import Rank
from maskwright.engine.verification import Difference, _difference, verify_parallel

pytestmark = pytest.mark.slow

PATIENCE = 60  # seconds: a test that waits so long has hung
SCHEMA = '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 150}}, "required": ["name", "age"], "additionalProperties": false}'
PROMPTS = ["Ada Lovelace, 36, lives in London.", "Ada Lovelace, 36, lives in Paris.", "Bob is 7."]
SAMPLING = [SamplingParams(max_tokens=40, temperature=0), SamplingParams(max_tokens=40, temperature=0.9, seed=3), SamplingParams(max_tokens=30, temperature=0)]
SMALL = {"device": "cpu", "dtype": "float32", "max_model_len": 256, "threads": 1}


def followers(llm: LLM) -> list[Any]:
    return llm.driver._engine.runner._team.followers  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return [output.text for output in LLM(**SMALL).generate(PROMPTS, sampling=SAMPLING, json_schema=SCHEMA)]


@pytest.fixture
def llm() -> Iterator[LLM]:
    with LLM(**SMALL, tensor_parallel=2, num_kv_blocks=24, overlap=True) as llm:
        yield llm


def in_time(work: Any) -> Any:
    """What `work` gives in a thread of its own, which must end."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it hangs, or has raised"
    return found[0]


def test_two_processes_answer_as_one_and_end_when_they_are_told(llm: LLM, expected: list[str]) -> None:
    (follower,) = followers(llm)
    assert [output.text for output in llm.generate(PROMPTS, sampling=SAMPLING, json_schema=SCHEMA)] == expected
    llm.close()
    assert follower.process.poll() is not None
    (output,) = llm.generate(PROMPTS[:1])
    assert (output.finish_reason, output.error) == ("error", "RankLost: the engine was closed; load the model again")
    llm.close()


def test_a_rank_that_dies_ends_what_runs_and_what_comes(llm: LLM) -> None:
    (follower,) = followers(llm)
    stream = llm.stream(PROMPTS[0], sampling=SamplingParams(max_tokens=150, temperature=0, ignore_eos=True))
    next(stream)
    os.kill(follower.process.pid, signal.SIGKILL)
    *_, done = in_time(lambda: list(stream))
    assert done.output.finish_reason == "error"
    assert done.output.error == "RankLost: rank 1 ended by SIGKILL; all ranks have ended: load the model again"
    (later,) = in_time(lambda: llm.generate(PROMPTS[:1]))
    assert later.error == done.output.error
    assert llm.statistics.num_failures == 2


def test_a_rank_that_is_stopped_ends_what_runs_after_a_named_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.engine.parallel.team._SIGNS", 300)
    with LLM(**SMALL, tensor_parallel=2, num_kv_blocks=24) as llm:
        (follower,) = followers(llm)
        stream = llm.stream(PROMPTS[0], sampling=SamplingParams(max_tokens=150, temperature=0, ignore_eos=True))
        next(stream)
        follower.seconds = 2.0  # from its next sign of life on
        os.kill(follower.process.pid, signal.SIGSTOP)
        *_, done = in_time(lambda: list(stream))
        expected = "rank 1 has given no sign of life for 2 s (rank_seconds); all ranks have ended: load the model again"
        assert done.output.error == f"RankLost: {expected}"
        assert follower.process.wait(PATIENCE) == -signal.SIGKILL


def test_a_rank_that_has_nothing_to_answer_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it imports what it needs, loads its share, or waits."""
    monkeypatch.setattr("maskwright.engine.parallel.team._SIGNS", 3000)
    follower = Follower(Rank(1, 2), 30.0)
    for _ in range(300):
        assert follower._connection.poll(PATIENCE) and follower._connection.recv_bytes() == b""
    follower.let_go()
    assert follower.hear() is None
    follower.end()


def test_a_pause_of_all_processes_is_no_loss() -> None:
    """As of a container: time has passed for rank 0, and the other rank goes on only now."""
    looks = iter([False, True, False, True, True, False, False])
    said, heard = iter([b"", Progress().sign(), pickle.dumps(Done())]), list[Standing]()

    class Paused:
        def poll(self, seconds: float) -> bool:
            return next(looks)

        def recv_bytes(self) -> bytes:
            return next(said)

    follower: Any = Follower.__new__(Follower)
    follower.seconds, follower._connection, follower.on_standing = 30.0, Paused(), heard.append
    assert follower.hear() == Done() and len(heard) == 1
    with pytest.raises(TimeoutError):
        follower.hear()


@pytest.mark.parametrize(
    ("sent", "seconds", "how"),
    [("SIGKILL", 30.0, "ended by SIGKILL"), ("SIGSTOP", 2.0, r"has given no sign of life for 2 s \(rank_seconds\)")],
)
def test_a_rank_that_dies_or_stops_while_shares_are_loaded_is_told(
    sent: str, seconds: float, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams: list[Team] = []

    def load_and_kill(*arguments: Any) -> Any:
        (follower,) = teams[0].followers
        os.kill(follower.process.pid, signal.Signals[sent])
        return load_tokenizer(*arguments)

    def noted(config: Any, spec: Any) -> Team:
        teams.append(Team(config, spec))
        return teams[-1]

    monkeypatch.setattr("maskwright.engine.loader.load_tokenizer", load_and_kill)
    monkeypatch.setattr("maskwright.engine.parallel.team.Team", noted)
    with pytest.raises(RankLost, match=f"rank 1 {how}; all ranks have ended: load the model again"):
        LLM(**SMALL, tensor_parallel=2, rank_seconds=seconds)
    assert teams[0].followers[0].process.poll() is not None


class Endless:
    """Who reads it hangs."""

    def __reduce__(self) -> Any:
        return time.sleep, (1e9,)


@contextmanager
def at_work() -> Iterator[None]:
    """A block beside which another thread of this process computes, as that of a server does."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            sum(range(10_000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


WAITED = "rank 1 lives, and has kept the others waiting for 30 s \\(rank_seconds\\); all ranks have ended: load the model again"


def test_a_rank_that_lives_and_does_not_come_to_a_sum_is_waited_for_no_longer_than_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.engine.parallel.team._SIGNS", 300)
    with LLM(**SMALL, tensor_parallel=2, num_kv_blocks=24) as llm:
        stream = llm.stream(PROMPTS[0], sampling=SamplingParams(max_tokens=150, temperature=0, ignore_eos=True))
        next(stream)
        team = llm.driver._engine.runner._team  # type: ignore[attr-defined]
        team._patience._num_turns = 20  # instead of 300
        team.tell(Move(map(time.sleep, [1e9])))  # type: ignore[arg-type]  # whose members rank 1 asks for
        with at_work():
            *_, done = in_time(lambda: list(stream))
        assert re.fullmatch(f"RankLost: {WAITED}", done.output.error)
        assert team.followers[0].process.wait(PATIENCE) == -signal.SIGKILL


def test_a_rank_that_lives_and_does_not_get_ready_is_waited_for_no_longer_than_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is computed beside one device."""
    monkeypatch.setattr("maskwright.engine.parallel.team._SIGNS", 300)

    def load_and_hang(team: Team) -> int:
        team._patience._num_turns = 40  # instead of 300
        team.tell(Endless())  # type: ignore[arg-type]  # behind which rank 1 reads nothing
        return num_blocks(team)

    num_blocks = Team.num_blocks
    monkeypatch.setattr(Team, "num_blocks", load_and_hang)
    config = EngineConfig(model=LLM(**SMALL).config.model, device="cpu", max_model_len=256, threads=1, tensor_parallel=2)
    with pytest.raises(RankLost, match=WAITED):
        in_time_or_raised(lambda: verify_parallel(config, EngineFeatures(), PROMPTS[:1], 2))


def in_time_or_raised(work: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(PATIENCE)


@pytest.mark.parametrize("seconds", [0, 0.5, -1.0, True, "soon", float("nan")])
def test_the_time_without_a_sign_of_life_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(ConfigError, match="rank_seconds must be a number of seconds, 1 or more"):
        LLM(**SMALL, tensor_parallel=2, rank_seconds=seconds)


def test_a_rank_that_fails_in_the_middle_ends_what_runs(llm: LLM) -> None:
    """Here: it is told to give back a slot that there is not."""
    stream = llm.stream(PROMPTS[0], sampling=SamplingParams(max_tokens=150, temperature=0, ignore_eos=True))
    next(stream)
    llm.driver._engine.runner._team.tell(FreeAdapter(99))  # type: ignore[attr-defined]
    *_, done = in_time(lambda: list(stream))
    assert done.output.error.startswith("RankLost: rank 1 failed: KeyError") and done.output.finish_reason == "error"


def test_no_process_is_left_behind_by_one_that_is_killed() -> None:
    code = (
        "from maskwright import LLM\n"
        f"llm = LLM(**{SMALL!r}, tensor_parallel=2)\n"
        "print(llm.driver._engine.runner._team.followers[0].process.pid, flush=True)\n"
        "input()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, env=environment, **pipes) as first:
        assert first.stdout is not None and first.stderr is not None
        os.kill(int(first.stdout.readline()), 0)  # the follower is there
        first.kill()
        assert isinstance(in_time(first.stderr.read), str), "it ends when all have ended that print there, the follower too"


def test_what_a_rank_cannot_do_is_told_with_its_reason(llm: LLM) -> None:
    """Here: an adapter of another width than the layer's."""
    team = llm.driver._engine.runner._team  # type: ignore[attr-defined]
    team.tell(LoadAdapter(Adapter(Path("wrong"), {Place("layers.0.mlp.up"): LowRank(torch.ones(1, 2), torch.ones(2, 1), 1.0)})))
    with pytest.raises(RankLost, match=r"rank 1 failed: RuntimeError: .*; all ranks have ended: load the model again"):
        team.answers()
    (output,) = in_time(lambda: llm.generate(PROMPTS[:1]))
    assert output.error is not None and output.error.startswith("RankLost: rank 1 failed: RuntimeError")


def test_verification_tells_how_far_ranks_are_from_one_device(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--max-model-len", "128", "--num-kv-blocks", "16", "--threads", "1", "--device", "cpu"]
    assert run(["verify-parallel", "--tensor-parallel", "2", "--speculation", "lookup", "-n", "6", *small]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"the same on 1 device and on 2: \d+ tokens of 4 prompts", first)
    found = re.fullmatch(r"largest difference of logits: (\S+) \(largest logit: (\S+)\)", second)
    assert found is not None and 0 < float(found[1]) < 1e-4 * float(found[2])
    assert run(["verify-parallel", "--tensor-parallel", "1"]) == 2
    assert "--tensor-parallel 1 leaves nothing to compare" in capsys.readouterr().err


def test_what_ranks_cannot_do_is_told_before_one_device_has_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwright.engine.verification.load", lambda *_: pytest.fail("a model was loaded"))
    assert run(["verify-parallel", "--tensor-parallel", "5", "--device", "cpu"]) == 2
    assert "tensor_parallel=5 does not fit 4 heads" in capsys.readouterr().err


def test_verification_tells_the_first_token_that_differs() -> None:
    logits = torch.tensor([[0.0, 1.0], [2.0, 1.5]])
    assert _difference(7, (1, 0), (1, 1), logits) == Difference(7, 1, 0, 1, 0.5)
    assert _difference(7, (1,), (1, 1), logits) == Difference(7, 1, None, 1, None)
