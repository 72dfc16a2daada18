"""What requests are routed by."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.server.cluster.routing_key import RoutingKey, beginnings, routing_key

CHAT = "/v1/chat/completions"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}


def key_of(asked: dict[str, Any], path: str = CHAT, request_id: str = "id", adapters: tuple[str, ...] = ()) -> RoutingKey:
    return routing_key(path, json.dumps(asked).encode(), request_id, adapters)


def shared_bytes(one: RoutingKey, other: RoutingKey) -> int:
    facts = {fact for _, fact in other.prefixes}
    return max((num_bytes for num_bytes, fact in one.prefixes if fact in facts), default=0)


@given(st.text(max_size=3000))
def test_facts_are_digests_of_beginnings(prompt: str) -> None:
    written = prompt.encode("utf-8", "replace")
    key = key_of({"prompt": prompt})
    assert key.num_bytes == len(written)
    lengths = [num_bytes for num_bytes, _ in key.prefixes]
    assert lengths == sorted({*beginnings(len(written)), *([len(written)] if written else [])})
    for num_bytes, fact in key.prefixes:
        assert fact == int.from_bytes(blake2b(b"\0" + written[:num_bytes], digest_size=8).digest(), "little")


@given(st.text(min_size=300, max_size=2000), st.text(max_size=400), st.text(max_size=400))
def test_prompts_that_begin_alike_share_most_of_it(common: str, one: str, other: str) -> None:
    length = len(common.encode())
    shared = shared_bytes(key_of({"prompt": common + "a" + one}), key_of({"prompt": common + "b" + other}))
    assert length * 0.79 - 64 <= shared <= length


@given(st.lists(st.text(max_size=200), min_size=1, max_size=20), st.text(max_size=200))
def test_the_next_turn_begins_with_all_turns_before(texts: list[str], more: str) -> None:
    turns = [{"role": "user" if number % 2 else "assistant", "content": text} for number, text in enumerate(texts)]
    before, after = key_of({"messages": turns}), key_of({"messages": [*turns, {"role": "user", "content": more}]})
    assert shared_bytes(after, before) == before.num_bytes


def test_what_keys_and_values_depend_on_parts_prompts() -> None:
    plain = key_of({"prompt": "x" * 500})
    salted = key_of({"prompt": "x" * 500, "cache_salt": "s"})
    adapted = key_of({"prompt": "x" * 500, "model": "sql"}, adapters=("sql",))
    assert not shared_bytes(plain, salted) and not shared_bytes(plain, adapted) and not shared_bytes(salted, adapted)
    assert (plain.adapter, adapted.adapter_name) == (None, "sql") and adapted.adapter is not None
    assert key_of({"prompt": "x" * 500, "model": "other"}, adapters=("sql",)) == plain


def test_constraints_are_equal_however_they_are_written() -> None:
    one = key_of({"messages": [], "response_format": SCHEMA, "temperature": 0})
    same = routing_key(CHAT, json.dumps({"response_format": dict(reversed(SCHEMA.items())), "messages": []}, indent=2).encode(), "other")
    assert one.constraint == same.constraint is not None
    assert key_of({"messages": []}).constraint is None
    distinct = [{"regex": "a"}, {"guided_regex": "a"}, {"regex": "b"}, {"text": {"format": SCHEMA}}, {"format": "json"}, {"tools": []}]
    assert len({key_of({"prompt": "x", **asked}).constraint for asked in distinct}) == len(distinct)


def test_a_conversation_is_known_by_the_request_that_made_it() -> None:
    first = key_of({"input": "hello"}, "/v1/responses", "abc")
    later = key_of({"input": "more", "previous_response_id": "resp_abc"}, "/v1/responses", "def")
    assert [fact for _, fact in later.prefixes] == [first.becomes] and later.becomes not in (None, first.becomes)
    assert key_of({"prompt": "x"}).becomes is None


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000], ids=lambda body: str(body[:9]))
def test_what_cannot_be_read_has_an_empty_key(body: bytes) -> None:
    assert routing_key(CHAT, body, "id") == RoutingKey()


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3))


@given(st.dictionaries(st.sampled_from(["messages", "prompt", "text", "input", "tools", "model", "cache_salt", "previous_response_id", "regex"]), JSON))
def test_any_object_has_a_key(asked: dict[str, Any]) -> None:
    key = key_of(asked)
    assert [num_bytes for num_bytes, _ in key.prefixes] == sorted({num_bytes for num_bytes, _ in key.prefixes})
    assert key.num_bytes == (key.prefixes[-1][0] if key.prefixes else 0)
