"""JSON Schema as a constraint: drafts 4 to 2020-12, or the schema of a Python type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache, partial
from math import inf
from time import monotonic
from typing import Any

from ...base.errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ...base.spares import Spares
from ...grammar.expression import FAIL, Grammar, Node
from ...grammar.source import Limits
from ...grammar.stopwatch import accounted, held_for_a_while, work_on
from ...runtime.constraint import Constraint
from ...runtime.front_end import FrontEnd
from ...runtime.values import JsonValues, Values
from ..numbers.numbers import number_node
from .clashes import clash
from .documents.document import Library, Site
from .documents.keyword_table import KEYWORDS
from .documents.nesting import depth_of
from .documents.policy import Policy, too_deep
from .documents.relaxation import NOTHING_DROPPED, Relaxation
from .documents.values import dump_json, parse_json, plain_value
from .lowering.lowering import Lowering
from .places import SchemaPlaces
from .strings.any_spelling import AnySpelling
from .strings.text import JsonText

EXPLAINING_SECONDS = 1.0  # for finding out which keywords leave no value
WHITESPACES = ("auto", "compact", "spaced", "flexible")  # all others are patterns
_OF_SPACE = re.compile(r"(?:[ \t\n\r\[\](){}?*+|,0-9]|\\[stnr ]|\(\?:)*")  # patterns of nothing but white space
FORMATS_OPTIONS = {"assert": True, "annotation": False, "annotate": False}
_OPTIONS = {
    "property_order": ("declared", "any"), "escapes": ("json", "any"), "formats": tuple(FORMATS_OPTIONS),
    "on_unsupported": ("refuse", "relax"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JsonSchema(FrontEnd):
    """JSON texts whose value satisfies a schema.

    schema: a schema as `dict` or `bool`, the JSON text of one, or a Python type (a Pydantic model, a dataclass, `list[int]`, ...).
        It is kept as text: an ASCII text as it is, so equal texts are equal constraints, and so are equal values.
    whitespace: "compact" (none), "spaced" (one space behind each colon and comma), "flexible" (up to 20 characters wherever JSON
        allows it, but none behind the value), a regular expression for what stands between two tokens, or "auto": what costs a
        model least of its answers by measurement, which is "flexible" with nothing before the value.
    property_order: "declared": members in the order of `properties`, then all others in any order; "any": all in any order.
    escapes: "json": each string in its one canonical spelling; "any": with every escape that JSON has. Patterns, lengths, formats
        and names are about the string that is meant. Items of unique arrays and names that `properties` does not list are
        remembered as they are written, and keep the canonical spelling.
    formats: "assert", or "annotation" to ignore `format`.
    resources: other documents that `$ref` may name, by address; each may be of another draft. The meta-schemas of the drafts
        are known. Nothing is fetched.
    draft: "4", "6", "7", "2019-09" or "2020-12"; None reads `$schema`, which may name a meta-schema in `resources`, else 2020-12.
    on_unsupported: "refuse" raises `UnsupportedKeyword` for what is not enforced exactly; "relax" leaves it out, with whatever that
        would make narrower, and tells each in `Grammar.residue`: every value that satisfies the schema stays.

    Raises `ConstraintError` (and its subclasses), here for what is no JSON, in `lower` for the rest.
    """

    schema: Any
    whitespace: str = "auto"
    property_order: str = "declared"
    escapes: str = "json"
    formats: str = "assert"
    resources: Any = field(default_factory=dict)
    draft: str | int | None = None
    on_unsupported: str = "refuse"
    _value: Any = field(init=False, repr=False, compare=False)  # of the schema, as `parse_json` returns it

    def __post_init__(self) -> None:
        try:
            _check_options(self.whitespace, self.property_order, self.escapes, self.formats, self.on_unsupported)
        except TypeError:  # one that cannot be hashed
            _check_options.__wrapped__(self.whitespace, self.property_order, self.escapes, self.formats, self.on_unsupported)
        object.__setattr__(self, "_value", _value(self.schema))
        if not (isinstance(self.schema, str) and self.schema.isascii()):  # else all of it has a UTF-8 form
            object.__setattr__(self, "schema", _dumped(self._value))
        object.__setattr__(self, "resources", _texts_of(self.resources) if self.resources else ())

    def __hash__(self) -> int:
        """That of the text, which is computed once: sources that differ mostly differ in it."""
        return hash(self.schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as text, however deep the value is."""
        return JsonSchema, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    @property
    def is_plain_json(self) -> bool:
        """Whether all texts are JSON, with white space as JSON has it."""
        return self.whitespace in WHITESPACES

    @property
    def has_only_space(self) -> bool:
        """Whether nothing but white space stands between tokens, however much of it."""
        return self.is_plain_json or _OF_SPACE.fullmatch(self.whitespace) is not None

    def new_grammar(self, limits: Limits) -> Grammar:
        """A grammar that begins with what most schemas need: the characters of strings, numbers without bounds, any
        value."""
        whitespace = self.whitespace if self.whitespace in WHITESPACES else "compact"
        return _grammars(limits, whitespace, self.property_order == "declared")()

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The texts as a node. Raises `ConstraintError`, `UnsupportedKeyword` or `ConstraintLimit`, with the path in the schema."""
        try:
            with accounted(limits):
                return self._lower(grammar, limits)
        except RecursionError:
            raise too_deep() from None

    def root(self, limits: Limits) -> Site:
        """The schema as a whole, with its resources in reach. Raises `ConstraintError` for an unknown draft."""
        return self._root(limits, _relaxation(self, limits) if self.on_unsupported == "relax" else NOTHING_DROPPED)

    def _root(self, limits: Limits, relaxation: Relaxation) -> Site:
        library = Library(dict(self.resources), partial(self._parsed, limits), relaxation.dropped)
        return library.root(self.schema, self.draft)

    def _parsed(self, limits: Limits, text: str) -> Any:
        """The JSON value of a text, which is known already of the schema itself."""
        if len(text) > limits.source_bytes:
            raise ConstraintLimit(f"{len(text)} characters", limit="source_bytes", value=limits.source_bytes)
        schema = self._value if text is self.schema else parse_json(text)
        if (depth := depth_of(schema)) > limits.nesting:
            raise ConstraintLimit(f"{depth} levels of nesting", limit="nesting", value=limits.nesting)
        return schema

    def _text(self, grammar: Grammar, limits: Limits) -> JsonText:
        """How values are written."""
        return (AnySpelling if self.escapes == "any" else JsonText)(grammar, self.whitespace, limits)

    def _lower(self, grammar: Grammar, limits: Limits) -> Node:
        end = monotonic() + limits.seconds
        policy = self.policy(grammar, limits.seconds)  # its time begins before the schema is read
        work_on("#")
        root = self.root(limits)
        lowering = self._lowering(grammar, limits, policy)
        node = lowering.whole(root)
        if node == FAIL:
            why = "; ".join(filter(None, [lowering.cause, self._clash(limits, min(end, monotonic() + EXPLAINING_SECONDS))]))
            reason = "no value satisfies the schema" + (f": {why}" if why else "")
            raise ConstraintError(reason, path=root.path, instead="a schema with a value")
        return node

    def _clash(self, limits: Limits, end: float) -> str | None:
        """Which keywords leave no value; None where that is not found out by `end`."""
        try:
            return clash(self._value, partial(self._has_no_value, limits=limits, end=end))
        except TimeoutError:
            return None

    def _has_no_value(self, schema: Any, limits: Limits, end: float) -> bool:
        """Whether another schema with these options is known to have no value. Raises TimeoutError after `end`."""
        if monotonic() > end:
            raise TimeoutError
        try:
            other = replace(self, schema=schema, resources=dict(self.resources))
            grammar = other.new_grammar(limits)
            lowering = other._lowering(grammar, limits, Policy(grammar, False, end - monotonic()))
            with held_for_a_while():
                return lowering.whole(other._root(limits, NOTHING_DROPPED)) == FAIL
        except (ConstraintError, RecursionError):
            return False

    def policy(self, grammar: Grammar, seconds: float) -> Policy:
        """How keywords that are not enforced are met. seconds: processor time that lowering may take."""
        return Policy(grammar, self.on_unsupported == "relax", seconds)

    def _lowering(self, grammar: Grammar, limits: Limits, policy: Policy) -> Lowering:
        grammar.search_share = 0.05  # the sum of the parts is close, and a search is dear where strings are free
        return Lowering(
            grammar, limits, policy, self._text(grammar, limits),
            assert_formats=FORMATS_OPTIONS[self.formats], is_ordered=self.property_order == "declared",
        )  # fmt: skip

    def places(self, constraint: Constraint) -> SchemaPlaces | None:
        """Follows a text through the schema; None where what stands between its tokens is not white space."""
        return self.places_from(self.root(constraint.limits), constraint.limits) if self.has_only_space else None

    def places_from(self, root: Site, limits: Limits) -> SchemaPlaces:
        """Follows the text of a value through a part of the schema. root: that part."""
        grammar = self.new_grammar(limits)
        policy = self.policy(grammar, inf)
        return SchemaPlaces(self._lowering(grammar, limits, policy), policy, root)

    def values(self, constraint: Constraint) -> Values | None:
        """Follows a JSON text; None where what stands between its tokens is not white space."""
        return JsonValues() if self.has_only_space else None

    def relaxed(self, limits: Limits) -> Relaxation:
        """What has to be left out. It is found by lowering the schema until nothing more is refused."""
        found = Relaxation()
        refused = self._refused(limits, found)
        while refused and found.add(refused, self._root(limits, found)):
            refused = self._refused(limits, found)
        return found

    def _refused(self, limits: Limits, relaxation: Relaxation) -> list[UnsupportedKeyword]:
        """What is refused of the schema without what was found to be left out so far."""
        grammar = self.new_grammar(limits)
        policy = Policy(grammar, True, limits.seconds, refused := list[UnsupportedKeyword]())
        try:
            with held_for_a_while():
                self._lowering(grammar, limits, policy).whole(self._root(limits, relaxation))
        except UnsupportedKeyword as error:
            if error.path is None or error.keyword not in KEYWORDS:
                raise
            refused.append(error)
        except ConstraintError:  # if nothing is refused: told where it is lowered for good
            pass
        return refused


@lru_cache(maxsize=64)
def _relaxation(schema: JsonSchema, limits: Limits) -> Relaxation:
    return schema.relaxed(limits)


@cache
def _grammars(limits: Limits, whitespace: str, is_ordered: bool) -> Callable[[], Grammar]:
    """Gives new grammars that hold what most schemas need."""
    grammar = Grammar()
    text = JsonText(grammar, whitespace, limits)
    number_node(grammar, integer=True, digits=limits.digits)
    Lowering(grammar, limits, Policy(grammar, tells_all=False), text, assert_formats=True, is_ordered=is_ordered).node(())
    return partial(Spares(Grammar.after).take, grammar)


@lru_cache(maxsize=64)
def _check_options(whitespace: Any, property_order: Any, escapes: Any, formats: Any, on_unsupported: Any) -> None:
    """Raises `ConstraintError` for an option that has not one of its values. What has is looked at once."""
    for (option, known), value in zip(_OPTIONS.items(), (property_order, escapes, formats, on_unsupported), strict=True):
        if value not in known:
            raise _unknown_option(option, value, known)
    if not isinstance(whitespace, str):
        names = ", ".join(map(repr, WHITESPACES))
        raise ConstraintError(f"whitespace is {names} or a regular expression", keyword="whitespace")
    if whitespace.isalpha() and whitespace not in WHITESPACES:  # as a pattern that would be letters between tokens
        raise _unknown_option("whitespace", whitespace, WHITESPACES)


def _unknown_option(option: str, value: object, known: tuple[str, ...]) -> ConstraintError:
    return ConstraintError(f"{value!r} is not one of its values", keyword=option, instead=" or ".join(map(repr, known)))


def _texts_of(resources: Any) -> tuple[tuple[str, str], ...]:
    """Documents by address, sorted, as texts."""
    items = resources.items() if isinstance(resources, Mapping) else resources
    return tuple(sorted({address.rstrip("#"): _dumped(_value(document)) for address, document in items}.items()))


def _value(schema: Any) -> Any:
    """The value that `parse_json` would return, for a schema given in any of the ways."""
    if isinstance(schema, str):
        return parse_json(schema)
    try:
        return plain_value(schema if isinstance(schema, (Mapping, bool)) else _of_type(schema))
    except RecursionError:
        raise ConstraintLimit("a schema nested too deeply", limit="nesting", value=Limits().nesting) from None


def _of_type(type_: Any) -> dict[str, Any]:
    from .types import schema_of  # with it comes Pydantic, a tenth of what there is to import

    return schema_of(type_)


def _dumped(value: Any) -> str:
    try:
        return dump_json(value)
    except RecursionError:
        raise ConstraintLimit("a schema nested too deeply", limit="nesting", value=Limits().nesting) from None
