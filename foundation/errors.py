"""The base of all errors that the package raises on purpose. It stands at the bottom, so that every layer can build on it."""

from __future__ import annotations


class MaskwrightError(Exception):
    """Base of every error of this package, whatever the layer."""
