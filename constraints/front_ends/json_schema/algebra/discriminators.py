"""Members that tell schemas apart: the `type` or `kind` that most alternatives of an object list values for.

Where none of many schemas may hold, the violations of each multiply with those of all others. Most often it is decided by one
member which of them can hold at all: so its values are told apart first, and only few schemas are left in each case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..documents.values import dump_json
from .branches import Branches
from .claims import Count, Either, Equals, Keys, Not, Term, lacks_key
from .exclusions import Cases
from .membership import Membership
from .shaping import Shapes

MAX_NAMES = 64  # members that are looked at


@dataclass(slots=True)
class _Discriminator:
    """One member, the values that each schema lists for it (None: it lists none), and which schemas require it."""

    name: str
    listed: list[dict[str, Any] | None] = field(default_factory=list)
    required: list[bool] = field(default_factory=list)

    def with_value(self, key: str) -> list[int]:
        """The schemas that may hold with this value."""
        return [i for i, values in enumerate(self.listed) if values is None or key in values]

    @property
    def values(self) -> dict[str, Any]:
        return {key: value for values in self.listed for key, value in (values or {}).items()}

    @property
    def most(self) -> int:
        """How many schemas are left at the most where the member is there."""
        return max((len(self.with_value(key)) for key in self.values), default=len(self.listed))


class Discriminators:
    """Finds the member by which to tell schemas apart."""

    def __init__(self, branches: Branches, shapes: Shapes, membership: Membership) -> None:
        self._branches, self._shapes, self._membership = branches, shapes, membership

    def cases(self, schemas: Sequence[list[Term]], decided: frozenset[str]) -> Cases | None:
        """A member that is not decided yet, and cases of it that cover all values; None where no member makes the schemas fewer.

        A schema is given by its pending terms (see branches.py).
        """
        names = (name for name in self._names(schemas) if name not in decided)
        tags = [tag for name in names if (tag := self._tag(name, schemas)) is not None]
        best = min(tags, key=lambda tag: tag.most, default=None)
        return None if best is None or best.most >= len(schemas) else (best.name, list(_split(best)))

    def _names(self, schemas: Sequence[list[Term]]) -> list[str]:
        """Names of members that several schemas declare, in order."""
        count: dict[str, int] = {}
        for terms in schemas:
            declared = (self._shapes.object(term).declared for term in terms if "object" in self._shapes.atoms(term))
            for name in dict.fromkeys(name for names in declared for name in names):
                count[name] = count.get(name, 0) + 1
        return [name for name, times in count.items() if times > 1][:MAX_NAMES]

    def _tag(self, name: str, schemas: Sequence[list[Term]]) -> _Discriminator | None:
        tag = _Discriminator(name)
        for terms in schemas:
            tag.listed.append(self._listed(name, terms))
            tag.required.append(all(name in self._shapes.object(term).required for term in terms))
        return tag if sum(values is not None for values in tag.listed) > 1 else None

    def _listed(self, name: str, terms: list[Term]) -> dict[str, Any] | None:
        """The values of a member where one of the terms holds; None where these are not listed, or not all are objects."""
        out: dict[str, Any] = {}
        for term in terms:
            if self._shapes.atoms(term) != {"object"}:
                return None
            shape = self._shapes.object(term)
            tests = shape.tests
            passed = self._membership.names().passed(name, tests) if tests else frozenset()
            for each in self._branches.pending_terms(shape.value(name, passed)):
                values = self._shapes.values(each)
                if values is None:
                    return None
                out |= values
        return out


def _split(tag: _Discriminator) -> Iterator[tuple[Term, list[int]]]:
    """A case for each set of schemas that share values, and those of other values and of none."""
    where = Keys(frozenset([tag.name]))
    values = tag.values
    alike: dict[tuple[int, ...], list[Equals]] = {}
    for key, value in values.items():
        alike.setdefault(tuple(tag.with_value(key)), []).append(Equals(key, value, dump_json(value)))
    for schemas, equal in alike.items():
        yield (Count(where, (Either(tuple((each,) for each in equal)),), 1, None),), list(schemas)
    known = Either(tuple((each,) for equal in alike.values() for each in equal))
    untold = [i for i, listed in enumerate(tag.listed) if listed is None]
    without = [i for i, listed in enumerate(tag.listed) if listed is None or not tag.required[i]]
    if without == untold:
        yield (Count(where, (known,), 0, 0, strict=False),), untold
    else:
        yield (lacks_key(tag.name, strict=False),), without
        yield (Count(where, (Not(known),), 1, None),), untold
