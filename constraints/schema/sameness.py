"""Schemas that say the same, taken as one: so that what is known of one is known of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from .claims import Claim, Conj, Count, Literal, Not, Term
from .document import Document, Site
from .drafts import SINCE, UNTIL
from .keywords import APPLICATORS, GENERAL, NUMERIC, OWN, TYPES, is_anything, without_annotations
from .parts import Parts
from .values import dump_json

_PLAIN = frozenset({*GENERAL, *NUMERIC, "minLength", "maxLength", "minItems", "maxItems"})
_NOT_STRINGS = [name for name in TYPES if name != "string"]
_SCALARS = (str, int, Decimal, type(None))
_KNOWN = OWN | frozenset(APPLICATORS) | SINCE.keys() | UNTIL.keys()  # all others are annotations


class Sameness:
    """Remembers the first of the sites that say the same."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._simple: dict[Site, tuple[Claim, ...]] = {}
        self._plain: dict[tuple[object, Document], Site] = {}
        self._texts: dict[Site, str] = {}
        self._by_text: dict[tuple[str, object, object], Site] = {}

    def conj(self, claims: Iterable[Claim]) -> Conj:
        """Claims without repetition, without those that hold of everything, and with plain references replaced by their target."""
        found = [self._simplified(claim) for claim in claims]
        return found[0] if len(found) == 1 else tuple(dict.fromkeys(claim for each in found for claim in each))

    def _simplified(self, claim: Claim) -> tuple[Claim, ...]:
        if isinstance(claim, Site):
            known = self._simple.get(claim)
            if known is None:
                target = self._parts.target(claim)
                known = self._simple[claim] = () if is_anything(target.schema) else (self._first_like(target),)
            return known
        if isinstance(claim, Not) and isinstance(claim.claim, Site):
            target = self._parts.target(claim.claim)
            return () if target.schema is False else (Not(target),)
        return (claim,)

    def _first_like(self, site: Site) -> Site:
        """The first site that says the same about plain values, so that these are lowered once."""
        key = plain_key(site.schema)
        return site if key is None else self._plain.setdefault((key, site.document), site)

    def is_contradiction(self, conj: Conj) -> bool:
        """Whether a conjunction has a schema, and that it does not hold."""
        wrong = [claim.claim for claim in conj if isinstance(claim, Not)]
        if not wrong:
            return False
        said = set(map(self._alike_claim, conj))
        return any(self._alike_claim(claim) in said for claim in wrong)

    def resolved(self, literal: Literal) -> Literal:
        """The same literal with references resolved, so that violations of one schema in several places are equal."""
        if not isinstance(literal, Count):
            return literal
        return replace(literal, conj=tuple(map(self._alike_claim, self.conj(literal.conj))))

    def shared(self, term: Term) -> Term:
        """The same term with one site for all that say the same."""
        return tuple(dict.fromkeys(self._alike(literal) if isinstance(literal, Site) else literal for literal in term))

    def _alike(self, site: Site) -> Site:
        """The first site of which the same is said, from where references lead to the same schemas."""
        text = self._texts.get(site)
        if text is None:
            text = self._texts[site] = dump_json(without_annotations(site.schema))
        return self._by_text.setdefault((text, site.document, site.scope), site)

    def _alike_claim(self, claim: Claim) -> Claim:
        if isinstance(claim, Not):
            return Not(self._alike(claim.claim)) if isinstance(claim.claim, Site) else claim
        return self._alike(claim) if isinstance(claim, Site) else claim


def plain_key(schema: Any) -> object:
    """Equal for schemas that say the same with a few keywords of which none is ever refused or remarked; else None."""
    if not isinstance(schema, dict):
        return None
    key: list[object] = []
    for keyword, value in schema.items():
        if keyword not in _KNOWN:
            continue
        if keyword in _PLAIN:
            part = value if type(value) is str else _plain_part(value)
        elif keyword == "items":
            part = plain_key(value)
        elif keyword == "format" and schema.get("type") in _NOT_STRINGS:
            continue
        else:
            return None
        if part is None:
            return None
        key += (keyword, part)
    return tuple(key)


def _plain_part(value: Any) -> object:
    """Equal for equal scalars and lists of scalars, of the same types; None for other values."""
    if isinstance(value, list):
        return tuple((type(each), each) for each in value) if all(isinstance(each, _SCALARS) for each in value) else None
    return None if isinstance(value, dict) else (type(value), value)
