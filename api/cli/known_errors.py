"""Every error that tells the user what to mend."""

from __future__ import annotations

from ..constraints.errors import ConstraintError
from ..engine.errors import EngineError
from ..errors import MaskwrightError
from ..sampling import SamplingError

KNOWN_ERRORS = (MaskwrightError, ConstraintError, EngineError, SamplingError)
