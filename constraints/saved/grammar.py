"""A grammar as arrays and JSON, and back. What comes back is checked: see wellformed.py."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import SavedConstraintError
from ..base.kinds import INFINITE
from ..grammar.expression import Event, Grammar, Kind, Node, Rule
from ..grammar.segments import Segment
from .wellformed import check_labels, check_tables, check_units, malformed

_NO_BODY = -1


def packed(grammar: Grammar, root: Node) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(JSON, arrays): all of a grammar that a machine needs, and what people need: labels, notes, residue."""
    bodies = [_NO_BODY if body is None else body for body in grammar.rule_bodies]
    units = [(node, low, high) for node, ranges in grammar.units.items() for low, high in ranges]
    arrays: dict[str, NDArray[Any]] = {
        "nodes": np.array(grammar.rows, np.int32).reshape(-1, 4).T,  # [4, nodes] kind, a, b, c
        "literals": np.frombuffer(bytes(grammar.pool), np.uint8),
        "lists": np.array(grammar.lists, np.int32),
        "edges": np.array(grammar.edges, np.int32).reshape(-1, 3),
        "rules": np.array(bodies, np.int32),
        "units": np.array(units, np.int32).reshape(-1, 3),  # node, low, high code point
    }
    document: dict[str, Any] = {
        "root": root,
        "rule_names": grammar.rule_names,
        "labels": [list(grammar.labels), list(grammar.labels.values())],
        "segments": [[rule, _segment_text(segment)] for rule, segment in grammar.segments.items()],
        "search_share": float(grammar.search_share),
        "mixed_arrays": grammar.mixed_arrays,
        "most_different": grammar.most_different,
        "stacks_as_graph": grammar.stacks_as_graph,
        "has_json_values": grammar.has_json_values,
        "notes": grammar.notes,
        "residue": grammar.residue,
    }
    return document, arrays


def _segment_text(segment: Any) -> dict[str, Any]:
    if not isinstance(segment, Segment):
        raise SavedConstraintError(f"a grammar with segments of type {type(segment).__name__} cannot be saved", keyword="content")
    return {**asdict(segment), "mark": segment.mark.decode("latin-1")}


def unpacked(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> tuple[Grammar, Node]:
    """The grammar and its root, to be compiled and looked into, but not to be built on. Raises SavedConstraintError."""
    try:
        return _unpacked(document, arrays)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise malformed(f"{type(error).__name__}: {error}") from None


def _unpacked(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> tuple[Grammar, Node]:
    check_tables(arrays, document["root"])
    grammar = Grammar()
    grammar.rows = array("i", arrays["nodes"].T.tobytes())
    grammar.pool = bytearray(arrays["literals"].tobytes())
    grammar.lists, grammar.edges = array("i", arrays["lists"].tobytes()), array("i", arrays["edges"].tobytes())
    kinds, events = arrays["nodes"][0], arrays["nodes"][3]
    grammar.events = {Event(event) for event in np.unique(events[kinds == Kind.CLASS]).tolist()}
    grammar.rule_names = list(map(str, document["rule_names"]))
    grammar.rule_bodies = [Node(body) for body in arrays["rules"].tolist()]
    if len(grammar.rule_names) != len(grammar.rule_bodies):
        raise malformed("every rule has a name and a body")
    for node, low, high in arrays["units"].tolist():
        grammar.units[Node(node)] = (*grammar.units.get(Node(node), ()), (low, high))
    check_units(grammar)
    nodes, labels = document["labels"]
    grammar.labels = {Node(node): str(label) for node, label in zip(nodes, labels, strict=True)}
    check_labels(grammar)
    for rule, segment in document["segments"]:
        grammar.segments[Rule(range(len(grammar.rule_names))[rule])] = _segment(**segment)
    grammar.search_share = document["search_share"]
    if not isinstance(grammar.search_share, float) or not 0 <= grammar.search_share <= 1:
        raise malformed("a share is a number up to 1")
    grammar.mixed_arrays = bool(document["mixed_arrays"])
    grammar.most_different = min(int(document["most_different"]), INFINITE)
    grammar.stacks_as_graph = bool(document.get("stacks_as_graph"))
    grammar.has_json_values = bool(document.get("has_json_values"))
    grammar.notes, grammar.residue = list(map(str, document["notes"])), list(map(str, document["residue"]))
    return grammar, Node(document["root"])


def _segment(role: str, owner: str, name: str, notation: str, held: int, mark: str) -> Segment:
    texts = (role, owner, name, notation, mark)
    if not all(isinstance(text, str) for text in texts) or not isinstance(held, int) or held < 0:
        raise malformed("a segment is five texts and a number")
    return Segment(role, owner, name, notation, held, mark.encode("latin-1"))
