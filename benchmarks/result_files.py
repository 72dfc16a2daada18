"""What a benchmark must know before it runs: whether its results can be written, and whether they can be drawn."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maskwright.foundation.errors import MaskwrightError

NEED_MATPLOTLIB = "plots need matplotlib (pip install matplotlib)"


def result_file(text: str) -> Path:
    """An argument's value: a file that can be written, in a folder that is there."""
    path = Path(text)
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentTypeError(f"{path} cannot be written")
    return path


def can_plot() -> bool:
    """Whether plots can be drawn. Says so before the runs if they cannot; the figures are written all the same."""
    if find_spec("matplotlib") is None:
        print(f"no plot will be drawn: {NEED_MATPLOTLIB}", file=sys.stderr)
        return False
    return True


def pyplot() -> Any:
    """`matplotlib.pyplot`, which writes SVG. Ends the program with a message where it is not installed."""
    if find_spec("matplotlib") is None:
        raise SystemExit(NEED_MATPLOTLIB)
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    return plt


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """A block in which an error of Maskwright's ends the program with its message: an option asks for what cannot be done."""
    try:
        yield
    except MaskwrightError as error:
        raise SystemExit(f"error: {error}") from None
