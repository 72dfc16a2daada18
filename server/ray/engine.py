"""One engine: the whole server without its socket."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle

from ...engine.errors import AdapterError
from ...engine.requests.known_prompt import KnownPrompt
from ...llm import LLM
from ..app import create_app
from ..cluster.adapters import AdapterPool
from ..cluster.asked import Asked, Head, Whole
from ..cluster.in_process import answered, whole
from ..cluster.knowledge import Knowledge
from ..errors import ApiError
from ..service import Service
from ..settings import ServerSettings, named_paths
from .options import ServedModel
from .scaling import KV_USAGE
from .shelf import SharedResponses

LOOKED_UP_TOGETHER = 32  # prompts, between two steps


class Engine:
    """The deployment whose replicas answer requests."""

    async def __init__(self, model: ServedModel, settings: ServerSettings, shelf: DeploymentHandle[Any]) -> None:  # type: ignore[misc]  # Ray awaits it
        own = replace(settings, allowed_origins=(), allow_credentials=False)  # the ingress answers browsers that ask first
        llm = await asyncio.to_thread(model.load, own)
        self._app = create_app(llm, own, model_name=model.name)
        self._service: Service = self._app.state.service
        self._service.responses = SharedResponses(shelf, self._service.responses.stores)
        self._knowledge = Knowledge()
        self._service.on_running = self._knowledge.note
        self._adapters = self._adapter_pool(llm, settings)
        self._name = serve.get_replica_context().replica_id.unique_id
        self._running = AsyncExitStack()
        await self._running.enter_async_context(self._app.router.lifespan_context(self._app))

    async def answer(self, asked: Asked) -> AsyncGenerator[Head | bytes, None]:
        """The head of the answer, then its body as it comes."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._adapters.holding(asked.key.adapter_name))
            except AdapterError as error:  # its files have changed since the replica was started
                told = ApiError(500, str(error), code="invalid_adapter").response(asked.path)
                yield Head(told.status_code, tuple(told.raw_headers))
                yield bytes(told.body)
                return
            pieces = await stack.enter_async_context(aclosing(answered(self._app, asked)))
            async for each in pieces:
                yield each

    async def whole(self, asked: Asked) -> Whole:
        return await whole(self._app, asked)

    async def metrics(self) -> tuple[str, str]:
        """The name of this replica, and its metrics as text."""
        return self._name, self._service.metrics.text().decode()

    async def obstacle(self) -> str | None:
        """Why this replica takes no requests, None if it does."""
        return await self._service.obstacle()

    async def check_health(self) -> None:
        """Asked by Ray, which starts a replica anew when this fails."""
        if not self._service.worker.is_alive:
            raise RuntimeError("the engine has stopped")

    async def record_routing_stats(self) -> dict[str, Any]:
        """What this replica knows, for the routers."""
        service, prompts = self._service, self._knowledge.prompts
        cached: dict[KnownPrompt, int] = {}
        for start in range(0, len(prompts), LOOKED_UP_TOGETHER):
            few = prompts[start : start + LOOKED_UP_TOGETHER]
            counts = await service.apart(service.llm.driver.num_known, few)
            cached |= zip(few, counts, strict=True)
        facts = self._knowledge.facts(cached, service.llm.compiler.knows, service.adapters)
        return {"facts": array("Q", sorted(facts)).tobytes()}

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """How full the KV cache is, for the autoscaler."""
        statistics = self._service.worker.statistics
        return {KV_USAGE: statistics.num_blocks_in_use / max(statistics.num_blocks, 1)}

    def _adapter_pool(self, llm: LLM, settings: ServerSettings) -> AdapterPool:
        service = self._service

        async def load(name: str, path: Any) -> None:
            await service.apart(llm.load_adapter, name, path)

        async def unload(name: str) -> None:
            await service.apart(llm.driver.unload_adapter, name)

        lent = {name: path for name, path in named_paths(settings.lora_modules).items() if name not in service.adapters}
        for name, path in lent.items():
            service.check_adapter_name(name)
            llm.driver.read_adapter(path)  # what is wrong with one is told before anything is served
        service.lent_adapters = lent
        return AdapterPool(lent, llm.config.max_adapters - len(service.adapters), load, unload)

    async def __del__(self) -> None:  # Ray waits for it when the replica stops
        if (running := getattr(self, "_running", None)) is not None:
            await running.aclose()
