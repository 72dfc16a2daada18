"""Prometheus metrics under vLLM's names, so that its dashboards show them, and under `maskwright:` where vLLM has no
name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..engine.footprint import Footprint
from ..engine.requests.output import Event, RequestOutput
from ..engine.scheduling.statistics import EngineStatistics

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
SLOW = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)  # seconds
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000)  # tokens
COMPILE_OUTCOMES = ("compiled", "refused", "cancelled", "failed")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SHARES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)  # of probability

LABELS = ("model_name", "engine")
ENGINE = "0"  # vLLM numbers the engines of a server; here there is one

GAUGES = (
    ("vllm:num_requests_running", "Requests in the batch.", lambda s: s.num_running),
    ("vllm:num_requests_waiting", "Requests that wait for a place in the batch.", lambda s: s.num_waiting),
    ("vllm:kv_cache_usage_perc", "Share of KV cache blocks in use, 0 to 1.", lambda s: s.num_blocks_in_use / max(s.num_blocks, 1)),
    ("maskwright:adapters", "LoRA adapters that are loaded.", lambda s: s.num_adapters),
    ("maskwright:adapter_bytes", "Memory of their matrices, free slots included.", lambda s: s.adapter_bytes),
    ("vllm:gpu_cache_usage_perc", "The same under its older name.", lambda s: s.num_blocks_in_use / max(s.num_blocks, 1)),
)
COUNTERS = (
    ("vllm:num_preemptions", "Requests that gave their place up and began anew.", lambda s: s.num_preemptions),
    ("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", lambda s: s.num_prompt_tokens),
    ("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", lambda s: s.num_cached_tokens),
    ("vllm:spec_decode_num_drafts", "Times that a sequence was guessed ahead.", lambda s: s.num_drafts),
    ("vllm:spec_decode_num_draft_tokens", "Tokens guessed ahead.", lambda s: s.num_drafted_tokens),
    ("vllm:spec_decode_num_accepted_tokens", "Of these, accepted.", lambda s: s.num_accepted_tokens),
    ("maskwright:engine_steps", "Forward passes.", lambda s: s.num_steps),
    ("maskwright:engine_failures", "Requests that ended by an error of the engine.", lambda s: s.num_failures),
    ("maskwright:jumped_tokens", "Tokens of forced text that no step was spent on.", lambda s: s.num_jumped_tokens),
)


class Metrics:
    """One server's metrics, in a registry of their own."""

    def __init__(
        self,
        model_name: str,
        statistics: Callable[[], EngineStatistics],
        num_mask_misses: Callable[[], int],
        footprint: Footprint,
        cache_config: Mapping[str, object] = MappingProxyType({}),
        max_adapters: int = 0,
    ) -> None:
        """cache_config: what `vllm:cache_config_info` tells of the KV cache, as labels. max_adapters: that may be loaded."""
        self._registry, self._model_name = CollectorRegistry(), model_name
        self._registry.register(_EngineCollector(model_name, statistics, num_mask_misses, cache_config, max_adapters))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self.http = HttpMetrics(self._registry)
        for name, help, value in (
            ("maskwright:weight_bytes", "Memory of the weights; packed ones as they are in the file.", footprint.weight_bytes),
            ("maskwright:host_weight_bytes", "Weights streamed from host memory.", footprint.host_weight_bytes),
            ("maskwright:kv_cache_bytes", "Memory of the KV cache.", footprint.cache_bytes),
        ):
            Gauge(name, help, LABELS, registry=self._registry).labels(model_name, ENGINE).set(value)
        self.prompt_tokens = self._counter("vllm:prompt_tokens", "Prompt tokens of finished requests.")
        self.cached_tokens = self._counter("vllm:prompt_tokens_cached", "Of these, found in the prefix cache.")
        self.generation_tokens = self._counter("vllm:generation_tokens", "Tokens generated.")
        self._finished = Counter(
            "vllm:request_success", "Requests finished, by reason.", [*LABELS, "finished_reason"], registry=self._registry
        )
        self.first_token = self._histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", SLOW)
        self.next_token = self._histogram("vllm:inter_token_latency_seconds", "Between two tokens.", FAST)
        self.next_token_before = self._histogram("vllm:time_per_output_token_seconds", "The same under its older name.", FAST)
        self.mean_next_token = self._histogram(
            "vllm:request_time_per_output_token_seconds", "Mean time between two tokens of a request.", FAST
        )
        self.queue = self._histogram("vllm:request_queue_time_seconds", "From arrival to the first step of a request.", SLOW)
        self.prefill = self._histogram("vllm:request_prefill_time_seconds", "From the first step to the first token.", SLOW)
        self.decode = self._histogram("vllm:request_decode_time_seconds", "From the first token to the end.", SLOW)
        self.inference = self._histogram("vllm:request_inference_time_seconds", "From the first step to the end.", SLOW)
        self.whole = self._histogram("vllm:e2e_request_latency_seconds", "From arrival to the end.", SLOW)
        self.prompt_length = self._histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", COUNTS)
        self.computed_length = self._histogram(
            "vllm:request_prefill_kv_computed_tokens", "Prompt tokens of a request that were not in the prefix cache.", COUNTS
        )
        self.output_length = self._histogram("vllm:request_generation_tokens", "Tokens generated for a request.", COUNTS)
        self.longest_output = self._histogram(
            "vllm:request_max_num_generation_tokens", "Tokens of the longest output of a request.", COUNTS
        )
        self.step_tokens = self._histogram("vllm:iteration_tokens_total", "Tokens computed in one step of the engine.", COUNTS)
        self.requested_n = self._histogram("vllm:request_params_n", "Outputs asked for.", (1, 2, 5, 10, 20))
        self.requested_tokens = self._histogram("vllm:request_params_max_tokens", "max_tokens of a request.", COUNTS)
        self._compile_seconds = Histogram(
            "maskwright:constraint_compile_seconds",
            "Compiling a new constraint, waiting included. Cancelled: nobody waited for it any more.",
            [*LABELS, "outcome"], registry=self._registry, buckets=SLOW,
        )  # fmt: skip
        for outcome in COMPILE_OUTCOMES:
            self._compile_seconds.labels(model_name, ENGINE, outcome)
        self.constraint_queries = self._counter("maskwright:constraint_queries", "Constraints asked for.")
        self.constraint_hits = self._counter("maskwright:constraint_cache_hits", "Of these, compiled before or being compiled.")
        self.constraint_errors = self._counter("maskwright:constraint_errors", "Of these, refused.")
        self.masked_mass = self._counter(
            "maskwright:masked_mass", "Probability the model gave to what was masked, summed over sampled tokens (1 - kept_mass)."
        )
        self.ended_loops = self._counter("maskwright:ended_loops", "Values that were ended because the model repeated itself.")
        self.kept_mass = self._histogram(
            "maskwright:kept_mass", "Probability the model gave to what the constraint allowed, for each sampled token.", SHARES
        )

    def refused_again(self) -> None:
        """A constraint was asked for that is known to be refused."""
        self.constraint_queries.inc()
        self.constraint_errors.inc()

    def finished(self, reason: str) -> None:
        self._finished.labels(self._model_name, ENGINE, reason).inc()

    def compiled(self, outcome: str, seconds: float) -> None:
        """A constraint was compiled, or not: see COMPILE_OUTCOMES."""
        self._compile_seconds.labels(self._model_name, ENGINE, outcome).observe(seconds)

    def watch_compiles(self, num_waiting: Callable[[], Mapping[str, int]]) -> None:
        """Show how many constraints wait to be compiled, by lane."""
        self._registry.register(_CompileCollector(self._model_name, num_waiting))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _counter(self, name: str, help: str) -> Counter:
        return Counter(name, help, LABELS, registry=self._registry).labels(self._model_name, ENGINE)

    def _histogram(self, name: str, help: str, buckets: tuple[float, ...]) -> Histogram:
        made = Histogram(name, help, LABELS, registry=self._registry, buckets=buckets)
        return made.labels(self._model_name, ENGINE)


