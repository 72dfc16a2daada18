"""Closed objects that differ in which members they have, as branches of one `oneOf`: what is common to them once, as if it were one
schema, and in what they differ as a formula over members.

    {a, b}  {a, c}  {b, c}     is     {a, b, c}, and of "no c", "no b" and "no a" exactly one

As alternatives each branch would have to be told from all others, and each member would be written once for each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..documents.document import Site
from ..documents.keywords import value_of
from ..documents.reading import Members
from .claims import Claim, Common, Condition, Conj
from .conditions import Conditions
from .formulas import Formula, Has, all_of, negation, one_of, ways
from .parts import Parts

MORE_THAN = 4  # branches; as many are told apart as alternatives


class ClosedBranches:
    """Finds them. `conj` makes conjunctions."""

    def __init__(self, parts: Parts, conditions: Conditions, conj: Callable[[Iterable[Claim]], Conj]) -> None:
        self._parts, self._conditions, self._conj = parts, conditions, conj

    def of(self, site: Site) -> tuple[Common, Condition] | None:
        """What the `oneOf` of a site comes to; None where a branch is not closed, or says something else of a common member."""
        branches = [self._parts.target(part) for part in self._parts.subschemas(site, "oneOf")]
        if len(branches) <= MORE_THAN or site.is_loose or any(map(_is_open, branches)):
            return None
        said = [self._conditions.beside_members(branch) for branch in branches]
        told = [reading for reading in said if reading is not None]
        own = [_declared(branch) for branch in branches]
        first: dict[str, Site] = {}
        for branch, members in zip(branches, own, strict=True):
            for name, schema in members.items():
                if name not in first:
                    first[name] = branch.child("properties", name)
                elif not (_is_plain(schema) and schema == first[name].schema) and not self._are_same(first[name], branch, name):
                    return None
        names = _in_one_order(own)
        if len(told) < len(said) or names is None:
            return None
        absent = {name: negation(Has(name, ())) for name in names}
        formulas: list[Formula] = [
            all_of([formula, *(absent[name] for name in names if name not in members)])
            for (formula, _), members in zip(told, own, strict=True)
        ]
        formula = one_of(formulas)
        if ways(formula) < 2:
            return None
        is_strict = sum(others for _, others in told) != 1
        closed = Members({name: first[name] for name in names}, (), branches[0].child("additionalProperties"))
        common = Common(tuple((name, self._conj((first[name],))) for name in names), is_strict, closed)
        return common, Condition(formula, is_strict, site, "oneOf", is_kept=True)


    def _are_same(self, first: Site, branch: Site, name: str) -> bool:
        """Whether a member of a branch is to satisfy what the first one of its name is to satisfy."""
        return self._conj((first,)) == self._conj((branch.child("properties", name),))


def _is_plain(schema: Any) -> bool:
    """Whether a schema means the same wherever it stands."""
    if isinstance(schema, bool):
        return True
    return not any(key.startswith("$") or isinstance(value, (dict, list)) for key, value in schema.items())


def _is_open(site: Site) -> bool:
    return isinstance(site.schema, bool) or site.active.get("additionalProperties") is not False


def _declared(site: Site) -> dict[str, Any]:
    """The members that a branch admits, and their schemas."""
    return {name: schema for name, schema in (value_of(site, "properties") or {}).items() if schema is not False}


def _in_one_order(lists: list[dict[str, Any]]) -> list[str] | None:
    """All names, in an order in which each list has its own; None if there is no such order."""
    before: dict[str, set[str]] = {}
    for names in map(list, lists):
        for i, name in enumerate(names):
            before.setdefault(name, set()).update(names[max(i - 1, 0) : i])
    out: dict[str, None] = {}
    waiting = list(before)
    while waiting:
        left = []
        for name in waiting:
            if before[name] <= out.keys():
                out[name] = None
            else:
                left.append(name)
        if len(left) == len(waiting):
            return None
        waiting = left
    return list(out)
