"""One engine shared by many callers: whoever waits for news computes the next step for everybody.

Callers take turns, first come, first served, and a turn is at most one step: nobody waits longer than for one step of each caller
who came before. A server has a thread that only steps; what it submits is `pushed`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from .engine.adapters.adapter import Adapter
from .engine.adapters.loaded import LoadedAdapter
from .engine.engine import Engine
from .engine.errors import SessionError
from .engine.footprint import Footprint
from .engine.requests.known_prompt import KnownPrompt
from .engine.requests.output import Event, RequestOutput
from .engine.requests.request import Constraint, Request, cache_key
from .engine.scheduling.statistics import EngineStatistics
from .engine.search.searches import Search
from .engine.sessions.sessions import CacheUse, Sessions
from .engine.sessions.snapshot import Snapshot
from .engine.steps.scorer import Scorer
from .fair_lock import FairLock


class Driver:
    """Thread-safe access to an engine. Events of a request are kept until its caller asks for them."""

    def __init__(self, engine: Engine, sessions: Sessions | None = None) -> None:
        self._engine, self._sessions = engine, sessions
        self._lock = FairLock()  # the engine wants one thread at a time
        self._news: dict[int, deque[Event]] = {}  # of requests that are not finished, or not read to their end
        self._pushed: set[int] = set()  # unfinished requests whose events `step` gives
        self._to_push: list[Event] = []

    @property
    def is_busy(self) -> bool:
        """Whether some request is not finished, or not read to its end."""
        with self._lock:
            return bool(self._news) or self._engine.has_work

    @property
    def has_work(self) -> bool:
        """Whether another step will do something."""
        with self._lock:
            return self._engine.has_work

    @property
    def statistics(self) -> EngineStatistics:
        """The engine's statistics, read between two steps."""
        with self._lock:
            return self._engine.statistics

    @property
    def footprint(self) -> Footprint:
        """What the engine takes of the machine."""
        return self._engine.footprint

    def close(self) -> None:
        """End what computes the model in other processes; see `Engine.close`."""
        with self._lock:
            self._engine.close()

    def submit(self, requests: Sequence[Request], *, pushed: bool = False, search: Search | None = None) -> list[int]:
        """Queue requests, all or none, and return their ids. Raises RequestError when one of them can never run.

        search: how their outputs are searched for; None to draw them. pushed: `step` returns their events, for a caller
        that steps the engine itself; else `next_event` gives them.
        """
        request_ids: list[int] = []
        with self._lock:
            try:
                for request in requests:
                    add = self._engine.add_request if search is None else partial(self._engine.add_search, search=search)
                    request_ids.append(add(request))
            except Exception:
                for request_id in request_ids:
                    self._engine.cancel(request_id)
                raise
            if pushed:
                self._pushed.update(request_ids)
            else:
                self._news |= {request_id: deque() for request_id in request_ids}
        return request_ids

    def step(self) -> list[Event]:
        """Compute one step for everybody, if there is anything to do. Returns the news of requests that are `pushed`."""
        with self._lock:
            if self._engine.has_work:
                self._step()
            events, self._to_push = self._to_push, []
            return events

    def next_event(self, request_id: int) -> Event:
        """The next event of a request that has not given its final one; steps the engine until there is one.

        Raises SessionError when the request was closed, before or meanwhile.
        """
        while (event := self._event_of_turn(request_id)) is None:
            pass
        return event

    def _event_of_turn(self, request_id: int) -> Event | None:
        """The next event of a request if it is there, or if one step gives it."""
        with self._lock:
            if request_id not in self._news:
                raise SessionError("request", "it was closed before it had ended")
            news = self._news[request_id]
            if not news:
                self._step()
            if not news:
                return None
            event = news.popleft()
            if event.is_final:
                del self._news[request_id]
            return event

    def snapshot(
        self, request_id: int, request: Request, ended: RequestOutput | None, label: str, keeps_cache: bool
    ) -> Snapshot:
        """The request as it stands, or as it has `ended`, even if its last events were not read. Raises SessionError
        for another request."""
        with self._lock:
            assert self._sessions is not None, "an engine without a model folder has no sessions"
            unread = self._news.get(request_id, ())
            ended = ended or next((event.output for event in unread if event.is_final), None)
            if ended is not None:
                return replace(self._sessions.snapshot_of_ended(request, ended, keeps_cache=keeps_cache), label=label)
            if request_id not in self._news:
                raise SessionError("request", "it was closed before it had ended")
            return replace(self._sessions.snapshot(request_id, keeps_cache=keeps_cache), label=label)

    def resume(
        self, snapshot: Snapshot, constraint: Constraint | None, cache: CacheUse, adapter: str | None = None
    ) -> int:
        """Queue a request that was put aside and return its id. Raises SessionError."""
        with self._lock:
            assert self._sessions is not None, "an engine without a model folder has no sessions"
            request_id = self._sessions.resume(snapshot, constraint, cache, adapter)
            self._news[request_id] = deque()
            return request_id

    @property
    def adapters(self) -> Mapping[str, LoadedAdapter]:
        """The adapters that requests can ask for, by name, as they are now: nobody is waited for."""
        return {} if self._engine.adapters is None else self._engine.adapters.loaded

    def read_adapter(self, path: str | os.PathLike[str]) -> Adapter:
        """An adapter out of its files, checked, while requests run. Raises AdapterError."""
        return self._engine.registry.read(path)

    def load_adapter(self, name: str, adapter: Adapter, *, replace: bool = False) -> LoadedAdapter:
        """Let requests ask for an adapter, from the next step on. replace: in place of the one of that name, if there is one.
        Raises AdapterError, AdapterInUse while requests with the one to be replaced are not finished."""
        with self._lock:
            if replace and name in self.adapters:
                return self._engine.replace_adapter(name, adapter)
            return self._engine.load_adapter(name, adapter)

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter. Raises AdapterInUse while requests with it are not finished, AdapterError for an unknown name."""
        with self._lock:
            self._engine.unload_adapter(name)

    def retire_adapter(self, name: str, *, is_leaving: bool = True) -> None:
        """Refuse new requests for an adapter that is to be unloaded, or take them again."""
        with self._lock:
            self._engine.retire_adapter(name, is_leaving=is_leaving)

    def step_for_all(self) -> bool:
        """Compute a step on behalf of a caller who waits for others to end. False where somebody only steps: then it is theirs."""
        with self._lock:
            if self._pushed:
                return False
            if self._engine.has_work:
                self._step()
            return True

    def scorer(self, max_contexts: int) -> Scorer:
        """See `LLM.scorer`."""
        return self._engine.scorer(max_contexts)

    def cancel(self, request_id: int) -> None:
        """End a request whose events nobody will read any more; nothing happens when it has given its final one."""
        with self._lock:
            news = self._news.pop(request_id, None)
            if news is not None and not any(event.is_final for event in news):
                self._engine.cancel(request_id)
            if request_id in self._pushed:
                self._pushed.remove(request_id)
                self._engine.cancel(request_id)

    def forget_prefixes(self) -> None:
        """Empty the cache of prefixes."""
        with self._lock:
            self._engine.forget_prefixes()

    def num_known(self, prompts: Sequence[KnownPrompt]) -> list[int]:
        """How many leading tokens of each prompt are in the prefix cache, between two steps."""
        with self._lock:
            return [self._num_known(prompt) for prompt in prompts]

    def _num_known(self, prompt: KnownPrompt) -> int:
        adapter = None if prompt.adapter is None else self.adapters.get(prompt.adapter)
        if adapter is None and prompt.adapter is not None:  # it was unloaded
            return 0
        key = cache_key(None if adapter is None else adapter.fingerprint, prompt.cache_salt)
        return self._engine.space.num_known(prompt.token_ids, key)

    def _step(self) -> None:
        for event in self._engine.step():
            if event.request_id not in self._pushed:
                self._news[event.request_id].append(event)
                continue
            self._to_push.append(event)
            if event.is_final:
                self._pushed.remove(event.request_id)
