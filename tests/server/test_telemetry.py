"""What operators read: spans, log lines, metrics."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from maskwright import LLM, UsageError
from maskwright.server.logs import JsonFormatter
from maskwright.server.run import _log_config
from maskwright.server.settings import ServerSettings

from .serving import Served, served
from .test_reliability import eventually

CHAT = "/v1/chat/completions"
ASK: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "temperature": 0}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Traced:
    """A server and the spans it has ended."""

    def __init__(self, running: Served, exporter: Any) -> None:
        self.running, self._exporter = running, exporter

    def spans(self, http: httpx.Client, *names: str) -> dict[str, Any]:
        """By name; those of `names` are waited for: a span ends after its answer was read."""

        def found() -> dict[str, Any]:
            return {span.name: span for span in self._exporter.get_finished_spans()}

        assert eventually(http, lambda: found().keys() >= set(names))
        return found()

    def clear(self) -> None:
        self._exporter.clear()


@pytest.fixture(scope="module")
def traced(llm: LLM) -> Iterator[Traced]:
    pytest.importorskip("opentelemetry.sdk", reason='needs opentelemetry-sdk: pip install "maskwright[traces]"')
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with served(llm, tracer_provider=provider) as running:
        yield Traced(running, exporter)
    provider.shutdown()


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_one_trace(traced: Traced, stream: bool) -> None:
    traced.clear()
    with traced.running.http() as http:
        headers = {"traceparent": PARENT, "X-Request-Id": "traced-1"}
        answer = http.post(CHAT, json={**ASK, "regex": "[a-z]{3}", "stream": stream}, headers=headers)
        assert answer.status_code == 200
        names = (f"POST {CHAT}", "compile constraint", "generate embedded")
        spans = traced.spans(http, *names)
    whole, compiled, output = [spans[name] for name in names]
    assert f"{whole.context.trace_id:032x}" == PARENT.split("-")[1] and f"{whole.parent.span_id:016x}" == PARENT.split("-")[2]
    assert compiled.parent.span_id == output.parent.span_id == whole.context.span_id
    assert whole.attributes["http.response.status_code"] == 200 and whole.attributes["maskwright.request_id"] == "traced-1"
    assert output.attributes["gen_ai.usage.output_tokens"] in (1, 2, 3) and output.attributes["maskwright.is_constrained"]
    assert output.attributes["gen_ai.response.finish_reasons"] == ("stop",) and output.events[0].name == "first token"
    assert whole.start_time <= compiled.start_time <= output.start_time <= output.end_time <= whole.end_time


def test_spans_of_what_fails_end_too(traced: Traced) -> None:
    traced.clear()
    with traced.running.http() as http:
        assert http.post(CHAT, json={**ASK, "regex": "(["}).status_code == 400
        assert http.get("/nothing").status_code == 404
        spans = traced.spans(http, f"POST {CHAT}", "GET")
    assert spans[f"POST {CHAT}"].attributes["http.response.status_code"] == 400
    assert spans["GET"].attributes["http.response.status_code"] == 404 and "http.route" not in spans["GET"].attributes


def test_without_a_provider_there_are_no_spans(server: Served) -> None:
    span = server.service.traces.output(None)  # type: ignore[arg-type]  # it is not looked at
    span.close()
    with server.service.traces.span("nothing"):
        pass


def test_log_lines_are_objects(http: httpx.Client) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("maskwright.server.access")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        assert http.get("/version", headers={"X-Request-Id": "logged-1"}).status_code == 200
        assert http.get("/ready").status_code == 200
        try:
            raise ValueError("ü")
        except ValueError:
            logger.exception("it %s", "failed")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    access = next(line for line in lines if line.get("request_id") == "logged-1")
    assert (access["method"], access["path"], access["status"], access["level"]) == ("GET", "/version", 200, "info")
    assert access["seconds"] >= 0 and access["time"].endswith("+00:00") and access["logger"] == "maskwright.server.access"
    assert lines[-1]["message"] == "it failed" and "ValueError: ü" in lines[-1]["exception"]


def test_the_log_format_is_an_option() -> None:
    formatters = _log_config("json")["formatters"]
    assert all(formatter["()"] is JsonFormatter for formatter in formatters.values())
    assert _log_config("text")["formatters"] != formatters
    with pytest.raises(UsageError, match="log_format"):
        ServerSettings(log_format="xml")


def test_metrics_of_dashboards_count(http: httpx.Client) -> None:
    def read() -> dict[str, float]:
        lines = [line.rsplit(" ", 1) for line in http.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name.split("{")[0]: float(value) for name, value in lines if "_bucket" not in name and "reason" not in name}

    before = read()
    http.post(CHAT, json={**ASK, "regex": "[0-9]{4}"})
    after = read()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown["vllm:generation_tokens_total"] == grown["vllm:request_generation_tokens_sum"] > 1
    for name in (
        "vllm:time_to_first_token_seconds_count", "vllm:request_decode_time_seconds_count", "vllm:e2e_request_latency_seconds_count",
        "vllm:request_time_per_output_token_seconds_count", "vllm:request_params_n_count", "maskwright:constraint_queries_total",
        "vllm:request_queue_time_seconds_count", "vllm:request_prefill_time_seconds_count", "vllm:request_inference_time_seconds_count",
        "vllm:request_max_num_generation_tokens_count",
    ):  # fmt: skip
        assert grown[name] == 1, name
    assert grown["vllm:time_per_output_token_seconds_count"] == grown["vllm:inter_token_latency_seconds_count"] >= 1
    sampled = grown["maskwright:kept_mass_count"]
    assert sampled > 0 and abs(grown["maskwright:masked_mass_total"] - (sampled - grown["maskwright:kept_mass_sum"])) < 1e-6
    assert grown["maskwright:masked_mass_total"] > 0 and after["vllm:gpu_cache_usage_perc"] == after["vllm:kv_cache_usage_perc"]
