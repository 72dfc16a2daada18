"""How many replicas there should be: by requests that are open, and by how full the KV caches are."""

from __future__ import annotations

import math
from collections.abc import Collection


def wanted_replicas(num_open: float, kv_usage: Collection[float], target_open: float, target_kv: float) -> int:
    """The fewest that keep both below their targets, at least one.

    num_open: requests that run or wait, in all. kv_usage: of each replica, the share of its blocks that sequences hold, 0 to 1.
    target_open: requests of one replica. target_kv: the share that is to be held.
    """
    by_queue = num_open / target_open
    by_memory = sum(kv_usage) / target_kv
    return max(1, math.ceil(round(max(by_queue, by_memory), 6)))
