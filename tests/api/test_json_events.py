"""Stream events are the same however the text is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.events import Delta, Event, FieldClosed, FieldOpened
from maskwright.json_events import JsonEvents

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def events_of(pieces: list[str]) -> list[Event]:
    scanner = JsonEvents()
    events = [event for piece in pieces for event in scanner.feed(piece)]
    return events + list(scanner.finish())


def joined(events: list[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one path merged."""
    out: list[Event] = []
    for event in events:
        if out and isinstance(event, Delta) and isinstance(out[-1], Delta) and out[-1].path == event.path:
            out[-1] = Delta(event.path, out[-1].text + event.text)
        else:
            out.append(event)
    return out


def expected(value: Any, path: tuple[str | int, ...] = ()) -> list[Event]:
    """The slow obvious twin: events from the finished value."""
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        members = value.items() if isinstance(value, dict) else enumerate(value)
        inner = [event for key, member in members for event in expected(member, (*path, key))]
        return [FieldOpened(path, kind), *inner, FieldClosed(path, value)]
    kind = {str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")
    text = value if isinstance(value, str) else json.dumps(value)
    deltas = [Delta(path, text)] if text else []
    return [FieldOpened(path, kind), *deltas, FieldClosed(path, value)]


@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]), data=st.data())
def test_every_split_gives_the_same_events(value: Any, ascii_only: bool, indent: int | None, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert joined(events_of(pieces)) == expected(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"Ada","tags":["x"]}',
        r'["\u00e9\ud83d\ude00\n\\\"", "\/"]',
        r'{"\u0061":{"b":[]},"c":{}}',
        " [ 1 , -2.5 , true , null ] ",
        r'"\ud83d!\ude00"',
    ],
)
def test_one_character_at_a_time(text: str) -> None:
    whole = expected(json.loads(text))
    assert joined(events_of(list(text))) == whole
    assert joined(events_of([text])) == whole


def test_a_string_streams_before_it_is_complete() -> None:
    scanner = JsonEvents()
    opened = [FieldOpened((), "object"), FieldOpened(("name",), "string")]
    assert list(scanner.feed('{"name":"Ad')) == [*opened, Delta(("name",), "Ad")]
    assert list(scanner.feed('a"')) == [Delta(("name",), "a"), FieldClosed(("name",), "Ada")]


def test_text_after_the_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="after the end"):
        events_of(['{"a":1}', "x"])


def test_a_bracket_too_many_is_an_error() -> None:
    with pytest.raises(ValueError, match="closing bracket"):
        events_of(["[]", "]"])
