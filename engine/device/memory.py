"""How much memory there is."""

from __future__ import annotations

from pathlib import Path

import torch


def free_bytes(device: torch.device) -> int:
    """Memory that is free now, in bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 << 30  # not Linux: assume little


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
