"""The autoscaling policy that Ray's controller asks; delays and bounds are Ray's."""

from __future__ import annotations

from typing import Any

from ray.serve.config import AutoscalingContext

from ..cluster.pressure import wanted_replicas

KV_USAGE = "kv_usage"  # what replicas report


class ByPressure:
    """As many replicas as open requests and KV caches ask for."""

    def __init__(self, target_open: float, target_kv: float) -> None:
        self._target_open, self._target_kv = target_open, target_kv

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        usage = (context.aggregated_metrics or {}).get(KV_USAGE, {}).values()
        return wanted_replicas(context.total_num_requests, list(usage), self._target_open, self._target_kv), {}
