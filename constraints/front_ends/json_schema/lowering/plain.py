"""Schemas that say little: one or several types, bounds of numbers, lengths of strings, listed scalars, `items` of an array and how
many there are, or `properties` of an object with `required` and `additionalProperties`. What is said of other types than a
schema's own does not matter.

Most schemas are such. Their nodes equal those of the long way, but are made in one walk: without alternatives and shapes, and,
where they stand inside of each other and refer to no others, without sites and conjunctions. What is malformed or admits nothing
is left to the long way, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from ....base.errors import ConstraintLimit
from ....grammar.expression import FAIL, Event, Grammar, Node
from ....grammar.separated_lists import chain, loop
from ....grammar.source import Limits
from ...numbers.numbers import number_node
from ..algebra.claims import Claim, Conj
from ..algebra.numbering import Numbering
from ..documents.document import Document, Scope, Site
from ..documents.keyword_table import APPLICATORS, ASSERTIONS, DESCRIPTIONS, concerning
from ..documents.keywords import TYPES, is_anything
from ..documents.paths import escape_token
from ..documents.reading import count_of
from ..documents.values import atom_of
from ..strings.string_shape import StringShape
from ..strings.strings import LANGUAGES, Strings
from ..strings.text import JsonText

MAX_INLINE: Final = 24  # levels of nested values lowered in place
_BETWEEN_LOOKS: Final = 1023  # parts without parts of their own, a few milliseconds
_MAX_LISTED_INTEGER: Final = 10**15  # of listed integers that are written without ado
_NOT_BESIDE_REFERENCES: Final = (ASSERTIONS | APPLICATORS) - {"$ref"}
_NAMES: Final = frozenset({str})
_BARE: Final = DESCRIPTIONS | {"type"}  # keywords of a schema that says the type at the most

# What a schema says besides its type, as bits
_LISTS: Final = 1
_MEMBERS: Final = 2
_ITEMS: Final = 4
_LENGTH: Final = 8
_LANGUAGE: Final = 16
_BOUNDS: Final = 32
_MORE_OF_NUMBERS: Final = 64
_MORE_OF_ARRAYS: Final = 128
_MORE_OF_OBJECTS: Final = 256
_MORE: Final = 512
_SAID_BY: Final[dict[str, int]] = {
    **dict.fromkeys(ASSERTIONS | APPLICATORS, _MORE),
    **dict.fromkeys(concerning("number"), _MORE_OF_NUMBERS),
    **dict.fromkeys(concerning("array"), _MORE_OF_ARRAYS),
    **dict.fromkeys(concerning("object"), _MORE_OF_OBJECTS),
    "type": 0,
    **dict.fromkeys(("enum", "const"), _LISTS),
    **dict.fromkeys(("properties", "required", "additionalProperties"), _MEMBERS),
    **dict.fromkeys(("items", "minItems", "maxItems"), _ITEMS),
    "additionalItems": 0,  # which says nothing but beside a list of `items`
    **dict.fromkeys(("minLength", "maxLength"), _LENGTH),
    **dict.fromkeys(LANGUAGES, _LANGUAGE),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _BOUNDS),
}
_UNKNOWN_OF: Final = {  # by type: what is not known of its values
    "null": _LISTS | _MORE, "boolean": _LISTS | _MORE, "string": _LISTS | _MORE,
    **dict.fromkeys(("integer", "number"), _LISTS | _MORE | _MORE_OF_NUMBERS),
    "array": _LISTS | _MORE | _MORE_OF_ARRAYS, "object": _LISTS | _MORE | _MORE_OF_OBJECTS,
}  # fmt: skip
_Place = tuple[str, Document, Scope]  # where a schema stands: its path, its document and how that was come to


class PlainSchemas:
    """Builds the texts of plain schemas; `node_of(conj)` gives those of a value, FAIL when there is none, and `typed(kind)` those
    of all values of a type.

    `in_any_order(values, required, other)` gives those of objects, unless their members have an order. `check(path)` raises an
    error when what lowering may take is used up.

    levels: of values inside each other that are being lowered in place.
    """

    def __init__(
        self, grammar: Grammar, limits: Limits, text: JsonText, strings: Strings, node_of: Callable[[Conj], Node],
        typed: Callable[[str], Node], conjoin: Callable[[Iterable[Claim]], Conj], numbering: Numbering,
        in_any_order: Callable[[dict[str, Node], frozenset[str], Node], Node] | None, check: Callable[[str], None],
        *, tells_all: bool,
    ) -> None:  # fmt: skip
        self._grammar, self._limits, self._text, self._strings = grammar, limits, text, strings
        self._node_of, self._typed, self._conjoin, self._check = node_of, typed, conjoin, check
        self._numbering, self._in_any_order, self._tells_all = numbering, in_any_order, tells_all
        self.levels = 0
        self._num_scalars = 0
        self._of_type: dict[str, Node] = {}  # all values of a type
        self._bare: dict[Any, Conj] = {}  # by type and document
        self._said: dict[Any, Conj] = {}  # by number
        self._targets: dict[Any, Conj] = {}  # by reference, document and scope

    def array(self, site: Site) -> Node | None:
        """The texts of an array; None where the schema says more than this builder knows."""
        return self._container(site, "array")

    def object(self, site: Site) -> Node | None:
        """The texts of an object; None where the schema says more than this builder knows."""
        return self._container(site, "object")

    def _container(self, site: Site, kind: str) -> Node | None:
        said = _said(site.active)
        if said & _UNKNOWN_OF[kind]:
            return None
        place = site.path, site.document, site.scope
        return self._object(site.active, place) if kind == "object" else self._array(site.active, place)

    def scalar(self, site: Site) -> Node | None:
        """The texts of a schema whose values are scalars, or of one that says types at the most; None for all others."""
        active = site.active
        if not isinstance(site.schema, dict):
            return None
        kind, said = active.get("type"), _said(active)
        return self._string(site) if _has_language(kind, said) else self._scalar(active, kind, said)

    def of_types(self, site: Site, containers: Callable[[str], Node | None]) -> Node | None:
        """The texts of a schema of several types; None where it says more than this builder knows. `containers(kind)` gives those
        of its arrays and objects."""
        active = site.active
        kind, said = active.get("type"), _said(active)
        if not isinstance(site.schema, dict) or isinstance(kind, str) or said & (_LISTS | _MORE):
            return None
        nodes: list[Node] = []
        for each in _in_order(tuple(TYPES) if kind is None else tuple(kind)):
            if _has_language(each, said):
                node = self._string(site)
            elif _is_container(each, said):
                node = containers(each)
            else:
                node = self._of_type_said(active, each, said)
            if node is None or node == FAIL:
                return None
            nodes.append(node)
        return self._grammar.alt(*nodes)

    # -- scalars --------------------------------------------------------------------------------------------------------

    def _scalar(self, active: dict[str, Any], kind: Any, said: int) -> Node | None:
        if said == 0:
            return self._bare_node(kind)
        if said & (_LISTS | _MORE):
            return self._listed(active, kind) if said == _LISTS else None
        if isinstance(kind, str):
            return self._of_type_said(active, kind, said)
        kinds = _in_order(tuple(TYPES) if kind is None else tuple(kind))
        nodes: list[Node] = []
        for each in kinds:
            node = None if _is_container(each, said) else self._of_type_said(active, each, said)
            if node is None or node == FAIL:
                return None
            nodes.append(node)
        return self._grammar.alt(*nodes)

    def _of_type_said(self, active: dict[str, Any], kind: str, said: int) -> Node | None:
        """The texts of the values of a type, of which keywords say something, perhaps of other types."""
        if said & _UNKNOWN_OF[kind]:
            return None
        if kind == "string":
            if said & _LANGUAGE:
                return None
            return self._of_length(active) if said & _LENGTH else self._bare_node(kind)
        if kind == "integer" or kind == "number":
            return self._between(active, kind) if said & _BOUNDS else self._bare_node(kind)
        return self._bare_node(kind)

    def _bare_node(self, kind: Any) -> Node:
        """All values of a type, or of some, or of all."""
        if not isinstance(kind, str):
            kinds = _in_order(tuple(TYPES) if kind is None else tuple(kind))
            return self._grammar.alt(*[self._bare_node(each) for each in kinds])
        known = self._of_type.get(kind)
        if known is None:
            known = self._of_type[kind] = self._new_bare_node(kind)
        return known

    def _new_bare_node(self, kind: str) -> Node:
        if kind == "string":
            return self._text.string(self._strings.text.any_body)
        if kind == "integer" or kind == "number":
            return number_node(self._grammar, integer=kind == "integer", digits=self._limits.digits)
        return self._typed(kind)

    def _listed(self, active: dict[str, Any], kind: Any) -> Node | None:
        """The texts of listed scalars that are of the type; None where other values are listed."""
        values = active.get("enum")
        if values is None:
            values = [active["const"]]
        elif "const" in active:
            return None
        if not values or len(values) > self._limits.enum_values:
            return None
        kinds = [kind] if isinstance(kind, str) else kind
        for value in values:
            atom = atom_of(value)
            is_right = kinds is None or atom in kinds or (atom == "integer" and "number" in kinds)
            if not is_right or atom in ("fraction", "array", "object") or (atom == "integer" and not _is_short(value)):
                return None
        return self._text.scalars(values, self._limits.digits)

    def _of_length(self, active: dict[str, Any]) -> Node | None:
        """The texts of the strings of some length."""
        low, high = active.get("minLength", 0), active.get("maxLength")
        most = self._limits.repetition
        if not (isinstance(low, int) and 0 <= low <= most) or not (high is None or (isinstance(high, int) and low <= high <= most)):
            return None
        return self._text.string(self._grammar.repeat(self._strings.text.any_character, low, high))

    def _string(self, site: Site) -> Node | None:
        """The texts of the strings of some languages, and perhaps of some length."""
        low, high = count_of(site, "minLength") or 0, count_of(site, "maxLength")
        if low > self._limits.repetition:
            return None
        languages = tuple([(keyword, site) for keyword in LANGUAGES if site.active.get(keyword) is not None])
        return self._text.string(self._strings.body(StringShape(low, high, languages)))

    def _between(self, active: dict[str, Any], kind: str) -> Node | None:
        """The texts of the numbers between some bounds."""
        low, above = active.get("minimum"), active.get("exclusiveMinimum")
        high, below = active.get("maximum"), active.get("exclusiveMaximum")
        if isinstance(above, bool) or isinstance(below, bool):  # as in draft 4
            return None
        excludes_low = above is not None and (low is None or above >= low)
        excludes_high = below is not None and (high is None or below <= high)
        low, high = above if excludes_low else low, below if excludes_high else high
        if low is not None and high is not None and (low > high or (low == high and (excludes_low or excludes_high))):
            return None
        try:
            return number_node(
                self._grammar, integer=kind == "integer", low=None if low is None else Decimal(low),
                high=None if high is None else Decimal(high), exclusive_low=excludes_low, exclusive_high=excludes_high,
                digits=self._limits.digits,
            )  # fmt: skip
        except ConstraintLimit:
            return None

    # -- arrays and objects ---------------------------------------------------------------------------------------------

    def _array(self, active: dict[str, Any], place: _Place) -> Node | None:
        items = active.get("items", True)
        if not isinstance(items, (dict, bool)):
            return None
        item = self._part(items, place, "items", None)
        if item == FAIL:
            return None
        if "minItems" in active or "maxItems" in active:
            return self._counted(item, active.get("minItems", 0), active.get("maxItems"))
        grammar, text, end = self._grammar, self._text, self._grammar.literal("]")
        _, following = loop(grammar, item, text.gap, text.comma, end)
        return grammar.seq(grammar.literal("["), text.gap, grammar.alt(end, following))

    def _counted(self, item: Node, low: Any, high: Any) -> Node | None:
        """The texts of arrays of some number of items; None for one that is large, or 0 at the most."""
        grammar, text, end, most = self._grammar, self._text, self._grammar.literal("]"), self._limits.repetition
        if not (isinstance(low, int) and low <= most and (high is None or (isinstance(high, int) and max(low, 1) <= high <= most))):
            return None
        further = [(grammar.seq(text.comma, grammar.seq(item, text.gap)), 0, None)]
        whole = grammar.bag(further, low, high)
        behind = grammar.bag(further, max(low - 1, 0), None if high is None else high - 1)
        first = grammar.seq(item, text.gap, grammar.seq(behind, end))
        grammar.seq(whole, end)  # is not needed, but the long way makes it: so nodes have equal numbers
        return grammar.seq(grammar.literal("["), text.gap, grammar.alt(end if low == 0 else FAIL, first))

    def _object(self, active: dict[str, Any], place: _Place) -> Node | None:
        properties, required = active.get("properties"), active.get("required", ())
        if properties is None:
            properties = {}
        for name in required:
            if name not in properties:
                return None
        values: dict[str, Node] = {}
        for name, schema in properties.items():
            values[name] = self._part(schema, place, "properties", name)
        for name in required:
            if values[name] == FAIL:
                return None
        additional, other = active.get("additionalProperties", True), FAIL
        if additional is not False:
            other = self._part(additional, place, "additionalProperties", None)
        if self._in_any_order is not None:
            return self._in_any_order(values, frozenset(required), other)
        return self._members(values, required, other)

    def _members(self, values: dict[str, Node], required: Iterable[str], other: Node) -> Node:
        """The texts of objects whose members have an order."""
        grammar, text, gap, comma = self._grammar, self._text, self._text.gap, self._text.comma
        needed = set(required)
        links: list[tuple[Node, bool]] = []
        for name, value in values.items():
            links.append((text.member(name, value), name in needed))
        links.reverse()
        if other == FAIL:
            opening, end = grammar.literal("{"), grammar.literal("}")
            later, following = end, FAIL
        else:
            opening, end = grammar.mark(b"{", Event.OBJECT_OPEN), grammar.mark(b"}", Event.OBJECT_CLOSE)
            key = text.other_name(values)
            later, following = loop(grammar, grammar.seq(key, text.colon, other), gap, comma, end)
        return grammar.seq(opening, gap, chain(grammar, links, gap, comma, end, later, following))

    # -- parts ----------------------------------------------------------------------------------------------------------

    def _part(self, schema: Any, place: _Place, keyword: str, name: str | None) -> Node:
        """The texts of an item or member, whose schema stands under a keyword, and perhaps a name, of that at `place`."""
        if is_anything(schema):
            return self._node_of(())
        path, document, scope = place
        has_address = not isinstance(schema, dict) or "$id" in schema or "id" in schema
        if not has_address and "$ref" not in schema:
            node = self._inline(schema, place, keyword, name)
            if node is not None and node != FAIL:
                return node
        known, key = (None, None) if has_address else self._place_of(schema, document, scope)
        conj = None if known is None else known.get(key)
        if conj is None:
            child = document.library.site(document, schema, _below(path, keyword, name), scope)
            conj = self._conjoin((child,))
            if known is not None and (known is not self._targets or child not in conj):
                known[key] = conj
        return self._node_of(conj)

    def _inline(self, schema: dict[str, Any], place: _Place, keyword: str, name: str | None) -> Node | None:
        """The texts of a part that is plain, made without a site; None of one that is not."""
        path, document, scope = place
        if self.levels >= MAX_INLINE or self._tells_all or document.library.dropped:
            return None
        active = document.library.inspection.alone(schema, document.dialect)
        if active is None:
            return None
        kind, said = active.get("type"), _said(active)
        if said & (_MORE | _LANGUAGE) or (isinstance(kind, str) and (kind == "array" or kind == "object")):
            below = _below(path, keyword, name)
            node = self._inside(schema, active, kind, said, (below, document, scope))
        else:
            self._num_scalars += 1
            if not self._num_scalars & _BETWEEN_LOOKS:
                self._check(path)
            node = self._scalar(active, kind, said)
            below = ""
        if node is not None and node != FAIL and node not in self._grammar.labels:
            self._grammar.label(node, below or _below(path, keyword, name))
        return node

    def _inside(self, schema: dict[str, Any], active: dict[str, Any], kind: Any, said: int, place: _Place) -> Node | None:
        """The texts of a schema inside of another one, at a place; None where it says more than this builder knows."""
        if kind is None and said == _MORE:
            return self._by_type(active, place)
        if isinstance(kind, str) and (kind == "array" or kind == "object"):
            return self._container_inside(active, kind, said, place)
        if not _has_language(kind, said):
            return self._scalar(active, kind, said)
        path, document, scope = place
        return self._string(document.library.site(document, schema, path, scope)) if self._strings.tells_nothing(active) else None

    def _by_type(self, active: dict[str, Any], place: _Place) -> Node | None:
        """The texts of one of several schemas, each of another type; None of all others."""
        meaningful = [keyword for keyword in active if _SAID_BY.get(keyword)]
        if meaningful not in (["anyOf"], ["oneOf"]) or len(active[meaningful[0]]) < 2:
            return None
        path, document, scope = place
        options: list[tuple[dict[str, Any], dict[str, Any], str, int]] = []
        kinds: set[str] = set()
        for schema in active[meaningful[0]]:
            if not isinstance(schema, dict) or "$id" in schema or "id" in schema:
                return None
            own = document.library.inspection.alone(schema, document.dialect)
            kind = None if own is None else own.get("type")
            if own is None or not isinstance(kind, str):
                return None
            said = _said(own)
            kinds.add("number" if kind == "integer" else kind)
            if said & _MORE:
                return None
            options.append((schema, own, kind, said))
        if len(kinds) < len(options):
            return None
        nodes: list[Node] = []
        for i, (schema, own, kind, said) in enumerate(options):
            node = self._inside(schema, own, kind, said, (f"{path}/{meaningful[0]}/{i}", document, scope))
            if node is None or node == FAIL:
                return None
            nodes.append(node)
        return self._grammar.alt(*nodes)

    def _container_inside(self, active: dict[str, Any], kind: str, said: int, place: _Place) -> Node | None:
        """The texts of an array or object that stands inside of another one; None where it says more than this builder knows."""
        if said & _UNKNOWN_OF[kind] or (kind == "object" and self._in_any_order is not None):
            return None
        self._check(place[0])
        self.levels += 1
        node = self._object(active, place) if kind == "object" else self._array(active, place)
        self.levels -= 1
        return node

    def _place_of(self, schema: dict[str, Any], document: Document, scope: Scope) -> tuple[dict[Any, Conj] | None, Any]:
        """The dictionary that keeps the conjunction of a schema, and the key there; None for schemas that are not kept."""
        reference = schema.get("$ref")
        if reference is not None:
            if not isinstance(reference, str) or not _NOT_BESIDE_REFERENCES.isdisjoint(schema):
                return None, None
            return self._targets, (reference, document, scope)
        if schema.keys() <= _BARE and (types := _type_names(schema.get("type"))):
            return self._bare, (types, document)
        is_known = self._numbering.is_lowered_once(schema)
        return (self._said, self._numbering.of(schema, document, scope)) if is_known else (None, None)


def _said(active: dict[str, Any]) -> int:
    """What keywords say besides the type."""
    said = 0
    for keyword in active:
        said |= _SAID_BY.get(keyword, 0)
    return said


def _has_language(kind: Any, said: int) -> bool:
    """Whether the strings of a type are those of some languages."""
    return isinstance(kind, str) and kind == "string" and said & (_LANGUAGE | _LISTS | _MORE) == _LANGUAGE


def _is_container(kind: str, said: int) -> bool:
    """Whether something is said of the arrays or objects of a type."""
    if kind == "array":
        return said & (_ITEMS | _MORE_OF_ARRAYS) != 0
    return kind == "object" and said & (_MEMBERS | _MORE_OF_OBJECTS) != 0


def _is_short(value: Any) -> bool:
    return isinstance(value, int) and -_MAX_LISTED_INTEGER < value < _MAX_LISTED_INTEGER


def _below(path: str, keyword: str, name: str | None) -> str:
    return f"{path}/{keyword}" if name is None else f"{path}/{keyword}/{escape_token(name)}"


def _type_names(types: Any) -> tuple[str, ...]:
    """The names in a `type`; none for what is malformed."""
    if isinstance(types, str):
        return (types,)
    return tuple(types) if isinstance(types, list) and _NAMES.issuperset(map(type, types)) else ()


def _in_order(names: tuple[str, ...]) -> list[str]:
    """Names of types in the order in which their values are written; integers are numbers, too."""
    kinds = [name for name in ("null", "boolean", "number", "integer", "string", "array", "object") if name in names]
    return [name for name in kinds if name != "integer" or "number" not in names]
