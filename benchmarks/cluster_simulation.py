"""Routing policies over many replicas, in modelled time: `python benchmarks/scheduling.py --cluster`.

The trace: requests arrive at random. Each has one of many schemas (Zipf), whose system prompt it begins with (100 to 1,200
tokens), 20 to 400 tokens of its own, and wants 16 to 400 tokens, all log-uniform; three of ten go on with an earlier conversation.
A replica is an engine of continuous batching with a prefix cache (least recently used goes first) and a cache of compiled
constraints: a step takes `step_ms`, and `token_us` for each token in it, prompts in chunks. Steps that only decode are alike until
a sequence ends, so they are one event, which is cut short where a prompt comes. Replicas fail and come back empty: what had no
token yet is sent to another one, what had is lost.

The policies are those of the server (`maskwright.server.cluster`). Each ingress has its own, and knows of a replica's load what
that told it last: when it took a request of this ingress, and when it ended one.
"""

from __future__ import annotations

import heapq
import math
import random
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maskwright.server.cluster.affinity import Costs, PrefixAffinity
from maskwright.server.cluster.policies import POLICIES
from maskwright.server.cluster.policy import Policy
from maskwright.server.cluster.routing_key import RoutingKey

BYTES_A_TOKEN = 4
BOOTED, ARRIVED, STEPPED, FAILED, REPORTED, COMPILED = range(6)  # kinds of events


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is modelled."""

    replicas: int = 1000
    requests: int = 1_000_000
    ingresses: int = 4
    schemas: int = 2000
    load: float = 0.7  # of what replicas could answer if nothing were in a cache
    failures: int = 50  # replicas that fail, over the whole time
    boot_seconds: float = 20.0
    report_seconds: float = 2.0
    step_ms: float = 8.0
    token_us: float = 20.0
    compile_ms: float = 20.0  # for a constraint that is not in the cache
    max_constraints: int = 500
    max_batch_tokens: int = 2048
    max_sequences: int = 256
    cache_tokens: int = 192_000
    open_bytes: float = Costs().open_request
    seed: int = 0


@dataclass(slots=True, eq=False)
class Simulated:
    """A request on its way."""

    number: int
    arrives: float
    segments: tuple[tuple[int, int], ...]  # (fact, tokens): of the prompt
    key: RoutingKey
    num_prompt: int
    num_outputs: int
    ingress: int
    num_left: int = 0  # tokens of the prompt that are to be computed
    num_held: int = 0  # tokens that the replica keeps for it, beside those of its cache
    is_admitted: bool = False
    has_first: bool = False
    num_retries: int = 0


@dataclass(slots=True, eq=False)
class Replica:
    """One engine."""

    name: str
    queue: deque[Simulated] = field(default_factory=deque)
    ends: list[tuple[int, int, Simulated]] = field(default_factory=list)  # heap: (step, number, what ends with it)
    active: dict[int, Simulated] = field(default_factory=dict)
    cache: OrderedDict[int, int] = field(default_factory=OrderedDict)  # fact -> tokens
    constraints: OrderedDict[int, float] = field(default_factory=OrderedDict)  # fact -> when it is compiled
    num_cached: int = 0
    num_held: int = 0  # tokens of sequences that are not in the cache
    num_steps: int = 0
    life: int = 0
    began: float = 0.0  # when the steps under way did
    step_seconds: float = 0.0  # that each of them takes
    num_planned: int = 0  # of them; 0: there is none
    plan: int = 0  # number of the plan; an event of another one is void


class Trace:
    """Requests in the order in which they arrive."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        rng = np.random.default_rng(settings.seed)
        count = settings.requests
        weights = 1.0 / np.arange(1, settings.schemas + 1)
        self._schema = rng.choice(settings.schemas, count, p=weights / weights.sum())
        self._system = _log_uniform(rng, 100, 1200, settings.schemas)
        self._own, self._outputs = _log_uniform(rng, 20, 400, count), _log_uniform(rng, 16, 400, count)
        self._goes_on = rng.random(count) < 0.3
        self._back = rng.integers(1, 20_000, count)
        self._ingress = rng.integers(0, settings.ingresses, count)
        self.rate = settings.load * settings.replicas / self._seconds_a_request
        self._arrives = np.cumsum(rng.exponential(1 / self.rate, count))
        self.seconds = float(self._arrives[-1])

    @property
    def _seconds_a_request(self) -> float:
        """What a request takes of a replica in a batch of a quarter of its places, without any cache."""
        settings = self._settings
        prompt, outputs = float(self._system.mean() + self._own.mean()), float(self._outputs.mean())
        shared = settings.step_ms / 1e3 * outputs / (settings.max_sequences / 4)
        return shared + settings.token_us / 1e6 * (prompt + outputs)

    def __iter__(self) -> Iterator[Simulated]:
        recent: deque[tuple[int, tuple[tuple[int, int], ...], int]] = deque(maxlen=20_000)
        for number in range(self._settings.requests):
            schema, own, outputs = int(self._schema[number]), int(self._own[number]), int(self._outputs[number])
            segments: tuple[tuple[int, int], ...] = ((schema, int(self._system[schema])),)
            back = int(self._back[number])
            if self._goes_on[number] and back <= len(recent):
                before = recent[-back]
                if sum(tokens for _, tokens in before[1]) < 2500:
                    schema, segments, own = before[0], before[1], own + before[2]
            segments = (*segments, (1_000_000 + number, own))
            recent.append((schema, segments, outputs))
            length, prefixes = 0, list[tuple[int, int]]()
            for fact, tokens in segments:
                length += tokens
                prefixes.append((length * BYTES_A_TOKEN, fact))
            key = RoutingKey(tuple(prefixes), length * BYTES_A_TOKEN, -1 - schema)
            yield Simulated(number, float(self._arrives[number]), segments, key, length, outputs, int(self._ingress[number]))


