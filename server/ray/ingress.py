"""One ingress, and the replicas as it reaches them through Ray."""

from __future__ import annotations

from typing import Any

from ray import serve
from ray.exceptions import ObjectLostError, RayActorError, WorkerCrashedError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp

from ..cluster.asked import Asked, Whole
from ..cluster.forwarding import Answer, ReplicaLost
from ..cluster.ingress import IngressMetrics, ingress_app
from ..errors import ApiError
from ..settings import ServerSettings

LOST = (RayActorError, WorkerCrashedError, ObjectLostError)
ASK_ALL_SECONDS = 10.0


class IngressReplica:
    """The deployment that reads requests."""

    def __init__(self, engines: DeploymentHandle[Any], settings: ServerSettings, max_retries: int) -> None:
        self._engines, self._settings, self._max_retries = engines, settings, max_retries
        self._metrics = IngressMetrics()
        self._context = serve.get_replica_context()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        context = self._context
        ingresses = serve.get_deployment_handle(context.deployment, context.app_name)
        return ingress_app(RayReplicas(self._engines, ingresses), self._settings, self._max_retries, self._metrics)

    async def metrics(self) -> tuple[str, str]:
        """The name of this ingress, and its metrics as text."""
        return f"ingress {self._context.replica_id.unique_id}", self._metrics.text()


class RayReplicas:
    """`Replicas` behind handles of Ray Serve."""

    def __init__(self, engines: DeploymentHandle[Any], ingresses: DeploymentHandle[Any]) -> None:
        self._engines, self._ingresses = engines, ingresses

    async def ask(self, asked: Asked) -> Answer:
        stream = self._engines.answer.options(stream=True).remote(asked)
        has_ended = False
        try:
            async for each in stream:
                yield each
            has_ended = True
        except LOST as error:
            raise ReplicaLost(str(error).splitlines()[0]) from error
        except DeploymentUnavailableError as error:
            raise ApiError(503, "there is no replica", code="no_replica", headers={"Retry-After": "1"}) from error
        except BackPressureError as error:
            message = "as many requests wait as this cluster takes; try again later"
            raise ApiError(429, message, code="queue_full", headers={"Retry-After": "1"}) from error
        finally:
            if not has_ended:
                stream.cancel()

    async def ask_all(self, asked: Asked) -> list[Whole]:
        return await _of_all(self._engines, "whole", asked)

    async def metrics(self) -> dict[str, str]:
        told = [await _of_all(each, "metrics") for each in (self._ingresses, self._engines)]
        return dict(pair for pairs in told for pair in pairs)

    async def obstacles(self) -> list[str | None]:
        return await _of_all(self._engines, "obstacle")


async def _of_all(handle: DeploymentHandle[Any], method: str, *arguments: object) -> list[Any]:
    """What all replicas answer that live; none if there are none."""
    try:
        told = await handle.broadcast(method, *arguments).results_async(timeout_s=ASK_ALL_SECONDS, return_exceptions=True)
    except DeploymentUnavailableError:
        return []
    except TimeoutError as error:
        message = f"not all replicas answered within {ASK_ALL_SECONDS:.0f} seconds"
        raise ApiError(504, message, code="replicas_slow", headers={"Retry-After": "1"}) from error
    for each in told:
        if isinstance(each, BaseException) and not isinstance(each, LOST):
            raise each
    return [each for each in told if not isinstance(each, BaseException)]
