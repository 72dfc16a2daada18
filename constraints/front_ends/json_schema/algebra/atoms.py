"""The atoms (documents/values.py) that literals leave: of which types a value may be for them to hold."""

from __future__ import annotations

from ..documents.document import Site
from ..documents.keywords import TYPES
from .claims import ALL_ATOMS, Literal


def literal_atoms(literal: Literal) -> frozenset[str]:
    """The atoms that a value may be of for a literal to hold."""
    return type_atoms(literal) if isinstance(literal, Site) else literal.atoms


def type_atoms(site: Site) -> frozenset[str]:
    """The atoms that the `type` of a site leaves."""
    value = site.active.get("type")
    if value is None:
        return ALL_ATOMS
    if isinstance(value, str):
        return TYPES[value]
    atoms: frozenset[str] = frozenset()
    return atoms.union(*(TYPES[name] for name in value))
