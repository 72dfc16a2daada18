"""What is found when an installation is looked at: a verdict on one thing, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How one thing is, from the best to the worst."""

    OK = "ok"
    WARN = "warn"  # it works, but slower than it could, or without a part
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    found: str  # what there is, in one line
    advice: str = ""  # what to do, unless all is well

    def as_json(self) -> dict[str, str]:
        """The finding as `maskwright doctor --json` prints it."""
        return {name: str(value) for name, value in asdict(self).items()}
