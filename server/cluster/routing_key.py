"""What of a request decides which replica answers it best, without a tokenizer: how its prompt begins, its constraint, its adapter.

Each is a *fact*, a number of 64 bits: the digest of what it stands for. A replica knows a fact if the keys and values of that
beginning are in its cache, if it has compiled that constraint, if that adapter is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from ..requested_constraint import ConstraintNames

PROMPT_MEMBERS = (  # in the order in which templates write them
    "system", "instructions", "tools", "functions", "messages", "input", "prompt", "text", "input_ids",
)  # fmt: skip
CONSTRAINT_MEMBERS = (
    "response_format", "format", "output_config", "output_format", "tools", "functions", "tool_choice", "sampling_params",
    "reasoning_effort", *ConstraintNames.model_fields,
)  # fmt: skip
LAST_ENDS = 16  # of messages, at which beginnings are told apart beside the growing ones
FIRST_BYTES = 256  # of a prompt, that decide where it belongs
CONTINUED_BYTES = 4096  # what a conversation that is named but not sent is taken to have


@dataclass(frozen=True, slots=True)
class RoutingKey:
    """What a request is routed by."""

    prefixes: tuple[tuple[int, int], ...] = ()  # (bytes of the prompt, fact of that beginning), the shortest first
    num_bytes: int = 0  # of the whole prompt
    constraint: int | None = None
    adapter: int | None = None
    adapter_name: str | None = None
    becomes: int | None = None  # the fact of the conversation that a later request may name

    @property
    def facts(self) -> Iterator[int]:
        """All that a replica knows when it has answered."""
        yield from (fact for _, fact in self.prefixes)
        yield from (fact for fact in (self.constraint, self.adapter, self.becomes) if fact is not None)


def fact_of(kind: str, *parts: str | bytes) -> int:
    """The fact of something of that kind."""
    digest = blake2b(kind.encode(), digest_size=8)
    for part in parts:
        digest.update(b"\0" + (part.encode("utf-8", "replace") if isinstance(part, str) else part))
    return int.from_bytes(digest.digest(), "little")


def routing_key(path: str, body: bytes, request_id: str, adapters: Collection[str] = ()) -> RoutingKey:
    """The key of a request to `path`. One that is not understood has an empty one: any replica can tell what is wrong with it.

    adapters: names that requests may give as their model.
    """
    try:
        asked = json.loads(body) if body else None
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        return RoutingKey()
    model, salt = asked.get("model"), asked.get("cache_salt")
    adapter = model if isinstance(model, str) and model in adapters else None
    becomes = fact_of("conversation", request_id) if path == "/v1/responses" else None
    constraint, own = _constraint(asked), None if adapter is None else fact_of("adapter", adapter)
    before = asked.get("previous_response_id")
    if isinstance(before, str):
        known = ((CONTINUED_BYTES, fact_of("conversation", before.removeprefix("resp_"))),)
        return RoutingKey(known, CONTINUED_BYTES, constraint, own, adapter, becomes)
    parts = list(_prompt_parts(asked))
    seed = f"{adapter or ''}\0{salt if isinstance(salt, str) else ''}"
    return RoutingKey(tuple(_prefixes(parts, seed)), sum(map(len, parts)), constraint, own, adapter, becomes)


def beginnings(num_bytes: int) -> Iterator[int]:
    """Lengths at which prompts are compared: 64, 128, ..., and from 256 on each a quarter longer, up to `num_bytes`."""
    length = 64
    while length <= num_bytes:
        yield length
        length += max(64, length // 4)


def _prefixes(parts: list[bytes], seed: str) -> Iterator[tuple[int, int]]:
    """(bytes, fact) of the beginnings of a prompt that is written in parts."""
    ends, length = list[int](), 0
    for part in parts:
        length += len(part)
        ends.append(length)
    if not length:
        return
    whole, digest, start = b"".join(parts), blake2b(seed.encode("utf-8", "replace"), digest_size=8), 0
    for end in sorted({*beginnings(length), *ends[-LAST_ENDS:]}):
        digest.update(whole[start:end])
        yield end, int.from_bytes(digest.digest(), "little")
        start = end


def _prompt_parts(asked: Mapping[str, Any]) -> Iterator[bytes]:
    for name in PROMPT_MEMBERS:
        value = asked.get(name)
        if value is None or (name == "text" and isinstance(value, dict)):  # of a response: what its text is to be like
            continue
        for item in value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else (value,):
            yield item.encode("utf-8", "replace") if isinstance(item, str) else _written(item)


def _constraint(asked: Mapping[str, Any]) -> int | None:
    given = {name: asked[name] for name in CONSTRAINT_MEMBERS if asked.get(name) is not None}
    if isinstance(asked.get("text"), dict):
        given["text"] = asked["text"]
    return fact_of("constraint", _written(given)) if given else None


def _written(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def first_fact(key: RoutingKey) -> int:
    """What decides where a request that nobody knows belongs: its constraint, else how its prompt begins."""
    if key.constraint is not None:
        return key.constraint
    early = [fact for num_bytes, fact in key.prefixes[:4] if num_bytes <= FIRST_BYTES]
    return early[-1] if early else key.prefixes[0][1] if key.prefixes else 0
