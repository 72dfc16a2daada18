"""Saving and loading compiled constraints: what is in a file, and whether it fits where it is loaded.

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
from typing import Any

from numpy.typing import NDArray

from ..base.errors import SavedConstraintError
from ..grammar.source import Limits, Source
from ..grammar.stages import Stages
from ..runtime.accompanied import AccompaniedConstraint
from ..runtime.compiler import check_spelling
from ..runtime.constraint import Constraint, fingerprint_of
from ..runtime.staged import StagedConstraint
from ..runtime.token_budget import BudgetedConstraint
from ..token_automaton.token_automaton import TokenAutomaton
from ..vocabulary.shared_vocabulary import SharedVocabulary
from .container import read, write
from .grammar import packed, unpacked
from .wellformed import malformed

FORMAT = 1
_GRAMMAR, _FOUND, _DISTANCES = "grammar/", "found/", "distances"  # prefixes of the arrays of one automaton; its distances
_TAKE_PART = "save it anew with what is installed here"


def save(constraint: Constraint, path: str | os.PathLike[str], found: bool) -> None:
    """See `Constraint.save`."""
    parts = [constraint.unbudgeted, *constraint.parts] if isinstance(constraint, AccompaniedConstraint) else [constraint]
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": _version(),
        "vocabulary": {"tokens": constraint.vocabulary.size, "fingerprint": constraint.vocabulary.fingerprint},
        "limits": asdict(parts[0].limits),
        "budget": _budget(constraint),
        "automata": [],
    }
    arrays: dict[str, NDArray[Any]] = {}
    for number, part in enumerate(parts):
        document, own = _part(part, found)
        header["automata"].append(document)
        arrays |= {f"{number}/{name}": array for name, array in own.items()}
    write(path, header, arrays)


def _part(constraint: Constraint, found: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with constraint.exclusively() as (automaton, distances):
        document, grammar = packed(automaton.grammar, automaton.root)
        arrays = {_GRAMMAR + name: array for name, array in grammar.items()}
        if found:
            arrays |= {_FOUND + name: array for name, array in automaton.found().items()} | {_DISTANCES: distances.found()}
    return {**document, "source": constraint.fingerprint}, arrays


def load(
    path: str | os.PathLike[str], shared_vocabulary: SharedVocabulary, limits: Limits, source: Source | None, trusted: bool
) -> Constraint:
    """See `Compiler.load`."""
    header, arrays = read(path)
    try:
        _check_fit(header, shared_vocabulary, limits, source)
        parts = [
            _constraint(document, _with_prefix(arrays, f"{number}/"), shared_vocabulary, limits, trusted)
            for number, document in enumerate(header["automata"])
        ]
        return _accompanied(header["budget"], parts)
    except (KeyError, TypeError, AttributeError) as error:  # JSON of another shape
        raise malformed(f"{type(error).__name__}: {error}") from None


def _budget(constraint: Constraint) -> Any:
    """How the parts of a constraint narrow the whole: one number for its first part, stages, or nothing."""
    if isinstance(constraint, StagedConstraint):
        return constraint.stages.as_lists()
    return constraint.max_tokens if isinstance(constraint, BudgetedConstraint) else None


def _accompanied(budget: Any, automata: Sequence[Constraint]) -> Constraint:
    if not automata:
        raise malformed("at least one automaton")
    whole, *parts = automata
    if isinstance(budget, list):
        try:
            stages = Stages.of_lists(budget, len(parts))
        except ValueError as error:
            raise malformed(str(error)) from None
        return StagedConstraint(whole, parts, stages)
    if len(parts) != (budget is not None) or isinstance(budget, bool) or not isinstance(budget, int | None):
        raise malformed("one automaton, or two and a budget")
    return whole if budget is None else BudgetedConstraint(whole, parts[0], budget)


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


def _constraint(
    document: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    shared_vocabulary: SharedVocabulary,
    limits: Limits,
    trusted: bool,
) -> Constraint:
    grammar, root = unpacked(document, _with_prefix(arrays, _GRAMMAR))
    found = _with_prefix(arrays, _FOUND) if trusted else {}
    automaton = TokenAutomaton(grammar, root, shared_vocabulary, limits, found or None)
    check_spelling(automaton)
    constraint = Constraint(automaton, str(document["source"]))
    if found:
        with constraint.exclusively() as (_, distances):
            distances.take_over(arrays[_DISTANCES])
    return constraint


def _with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


@cache
def _version() -> str:
    """Of the package and of every source of this folder: what a grammar means, and how tables are laid out, is written there."""
    folder = Path(__file__).parents[1]
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))).hexdigest()
    return f"maskwright {version('maskwright')} ({sources[:16]})"
