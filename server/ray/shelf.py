"""Stored responses of all replicas, in one process, so that a conversation goes on with whichever replica answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ray.exceptions import RayActorError
from ray.serve.handle import DeploymentHandle

from ..errors import ApiError
from ..stored.store import Item, StoredResponse, StoredResponses, no_item, not_stored

logger = logging.getLogger(__name__)


class Shelf:
    """The deployment that holds them. They go with its process, as those of one server do."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._stored = StoredResponses(max_count, max_bytes)

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        try:
            return self._stored.get(owner, response_id)
        except ApiError:
            return None

    async def item(self, owner: str, item_id: object) -> Item | None:
        try:
            return self._stored.item(owner, item_id, "")
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
        with _told_when_lost():
            found: StoredResponse | None = await self._shelf.get.remote(owner, response_id)
        if found is None:
            raise not_stored(response_id, param)
        return found

    async def item(self, owner: str, item_id: object, param: str) -> Item:
        with _told_when_lost():
            found: Item | None = await self._shelf.item.remote(owner, item_id)
        if found is None:
            raise no_item(item_id, param)
        return found

    async def put(self, owner: str, response: dict[str, Any], input_items: Sequence[Item]) -> None:
        try:
            await self._shelf.put.remote(owner, response, list(input_items))
        except RayActorError as error:  # the answer is there all the same
            logger.warning("the response %s was not stored: %s", response["id"], error)

    async def delete(self, owner: str, response_id: str) -> None:
        with _told_when_lost():
            was_there = await self._shelf.delete.remote(owner, response_id)
        if not was_there:
            raise not_stored(response_id)


@contextmanager
def _told_when_lost() -> Iterator[None]:
    try:
        yield
    except RayActorError as error:
        message = "stored responses cannot be reached just now; try again"
        raise ApiError(503, message, code="responses_lost", headers={"Retry-After": "1"}) from error
