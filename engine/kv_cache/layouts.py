"""KV layouts: how long the blocks are in which a sequence's keys and values lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...foundation.registry import Registry
from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """What a layout may go by."""

    block_size: int  # the option
    max_model_len: int  # tokens of the longest sequence


class KVLayout(Protocol):
    """A way to lay out sequences; `KV_LAYOUTS` has them by name."""

    def __call__(self, request: LayoutRequest, /) -> int:
        """Tokens of a block, 1 or more. What begins alike is shared, evicted and moved block by block."""


def paged(request: LayoutRequest) -> int:
    """Blocks of `block_size` tokens."""
    return request.block_size


def contiguous(request: LayoutRequest) -> int:
    """One block for each sequence, as in engines without paging."""
    return request.max_model_len


KV_LAYOUTS: Registry[KVLayout] = Registry(
    "KV layout", {"paged": paged, "contiguous": contiguous}, needs="a function from a LayoutRequest to the tokens of a block"
)


def tokens_per_block(layout: str, request: LayoutRequest) -> int:
    """What a layout says. Raises ConfigError where that is no length of a block."""
    try:
        count = KV_LAYOUTS[layout](request)
    except Exception as error:
        raise ConfigError(f'kv_layout "{layout}": {type(error).__name__}: {error}') from error
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ConfigError(f'kv_layout "{layout}" gave blocks of {count!r:.80} tokens; a block has one token or more')
    return count
