"""Stored responses of all replicas, in one process, so that a conversation goes on with whichever replica answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.serve.handle import DeploymentHandle

from ..errors import ApiError
from ..stored.store import Item, StoredResponse, StoredResponses, not_stored


class Shelf:
    """The deployment that holds them. They go with its process, as those of one server do."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._stored = StoredResponses(max_count, max_bytes)

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        try:
            return self._stored.get(owner, response_id)
        except ApiError:
            return None

    async def put(self, owner: str, response: dict[str, Any], input_items: Sequence[Item]) -> None:
        self._stored.put(owner, response, input_items)

    async def delete(self, owner: str, response_id: str) -> bool:
        """Whether it was there."""
        if await self.get(owner, response_id) is None:
            return False
        self._stored.delete(owner, response_id)
        return True


class SharedResponses:
    """The shelf as endpoints ask for it (`ResponseStore`)."""

    def __init__(self, shelf: DeploymentHandle[Any], stores: bool) -> None:
        self._shelf, self._stores = shelf, stores

    @property
    def stores(self) -> bool:
        return self._stores

    async def get(self, owner: str, response_id: str, param: str | None = None) -> StoredResponse:
        found: StoredResponse | None = await self._shelf.get.remote(owner, response_id)
        if found is None:
            raise not_stored(response_id, param)
        return found

    async def put(self, owner: str, response: dict[str, Any], input_items: Sequence[Item]) -> None:
        await self._shelf.put.remote(owner, response, list(input_items))

    async def delete(self, owner: str, response_id: str) -> None:
        if not await self._shelf.delete.remote(owner, response_id):
            raise not_stored(response_id)
