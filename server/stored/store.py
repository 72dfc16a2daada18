"""A bounded store of responses. Each client's are its own: who has another API key does not find them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ApiError

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that has ended, with all that it was an answer to. It needs no other one: those before it may go."""

    response: dict[str, Any]
    input_items: tuple[Item, ...]  # what the model was shown, from the beginning of the conversation on; without instructions
    num_bytes: int  # as JSON; items that it shares with those before it count again

    @property
    def items(self) -> list[Item]:
        """The conversation up to the end of this response."""
        return [*self.input_items, *self.response["output"]]


class StoredResponses:
    """At most so many responses, and so many bytes of them; which was used least recently goes first. Belongs to the event loop."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._stored: OrderedDict[tuple[str, str], StoredResponse] = OrderedDict()  # by key and id, the oldest use first
        self._items: dict[tuple[str, str], tuple[str, str]] = {}  # by key and id: the response that had the item last
        self._num_bytes = 0

    @property
    def stores(self) -> bool:
        """Whether anything is stored at all."""
        return self._max_count > 0 and self._max_bytes > 0

    @property
    def num_bytes(self) -> int:
        return self._num_bytes

    def __len__(self) -> int:
        return len(self._stored)

    def get(self, owner: str, response_id: str, param: str | None = None) -> StoredResponse:
        """A response of this owner. Raises ApiError for one that is not there, or is somebody else's: 404, or 400 where it is
        named by a parameter."""
        found = self._stored.get((owner, response_id))
        if found is None:
            raise not_stored(response_id, param)
        self._stored.move_to_end((owner, response_id))
        return found

    def item(self, owner: str, item_id: object, param: str) -> Item:
        """An item of one of this owner's responses: of an answer, or of what it was an answer to. Raises ApiError (400)."""
        place = self._items.get((owner, item_id)) if isinstance(item_id, str) else None
        if place is None:
            raise no_item(item_id, param)
        return next(item for item in reversed(self._stored[place].items) if item.get("id") == item_id)

    def put(self, owner: str, response: dict[str, Any], input_items: Sequence[Item]) -> None:
        """Store a response under its id. One that is too large for the store is not kept."""
        written = json.dumps([response, list(input_items)], ensure_ascii=False)
        num_bytes = len(written.encode(errors="replace"))
        key = owner, str(response["id"])
        if key in self._stored:
            self._drop(key)
        if not self.stores or num_bytes > self._max_bytes:
            return
        self._stored[key] = StoredResponse(response, tuple(input_items), num_bytes)
        self._items |= dict.fromkeys(self._named(key), key)
        self._num_bytes += num_bytes
        while len(self._stored) > self._max_count or self._num_bytes > self._max_bytes:
            self._drop(next(iter(self._stored)))

    def delete(self, owner: str, response_id: str) -> None:
        """Forget a response. Raises ApiError (404)."""
        self.get(owner, response_id)
        self._drop((owner, response_id))

    def _drop(self, key: tuple[str, str]) -> None:
        for named in self._named(key):
            if self._items.get(named) == key:
                del self._items[named]
        self._num_bytes -= self._stored.pop(key).num_bytes

    def _named(self, key: tuple[str, str]) -> list[tuple[str, str]]:
        """The items of a response, by its owner and their ids."""
        return [(key[0], item["id"]) for item in self._stored[key].items if isinstance(item.get("id"), str)]


def no_item(item_id: object, param: str) -> ApiError:
    """The error about a reference to an item that is not there."""
    reason = "its response was not stored, was deleted, or had to make room for others"
    message = f"{param}: there is no item {item_id!r} here: {reason}"
    return ApiError(400, message, param=param, code="item_not_found")


def not_stored(response_id: str, param: str | None = None) -> ApiError:
    """The error about a response that is not there; `param` is the parameter that names it."""
    message = f"there is no response {response_id!r} here: it was not stored, was deleted, or had to make room for others"
    if param is not None:
        return ApiError(400, message, param=param, code="previous_response_not_found")
    return ApiError(404, message, code="response_not_found")
