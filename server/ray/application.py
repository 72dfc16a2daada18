"""The deployments of a cluster, as one application of Ray Serve."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from ...errors import UsageError
from ..cluster.settings import ClusterSettings, refuse_unserved
from ..settings import ServerSettings
from .engine import Engine
from .ingress import IngressReplica
from .options import ServedModel, read_options
from .shelf import Shelf

MOST_OPEN = 100_000  # requests of one ingress: what an engine takes is what bounds them
LOOK_BACK_SECONDS = 15.0  # over which load is averaged; Ray wants more than the 10 s after which it is told
WAIT_LOOP_SECONDS = 0.5  # between two looks whether a replica that stops has answered all


def app(args: Mapping[str, Any]) -> Application:
    """What `serve run maskwright.server.ray:app` and the import path of a config file build.

    args: options of `maskwright serve`, in its names with underscores; address and port are those of Ray's `http_options`. Raises
    UsageError.
    """
    model, settings, cluster = read_options(args)
    if not settings.api_key and (key := os.environ.get("MASKWRIGHT_API_KEY")):
        settings = replace(settings, api_key=(key,))
    for name in ("host", "port", "ssl_certfile", "ssl_keyfile", "idle_seconds"):
        if name in args:
            raise UsageError(f"{name}: the proxies of Ray Serve listen; say it in http_options of the config file")
    return application(model, settings, cluster)


def application(model: ServedModel, settings: ServerSettings, cluster: ClusterSettings) -> Application:
    """An ingress in front of engines, and a place for the responses that they store. Raises UsageError for settings that have no
    effect here."""
    refuse_unserved(settings)
    drain_seconds = settings.request_seconds if settings.drain_seconds is None else settings.drain_seconds
    stopping = {"graceful_shutdown_timeout_s": drain_seconds, "graceful_shutdown_wait_loop_s": WAIT_LOOP_SECONDS}
    shelf = serve.deployment(Shelf, name="Shelf", ray_actor_options={"num_cpus": 0}, max_ongoing_requests=MOST_OPEN)
    engine = serve.deployment(
        Engine,
        name="Engine",
        ray_actor_options={"num_cpus": cluster.replica_cpus, "num_gpus": cluster.replica_gpus},
        max_ongoing_requests=settings.max_open,
        max_queued_requests=settings.max_open,
        request_router_config=RequestRouterConfig(
            request_router_class="maskwright.server.ray.router.KnowledgeRouter",
            request_router_kwargs={"policy": cluster.router},
            request_routing_stats_period_s=cluster.report_seconds,
        ),
        **_scale(cluster),
        **stopping,
    )
    ingress = serve.deployment(
        serve.ingress()(IngressReplica),
        name="Ingress",
        num_replicas=cluster.ingress_replicas,
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=MOST_OPEN,
        **stopping,
    )
    shelves = shelf.bind(settings.max_stored_responses, settings.max_stored_bytes)
    return ingress.bind(engine.bind(model, settings, shelves), settings, cluster.max_retries)


def _scale(cluster: ClusterSettings) -> dict[str, Any]:
    if cluster.max_replicas is None:
        return {"num_replicas": cluster.replicas}
    targets = {"target_open": cluster.target_open, "target_kv": cluster.target_kv}
    policy = AutoscalingPolicy(policy_function="maskwright.server.ray.scaling:ByPressure", policy_kwargs=targets)
    scaling = AutoscalingConfig(
        min_replicas=cluster.replicas,
        max_replicas=cluster.max_replicas,
        target_ongoing_requests=cluster.target_open,
        upscale_delay_s=cluster.upscale_seconds,
        downscale_delay_s=cluster.downscale_seconds,
        look_back_period_s=LOOK_BACK_SECONDS,
        policy=policy,
    )
    return {"autoscaling_config": scaling}
