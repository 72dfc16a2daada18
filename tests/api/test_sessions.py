"""Sessions: put aside in a file, gone on with in another process's place, and refused where they do not belong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from maskwright import LLM, Done, FieldClosed, SamplingParams, Session, SessionError
from maskwright.engine import Event


class Pair(BaseModel):
    first: str
    second: str


SAMPLING = SamplingParams(temperature=1.3, seed=5, max_tokens=60, top_p=0.95)


@pytest.fixture(scope="module")
def other(model_folder: Path) -> LLM:
    """As in another process."""
    return LLM(model_folder)


def read(session: Session, count: int) -> list[object]:
    return [next(session) for _ in range(count)]


def test_a_session_goes_on_elsewhere(llm: LLM, other: LLM, tmp_path: Path) -> None:
    (expected,) = llm.generate("Who?", schema=Pair, sampling=SAMPLING)
    expected_events = list(llm.stream("Who?", schema=Pair, sampling=SAMPLING))
    with llm.open("Who?", schema=Pair, sampling=SAMPLING) as session:
        begun = read(session, 6)
        session.save(tmp_path / "pair")
    resumed = other.resume(tmp_path / "pair", schema=Pair)
    events = list(resumed)
    assert resumed.is_done and begun == expected_events[:6]
    assert [event for event in events if isinstance(event, FieldClosed)] == [e for e in expected_events if isinstance(e, FieldClosed)]
    assert isinstance(events[-1], Done)
    output = resumed.result()
    assert (output.text, output.token_ids, output.prompt) == (expected.text, expected.token_ids, "Who?")
    assert output.parsed == expected.parsed


def test_saving_does_not_disturb_and_may_be_repeated(llm: LLM, other: LLM, tmp_path: Path) -> None:
    (expected,) = llm.generate("Go on", sampling=SAMPLING)
    with llm.open("Go on", sampling=SAMPLING) as session:
        for event in session:
            session.save(tmp_path / "text", keeps_cache=not isinstance(event, Done))
        assert session.result().text == expected.text
        session.save(tmp_path / "text")
    assert other.resume(tmp_path / "text").result().text == expected.text
    for cache in ("private", "shared", "recompute"):
        assert other.resume(tmp_path / "text", cache=cache).result().text == expected.text  # type: ignore[arg-type]


def test_a_conversation_is_known_again(llm: LLM, model_folder: Path, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Tell me about the sea, at length, please."}]
    session = llm.open(messages, sampling=SAMPLING)
    reply = session.result()
    session.save(tmp_path / "talk")
    fresh = LLM(model_folder)
    resumed = fresh.resume(tmp_path / "talk", cache="shared")
    assert resumed.result().text == reply.text
    before = fresh.statistics.num_cached_tokens
    turn = [*messages, {"role": "assistant", "content": reply.text}, {"role": "user", "content": "And the wind?"}]
    assert fresh.chat(turn, sampling=SAMPLING).text == llm.chat(turn, sampling=SAMPLING).text
    assert fresh.statistics.num_cached_tokens - before >= reply.usage.prompt_tokens


def test_what_does_not_fit_is_refused_by_name(llm: LLM, other: LLM, tmp_path: Path) -> None:
    session = llm.open("Who?", schema=Pair, sampling=SAMPLING)
    read(session, 3)
    session.save(tmp_path / "pair")
    session.close()
    assert list(session) == []
    with pytest.raises(SessionError, match="closed before") as closed:
        session.save(tmp_path / "again")
    with pytest.raises(SessionError, match="closed before"):
        session.result()
    with pytest.raises(SessionError, match="another one was given") as constraint:
        other.resume(tmp_path / "pair", regex="[ab]+")
    (tmp_path / "noise").write_bytes(b"noise" * 99)
    with pytest.raises(SessionError) as file:
        other.resume(tmp_path / "noise")
    with pytest.raises(SessionError) as model:
        LLM().resume(tmp_path / "pair", schema=Pair)
    assert [error.value.keyword for error in (closed, constraint, file, model)] == ["request", "constraint", "file", "model"]
    assert not llm.driver.is_busy and not other.driver.is_busy


def test_a_session_closed_by_another_thread_ends_its_reader(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    session, next_event = llm.open("Who?", sampling=SAMPLING), llm.driver.next_event

    def closed_meanwhile(request_id: int) -> Event:
        session.close()
        return next_event(request_id)

    monkeypatch.setattr(llm.driver, "next_event", closed_meanwhile)
    assert list(session) == []
    with pytest.raises(SessionError, match="closed before"):
        session.result()
