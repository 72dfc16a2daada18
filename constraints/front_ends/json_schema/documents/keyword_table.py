"""The keywords of JSON Schema, one entry each, and the sets of them that follow from the entries.

An *assertion* is what one keyword claims of the value itself, or several that are read together (`minLength` and `maxLength`). An
*applicator* applies schemas to the value itself, under conditions. Whatever else a keyword takes part in is kept by assertion or by
keyword in the module that does it: shaping.py reads assertions, negation.py has the violations of each, membership.py decides given
values, branches.py and annotations.py follow applicators, strings.py has the strings that `pattern` and its like stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

FIRST = 4  # the oldest draft
CHECKED_AFTERWARDS = "x-maskwright-checkedAfterwards"  # what of a Python type is checked once the text is complete
TYPE_NAMES = ("null", "boolean", "integer", "number", "string", "array", "object")


class Position(Enum):
    """What stands at a place of a schema document."""

    SCHEMA = "a schema"
    MAP = "an object of schemas"
    LIST = "a list of schemas"
    OTHER = "a value, or what no keyword gives a meaning"


class Form(Enum):
    """What the value of a keyword has to be, in the words of an error."""

    ANYTHING = "a value"
    COUNT = "a whole number from 0"
    NUMBER = "a number"
    BOUND = "a number, or true or false as in draft 4"
    STEP = "a number above 0"
    TEXT = "a string"
    FLAG = "true or false"
    VALUES = "a list of values"
    NAMES = "a list of names"
    TYPES = "a type or a list of at least one"
    SCHEMA = "a schema"
    SCHEMA_OR_LIST = "a schema or a list of schemas"
    LIST = "a list of schemas"
    FILLED_LIST = "a list of at least one schema"
    MAP = "an object of schemas"
    LISTS_OF_NAMES = "an object of lists of names"
    DEPENDENCIES = "an object of schemas and lists of names"
    OBJECT = "an object"
    LIMITS = "an object of numbers"


class Role(Enum):
    """What a keyword does for values."""

    ASSERTION = "claims something of the value itself"
    REFERENCE = "applies the schema that it names to the value itself"
    APPLICATOR = "applies schemas to the value itself"
    UNEVALUATED = "applies a schema to the items or members that no other keyword of the value's schemas has evaluated"
    MODIFIER = "is read together with another keyword, and means nothing without it"
    IDENTITY = "names a schema, its draft or its vocabularies: settled when a document is read"
    DESCRIPTION = "says nothing of values"


class Assertion(Enum):
    """What keywords claim of the value itself: those with the same assertion are read together and negated together."""

    TYPE = "the type"
    VALUE = "one of some values"
    BOUNDS = "an interval of numbers"
    MULTIPLE = "a multiple of a number"
    LENGTH = "a number of code points"
    LANGUAGE = "a set of strings"
    ITEM_COUNT = "a number of items"
    ITEMS = "the schemas of items"
    CONTAINED = "a number of items that satisfy a schema"
    UNIQUENESS = "items that differ"
    REQUIRED = "names that are there"
    MEMBER_COUNT = "a number of members"
    MEMBERS = "the schemas of members"
    NAMES = "the schema of names"


@dataclass(frozen=True)
class Keyword:
    """One keyword.

    concerns: the type of values it is about, "number", "string", "array" or "object"; "" for every type.
    since, until: the first draft that has it, and the last one (None: the latest has it); in others it means nothing.
    vocabulary: the last part of its vocabulary's address, if a meta-schema can leave that out.
    holds: where schemas stand in its value.
    is_always_exact: whether it is never refused and never remarked upon.
    instead: what to write instead where it is refused.
    """

    name: str
    role: Role
    form: Form = Form.ANYTHING
    asserts: Assertion | None = None
    concerns: str = ""
    since: int = FIRST
    until: int | None = None
    vocabulary: str | None = None
    holds: tuple[Position, ...] = ()
    is_always_exact: bool = False
    instead: str = "the same meaning with the keywords that are enforced, or on_unsupported='relax'"


def _assertion(
    name: str, form: Form, asserts: Assertion, concerns: str = "", *, since: int = FIRST, vocabulary: str = "validation",
    holds: tuple[Position, ...] = (), is_always_exact: bool = False, instead: str = Keyword.instead,
) -> Keyword:  # fmt: skip
    return Keyword(
        name, Role.ASSERTION, form, asserts, concerns, since=since, vocabulary=vocabulary, holds=holds,
        is_always_exact=is_always_exact, instead=instead,
    )  # fmt: skip


def _applicator(
    name: str, form: Form, *holds: Position, since: int = FIRST, vocabulary: str = "applicator", role: Role = Role.APPLICATOR
) -> Keyword:
    return Keyword(name, role, form, since=since, vocabulary=vocabulary, holds=holds)


_SCHEMA, _MAP, _LIST = Position.SCHEMA, Position.MAP, Position.LIST
_ENTRIES = (
    # what is claimed of the value itself
    _assertion("type", Form.TYPES, Assertion.TYPE, is_always_exact=True),
    _assertion("enum", Form.VALUES, Assertion.VALUE, is_always_exact=True),
    _assertion("const", Form.ANYTHING, Assertion.VALUE, since=6, is_always_exact=True),
    _assertion("minimum", Form.NUMBER, Assertion.BOUNDS, "number", is_always_exact=True),
    _assertion("maximum", Form.NUMBER, Assertion.BOUNDS, "number", is_always_exact=True),
    _assertion("exclusiveMinimum", Form.BOUND, Assertion.BOUNDS, "number", is_always_exact=True),
    _assertion("exclusiveMaximum", Form.BOUND, Assertion.BOUNDS, "number", is_always_exact=True),
    _assertion("multipleOf", Form.STEP, Assertion.MULTIPLE, "number", is_always_exact=True),
    _assertion("minLength", Form.COUNT, Assertion.LENGTH, "string", is_always_exact=True),
    _assertion("maxLength", Form.COUNT, Assertion.LENGTH, "string", is_always_exact=True),
    _assertion("pattern", Form.TEXT, Assertion.LANGUAGE, "string"),
    _assertion("format", Form.TEXT, Assertion.LANGUAGE, "string", vocabulary="format"),
    _assertion("items", Form.SCHEMA_OR_LIST, Assertion.ITEMS, "array", vocabulary="applicator", holds=(_SCHEMA, _LIST)),
    _assertion("prefixItems", Form.LIST, Assertion.ITEMS, "array", since=2020, vocabulary="applicator", holds=(_LIST,)),
    _assertion("additionalItems", Form.SCHEMA, Assertion.ITEMS, "array", vocabulary="applicator", holds=(_SCHEMA,)),
    # of strings as Python types have them, see python-types.md
    _assertion("x-maskwright-rustPattern", Form.TEXT, Assertion.LANGUAGE, "string"),
    _assertion("x-maskwright-pythonPattern", Form.TEXT, Assertion.LANGUAGE, "string"),
    _assertion("x-maskwright-number", Form.LIMITS, Assertion.LANGUAGE, "string"),
    _assertion("x-maskwright-utf8Length", Form.LIMITS, Assertion.LANGUAGE, "string"),
    _assertion("minItems", Form.COUNT, Assertion.ITEM_COUNT, "array", is_always_exact=True),
    _assertion("maxItems", Form.COUNT, Assertion.ITEM_COUNT, "array", is_always_exact=True),
    _assertion(
        "uniqueItems", Form.FLAG, Assertion.UNIQUENESS, "array",
        instead="an array of at most one item, or check uniqueness afterwards with on_unsupported='relax'",
    ),
    _assertion("contains", Form.SCHEMA, Assertion.CONTAINED, "array", since=6, vocabulary="applicator", holds=(_SCHEMA,)),
    _assertion("properties", Form.MAP, Assertion.MEMBERS, "object", vocabulary="applicator", holds=(_MAP,)),
    _assertion("required", Form.NAMES, Assertion.REQUIRED, "object"),
    _assertion("additionalProperties", Form.SCHEMA, Assertion.MEMBERS, "object", vocabulary="applicator", holds=(_SCHEMA,)),
    _assertion("patternProperties", Form.MAP, Assertion.MEMBERS, "object", vocabulary="applicator", holds=(_MAP,)),
    _assertion("propertyNames", Form.SCHEMA, Assertion.NAMES, "object", since=6, vocabulary="applicator", holds=(_SCHEMA,)),
    _assertion("minProperties", Form.COUNT, Assertion.MEMBER_COUNT, "object"),
    _assertion("maxProperties", Form.COUNT, Assertion.MEMBER_COUNT, "object"),
    # what applies schemas to the value itself
    Keyword("$ref", Role.REFERENCE, Form.TEXT),
    Keyword("$dynamicRef", Role.REFERENCE, Form.TEXT, since=2020),
    Keyword("$recursiveRef", Role.REFERENCE, Form.TEXT, since=2019, until=2019),
    _applicator("allOf", Form.FILLED_LIST, _LIST),
    _applicator("anyOf", Form.FILLED_LIST, _LIST),
    _applicator("oneOf", Form.FILLED_LIST, _LIST),
    _applicator("not", Form.SCHEMA, _SCHEMA),
    _applicator("if", Form.SCHEMA, _SCHEMA, since=7),
    _applicator("dependencies", Form.DEPENDENCIES, _MAP),
    _applicator("dependentRequired", Form.LISTS_OF_NAMES, since=2019, vocabulary="validation"),
    _applicator("dependentSchemas", Form.MAP, _MAP, since=2019),
    _applicator("unevaluatedItems", Form.SCHEMA, _SCHEMA, since=2019, vocabulary="unevaluated", role=Role.UNEVALUATED),
    _applicator("unevaluatedProperties", Form.SCHEMA, _SCHEMA, since=2019, vocabulary="unevaluated", role=Role.UNEVALUATED),
    # what is read together with `if` and with `contains`
    _applicator("then", Form.SCHEMA, _SCHEMA, since=7, role=Role.MODIFIER),
    _applicator("else", Form.SCHEMA, _SCHEMA, since=7, role=Role.MODIFIER),
    Keyword("minContains", Role.MODIFIER, Form.COUNT, since=2019, vocabulary="validation"),
    Keyword("maxContains", Role.MODIFIER, Form.COUNT, since=2019, vocabulary="validation"),
    # what names schemas
    *(Keyword(name, Role.IDENTITY, Form.TEXT) for name in ("$anchor", "$dynamicAnchor", "$id", "$schema")),
    Keyword("$recursiveAnchor", Role.IDENTITY, Form.FLAG),
    Keyword("$vocabulary", Role.IDENTITY, Form.OBJECT),
    Keyword("id", Role.IDENTITY),  # of draft 4; schemas of others have it for their own ends
    # what says nothing of values
    Keyword("$defs", Role.DESCRIPTION, Form.MAP, holds=(_MAP,)),
    Keyword("definitions", Role.DESCRIPTION, Form.MAP, holds=(_MAP,)),
    Keyword("contentSchema", Role.DESCRIPTION, holds=(_SCHEMA,)),
    *(Keyword(name, Role.DESCRIPTION) for name in (
        "$comment", "contentEncoding", "contentMediaType", "default", "deprecated", "description", "examples", "readOnly", "title",
        "writeOnly", "discriminator", "example", "externalDocs", "xml",  # the last four are OpenAPI's
    )),
    Keyword(CHECKED_AFTERWARDS, Role.DESCRIPTION, Form.TEXT),
)  # fmt: skip
KEYWORDS = {entry.name: entry for entry in _ENTRIES}


def of_role(*roles: Role) -> tuple[str, ...]:
    """The keywords of some roles, in the order of the table."""
    return tuple(entry.name for entry in _ENTRIES if entry.role in roles)


def asserting(assertion: Assertion) -> tuple[str, ...]:
    """The keywords of an assertion, in the order of the table."""
    return tuple(entry.name for entry in _ENTRIES if entry.asserts is assertion)


def concerning(kind: str) -> frozenset[str]:
    """The keywords that claim something of values of one type only."""
    return frozenset(entry.name for entry in _ENTRIES if entry.concerns == kind)


def holding(position: Position) -> frozenset[str]:
    """The keywords whose value is, or may be, such a place of schemas."""
    return frozenset(entry.name for entry in _ENTRIES if position in entry.holds)


ASSERTIONS = frozenset(of_role(Role.ASSERTION))
REFERENCES = of_role(Role.REFERENCE)
UNEVALUATED = of_role(Role.UNEVALUATED)
APPLICATORS = frozenset((*REFERENCES, *of_role(Role.APPLICATOR), *UNEVALUATED))
DESCRIPTIONS = frozenset(of_role(Role.DESCRIPTION))
ANNOTATIONS = DESCRIPTIONS | frozenset(of_role(Role.IDENTITY))  # keywords that are never enforced
SINCE = {entry.name: entry.since for entry in _ENTRIES if entry.since > FIRST}
UNTIL = {entry.name: entry.until for entry in _ENTRIES if entry.until is not None}
VOCABULARY_OF = {entry.name: entry.vocabulary for entry in _ENTRIES if entry.vocabulary is not None}
ALWAYS_EXACT = frozenset(entry.name for entry in _ENTRIES if entry.is_always_exact) | DESCRIPTIONS
