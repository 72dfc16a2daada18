"""How deeply JSON values are nested."""

from __future__ import annotations

from typing import Any


def depth_of(value: Any) -> int:
    """How deeply arrays and objects are nested in a value as `parse_json` returns it; without recursion."""
    deepest = 0
    holders: list[Any] = [value] if isinstance(value, (dict, list)) else []
    while holders:
        deepest += 1
        inside: list[Any] = []
        for holder in holders:
            parts = holder.values() if isinstance(holder, dict) else holder
            for part in parts:
                if isinstance(part, (dict, list)):
                    inside.append(part)
        holders = inside
    return deepest