class HttpMetrics:
    """Requests of any kind, under the names of prometheus-fastapi-instrumentator, which vLLM uses.

    handler: the path as it is declared, or "none" where there is no such path, so that clients cannot make series.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["method", "handler", "status", "code"]
        self._requests = Counter("http_requests", "Requests by kind of status (2xx) and status.", labels, registry=registry)
        self._seconds = Histogram(
            "http_request_duration_seconds", "From the head of a request to the end of its answer.", ["method", "handler"],
            registry=registry, buckets=SLOW,
        )  # fmt: skip

    def see(self, method: str, handler: str | None, status: int, seconds: float) -> None:
        """A request that was answered; status 0: its client had gone before."""
        method, handler = method if method in METHODS else "other", handler or "none"
        self._requests.labels(method, handler, f"{status // 100}xx", str(status)).inc()
        self._seconds.labels(method, handler).observe(seconds)


class RequestWatch:
    """Measures one output while it is made. The clock is the engine's."""

    def __init__(self, metrics: Metrics, is_constrained: bool, begun: float) -> None:
        """begun: when the request was handed to the engine."""
        self._metrics, self._is_constrained, self._begun = metrics, is_constrained, begun
        self._first: float | None = None
        self._last: float | None = None
        self.num_tokens: int | None = None  # when it has ended

    def see(self, event: Event) -> None:
        now = time.perf_counter()
        if event.tokens:
            self._see_tokens(event, now)
        if event.output is not None:
            self._see_end(event.output, now)

    def close(self) -> None:
        """Count the output as aborted if it has not ended: its client has gone, or a neighbour of the same request has
        failed."""
        if self.num_tokens is None:
            self._metrics.finished("abort")

    def _see_tokens(self, event: Event, now: float) -> None:
        metrics = self._metrics
        metrics.generation_tokens.inc(len(event.tokens))
        if self._last is None:
            self._first = now
            metrics.first_token.observe(now - self._begun)
        else:
            seconds = (now - self._last) / len(event.tokens)
            metrics.next_token.observe(seconds)
            metrics.next_token_before.observe(seconds)
        self._last = now
        if self._is_constrained:
            for record in event.tokens:
                if record.kept_mass is not None:
                    metrics.kept_mass.observe(record.kept_mass)
                    metrics.masked_mass.inc(max(1.0 - record.kept_mass, 0.0))

    def _see_end(self, output: RequestOutput, now: float) -> None:
        metrics = self._metrics
        metrics.finished(output.finish_reason)
        metrics.whole.observe(now - self._begun)
        metrics.ended_loops.inc(len(output.loops))
        if output.scheduled_at is not None:
            self._see_phases(output.scheduled_at, now)
        metrics.prompt_tokens.inc(output.num_prompt_tokens)
        metrics.cached_tokens.inc(output.num_cached_tokens)
        metrics.prompt_length.observe(output.num_prompt_tokens)
        metrics.computed_length.observe(output.num_prompt_tokens - output.num_cached_tokens)
        self.num_tokens = len(output.token_ids)
        metrics.output_length.observe(self.num_tokens)
        if self._first is not None and self.num_tokens > 1:
            metrics.mean_next_token.observe((now - self._first) / (self.num_tokens - 1))

    def _see_phases(self, scheduled: float, now: float) -> None:
        """Measure the phases of an output that has ended. One without a token has been prefilled until its end. Tokens
        that a constraint forces may come before the first step."""
        metrics, first = self._metrics, now if self._first is None else max(self._first, scheduled)
        metrics.queue.observe(max(scheduled - self._begun, 0.0))
        metrics.prefill.observe(first - scheduled)
        metrics.decode.observe(now - first)
        metrics.inference.observe(now - scheduled)


