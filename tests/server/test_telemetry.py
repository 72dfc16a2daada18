"""What operators read: spans, log lines, metrics."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from maskwright import LLM, UsageError
from maskwright.engine import EngineStatistics
from maskwright.engine.footprint import Footprint
from maskwright.server.logs import JsonFormatter
from maskwright.server.metrics import Metrics
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


# What the panels of vLLM's Grafana dashboard ask for, in the version for its older names and in that for its newer ones.
DASHBOARD = (
    *(f"vllm:{name}_{part}" for name in (
        "e2e_request_latency_seconds", "time_per_output_token_seconds", "time_to_first_token_seconds", "inter_token_latency_seconds",
        "request_time_per_output_token_seconds",
    ) for part in ("bucket", "sum", "count")),
    "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:num_requests_running", "vllm:num_requests_waiting",
    "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", "vllm:request_prompt_tokens_bucket", "vllm:request_generation_tokens_bucket",
    "vllm:request_success_total", "vllm:request_queue_time_seconds_sum", "vllm:request_prefill_time_seconds_sum",
    "vllm:request_decode_time_seconds_sum", "vllm:request_max_num_generation_tokens_sum",
)  # fmt: skip
QUIET = {  # 0 when nothing runs
    "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc",
}  # fmt: skip


def samples_of(http: httpx.Client) -> list[Any]:
    return [sample for family in text_string_to_metric_families(http.get("/metrics").text) for sample in family.samples]


def test_every_panel_of_vllms_dashboard_is_filled(http: httpx.Client) -> None:
    http.post(CHAT, json={**ASK, "messages": [{"role": "user", "content": "hello there, all of you"}], "max_tokens": 8})
    samples = samples_of(http)
    for name in DASHBOARD:
        found = [sample for sample in samples if sample.name == name and sample.labels.get("model_name") == "embedded"]
        assert found and (name in QUIET or any(sample.value > 0 for sample in found)), name
    reasons = {sample.labels["finished_reason"] for sample in samples if sample.name == "vllm:request_success_total"}
    assert reasons & {"stop", "length"}


def test_series_have_the_labels_of_vllm(http: httpx.Client) -> None:
    samples = [sample for sample in samples_of(http) if sample.name.startswith(("vllm:", "maskwright:"))]
    assert {(sample.labels["model_name"], sample.labels["engine"]) for sample in samples} == {("embedded", "0")}
    (info,) = [sample for sample in samples if sample.name == "vllm:cache_config_info"]
    assert info.value == 1 and int(info.labels["num_gpu_blocks"]) > 0 and info.labels["block_size"] == "16"
    assert info.labels["enable_prefix_caching"] == "True" and info.labels["cache_dtype"] == "auto"


def test_cached_prompt_tokens_are_counted(http: httpx.Client) -> None:
    asked = {**ASK, "messages": [{"role": "user", "content": "the same again " * 20}]}
    http.post(CHAT, json=asked)

    def read() -> dict[str, float]:
        return {sample.name: sample.value for sample in samples_of(http)}

    before = read()
    usage = http.post(CHAT, json=asked).json()["usage"]
    after = read()
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert cached > 0 and after["vllm:prompt_tokens_cached_total"] - before["vllm:prompt_tokens_cached_total"] == cached
    assert after["vllm:prompt_tokens_total"] - before["vllm:prompt_tokens_total"] == usage["prompt_tokens"]
    name = "vllm:request_prefill_kv_computed_tokens_sum"
    assert after[name] - before[name] == usage["prompt_tokens"] - cached


def test_requests_are_counted_by_path_and_status(http: httpx.Client) -> None:
    def read() -> dict[tuple[str, ...], float]:
        samples = [sample for sample in samples_of(http) if sample.name == "http_requests_total"]
        return {tuple(sample.labels[name] for name in ("method", "handler", "status", "code")): sample.value for sample in samples}

    before = read()
    http.get("/version")
    http.head("/version")
    http.get("/v1/models/none")
    http.get("/nowhere-1")
    http.get("/nowhere-2")
    http.request("BREW", "/nowhere-3")
    http.post(CHAT, json={})
    after = read()
    grown = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
    del grown["GET", "/metrics", "2xx", "200"]
    assert grown == {
        ("GET", "/version", "2xx", "200"): 1, ("HEAD", "/version", "2xx", "200"): 1, ("GET", "/v1/models/{name:path}", "4xx", "404"): 1,
        ("GET", "none", "4xx", "404"): 2, ("other", "none", "4xx", "404"): 1, ("POST", CHAT, "4xx", "400"): 1,
    }  # fmt: skip
    names = {sample.name for sample in samples_of(http)}
    assert {"http_request_duration_seconds_bucket", "python_info", "python_gc_collections_total"} <= names
    if sys.platform == "linux":
        assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= names


def test_guesses_are_counted_by_their_place() -> None:
    statistics = EngineStatistics()
    statistics.count_drafts([(3, 1), (4, 4), (2, 0)])
    assert (statistics.num_drafts, statistics.num_drafted_tokens, statistics.num_accepted_tokens) == (3, 9, 5)
    assert statistics.num_accepted_at == (2, 1, 1, 1)
    text = Metrics("m", lambda: statistics, lambda: 0, Footprint(0, 0, 1)).text().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    places = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    by_place = {sample.labels["position"]: sample.value for sample in samples if sample.name == places}
    assert by_place == {"0": 2, "1": 1, "2": 1, "3": 1}
    assert [sample.value for sample in samples if sample.name == "vllm:spec_decode_num_drafts_total"] == [3]


def test_guesses_of_a_server_are_counted(llm: LLM) -> None:
    with served(LLM(speculation="lookup", num_draft_tokens=3)) as guessing, guessing.http() as http:
        http.post(CHAT, json={**ASK, "messages": [{"role": "user", "content": "one two three " * 6}], "max_tokens": 30})
        read = {sample.name: sample.value for sample in samples_of(http) if "position" not in sample.labels}
        places = [sample.value for sample in samples_of(http) if sample.name == "vllm:spec_decode_num_accepted_tokens_per_pos_total"]
    assert read["vllm:spec_decode_num_drafts_total"] > 0
    assert sum(places) == read["vllm:spec_decode_num_accepted_tokens_total"] and len(places) <= 3
    assert places == sorted(places, reverse=True)  # one is accepted only behind another


def test_metrics_of_dashboards_count(http: httpx.Client) -> None:
    def read() -> dict[str, float]:
        lines = [line.rsplit(" ", 1) for line in http.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name.split("{")[0]: float(value) for name, value in lines if "_bucket" not in name and "reason" not in name and ":" in name}

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


def test_masses_are_not_measured_without_mask_metrics_but_for_those_who_ask(llm):
    def count(http) -> float:
        lines = http.get("/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("maskwright:kept_mass_count"))

    with served(llm, ServerSettings(mask_metrics=False)) as server, server.http() as http:
        http.post(CHAT, json={**ASK, "regex": "[0-9]{4}"})
        assert count(http) == 0
        http.post(CHAT, json={**ASK, "regex": "[0-9]{4}", "logprobs": True})
        measured = count(http)
        http.post(CHAT, json={**ASK, "regex": "[0-9]{4}", "stream": True, "maskwright": {"tokens": True, "candidates": 0}})
        assert 0 < measured < count(http)
