"""One batch of a client: what is asked, and how far it is. Each has a file, so that a server that is started again goes on.

    validating -> in_progress -> finalizing -> completed
        |              |------> cancelling ->  cancelled
      failed           '--------------------> expired

Source: https://platform.openai.com/docs/api-reference/batch/object
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .files import replace_text
from .lines import Fault

Status: TypeAlias = Literal[
    "validating", "in_progress", "finalizing", "cancelling", "completed", "failed", "expired", "cancelled"
]
ENDED: tuple[Status, ...] = ("completed", "failed", "expired", "cancelled")
Window: TypeAlias = Literal["24h"]  # within which a batch ends: OpenAI's only one
WINDOW_SECONDS = 24 * 3600


@dataclass(slots=True)
class Batch:
    """Belongs to the event loop."""

    id: str
    owner: str  # digest of the key
    endpoint: str
    input_file_id: str
    created_at: int  # seconds since 1970, as all times are
    metadata: dict[str, str] | None = None
    status: Status = "validating"
    times: dict[str, int] = field(default_factory=dict)  # when it became what it is and was, as "completed_at"
    faults: list[tuple[int, str | None, str]] = field(default_factory=list)  # of the input file
    output_file_id: str | None = None
    error_file_id: str | None = None
    total: int = 0  # requests
    completed: int = 0
    failed: int = 0

    @property
    def expires_at(self) -> int:
        return self.created_at + WINDOW_SECONDS

    @property
    def is_cancelling(self) -> bool:
        return self.status == "cancelling"

    def become(self, status: Status, now: float) -> None:
        self.status = status
        self.times[f"{status}_at"] = int(now)

    def told(self) -> dict[str, Any]:
        """As OpenAI's clients read it."""
        moments = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
        faults = [
            {"code": "invalid_line", "line": fault.number, "message": fault.message, "param": fault.param}
            for fault in (Fault(*each) for each in self.faults)
        ]
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "errors": {"object": "list", "data": faults} if faults else None,
            "input_file_id": self.input_file_id,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            **{f"{moment}_at": self.times.get(f"{moment}_at") for moment in moments},
            "request_counts": {"total": self.total, "completed": self.completed, "failed": self.failed},
            "metadata": self.metadata,
        }


def save(batch: Batch, folder: Path) -> None:
    replace_text(folder / f"{batch.id}.json", json.dumps(asdict(batch)))


def saved_in(folder: Path) -> Iterator[Batch]:
    """All batches in a folder. What is no batch is passed over."""
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, TypeError):
            yield Batch(**json.loads(path.read_text(encoding="utf-8")))
