"""What a replica knows, told as facts: the beginnings of its last prompts that are still in the prefix cache, the constraints that
are still compiled, and the adapters that are loaded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from ...constraints import Source
from ...engine.requests.known_prompt import KnownPrompt
from ...planning import Plan
from .routing_key import RoutingKey, fact_of

ASKED_KEY: ContextVar[RoutingKey | None] = ContextVar("asked_key", default=None)  # of the request that is being answered
MOST_REQUESTS = 512
MOST_FACTS = 4096  # that are told, of the last requests first: all who route are told them every few seconds


@dataclass(frozen=True, slots=True)
class _Served:
    key: RoutingKey
    prompt: KnownPrompt
    source: Source | None  # of its constraint


class Knowledge:
    """Of the last requests. Belongs to the event loop."""

    def __init__(self, max_requests: int = MOST_REQUESTS) -> None:
        self._max_requests = max_requests
        self._served: OrderedDict[tuple[int | None, ...], _Served] = OrderedDict()  # the oldest first

    def note(self, plans: Sequence[Plan]) -> None:
        """The request under `ASKED_KEY` is about to run."""
        key = ASKED_KEY.get()
        if key is None or not plans:
            return
        request, source = plans[0].requests[0], plans[0].choice.source
        mark = key.prefixes[-1][1] if key.prefixes else None, key.constraint, key.becomes
        prompt = KnownPrompt(request.prompt_token_ids, request.adapter, request.cache_salt)
        self._served[mark] = _Served(key, prompt, source if isinstance(source, Source) else None)
        self._served.move_to_end(mark)
        while len(self._served) > self._max_requests:
            self._served.popitem(last=False)

    @property
    def prompts(self) -> list[KnownPrompt]:
        """Those to be looked up in the cache."""
        return [each.prompt for each in self._served.values()]

    def facts(
        self, num_cached: Mapping[KnownPrompt, int], is_compiled: Callable[[Source], bool], adapters: Iterable[str]
    ) -> set[int]:
        """All that is known. num_cached: leading tokens in the cache, of the prompts that were looked up."""
        found = {fact_of("adapter", name) for name in adapters}
        for each in reversed(self._served.values()):
            if len(found) >= MOST_FACTS:
                break
            found |= set(_known_prefixes(each.key, num_cached.get(each.prompt, 0), len(each.prompt.token_ids)))
            if each.key.constraint is not None and each.source is not None and is_compiled(each.source):
                found.add(each.key.constraint)
        return found


def _known_prefixes(key: RoutingKey, num_cached: int, num_tokens: int) -> Iterator[int]:
    """Facts of the beginnings of a prompt of which so many tokens are in the cache; its bytes are taken to be spread evenly over
    its tokens. The last token is always computed."""
    if not num_cached:
        return
    share = (num_cached + 1) / num_tokens
    yield from (fact for num_bytes, fact in key.prefixes if num_bytes <= share * key.num_bytes)
    if key.becomes is not None and share >= 1:
        yield key.becomes
