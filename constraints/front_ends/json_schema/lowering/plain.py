"""Arrays and objects of which one schema says little: `items`, or `properties` with `required` and `additionalProperties`.

Most arrays and objects are such. Their nodes equal those of `Containers`, but are made without shapes, needs and counts.
What is malformed or admits nothing is left to `Containers`, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ....grammar.expression import FAIL, Event, Grammar, Node
from ....grammar.separated_lists import chain, loop
from ..algebra.claims import Claim, Conj
from ..algebra.numbering import Numbering
from ..documents.document import Site
from ..documents.keyword_table import APPLICATORS, ASSERTIONS, DESCRIPTIONS
from ..documents.keywords import is_anything
from ..strings.text import JsonText

_MEANINGFUL: Final = ASSERTIONS | APPLICATORS
_NOT_OF_OBJECTS: Final = _MEANINGFUL - {"type", "properties", "required", "additionalProperties"}
_NOT_OF_ARRAYS: Final = _MEANINGFUL - {"type", "items"}
_NOT_BESIDE_REFERENCES: Final = _MEANINGFUL - {"$ref"}
_SCHEMAS: Final = frozenset({dict, bool})
_NAMES: Final = frozenset({str})
_BARE: Final = DESCRIPTIONS | {"type"}  # keywords of a schema that says the type at the most


class PlainContainers:
    """Builds the texts of plain arrays and objects; `node_of(conj)` gives those of a value, FAIL when there is none.

    `in_any_order(values, required, other)` gives those of objects, unless their members have an order.
    """

    def __init__(
        self, grammar: Grammar, text: JsonText, node_of: Callable[[Conj], Node], conjoin: Callable[[Iterable[Claim]], Conj],
        numbering: Numbering, in_any_order: Callable[[dict[str, Node], frozenset[str], Node], Node] | None,
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._node_of, self._conjoin = grammar, text, node_of, conjoin
        self._numbering, self._in_any_order = numbering, in_any_order
        self._bare: dict[Any, Conj] = {}  # by type and document
        self._said: dict[Any, Conj] = {}  # by number
        self._targets: dict[Any, Conj] = {}  # by reference, document and scope

    def array(self, site: Site) -> Node | None:
        """The texts of an array; None where the schema says more than this builder knows."""
        active = site.active
        items = active.get("items", True)
        if not _NOT_OF_ARRAYS.isdisjoint(active) or not isinstance(items, (dict, bool)):
            return None
        item = self._part(site, items, "items")
        if item == FAIL:
            return None
        grammar, text, end = self._grammar, self._text, self._grammar.literal("]")
        _, following = loop(grammar, item, text.gap, text.comma, end)
        return grammar.seq(grammar.literal("["), text.gap, grammar.alt(end, following))

    def object(self, site: Site) -> Node | None:
        """The texts of an object; None where the schema says more than this builder knows."""
        active = site.active
        if not _NOT_OF_OBJECTS.isdisjoint(active):
            return None
        properties, required = active.get("properties", {}), active.get("required", ())
        additional = active.get("additionalProperties", True)
        if not (
            isinstance(properties, dict) and _SCHEMAS.issuperset(map(type, properties.values()))
            and isinstance(required, (list, tuple)) and _NAMES.issuperset(map(type, required))
            and all(map(properties.__contains__, required)) and isinstance(additional, (dict, bool))
        ):  # fmt: skip
            return None
        part, needed = self._part, frozenset(required)
        values = {name: part(site, schema, "properties", name) for name, schema in properties.items()}
        if any(values[name] == FAIL for name in needed):
            return None
        other = FAIL if additional is False else self._part(site, additional, "additionalProperties")
        if self._in_any_order is not None:
            return self._in_any_order(values, needed, other)
        member = self._text.member
        return self._object([(name, member(name, value)) for name, value in values.items()], needed, other)

    def _object(self, members: list[tuple[str, Node]], needed: frozenset[str], other: Node) -> Node:
        grammar, text, gap, comma = self._grammar, self._text, self._text.gap, self._text.comma
        if other == FAIL:
            opening, end = grammar.literal("{"), grammar.literal("}")
            later, following = end, FAIL
        else:
            opening, end = grammar.mark(b"{", Event.OBJECT_OPEN), grammar.mark(b"}", Event.OBJECT_CLOSE)
            key = text.other_name([name for name, _ in members])
            later, following = loop(grammar, grammar.seq(key, text.colon, other), gap, comma, end)
        links = [(member, name in needed) for name, member in reversed(members)]
        return grammar.seq(opening, gap, chain(grammar, links, gap, comma, end, later, following))

    def _part(self, site: Site, schema: Any, *tokens: str) -> Node:
        """The texts of an item or member, whose schema stands below `site`."""
        if is_anything(schema):
            return self._node_of(())
        known, key = self._place_of(site, schema)
        conj = None if known is None else known.get(key)
        if conj is None:
            child = site.child(*tokens)
            conj = self._conjoin((child,))
            if known is not None and (known is not self._targets or child not in conj):
                known[key] = conj
        return self._node_of(conj)

    def _place_of(self, site: Site, schema: dict[str, Any] | bool) -> tuple[dict[Any, Conj] | None, Any]:
        """The dictionary that keeps the conjunction of a schema, and the key there; None for schemas that are not kept."""
        if isinstance(schema, bool) or "$id" in schema or "id" in schema:
            return None, None
        if schema.keys() <= _BARE and (types := _type_names(schema.get("type"))):
            return self._bare, (types, site.document)
        reference = schema.get("$ref")
        if reference is None:
            is_known = self._numbering.is_lowered_once(schema)
            return (self._said, self._numbering.of(site, schema)) if is_known else (None, None)
        if not isinstance(reference, str) or not _NOT_BESIDE_REFERENCES.isdisjoint(schema):
            return None, None
        return self._targets, (reference, site.document, site.scope)


def _type_names(types: Any) -> tuple[str, ...]:
    """The names in a `type`; none for what is malformed."""
    if isinstance(types, str):
        return (types,)
    return tuple(types) if isinstance(types, list) and _NAMES.issuperset(map(type, types)) else ()
