"""Where in a schema the bytes of a JSON text belong: the schemas that speak of the value that each byte is a part of.

A state of the automaton knows what may follow, not what has come, and shares the parts that are written alike. So places are
found by reading the text beside it: the names and indexes on the way to a value lead from schema to schema as in a validator.
Of alternatives (`anyOf`, `oneOf`, `then`) those are followed that no type and no finished member has refuted so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import ConstraintError
from .algebra.atoms import type_atoms
from .algebra.parts import Parts, condition
from .documents.document import Site
from .documents.keywords import in_force
from .documents.policy import Policy
from .documents.reading import Members, items_of, members_of
from .documents.values import parse_json
from .lowering.lowering import Lowering

Where = str | int  # of a member or an item in its value
_SPACE, _AFTER_SCALAR = b" \t\r\n", b" \t\r\n,]}"
_ATOM_OF = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
_ATOMS = {ord(first): frozenset({atom}) for first, atom in _ATOM_OF.items()}  # by first byte; all others begin numbers
_NUMBER = frozenset({"integer", "fraction"})


@dataclass(slots=True)
class _Applied:
    """A schema that applies to a value, with those that it applies to the same value.

    groups: of each, one holds. cases: `if`, `then` and `else`. dependents: what holds where a member is present.
    """

    site: Site
    groups: list[list[_Applied]]
    cases: list[tuple[_Applied, _Applied | None, _Applied | None]]
    dependents: dict[str, _Applied]
    refuted: bool = False

    @property
    def has_choice(self) -> bool:
        """Whether finished members may tell alternatives apart."""
        return bool(self.cases) or any(len(group) > 1 or group[0].has_choice for group in self.groups)

    def refute(self, holds: Callable[[Site], bool]) -> bool:
        """Drop the alternatives of which some schema does not hold; whether this schema is refuted itself."""
        for group in self.groups:
            group[:] = [each for each in group if not each.refute(holds)] or group[:1]
        for when, _, _ in self.cases:
            when.refute(holds)
        self.refuted = self.refuted or not holds(self.site) or any(group[0].refuted for group in self.groups)
        return self.refuted

    def within(self, names: set[str] | None) -> Iterator[_Applied]:
        """All of these that may hold, given the names of members so far; None for those of the whole value, which are not known:
        then also what holds where others come, and conditions."""
        yield self
        inner = [each for group in self.groups for each in group]
        for when, then, otherwise in self.cases:
            holding = [] if when.refuted else [then] if names is not None else [when, then]
            inner += [each for each in (*holding, otherwise) if each]
        inner += [each for name, each in self.dependents.items() if names is None or name in names]
        for each in inner:
            yield from each.within(names)


@dataclass(slots=True)
class _Value:
    """A value that is being read. start: of its text."""

    paths: tuple[str, ...]
    applied: list[_Applied]
    start: int
    is_object: bool = False
    names: set[str] = field(default_factory=set)  # of the members so far
    where: Where | None = None  # of the member being read; None while an object waits for a name


class SchemaPlaces:
    """Follows one text, which is trusted to satisfy the schema."""

    def __init__(self, lowering: Lowering, policy: Policy, root: Site) -> None:
        self._lowering, self._parts, self._root = lowering, Parts(policy), root
        self._text = bytearray()
        self._open: list[_Value] = []  # objects and arrays, the outermost first
        self._scalar: _Value | None = None  # being read
        self._in_string = self._is_key = self._is_escaped = False
        self._key_start = 0
        self._members: dict[Site, Members] = {}

    def read(self, data: bytes) -> tuple[str, ...]:
        """The places of the values that the next bytes belong to, in their order, each once. Names of members, brackets and commas
        belong to the object or array around them."""
        return tuple(dict.fromkeys(path for byte in data for path in self._read(byte)))

    def _read(self, byte: int) -> tuple[str, ...]:
        self._text.append(byte)
        if self._in_string:
            return self._string_byte(byte)
        if self._scalar is not None:
            if byte not in _AFTER_SCALAR:
                return self._scalar.paths
            value, self._scalar = self._scalar, None
            self._close(value, len(self._text) - 1)
        around = self._open[-1] if self._open else None
        if around is None:
            return (self._root.path,) if byte in _SPACE else self._begin(byte)
        if byte in b"]}":
            self._open.pop()
            self._close(around, len(self._text))
        elif byte == ord(",") and not around.is_object:
            around.where = int(around.where or 0) + 1
        elif byte == ord('"') and around.where is None:
            self._in_string = self._is_key = True
            self._key_start = len(self._text) - 1
        elif byte not in b" \t\r\n,:":
            return self._begin(byte)
        return around.paths

    def _string_byte(self, byte: int) -> tuple[str, ...]:
        value = self._open[-1] if self._is_key or self._scalar is None else self._scalar
        if self._is_escaped or byte == ord("\\"):
            self._is_escaped = not self._is_escaped
        elif byte == ord('"'):
            self._in_string = False
            if self._is_key:
                self._is_key = False
                value.where = str(self._value_of(self._key_start, len(self._text)))
                value.names.add(value.where)
            else:
                self._scalar = None
                self._close(value, len(self._text))
        return value.paths

    def _begin(self, byte: int) -> tuple[str, ...]:
        """Open the value that begins with a byte."""
        atoms = _ATOMS.get(byte, _NUMBER)

        def may_be(site: Site) -> bool:
            return site.schema is not False and not atoms.isdisjoint(type_atoms(site))

        sites = [self._root]
        around_paths: tuple[str, ...] = ()
        if self._open:
            around = self._open[-1]
            self._refute(around, may_be)
            sites, around_paths = self._said_of_part(around, may_be), around.paths
        paths = tuple(dict.fromkeys(site.path for site in sites)) or around_paths
        value = _Value(paths, [self._applied(site) for site in sites], len(self._text) - 1)
        for each in value.applied:
            each.refute(may_be)
        if byte in b"{[":
            value.is_object = byte == ord("{")
            value.where = None if value.is_object else 0
            self._open.append(value)
        else:
            self._scalar, self._in_string = value, byte == ord('"')
        return paths

    def _close(self, value: _Value, end: int) -> None:
        if not self._open:
            return
        around = self._open[-1]
        if any(each.has_choice for each in around.applied):
            part = self._value_of(value.start, end)
            self._refute(around, lambda site: self._admits(site, part))
        if around.is_object:
            around.where = None

    def _value_of(self, start: int, end: int) -> Any:
        return parse_json(self._text[start:end].decode("utf-8", "replace"))

    # -- schemas ------------------------------------------------------------------------------------------------------

    def _refute(self, value: _Value, holds: Callable[[Site], bool]) -> None:
        """Drop the alternatives of a value whose schemas for the part being read do not hold."""
        where = value.where
        assert where is not None
        for each in value.applied:
            each.refute(lambda site: all(map(holds, self._own_parts(site, where))))

    def _admits(self, site: Site, value: Any) -> bool:
        try:
            return self._lowering.admits(site, value)
        except ConstraintError:  # too hard to tell: not refuted
            return True

    def _applied(self, site: Site) -> _Applied:
        parts, apply = self._parts, self._applied
        groups = [[apply(each)] for each in (*parts.subschemas(site, "allOf"), *parts.references(site))]
        groups += [options for key in ("anyOf", "oneOf") if (options := [apply(each) for each in parts.subschemas(site, key)])]
        cases = []
        if in_force(site, "if"):
            when, *branches = condition(site) or (site.child("if"), None, None)
            then, otherwise = (None if branch is None else apply(branch) for branch in branches)
            cases.append((apply(when), then, otherwise))
        dependents = {name: apply(each) for name, each in parts.dependencies(site) if isinstance(each, Site)}
        return _Applied(site, groups, cases, dependents)

    def _said_of_part(self, value: _Value, may_be: Callable[[Site], bool]) -> list[Site]:
        """The schemas of the member or item being read. may_be: whether what has begun may satisfy one, by its type."""
        where = value.where
        assert where is not None
        found = []
        for each in value.applied:
            sites = [inner.site for inner in each.within(value.names)]
            own = [part for site in sites for part in self._own_parts(site, where)]
            rest = [] if own else [part for site in sites for part in _unevaluated(site, where)]
            if not all(map(may_be, rest)):  # so it is evaluated by what is only known to hold later on
                sites = [inner.site for inner in each.within(None)]
                own = [part for site in sites for part in (*self._own_parts(site, where), *_contained(site, where))]
            found += own or rest
        return list(dict.fromkeys(found))

    def _own_parts(self, site: Site, where: Where) -> list[Site]:
        """What a schema itself says of a member or an item."""
        if isinstance(where, int):
            items = items_of(site)
            found = items.prefix[where] if where < len(items.prefix) else items.rest
            return [] if found is None else [found]
        members = self._members.get(site) or self._members.setdefault(site, members_of(site))
        tests = self._lowering.names_passed(where, [pattern for pattern, _ in members.patterns])
        named = [members.properties[where]] if where in members.properties else []
        named += [each for pattern, each in members.patterns if pattern in tests]
        return named or ([] if members.additional is None else [members.additional])


def _contained(site: Site, where: Where) -> list[Site]:
    return [site.child("contains")] if isinstance(where, int) and in_force(site, "contains") else []


def _unevaluated(site: Site, where: Where) -> list[Site]:
    keyword = "unevaluatedItems" if isinstance(where, int) else "unevaluatedProperties"
    return [site.child(keyword)] if in_force(site, keyword) else []
