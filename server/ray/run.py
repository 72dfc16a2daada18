"""A cluster on this machine, or on the one that RAY_ADDRESS names, until SIGTERM or SIGINT."""

from __future__ import annotations

import math
import signal
import threading

import ray
from ray import serve

from ...errors import UsageError
from ..cluster.settings import ClusterSettings
from ..listening import bound_socket
from ..settings import ServerSettings
from .application import application
from .options import ServedModel

NAME = "maskwright"  # of the application


def serve_on_ray(model: ServedModel, settings: ServerSettings, cluster: ClusterSettings) -> None:
    """Start Ray where it does not run, and serve until a signal says otherwise. Raises UsageError before anything is started."""
    made = application(model, settings, cluster)
    if settings.port == 0:
        raise UsageError("port: the proxies of Ray Serve listen at one port that is known; give one above 0")
    bound_socket(settings.host, settings.port).close()  # what is wrong with the address is told now
    stopped = threading.Event()
    ray.init(include_dashboard=False, log_to_driver=True, namespace=NAME)
    try:
        serve.start(http_options=_http_options(settings))
        serve.run(made, name=NAME, route_prefix="/")
        for each in (signal.SIGTERM, signal.SIGINT):  # Ray has handlers of its own, from `init` on
            signal.signal(each, lambda *_: stopped.set())
        scheme = "http" if settings.ssl_certfile is None else "https"
        url = f"{scheme}://{settings.host}:{settings.port}"
        print(f"Ray Serve running on {url} (Press CTRL+C to quit)", flush=True)  # as scripts wait for it
        stopped.wait()
        serve.shutdown()
    finally:
        ray.shutdown()


def _http_options(settings: ServerSettings) -> dict[str, object]:
    options: dict[str, object] = {"host": settings.host, "port": settings.port}
    options["keep_alive_timeout_s"] = math.ceil(settings.idle_seconds)
    if settings.ssl_certfile is not None:
        options["ssl_certfile"] = str(settings.ssl_certfile)
        options["ssl_keyfile"] = str(settings.ssl_keyfile or settings.ssl_certfile)
    return options