class _EngineCollector(Collector):
    """The metrics that the engine counts itself, read when they are asked for."""

    def __init__(
        self,
        model_name: str,
        statistics: Callable[[], EngineStatistics],
        num_mask_misses: Callable[[], int],
        cache_config: Mapping[str, object],
        max_adapters: int,
    ) -> None:
        self._labels, self._statistics, self._num_mask_misses = [model_name, ENGINE], statistics, num_mask_misses
        self._cache_config, self._max_adapters = cache_config, max_adapters

    def collect(self) -> Iterator[Metric]:
        statistics = self._statistics()
        for name, help, read in GAUGES:
            yield self._metric(GaugeMetricFamily(name, help, labels=LABELS), read(statistics))
        for name, help, read in COUNTERS:
            yield self._metric(CounterMetricFamily(name, help, labels=LABELS), read(statistics))
        misses = CounterMetricFamily("maskwright:mask_misses", "Masks that had to be computed.", labels=LABELS)
        yield self._metric(misses, self._num_mask_misses())
        yield self._accepted(statistics)
        yield self._cache_info()
        if self._max_adapters:
            yield self._adapters_info(statistics)

    def _metric(self, metric: Metric, value: float) -> Metric:
        metric.add_metric(self._labels, value)  # type: ignore[attr-defined]  # families have it
        return metric

    def _accepted(self, statistics: EngineStatistics) -> Metric:
        """Accepted guesses by their place, from 0."""
        help = "Tokens guessed ahead and accepted, by their place in the guess."
        family = CounterMetricFamily("vllm:spec_decode_num_accepted_tokens_per_pos", help, labels=[*LABELS, "position"])
        for position, count in enumerate(statistics.num_accepted_at or (0,)):
            family.add_metric([*self._labels, str(position)], count)
        return family

    def _cache_info(self) -> Metric:
        """A gauge that is 1, whose labels tell what the KV cache is like."""
        names = [*LABELS, *self._cache_config]
        family = GaugeMetricFamily("vllm:cache_config_info", "What the KV cache is like, as labels.", labels=names)
        family.add_metric([*self._labels, *map(str, self._cache_config.values())], 1)
        return family

    def _adapters_info(self, statistics: EngineStatistics) -> Metric:
        """A gauge that is the time, whose labels tell which adapters are at work."""
        names = [*LABELS, "max_lora", "waiting_lora_adapters", "running_lora_adapters"]
        family = GaugeMetricFamily("vllm:lora_requests_info", "Adapters that requests run or wait with, as labels.", labels=names)
        told = (statistics.waiting_adapters, statistics.running_adapters)
        family.add_metric([*self._labels, str(self._max_adapters), *map(",".join, told)], time.time())
        return family


class _CompileCollector(Collector):
    """The queue of constraints, read when it is asked for."""

    def __init__(self, model_name: str, num_waiting: Callable[[], Mapping[str, int]]) -> None:
        self._model_name, self._num_waiting = model_name, num_waiting

    def collect(self) -> Iterator[Metric]:
        help = "Constraints that wait in the quick lane, that are in the slow one, and requests that stay unread behind these."
        queue = GaugeMetricFamily("maskwright:constraint_compile_queue", help, labels=[*LABELS, "lane"])
        for lane, count in self._num_waiting().items():
            queue.add_metric([self._model_name, ENGINE, lane], count)
        yield queue
