"""The values of an output in the extension `maskwright`: what the constraint did to each (docs/serving.md describes the answer)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ..engine.requests.output import RequestOutput, TokenRecord
from ..engine.requests.request import Request
from ..field_details import FieldDetails, FieldReader, strain_text

logger = logging.getLogger(__name__)

DIGITS = 6  # of probabilities, which may be tiny


class FieldWriter:
    """Follows the values of one output. Strained ones are written to the log, too."""

    def __init__(self, request: Request, constraint: Any, reply_id: str) -> None:
        """reply_id: names the answer in the log."""
        self._reader = FieldReader(constraint, constraint.vocabulary, request.begun)
        self._reply_id = reply_id

    def read(self, records: Iterable[TokenRecord], ended: RequestOutput | None) -> list[dict[str, Any]]:
        """The values that are complete with the next tokens, or with the end of the output."""
        found = [details for record in records for details in self._reader.read(record)]
        if ended is not None and ended.finish_reason == "stop":
            found += self._reader.finish()
        for details in found:
            if details.is_strained:
                logger.warning("%s: %s", self._reply_id, strain_text(details))
        return [_told(details) for details in found]


def _told(details: FieldDetails) -> dict[str, Any]:
    return {
        "path": list(details.path),
        "probability": _rounded(details.probability),
        "constrained_probability": _rounded(details.constrained_probability),
        "kept_mass": _rounded(details.kept_mass),
        "strained": details.is_strained,
    }


def _rounded(probability: float) -> float:
    return float(f"{probability:.{DIGITS}g}")
