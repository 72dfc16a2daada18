"""Random schemas and values: the language agrees with a JSON Schema validator, in both directions."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from maskwright.constraints.base.errors import ConstraintError, UnsupportedKeyword

from ..json_texts import accepts_value, matcher, spellings

NAMES = ("a", "ab", "b")
# No value ends in a line break: the validator matches with `re`, whose "$" stands before one, unlike that of ECMA-262.
scalars = st.sampled_from([None, True, False, 0, 1, -1, 2, 0.5, 1.5, -0.25, "", "a", "ab", "\nb", "é", "aab"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "c")), inner, max_size=3),
    max_leaves=4,
)
small = st.integers(0, 3)
bounds = st.sampled_from([-1, 0, 0.5, 1, 1.25, 2])
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def extended(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas with some keywords, whose subschemas come from `inner`."""
    names = st.sampled_from(NAMES)
    keywords = {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": bounds, "maximum": bounds, "exclusiveMinimum": bounds, "exclusiveMaximum": bounds,
        "minLength": small, "maxLength": small, "pattern": st.sampled_from(["a", "^a", "b$", "^[ab]*$", "^.?$"]),
        "items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2), "minItems": small, "maxItems": small,
        "properties": st.dictionaries(names, inner, max_size=3), "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=3), "allOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=3), "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
        "not": inner, "if": inner, "then": inner, "else": inner, "multipleOf": st.sampled_from([1, 2, 0.5, 1.5]),
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b$", "^[ab]?$"]), inner, min_size=1, max_size=2),
        "propertyNames": inner, "minProperties": small, "maxProperties": small,
        "contains": inner, "minContains": small, "maxContains": small, "uniqueItems": st.booleans(),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(names, inner, max_size=2),
        "unevaluatedProperties": inner, "unevaluatedItems": inner,
    }  # fmt: skip
    return some_of(keywords)


def some_of(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Few of them at a time, or hardly any value would satisfy them all."""

    def filled(kept: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        partners = set(_PARTNERS.get(frozenset(kept), ())) - set(kept)
        optional = {key: keywords[key] for key in sorted(partners)}
        return st.fixed_dictionaries({key: keywords[key] for key in kept}, optional=optional)

    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(filled)


_PARTNERS = {frozenset([key]): ("if", "then", "else", "contains") for key in ("then", "else", "minContains", "maxContains")}


leaves = st.sampled_from([True, {}, {"type": "integer"}, {"type": "string"}, {"type": ["null", "object"]}, {"$ref": "#/$defs/x"}, False])
schemas = extended(leaves | extended(leaves))


@settings(max_examples=300)
@given(schema=schemas, x=schemas, y=schemas, instances=st.lists(values, min_size=4, max_size=8), order=st.sampled_from(["declared", "any"]))
def test_agrees_with_a_validator(schema: Any, x: Any, y: Any, instances: list[Any], order: str) -> None:
    schema = {**schema, "$defs": {"x": x, "y": y}}
    try:
        reference = matcher(schema, property_order=order)
    except UnsupportedKeyword as error:
        assert error.keyword == "uniqueItems" and "negation" in error.reason
        assume(False)
    except ConstraintError as error:
        if "itself" in error.reason:
            assume(False)
        assert "no value satisfies" in error.reason
        reference = None
    validator = Draft202012Validator(schema)
    for instance in [*instances, *_listed(schema)]:
        is_valid = validator.is_valid(instance)
        assert (reference is not None and accepts_value(reference, instance)) == is_valid, instance
        if order == "any" and reference is not None:
            assert all(reference.accepts(text.encode()) == is_valid for text in itertools.islice(spellings(instance), 20))


def _listed(schema: Any) -> list[Any]:
    """Values that stand in a schema, which are more likely to satisfy it."""
    if isinstance(schema, list):
        return [value for part in schema for value in _listed(part)]
    if not isinstance(schema, dict):
        return []
    own = [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])] if isinstance(schema.get("enum", []), list) else []
    return own + [value for key, part in schema.items() if key not in ("enum", "const") for value in _listed(part)]


REFUSED = {"a": r"()\1a", "^a": r"^()\1a", "b$": r"()\1b$"}  # patterns that say the same in a way that is refused
assert all(pattern not in REFUSED for pattern in REFUSED.values())


def refused(schema: Any, is_map: bool = False) -> Any:
    """The schema, with some of its patterns in a way that is refused."""
    if isinstance(schema, list):
        return [refused(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key in ("enum", "const") and not is_map:
            out[key] = value
        elif key == "pattern" and not is_map:
            out[key] = REFUSED.get(value, value)
        elif key == "patternProperties" and not is_map:
            out[key] = {REFUSED.get(pattern, pattern): refused(each) for pattern, each in value.items()}
        else:
            out[key] = refused(value, not is_map and key in ("properties", "dependentSchemas", "$defs"))
    return out


def refers_to_itself(definitions: dict[str, Any]) -> bool:
    """Whether one of them is applied, in the same place, where it applies: validators do not come back from that."""
    applied = {f"#/$defs/{name}": applied_in_place(schema) for name, schema in definitions.items()}
    for _ in applied:
        applied = {name: found.union(*(applied[each] for each in found)) for name, found in applied.items()}
    return any(name in found for name, found in applied.items())


def applied_in_place(schema: Any) -> set[str]:
    """References of a schema that are about the very value that the schema is about."""
    if not isinstance(schema, dict):
        return set()
    several = [each for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key, ())]
    inside = [*several, *(schema.get(key) for key in ("not", "if", "then", "else")), *schema.get("dependentSchemas", {}).values()]
    own = {schema["$ref"]} if "$ref" in schema else set()
    return own.union(*map(applied_in_place, inside))


of_patterns = st.sampled_from([*({"pattern": pattern} for pattern in REFUSED), {"patternProperties": {"a": True}}])
about_patterns = extended(of_patterns | extended(of_patterns | leaves))


@settings(max_examples=300)
@given(schema=about_patterns, x=about_patterns, y=schemas, instances=st.lists(values, min_size=6, max_size=12))
def test_what_is_relaxed_admits_all_that_the_schema_admits(schema: Any, x: Any, y: Any, instances: list[Any]) -> None:
    schema = {**schema, "$defs": {"x": x, "y": y}}
    assume(not refers_to_itself(schema["$defs"]))
    valid = [value for value in instances if Draft202012Validator(schema).is_valid(value)]
    try:
        reference = matcher(refused(schema), on_unsupported="relax", property_order="any")
    except ConstraintError as error:
        assume("itself" not in error.reason)
        assert "no value satisfies" in error.reason
        assert not valid
        return
    for value in valid:
        assert accepts_value(reference, value)
