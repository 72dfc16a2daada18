"""The file of a compiled constraint: what is in it, and whether it fits where it is read.

A file holds the grammar of each automaton, which is what takes long to make, and when asked for what the automaton has found. It
fits only the vocabulary, the limits and the code that it was made with; everything else is refused by name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..base.errors import SavedConstraintError
from ..grammar.source import Limits, Source, fingerprint_of
from ..token_automaton.min_tokens import Distances
from ..token_automaton.token_automaton import TokenAutomaton
from ..vocabulary.shared_vocabulary import SharedVocabulary
from ..vocabulary.vocabulary import Vocabulary
from .container import read, write
from .grammar import packed, unpacked
from .wellformed import malformed

FORMAT = 1
_GRAMMAR, _FOUND, _DISTANCES = "grammar/", "found/", "distances"  # prefixes of the arrays of one automaton; its distances
_TAKE_PART = "save it anew with what is installed here"


class SavedAutomaton(NamedTuple):
    """What a file holds of one automaton."""

    document: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class LoadedAutomaton(NamedTuple):
    """An automaton that was read from a file. distances: those that had been found, None where they were left out."""

    automaton: TokenAutomaton
    fingerprint: str
    distances: NDArray[Any] | None


def saved_automaton(automaton: TokenAutomaton, distances: Distances, fingerprint: str, found: bool) -> SavedAutomaton:
    """An automaton for a file: its grammar and, with `found`, all that exists of it by now."""
    document, grammar = packed(automaton.grammar, automaton.root)
    arrays = {_GRAMMAR + name: array for name, array in grammar.items()}
    if found:
        arrays |= {_FOUND + name: array for name, array in automaton.found().items()} | {_DISTANCES: distances.found()}
    return SavedAutomaton({**document, "source": fingerprint}, arrays)


def write_constraint(
    path: str | os.PathLike[str], automata: Sequence[SavedAutomaton], narrowing: Any, vocabulary: Vocabulary, limits: Limits
) -> None:
    """See `Constraint.save`. narrowing: how the automata behind the first one narrow it, as JSON holds it."""
    header = {
        "format": FORMAT,
        "version": _version(),
        "vocabulary": {"tokens": vocabulary.size, "fingerprint": vocabulary.fingerprint},
        "limits": asdict(limits),
        "budget": narrowing,
        "automata": [automaton.document for automaton in automata],
    }
    arrays = {f"{i}/{name}": array for i, automaton in enumerate(automata) for name, array in automaton.arrays.items()}
    write(path, header, arrays)


def read_constraint(
    path: str | os.PathLike[str], shared_vocabulary: SharedVocabulary, limits: Limits, source: Source | None, trusted: bool
) -> tuple[list[LoadedAutomaton], Any]:
    """The automata in a file, at least one, and how those behind the first one narrow it. See `Compiler.load`."""
    header, arrays = read(path)
    try:
        _check_fit(header, shared_vocabulary, limits, source)
        automata = [
            loaded_automaton(document, _with_prefix(arrays, f"{number}/"), shared_vocabulary, limits, trusted)
            for number, document in enumerate(header["automata"])
        ]
        narrowing = header["budget"]
    except (KeyError, TypeError, AttributeError) as error:  # JSON of another shape
        raise malformed(f"{type(error).__name__}: {error}") from None
    if not automata:
        raise malformed("at least one automaton")
    return automata, narrowing


def _check_fit(header: Mapping[str, Any], shared_vocabulary: SharedVocabulary, limits: Limits, source: Source | None) -> None:
    """Raises SavedConstraintError naming the first thing that differs."""
    vocabulary, own = header["vocabulary"], shared_vocabulary.vocabulary
    _compare("format", header["format"], FORMAT)
    _compare("version", header["version"], _version())
    if vocabulary["fingerprint"] != own.fingerprint:
        saved, here = (f"{size} tokens ({print_[:12]})" for size, print_ in (
            (vocabulary["tokens"], str(vocabulary["fingerprint"])), (own.size, own.fingerprint)))  # fmt: skip
        raise _differs("vocabulary", saved, here, "the tokenizer it was made for, or save it for this one")
    for name, value in asdict(limits).items():
        _compare("limits", f"{name}={header['limits'][name]}", f"{name}={value}")
    if source is not None and header["automata"][0]["source"] != fingerprint_of(source, own):
        raise _differs("source", "another source", f"{type(source).__name__}(...)", "save what this source compiles to")


def _compare(what: str, saved: Any, here: Any) -> None:
    if saved != here:
        raise _differs(what, saved, here, _TAKE_PART)


def _differs(what: str, saved: Any, here: Any, instead: str) -> SavedConstraintError:
    return SavedConstraintError(f"the file was saved for {saved}, not for {here}", keyword=what, instead=instead)


def loaded_automaton(
    document: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    shared_vocabulary: SharedVocabulary,
    limits: Limits,
    trusted: bool,
) -> LoadedAutomaton:
    """The automaton of a `SavedAutomaton`. See `Compiler.load`."""
    grammar, root = unpacked(document, _with_prefix(arrays, _GRAMMAR))
    found = _with_prefix(arrays, _FOUND) if trusted else {}
    automaton = TokenAutomaton(grammar, root, shared_vocabulary, limits, found or None)
    automaton.check_spelling()
    return LoadedAutomaton(automaton, str(document["source"]), arrays[_DISTANCES] if found else None)


def _with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


@cache
def _version() -> str:
    """A hash of the package's version and of every source of constraints/: what a grammar means, and how tables are
    laid out, is written there."""
    folder = Path(__file__).parents[1]
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))).hexdigest()
    return f"maskwright {version('maskwright')} ({sources[:16]})"
