"""The errors that tell the user what to mend."""

from __future__ import annotations

from ..errors import MaskwrightError

KNOWN_ERRORS = (MaskwrightError,)
