"""The errors that tell the user what to mend."""

from __future__ import annotations

from ..errors import MaskwrightError, UsageError

KNOWN_ERRORS = (MaskwrightError,)


def not_installed(command: str, error: ModuleNotFoundError, extra: str = "server") -> UsageError:
    """What a command says that needs the libraries of an extra, where one of them is missing."""
    missing = (error.name or "").split(".")[0]
    return UsageError(f'{command} needs {missing}, which is not installed; pip install "maskwright[{extra}]"')
