"""Where responses are stored, as endpoints ask for it: in this process, or elsewhere for several servers that share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .store import Item, StoredResponse, StoredResponses


class ResponseStore(Protocol):
    """As `StoredResponses`, for coroutines."""

    @property
    def stores(self) -> bool: ...

    async def get(self, owner: str, response_id: str, param: str | None = None) -> StoredResponse: ...

    async def put(self, owner: str, response: dict[str, Any], input_items: Sequence[Item]) -> None: ...

    async def item(self, owner: str, item_id: object, param: str) -> Item: ...

    async def delete(self, owner: str, response_id: str) -> None: ...


class OwnResponses:
    """Those of this process."""

    def __init__(self, stored: StoredResponses) -> None:
        self._stored = stored

    @property
    def stores(self) -> bool:
        return self._stored.stores

    async def get(self, owner: str, response_id: str, param: str | None = None) -> StoredResponse:
        return self._stored.get(owner, response_id, param)

    async def put(self, owner: str, response: dict[str, Any], input_items: Sequence[Item]) -> None:
        self._stored.put(owner, response, input_items)

    async def item(self, owner: str, item_id: object, param: str) -> Item:
        return self._stored.item(owner, item_id, param)

    async def delete(self, owner: str, response_id: str) -> None:
        self._stored.delete(owner, response_id)
