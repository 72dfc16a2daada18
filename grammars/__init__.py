"""Grammars that ship with the package, each with a header comment and, beside it in the repository, strings that test it.

>>> from maskwright import generate, grammars
>>> generate("Which users are older than 30?", constraint=grammars.load("sql-select"))

On the command line: `maskwright generate --grammar sql-select`, `maskwright grammar list`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..constraints.grammar.source import Source

__all__ = ["description", "load", "names", "path", "text"]

_ENDINGS = (".gbnf", ".lark")


def names() -> list[str]:
    """The names of all grammars, in alphabetical order."""
    return sorted(_files())


def load(name: str) -> Source:
    """The grammar of that name, to be compiled or given as `constraint=`. Raises KeyError with the names there are."""
    from ..constraints.front_ends.cfg.gbnf import Gbnf
    from ..constraints.front_ends.cfg.lark_grammar import Lark

    return Gbnf(text(name)) if path(name).name.endswith(".gbnf") else Lark(text(name))


def text(name: str) -> str:
    """The text of the grammar of that name. Raises KeyError with the names there are."""
    return path(name).read_text(encoding="utf-8")


def description(name: str) -> str:
    """What the grammar `name` accepts, in a sentence: the first of its header comment. Raises KeyError with the names there are."""
    header = re.match(r"(?:(?:#|//) .*\n)+", text(name))
    assert header is not None, "every grammar begins with a comment"
    joined = " ".join(re.sub(r"^(#|//) ", "", line) for line in header[0].splitlines())
    return re.split(r"\.(?= +[A-Z]|$)", joined)[0] + "."


def path(name: str) -> Traversable:
    """The file of the grammar of that name. Raises KeyError with the names there are."""
    if name not in _files():
        raise KeyError(f"there is no grammar {name!r}, but {', '.join(names())}")
    return _files()[name]


@cache
def _files() -> dict[str, Traversable]:
    here = files(__name__)
    return {_stem(entry.name): entry for entry in here.iterdir() if entry.name.endswith(_ENDINGS)}


def _stem(name: str) -> str:
    return name.rpartition(".")[0]
