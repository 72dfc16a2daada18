"""The base of all errors that the package raises on purpose, and that of arguments.

They stand at the bottom, so that every layer can build on them.
"""

from __future__ import annotations


class MaskwrightError(Exception):
    """Base of every error of this package, whatever the layer."""


class UsageError(MaskwrightError, ValueError):
    """Arguments that contradict each other or cannot be understood; the message names them."""
