"""What a benchmark must know before it runs: whether its results can be written and drawn, and what it compares is there."""

from __future__ import annotations

import json
import lzma
import math
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from maskwright.foundation.errors import MaskwrightError

_Case = TypeVar("_Case")
_TOKENIZERS = ("tokenizer.json", "tokenizer.json.xz", "tokenizer.model", "tekken.json", "vocab.json")
NEED_MATPLOTLIB = "plots need matplotlib (pip install matplotlib)"


def result_file(text: str) -> Path:
    """An argument's value: a file that can be written, in a folder that is there."""
    path = Path(text)
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentTypeError(f"{path} cannot be written")
    return path


def count(text: str) -> int:
    """An argument's value: a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} is no positive integer")
    return int(text)


def amount(text: str) -> int:
    """An argument's value: an integer that is not negative."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text} is no integer from 0 on")
    return int(text)


def size(text: str) -> float:
    """An argument's value: a finite number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise ArgumentTypeError(f"{text} is no number from 0 on")
    return value


def there(text: str) -> Path:
    """An argument's value: a file or folder that is there."""
    if not Path(text).exists():
        raise ArgumentTypeError(f"there is no {text}")
    return Path(text)


def tokenizer_folder(text: str) -> Path:
    """An argument's value: a folder with a tokenizer that transformers can load."""
    folder = there(text)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise ArgumentTypeError(f"{text} is no folder with a tokenizer.json")
    return folder


def chosen(cases: Sequence[_Case], option: str) -> Sequence[_Case]:
    """What a benchmark is to run. Ends the program with a message where nothing is left. option: which chose it."""
    if not cases:
        raise SystemExit(f"error: nothing to measure is left by {option}")
    return cases


def has_matplotlib() -> bool:
    """Whether matplotlib can be imported: one that was built for another NumPy is there, and cannot."""
    try:
        import_module("matplotlib.pyplot")
    except ImportError:
        return False
    return True


def can_plot() -> bool:
    """Whether plots can be drawn. Says so before the runs if they cannot; the figures are written all the same."""
    if not has_matplotlib():
        print(f"no plot will be drawn: {NEED_MATPLOTLIB}", file=sys.stderr)
        return False
    return True


def pyplot() -> Any:
    """`matplotlib.pyplot`, which writes SVG. Ends the program with a message where it is not installed."""
    if not has_matplotlib():
        raise SystemExit(NEED_MATPLOTLIB)
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    return plt


MODULES = {  # of engines, by the names that benchmarks have for them
    "llguidance": "llguidance", "xgrammar": "xgrammar", "xgrammar-compliant": "xgrammar", "outlines-core": "outlines_core",
    "glrmask": "glrmask", "maskforge": "maskforge", "llama.cpp": "xllamacpp", "vllm": "vllm",
}  # fmt: skip


def optional(module: str) -> Any:
    """A module that Maskwright does without. Ends the program with a message where it is not installed."""
    require([module])
    return import_module(module)


def require(modules: Iterable[str], *, option: str = "") -> None:
    """End the program with a message where modules are not installed. option: the one by which they may be left out."""
    missing = sorted({module for module in modules if find_spec(module) is None})
    if missing:
        packages = " ".join(module.replace("_", "-") for module in missing)
        otherwise = f", or leave it out with {option}" if option else ""
        raise SystemExit(f"error: this needs {', '.join(missing)} (pip install {packages}){otherwise}")


def require_engines(names: Iterable[str], *, option: str = "") -> None:
    """The same for engines, by the names that benchmarks have for them."""
    require([MODULES[name] for name in names if name in MODULES], option=option)


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """A block in which an error of Maskwright's, or of a file that is read, ends the program with its message."""
    try:
        yield
    except (MaskwrightError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
    except (json.JSONDecodeError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise SystemExit(f"error: a file that is read is no JSON: {error}") from None
