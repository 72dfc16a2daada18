"""Schemas in which keywords meet that seldom meet, with values that come near to satisfying them. All chosen by one `Random`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

DRAFTS = ("4", "6", "7", "2019-09", "2020-12")
NAMES = ("a", "b", "ab", "c", "aa")
SCALARS = (None, True, False, 0, 1, -1, 2, 3, Decimal("0.5"), Decimal("1.5"), Decimal("-0.25"), "", "a", "b", "ab", "ba", "aab", "é")
PATTERNS = ("a", "^a", "b$", "^[ab]*$", "^.?$", "^a|b$", "^(?!a)", "^(a|b){2}$", "a.?b")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
NUMBERS = "0 1 -1 2 3 7 12 0.1 0.2 0.3 0.25 0.5 1.5 -1.5 0.01 0.05 1e2 1e-2 2.5 1e3 99 101 0.15 3.3 1e10 12345678901234567890 0.001 -0.5 4.2"
FORMATS = ("ipv4", "date", "uuid", "date-time", "ipv6", "time", "hostname", "json-pointer")
FORMATTED = (
    "1.2.3.4", "255.255.255.255", "1.2.3", "2020-02-29", "2021-02-29", "2020-01-01T00:00:00Z", "2020-13-01T00:00:00Z", "::1", "1::",
    "123e4567-e89b-12d3-a456-426614174000", "00:00:00Z", "12:34:56+01:00", "a", "a.b", "a-b.c", "-a", "/a/b", "", "/a~1", "~", "é",
)  # fmt: skip
SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
OF_OBJECTS = (
    "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties", "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
)  # fmt: skip
OF_ARRAYS = ("items", "tuple", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems")
COMBINING = ("anyOf", "allOf", "oneOf", "not", "if", "$ref", "dependentSchemas")
KEYWORDS = (
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "anyOf", "allOf",
    "oneOf", "not", "if", "$ref", *SIZES, *OF_OBJECTS, *OF_ARRAYS,
)  # fmt: skip
SINCE = {
    "const": 1, "contains": 1, "propertyNames": 1, "if": 2, "dependentRequired": 3, "dependentSchemas": 3, "unevaluatedProperties": 3,
    "unevaluatedItems": 3,
}  # fmt: skip
UNTIL = {"dependencies": 2}


@dataclass
class Maker:
    """Makes schemas of one draft and values for them."""

    rng: Random
    draft: str

    @property
    def age(self) -> int:
        return DRAFTS.index(self.draft)

    def some(self, items: Any, least: int = 1, most: int = 3) -> list[Any]:
        return self.rng.sample(list(items), min(self.rng.randint(least, most), len(items)))

    def known(self, keywords: tuple[str, ...]) -> list[str]:
        return [each for each in keywords if SINCE.get(each, 0) <= self.age <= UNTIL.get(each, 9)]

    # -- values -----------------------------------------------------------------------------------------------------

    def value(self, depth: int = 2) -> Any:
        chance = self.rng.random()
        if depth == 0 or chance < 0.45:
            return self.rng.choice(SCALARS)
        return self.array(depth - 1) if chance < 0.7 else self.object(depth - 1)

    def array(self, depth: int = 0) -> list[Any]:
        return [self.value(depth) for _ in range(self.rng.randint(0, 4))]

    def object(self, depth: int = 0) -> dict[str, Any]:
        return {name: self.value(depth) for name in self.some(NAMES, 0, 4)}

    # -- schemas ----------------------------------------------------------------------------------------------------

    def schema(self, depth: int, keywords: tuple[str, ...] = KEYWORDS, most: int = 3) -> Any:
        if depth <= 0:
            return self.leaf()
        out: dict[str, Any] = {}
        for keyword in self.some(self.known(keywords), 1, most):
            out |= self.keyword(keyword, depth - 1)
        return out

    def leaf(self) -> Any:
        choice = self.rng.choice
        return choice([
            {}, {"type": choice(TYPES)}, {"type": ["null", "object"]}, {"enum": [self.value(1)]}, {"minimum": choice((0, 1, Decimal("1.5")))},
            {"maxLength": choice((0, 1, 2))}, {"pattern": choice(PATTERNS)}, {"multipleOf": choice((1, 2, Decimal("0.5")))},
            {"not": {"type": "string"}}, {"required": [choice(NAMES)]}, {"minItems": 1}, *([True, False] if self.age else [{"not": {}}]),
        ])  # fmt: skip

    def keyword(self, keyword: str, depth: int) -> dict[str, Any]:
        """A keyword, with those without which it would mean little."""
        choice, chance = self.rng.choice, self.rng.random
        if keyword in SIZES:
            return {keyword: self.rng.randint(0, 3)}
        if keyword in ("anyOf", "allOf", "oneOf"):
            return {keyword: [self.schema(depth) for _ in range(self.rng.randint(1, 3))]}
        if keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            bound = choice((-1, 0, 1, 2, Decimal("0.5"), Decimal("1.25"), 3))
            plain = keyword.replace("exclusiveM", "m")
            return {keyword: bound} if self.age or plain == keyword else {plain: bound, keyword: choice((True, False))}
        if keyword == "type":
            return {keyword: choice(TYPES) if chance() < 0.6 else self.some(TYPES)}
        if keyword == "enum":
            values = [self.value() for _ in range(self.rng.randint(1, 4))]
            return {keyword: [value for i, value in enumerate(values) if value not in values[:i]]}
        if keyword == "const":
            return {keyword: self.value()}
        if keyword == "multipleOf":
            return {keyword: choice((1, 2, 3, Decimal("0.5"), Decimal("1.5")))}
        if keyword == "pattern":
            return {keyword: choice(PATTERNS)}
        if keyword == "uniqueItems":
            return {keyword: chance() < 0.7}
        if keyword == "$ref":
            return {keyword: choice(("#/$defs/x", "#/$defs/y"))}
        if keyword == "required":
            return {keyword: self.some(NAMES, 1, 2)}
        if keyword in ("properties", "dependentSchemas"):
            return {keyword: {name: self.schema(depth) for name in self.some(NAMES)}}
        if keyword == "dependentRequired":
            return {keyword: {name: self.some(NAMES, 0, 2) for name in self.some(NAMES, 1, 2)}}
        if keyword == "dependencies":
            return {keyword: {name: self.some(NAMES, 1, 2) if chance() < 0.5 else self.schema(depth) for name in self.some(NAMES, 1, 2)}}
        if keyword == "patternProperties":
            return {keyword: {pattern: self.schema(depth) for pattern in self.some(("a", "^b$", "^[ab]?$", "^.$", "^(?!a)"), 1, 2)}}
        if keyword == "propertyNames":
            return {keyword: choice([{"maxLength": 1}, {"pattern": choice(PATTERNS)}, {"enum": self.some(NAMES)}, self.schema(depth)])}
        if keyword == "contains":
            bounds = [{}, {"minContains": self.rng.randint(0, 2)}, {"maxContains": self.rng.randint(0, 3)}] if self.age > 2 else [{}]
            return {keyword: self.schema(depth), **choice(bounds), **choice(bounds)}
        if keyword == "if":
            return {keyword: self.schema(depth), **({"then": self.schema(depth)} if chance() < 0.8 else {}), "else": self.schema(depth)}
        if keyword == "tuple":
            first, rest = ("prefixItems", "items") if self.age == 4 else ("items", "additionalItems")
            return {first: [self.schema(depth) for _ in range(self.rng.randint(1, 3))], **({rest: self.rest(depth)} if chance() < 0.5 else {})}
        if keyword in ("additionalProperties", "unevaluatedProperties", "unevaluatedItems"):
            return {keyword: self.rest(depth)}
        assert keyword in ("items", "not")
        return {keyword: self.schema(depth)}

    def rest(self, depth: int) -> Any:
        return self.rng.random() < 0.3 if self.rng.random() < 0.5 else self.schema(depth)


Family = Callable[[Maker], tuple[dict[str, Any], list[Any]]]  # a schema, and values


def mixed(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    return make.schema(make.rng.randint(2, 3), most=4), []


def objects(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    schema = {**make.schema(2, OF_OBJECTS, most=5), **(make.schema(2, COMBINING, most=1) if make.rng.random() < 0.4 else {})}
    return schema, [make.object(1) for _ in range(20)]


def arrays(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    schema = {**make.schema(2, OF_ARRAYS, most=5), **(make.schema(2, COMBINING, most=1) if make.rng.random() < 0.3 else {})}
    return schema, [make.array(1) for _ in range(20)]


def overlapping(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    keywords = ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties")
    schema = {"oneOf": [make.schema(1, keywords) for _ in range(make.rng.randint(2, 4))]}
    return {"not": schema} if make.rng.random() < 0.3 else schema, [make.object() for _ in range(20)]


def twins(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    """An object, and another one of which little is otherwise: what satisfies one satisfies the other, nearly or wholly."""
    rng = make.rng
    types = {name: rng.choice(("integer", "number", "string", "boolean")) for name in make.some(NAMES, 2, 4)}
    twin = {name: "number" if rng.random() < 0.3 else kind for name, kind in types.items() if rng.random() < 0.8}

    def of(kinds: dict[str, str]) -> dict[str, Any]:
        closed = {"additionalProperties": False} if rng.random() < 0.3 else {}
        required = rng.sample(list(types), rng.randint(len(types) // 2, len(types)))
        return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}, "required": required, **closed}

    one, other = of(types), of(twin)
    schema = rng.choice(({"allOf": [one, {"not": other}]}, {"oneOf": [one, other]}, {"oneOf": [one, other, of(twin)]}))
    kinds: dict[str, tuple[Any, ...]] = {"integer": (1,), "number": (1, Decimal("0.5")), "string": ("a",), "boolean": (True,)}
    near = [{name: rng.choice(kinds[rng.choice((kind, kind, "number"))]) for name, kind in types.items()} for _ in range(20)]
    return schema, near


def endless(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    """Twins whose members may be values that contain themselves: of `loop` there is none, of `list` there is an end."""
    rng = make.rng
    loop, chain = {"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/list"}
    defs: dict[str, Any] = {
        "loop": rng.choice(({"type": "object", "required": ["a"], "properties": {"a": loop}}, {"type": "array", "minItems": 1, "items": loop})),
        "list": {"type": ["object", "integer"], "required": ["a"], "properties": {"a": chain, "b": loop}},
    }
    kinds: tuple[dict[str, Any], ...] = (loop, chain, {"type": "integer"}, {"type": "object"}, {"type": "array"}, {"type": "string"})
    names = make.some(NAMES, 2, 4)

    def of(most: int) -> dict[str, Any]:
        members = {name: {"anyOf": rng.sample(kinds, rng.randint(1, most))} for name in names if rng.random() < 0.9}
        required = rng.sample(names, rng.randint(len(names) // 2, len(names)))
        rest: dict[str, Any] = rng.choice(({}, {"additionalProperties": False}, {"additionalProperties": loop}))
        return {"type": "object", "properties": members, "required": required, **rest}

    one, other = of(3), of(2)
    schema = rng.choice((one, {"allOf": [one, {"not": other}]}, {"oneOf": [one, other]}, {"if": other, "then": one, "else": of(3)}))
    values = (1, "a", {}, [], {"a": 1}, {"a": {"a": 2}}, [[]], {"a": {}})
    return {"$defs": defs, **schema}, [{name: rng.choice(values) for name in names if rng.random() < 0.9} for _ in range(20)]


def unevaluated(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    of_objects = make.rng.random() < 0.5
    keywords = ("properties", "patternProperties", "additionalProperties", "required", "minProperties")
    inner = keywords if of_objects else ("items", "tuple", "contains", "minItems", "maxItems")
    out: dict[str, Any] = {}
    for keyword in make.some(("allOf", "anyOf", "oneOf", "if", "not", "$ref"), 1, 3):
        parts = [make.schema(1, inner) for _ in range(make.rng.randint(1, 3))]
        pair = {"if": parts[0], "then": parts[-1], "else": make.schema(1, inner)}
        out |= {"if": pair, "not": {"not": parts[0]}, "$ref": {"$ref": "#/$defs/x"}}.get(keyword, {keyword: parts})
    out["unevaluatedProperties" if of_objects else "unevaluatedItems"] = make.rng.choice((False, {"type": "integer"}, {"type": "string"}))
    return out, [make.object() if of_objects else make.array() for _ in range(20)]


def dynamic(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    new = make.age == 4
    base = {"$id": "http://x.y/base", "properties": {"a": make.schema(1), "c": {"$dynamicRef": "#n"} if new else {"$recursiveRef": "#"}}}
    base |= {"$dynamicAnchor": "n"} if new else {"$recursiveAnchor": make.rng.random() < 0.7}
    top = {"$id": "http://x.y/top", "$ref": make.rng.choice(("base", "http://x.y/base")), "$defs": {"base": base}}
    if make.rng.random() < 0.8:
        top |= {"$dynamicAnchor": "n"} if new else {"$recursiveAnchor": True}
    top |= make.keyword(make.rng.choice(("required", "minProperties", "properties", "not", "unevaluatedProperties")), 0)
    return top, [{**make.object(), "c": {**make.object(), "c": make.object()}} for _ in range(20)]


def numbers(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    def one() -> dict[str, Any]:
        out: dict[str, Any] = {}
        for keyword in make.some(("minimum", "maximum", "multipleOf", "type"), 1, 3):
            number = Decimal(make.rng.choice(NUMBERS.split()))
            out[keyword] = abs(number) or 1 if keyword == "multipleOf" else make.rng.choice(("integer", "number")) if keyword == "type" else number
        return out

    kind = make.rng.choice(("", "not", "anyOf", "oneOf", "allOf"))
    schema = {**one(), **({"not": one()} if kind == "not" else {kind: [one(), one()]} if kind else {})}
    factors = (1, -1, 2, 3, Decimal("0.1"), 10)
    near = [Decimal(make.rng.choice(NUMBERS.split())) * make.rng.choice(factors) for _ in range(20)]
    return schema, near + [Decimal(make.rng.randint(-400, 400)) / make.rng.choice((1, 10, 100, 4)) for _ in range(20)]


def formats(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    def one() -> dict[str, Any]:
        out: dict[str, Any] = {"format": make.rng.choice(FORMATS)} if make.rng.random() < 0.7 else {"enum": make.some(FORMATTED, 2, 4)}
        extra = {"pattern": make.rng.choice(("^[0-9]", "a", "\\d$", "^.{2,10}$", "^[^:]*$", "-", "Z$")), "minLength": 5, "maxLength": 10}
        return out | {keyword: extra[keyword] for keyword in make.some(extra, 0, 2)}

    kind = make.rng.choice(("", "not", "anyOf", "oneOf", "allOf"))
    return {**one(), **({"not": one()} if kind == "not" else {kind: [one(), one()]} if kind else {})}, [*FORMATTED, 1]


def identified(make: Maker) -> tuple[dict[str, Any], list[Any]]:
    word, defs = "id" if make.age == 0 else "$id", "definitions" if make.age < 3 else "$defs"
    name = make.rng.choice(("#foo", "item.json", "http://o.p/item.json"))
    own = tuple(keyword for keyword in KEYWORDS if keyword != "$ref")  # beside which an old draft has no $id
    named = {**make.schema(1, own), **({"$anchor": "foo"} if name == "#foo" and make.age > 2 else {word: name})}
    use = {"$ref": name, **make.keyword(make.rng.choice(("maxLength", "minimum", "type", "enum")), 0)}
    place = make.rng.choice(({"properties": {"a": use}}, {"items": use}, {"anyOf": [use, {"type": "null"}]}))
    return {word: "http://o.p/root.json", defs: {"n": named}, **place}, []


FAMILIES: dict[str, tuple[Family, tuple[str, ...]]] = {
    "mixed": (mixed, DRAFTS), "objects": (objects, DRAFTS), "arrays": (arrays, DRAFTS), "overlapping": (overlapping, DRAFTS),
    "twins": (twins, DRAFTS), "endless": (endless, DRAFTS), "unevaluated": (unevaluated, DRAFTS[3:]), "dynamic": (dynamic, DRAFTS[3:]), "numbers": (numbers, DRAFTS),
    "formats": (formats, DRAFTS[4:]), "identified": (identified, DRAFTS),
}  # fmt: skip
