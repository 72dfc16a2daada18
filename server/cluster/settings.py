"""What an operator decides about several replicas. Each of them has the server's settings and the engine's."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...errors import UsageError
from ..settings import ServerSettings
from .policies import policy_of

UNSERVED = {  # settings of a server that Ray's proxy has itself, or that need one process
    "batch_folder": "files and batches are of one process; run a server beside the cluster for them, or a Ray Data stage",
    "runtime_adapters": "replicas come and go, and each is to have the same; name adapters with lora_modules",
    "head_seconds": "Ray's proxy reads the heads of requests",
    "send_seconds": "Ray's proxy sends answers; give request_seconds",
    "log_format": "Ray writes the logs; see its logging_config",
    "traces": "Ray traces requests itself; see its tracing_exporter_import_path",
    "ssl_ca_certs": "let a proxy in front ask for certificates of clients",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Every field is an option of `maskwright serve --ray`; the comments are its help."""

    replicas: int = 1  # engines that are started; with max_replicas the fewest that there are
    max_replicas: int | None = None  # as many are started when they are needed; else there are always --replicas
    ingress_replicas: int = 1  # processes that read requests, choose a replica for each and hand on its answer
    router: str = "prefix"  # who gets a request: prefix (who knows most of it), two_choices, least_loaded, round_robin or random
    replica_cpus: float = 1.0  # that Ray reserves for each engine
    replica_gpus: float = 0.0  # that Ray reserves for each engine
    target_open: float = 32.0  # open requests of a replica, above which there are to be more replicas
    target_kv: float = 0.8  # share of the KV cache that sequences hold, above which there are to be more replicas
    upscale_seconds: float = 10.0  # for which more replicas must be wanted before they are started
    downscale_seconds: float = 300.0  # for which fewer must be wanted before some are stopped
    max_retries: int = 3  # other replicas that are asked when one is lost before anything was sent to the client
    report_seconds: float = 2.0  # between two reports of what a replica knows

    def __post_init__(self) -> None:
        for name in ("replicas", "ingress_replicas"):
            _require(name, getattr(self, name), 1)
        _require("max_retries", self.max_retries, 0)
        if self.max_replicas is not None:
            _require("max_replicas", self.max_replicas, self.replicas)
        for name in ("target_open", "target_kv", "report_seconds"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is more than 0, not {getattr(self, name)!r}")
        for name in ("replica_cpus", "replica_gpus", "upscale_seconds", "downscale_seconds"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} is at least 0, not {getattr(self, name)!r}")
        policy_of(self.router)


def refuse_unserved(settings: ServerSettings) -> None:
    """Raises UsageError for a setting of the server that has no effect in a cluster."""
    for field in fields(settings):
        if field.name in UNSERVED and getattr(settings, field.name) != field.default:
            raise UsageError(f"{field.name} is not served on Ray: {UNSERVED[field.name]}")


def _require(name: str, value: int, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise UsageError(f"{name} is an integer of at least {at_least}, not {value!r}")
