"""What ships for Ray fits the options that there are, and Kubernetes' and KubeRay's structures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from maskwright.errors import UsageError
from maskwright.server.cluster.settings import refuse_unserved
from maskwright.server.ray.options import read_options

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
CONFIG = yaml.safe_load((DEPLOY / "ray-serve.yaml").read_text())
SERVICE = yaml.safe_load((DEPLOY / "kuberay.yaml").read_text())
# Names that KubeRay's RayService (ray.io/v1) and Kubernetes' PodSpec have, of those that are used; True: it must be there.
SHAPES: dict[str, dict[str, tuple[type, bool]]] = {
    "service": {"apiVersion": (str, True), "kind": (str, True), "metadata": (dict, True), "spec": (dict, True)},
    "spec": {"serveConfigV2": (str, True), "rayClusterConfig": (dict, True)},
    "cluster": {"rayVersion": (str, True), "enableInTreeAutoscaling": (bool, False), "authOptions": (dict, False), "headGroupSpec": (dict, True), "workerGroupSpecs": (list, True)},
    "head": {"rayStartParams": (dict, True), "template": (dict, True)},
    "workers": {"groupName": (str, True), "replicas": (int, True), "minReplicas": (int, True), "maxReplicas": (int, True), "rayStartParams": (dict, True), "template": (dict, True)},
    "pod": {"terminationGracePeriodSeconds": (int, True), "securityContext": (dict, True), "containers": (list, True), "volumes": (list, False)},
    "container": {
        "name": (str, True), "image": (str, True), "env": (list, True), "ports": (list, True), "resources": (dict, True), "readinessProbe": (dict, True),
        "livenessProbe": (dict, True), "lifecycle": (dict, False), "volumeMounts": (list, False),
    },
}  # fmt: skip


def check(kind: str, given: dict[str, Any]) -> None:
    shape = SHAPES[kind]
    assert given.keys() <= shape.keys(), f"{kind}: {given.keys() - shape.keys()}"
    for name, (wanted, is_needed) in shape.items():
        assert name in given or not is_needed, f"{kind}: {name} is missing"
        assert name not in given or type(given[name]) is wanted, f"{kind}: {name}"


def pods() -> list[dict[str, Any]]:
    cluster = SERVICE["spec"]["rayClusterConfig"]
    return [each["template"]["spec"] for each in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def test_the_manifest_has_the_structure_of_a_ray_service() -> None:
    assert (SERVICE["apiVersion"], SERVICE["kind"]) == ("ray.io/v1", "RayService")
    check("service", SERVICE)
    check("spec", SERVICE["spec"])
    cluster = SERVICE["spec"]["rayClusterConfig"]
    check("cluster", cluster)
    check("head", cluster["headGroupSpec"])
    for group in cluster["workerGroupSpecs"]:
        check("workers", group)
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for pod in pods():
        check("pod", pod)
        volumes = {each["name"] for each in pod.get("volumes", ())}
        for container in pod["containers"]:
            check("container", container)
            assert container["resources"]["requests"] == container["resources"]["limits"]
            assert {each["name"] for each in container.get("volumeMounts", ())} <= volumes
            assert ":latest" not in container["image"] and "/" not in container["image"]
            assert len({each["containerPort"] for each in container["ports"]}) == len(container["ports"])
            for probe in ("readinessProbe", "livenessProbe"):
                compile(container[probe]["exec"]["command"][-1], probe, "exec")
    params = [each["rayStartParams"] for each in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    assert all(type(value) is str for each in params for value in each.values()), "they are arguments of a command"


def test_the_manifest_serves_the_config_file() -> None:
    assert yaml.safe_load(SERVICE["spec"]["serveConfigV2"]) == CONFIG
    port = CONFIG["http_options"]["port"]
    for pod in pods():
        assert port in [each["containerPort"] for each in pod["containers"][0]["ports"]]


def test_its_options_are_those_that_there_are_and_fit_the_nodes() -> None:
    (application,) = CONFIG["applications"]
    assert application["import_path"] == "maskwright.server.ray:app"
    model, settings, cluster = read_options(application["args"])
    refuse_unserved(settings)
    (group,) = SERVICE["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (pod,) = (group["template"]["spec"],)
    limits = pod["containers"][0]["resources"]["limits"]
    assert cluster.replica_cpus <= int(limits["cpu"]) and cluster.replica_gpus <= int(limits["nvidia.com/gpu"])
    assert (group["replicas"], group["maxReplicas"]) == (cluster.replicas, cluster.max_replicas)
    assert settings.drain_seconds is not None and all(each["terminationGracePeriodSeconds"] > settings.drain_seconds for each in pods())
    assert model.name == pod["containers"][0]["volumeMounts"][0]["mountPath"]


def test_options_of_a_command_line_are_read_as_those_of_a_file() -> None:
    given = {"model": "/m", "replicas": 2, "max_open": 7, "request_seconds": 60, "api_key": ["a", "b"], "threads": 2, "prefix_cache": False, "device": "cpu", "drain_seconds": None}
    as_text = {"model": "/m", "replicas": "2", "max_open": "7", "request_seconds": "60", "api_key": ["a", "b"], "threads": "2", "prefix_cache": "false", "device": "cpu", "drain_seconds": "null"}
    assert read_options(given) == read_options(as_text)
    model, settings, cluster = read_options(given)
    assert (model.name, model.options) == ("/m", {"device": "cpu", "threads": 2, "prefix_cache": False})
    assert (settings.max_open, settings.request_seconds, settings.api_key, cluster.replicas) == (7, 60.0, ("a", "b"), 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"replcas": 2}, 'unknown option "replcas"; did you mean replicas'),
        ({"replicas": "two"}, "replicas is int, not 'two'"),
        ({"replicas": True}, "replicas is int, not True"),
        ({"max_open": 0}, "max_open is an integer of at least 1"),
        ({"router": "x"}, 'unknown router "x"'),
    ],
)
def test_wrong_options_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        read_options(given)