class Simulation:
    """One policy over the trace."""

    def __init__(self, settings: Settings, policy: str) -> None:
        self.settings, self._rng = settings, random.Random(settings.seed)
        self.replicas = {f"r{number}": Replica(f"r{number}") for number in range(settings.replicas)}
        self._now = 0.0
        self._is_told = policy == "prefix"
        self._policies = [self._policy(policy, number) for number in range(settings.ingresses)]
        self._loads: list[dict[str, float]] = [dict.fromkeys(self.replicas, 0.0) for _ in self._policies]
        self._up = dict.fromkeys(self.replicas)
        self._tell_who_is_up()
        self._events: list[tuple[float, int, int, Replica, Any]] = []
        self._num_events = 0
        self._holders: Counter[int] = Counter()  # fact -> replicas that have it in their cache
        self.first_seconds, self.whole_seconds = list[float](), list[float]()
        self._submitted: dict[int, float] = {}
        self.counts: Counter[str] = Counter()

    def run(self) -> dict[str, Any]:
        started = time.perf_counter()
        trace = Trace(self.settings)
        self._plan_failures(trace.seconds)
        if self._is_told:
            for replica in self.replicas.values():
                self._push(self._rng.uniform(0, self.settings.report_seconds), REPORTED, replica)
        handlers: dict[int, Callable[[float, Replica, Any], None]] = {
            STEPPED: self._end_steps, FAILED: self._fail, BOOTED: self._boot, REPORTED: self._report, COMPILED: self._compiled,
        }  # fmt: skip
        coming = iter(trace)
        upcoming = next(coming, None)
        while upcoming is not None or self.counts["open"]:
            if upcoming is not None and (not self._events or upcoming.arrives <= self._events[0][0]):
                self.counts["open"] += 1
                self._route(upcoming.arrives, upcoming)
                upcoming = next(coming, None)
                continue
            now, _, kind, replica, about = heapq.heappop(self._events)
            handlers[kind](now, replica, about)
        return self._told(trace, time.perf_counter() - started)

    # ---- routing

    def _policy(self, name: str, number: int) -> Policy:
        if name != "prefix":
            return POLICIES[name]()
        costs = Costs(open_request=self.settings.open_bytes)
        return PrefixAffinity(costs, seed=number, trusted_seconds=5 * self.settings.report_seconds, clock=lambda: self._now)

    def _route(self, now: float, request: Simulated) -> None:
        self._now = now
        if not self._up:
            raise SystemExit("error: every replica has failed, and none is back: more --replicas, or fewer --failures")
        policy, loads = self._policies[request.ingress], self._loads[request.ingress]
        name = policy.rank(request.key, loads.__getitem__)[0]
        policy.routed(request.key, name)
        replica = self.replicas[name]
        replica.active[request.number] = request
        loads[name] = len(replica.active)
        constraint = request.key.constraint
        assert constraint is not None
        ready = replica.constraints.get(constraint)
        if ready is None:
            ready = replica.constraints[constraint] = now + self.settings.compile_ms / 1e3
            self.counts["compiled"] += 1
            if len(replica.constraints) > self.settings.max_constraints:
                replica.constraints.popitem(last=False)
        else:
            replica.constraints.move_to_end(constraint)
        if ready > now:
            self._push(ready, COMPILED, replica, (replica.life, request))
        else:
            self._enqueue(now, replica, request)

    def _compiled(self, now: float, replica: Replica, about: tuple[int, Simulated]) -> None:
        life, request = about
        if life == replica.life:
            self._enqueue(now, replica, request)

    def _enqueue(self, now: float, replica: Replica, request: Simulated) -> None:
        replica.queue.append(request)
        if not replica.num_planned:
            self._begin_steps(now, replica)
        elif len(replica.queue) == 1:  # else the first one waits for a sequence to end, and the others behind it
            self._cut(now, replica)

    # ---- steps

    def _begin_steps(self, now: float, replica: Replica) -> None:
        settings = self.settings
        budget = settings.max_batch_tokens - len(replica.ends)
        num_tokens, ready = len(replica.ends), list[Simulated]()
        while replica.queue and budget > 0 and len(replica.ends) + len(ready) < settings.max_sequences:
            request = replica.queue[0]
            if not request.is_admitted and not self._admit(replica, request):
                break
            taken = min(request.num_left, budget)
            request.num_left -= taken
            budget -= taken
            num_tokens += taken
            if request.num_left:
                break
            ready.append(replica.queue.popleft())
        replica.num_planned = 0
        if num_tokens:
            replica.began, replica.step_seconds = now, settings.step_ms / 1e3 + num_tokens * settings.token_us / 1e6
            only_decodes = num_tokens == len(replica.ends)
            self._plan(replica, self._num_alike(replica) if only_decodes else 1, ready)
            self.counts["step tokens"] += num_tokens * replica.num_planned

    def _num_alike(self, replica: Replica) -> int:
        """Steps that only decode, until a sequence ends."""
        return replica.ends[0][0] - replica.num_steps

    def _plan(self, replica: Replica, num_steps: int, ready: list[Simulated]) -> None:
        replica.num_planned = num_steps
        replica.plan += 1
        self._push(replica.began + num_steps * replica.step_seconds, STEPPED, replica, (replica.plan, ready))

    def _cut(self, now: float, replica: Replica) -> None:
        """The step that runs is the last one of the plan."""
        num_begun = int((now - replica.began) / replica.step_seconds) + 1
        num_left = replica.num_planned - num_begun
        if num_left > 0:
            self.counts["step tokens"] -= num_left * len(replica.ends)
            self._plan(replica, num_begun, [])

    def _admit(self, replica: Replica, request: Simulated) -> bool:
        """Whether there is room for its tokens; what is in the cache need not be computed."""
        cached = anywhere = 0
        is_here = is_somewhere = True
        for fact, tokens in request.segments:
            is_here = is_here and fact in replica.cache
            is_somewhere = is_somewhere and self._holders[fact] > 0
            cached += tokens * is_here
            anywhere += tokens * is_somewhere
        wanted = request.num_prompt - cached + request.num_outputs
        if replica.num_held and replica.num_held + wanted > self.settings.cache_tokens:
            return False
        cached = min(cached, request.num_prompt - 1)
        request.num_held = wanted
        replica.num_held += wanted
        self._evict(replica)
        request.is_admitted, request.num_left = True, request.num_prompt - cached
        self.counts["prompt tokens"] += request.num_prompt
        self.counts["cached tokens"] += cached
        self.counts["tokens computed again"] += max(anywhere - cached, 0)
        for fact, _ in request.segments:
            if fact in replica.cache:
                replica.cache.move_to_end(fact)
        return True

    def _end_steps(self, now: float, replica: Replica, about: tuple[int, list[Simulated]]) -> None:
        plan, ready = about
        if plan != replica.plan:
            return
        replica.num_steps += replica.num_planned
        while replica.ends and replica.ends[0][0] <= replica.num_steps:
            self._finish(now, replica, heapq.heappop(replica.ends)[2])
        for request in ready:
            request.has_first = True
            self.first_seconds.append(now - request.arrives)
            for fact, tokens in request.segments:
                if fact not in replica.cache:
                    replica.cache[fact] = tokens
                    replica.num_cached += tokens
                    moved = min(tokens, request.num_held)
                    replica.num_held -= moved
                    request.num_held -= moved
                    self._holders[fact] += 1
            if request.num_outputs > 1:
                heapq.heappush(replica.ends, (replica.num_steps + request.num_outputs - 1, request.number, request))
            else:
                self._finish(now, replica, request)
        self._evict(replica)
        self._begin_steps(now, replica)

    def _finish(self, now: float, replica: Replica, request: Simulated) -> None:
        del replica.active[request.number]
        replica.num_held -= request.num_held
        self._loads[request.ingress][replica.name] = len(replica.active)
        self.whole_seconds.append(now - request.arrives)
        self.counts["open"] -= 1

    def _evict(self, replica: Replica) -> None:
        while replica.cache and replica.num_cached + replica.num_held > self.settings.cache_tokens:
            fact, tokens = replica.cache.popitem(last=False)
            replica.num_cached -= tokens
            self._holders[fact] -= 1

    # ---- failures and reports

    def _plan_failures(self, seconds: float) -> None:
        for name in self._rng.choices(list(self.replicas), k=self.settings.failures):
            self._push(self._rng.uniform(0.1, 0.9) * seconds, FAILED, self.replicas[name])

    def _fail(self, now: float, replica: Replica, about: None) -> None:
        if replica.name not in self._up:
            return
        del self._up[replica.name]
        self._tell_who_is_up()
        for fact in replica.cache:
            self._holders[fact] -= 1
        if replica.num_planned:
            self._cut(now, replica)
        lost = list(replica.active.values())
        for each in (replica.queue, replica.ends, replica.active, replica.cache, replica.constraints):
            each.clear()
        replica.num_cached = replica.num_held = 0
        replica.life += 1
        replica.plan += 1
        replica.num_planned = 0
        for request in lost:
            if request.has_first:
                self.counts["broken"] += 1
                self.counts["open"] -= 1
                self.counts["lost tokens"] += request.num_prompt + request.num_outputs // 2
                continue
            self.counts["retried"] += 1
            if request.is_admitted:
                self.counts["lost tokens"] += request.num_prompt - request.num_left
            request.is_admitted = False
            self._route(now, request)
        self._push(now + self.settings.boot_seconds, BOOTED, replica)

    def _boot(self, now: float, replica: Replica, about: None) -> None:
        self._up[replica.name] = None
        for loads in self._loads:
            loads[replica.name] = 0.0
        self._tell_who_is_up()

    def _tell_who_is_up(self) -> None:
        for policy in self._policies:
            policy.update(self._up)

    def _report(self, now: float, replica: Replica, about: None) -> None:
        self._now = now
        facts = [*replica.cache, *(fact for fact, ready in replica.constraints.items() if ready <= now)]
        for policy in self._policies:
            policy.reported(replica.name, facts)
        self._push(now + self.settings.report_seconds, REPORTED, replica)

    def _push(self, when: float, kind: int, replica: Replica, about: Any = None) -> None:
        self._num_events += 1
        heapq.heappush(self._events, (when, self._num_events, kind, replica, about))

    def _told(self, trace: Trace, seconds: float) -> dict[str, Any]:
        counts = self.counts
        assert len(self.whole_seconds) + counts["broken"] == self.settings.requests, "a request was lost"
        prompt = counts["prompt tokens"]
        return {
            "requests a second (modelled)": round(trace.rate),
            "seconds (modelled)": round(trace.seconds, 1),
            "prefix hit rate": round(counts["cached tokens"] / prompt, 4),
            "seconds to first token": _quantiles(self.first_seconds),
            "seconds to end": _quantiles(self.whole_seconds),
            "computed again, share of prompt tokens": round(counts["tokens computed again"] / prompt, 4),
            "lost by failures, share of all tokens": round(counts["lost tokens"] / counts["step tokens"], 5),
            "computed tokens": counts["step tokens"],
            "constraints compiled": counts["compiled"],
            "retried": counts["retried"],
            "broken": counts["broken"],
            "seconds to simulate": round(seconds, 1),
        }


def results(settings: Settings, policies: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in policies:
        yield name, Simulation(settings, name).run()


def shown(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table, in the order of `COLUMNS`."""
    first = row["seconds to first token"]
    again, lost = row["computed again, share of prompt tokens"], row["lost by failures, share of all tokens"]
    return (
        f"{row['prefix hit rate']:.1%}", f"{first['p50']:.3f}", f"{first['p99']:.3f}", f"{row['seconds to end']['p99']:.2f}",
        f"{again:.1%}", f"{lost:.3%}", f"{row['constraints compiled']:,}", f"{row['retried']:,} / {row['broken']:,}",
    )  # fmt: skip


COLUMNS = (
    "prefix hits", "first token p50 s", "first token p99 s", "end p99 s", "computed again", "lost by failures", "compiled",
    "retried / broken",
)  # fmt: skip


def _log_uniform(rng: np.random.Generator, low: int, high: int, count: int) -> Any:
    return np.rint(np.exp(rng.uniform(math.log(low), math.log(high), count))).astype(int)


def _quantiles(values: list[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(float(np.quantile(values, share)), 4) for name, share in shares.items()}
