"""The parser of tool calls as a stream: the same events on every way to cut a reply, each as soon as it is certain."""

from __future__ import annotations

import json
import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Constraint, OutputParser, UnexpectedOutput, parse_output
from maskwright.constraints.front_ends.tags.events import (
    ArgumentsDelta,
    Event,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from maskwright.constraints.front_ends.tags.styles import STYLES

from .tool_cases import CALLS, compiled
from .tool_texts import ONE_CALL, TEXT_OR_CALLS, WRITERS


def events_of(constraint: Constraint, chunks: list[bytes]) -> list[Event]:
    parser = OutputParser(constraint)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.finish()


def joined(events: list[Event]) -> list[Event]:
    """Neighbouring deltas as one."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta):
            out[-1] = ArgumentsDelta(last.index, last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(last.text + event.text)
        else:
            out.append(event)
    return out


@pytest.mark.parametrize("style", STYLES)
def test_every_cut_of_a_reply_gives_the_same_events(style: str) -> None:
    constraint = compiled(style)
    text = "" if style in TEXT_OR_CALLS else "é <"
    reply = WRITERS[style](text, CALLS[2:3] if style in ONE_CALL else CALLS[2:4]).encode()
    whole = joined(events_of(constraint, [reply]))
    assert [type(event) for event in whole if not isinstance(event, TextDelta)][:3] == [
        ToolCallStart,
        ArgumentsDelta,
        ToolCallEnd,
    ]
    assert joined(events_of(constraint, [reply[i : i + 1] for i in range(len(reply))])) == whole
    for i, j in combinations(range(0, len(reply), 7), 2):
        assert joined(events_of(constraint, [reply[:i], reply[i:j], reply[j:]])) == whole


@given(st.sampled_from(sorted(STYLES)), st.text(max_size=12), st.integers(0, 3), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_random_text_and_random_cuts(style: str, text: str, first: int, rng: random.Random) -> None:
    text = "" if style in TEXT_OR_CALLS else text.encode("utf-8", "ignore").decode()
    calls = CALLS[first : first + 1]
    reply = WRITERS[style](text, calls).encode()
    cuts = sorted(rng.randrange(len(reply) + 1) for _ in range(6))
    events = events_of(compiled(style), [reply[i:j] for i, j in zip([0, *cuts], [*cuts, len(reply)], strict=True)])
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    ends = [event for event in events if isinstance(event, ToolCallEnd)]
    assert [(end.name, json.loads(end.arguments)) for end in ends] == calls
    deltas = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    assert deltas == "".join(end.arguments for end in ends)


def test_text_is_told_as_soon_as_it_is_certain() -> None:
    parser = OutputParser(compiled("hermes"))
    assert parser.feed("a <") == [TextDelta("a ")]
    assert parser.feed("tool_cal") == []
    assert parser.feed("m") == [TextDelta("<tool_calm")]
    assert parser.feed("<tool_call>\n{") == []
    assert parser.feed('"name": "get_weather", "arguments": {"city": "O') == [
        ToolCallStart(0, "get_weather"),
        ArgumentsDelta(0, '{"city": "O'),
    ]
    with pytest.raises(UnexpectedOutput) as error:
        parser.feed('slo", "days": 15')
    assert error.value.at > 0


def test_a_cut_reply_says_that_it_is_not_complete() -> None:
    parsed = parse_output(compiled("hermes"), 'Hi <tool_call>\n{"name": "get_weather", "argu')
    assert (parsed.text, parsed.calls, parsed.is_complete) == ("Hi ", (), False)
    assert parse_output(compiled("hermes"), "Hi <tool").text == "Hi <tool"


def test_harmony_tells_reasoning_and_preambles() -> None:
    reply = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + WRITERS["harmony"]("So:", CALLS[:1])
    events = joined(events_of(compiled("harmony"), [reply.encode()]))
    assert events[:4] == [ReasoningStart(), ReasoningDelta("Hm."), ReasoningEnd(), TextDelta("So:")]
    assert isinstance(events[-1], ToolCallEnd)
