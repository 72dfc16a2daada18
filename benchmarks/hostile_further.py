"""Further sources that would take a compiler much time or memory, by what they are written in; the first: hostile_sources.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostile_sources import closed, names, patterned

from maskwright.constraints import Choice, Ebnf, Gbnf, JsonSchema, Lark, Regex, StructuralTag, Tools

# ---- JSON Schema


def conditions_of_items(count: int) -> JsonSchema:
    wanted = [{"if": {"contains": {"const": k}}, "then": {"contains": {"const": k + 1}}} for k in range(count)]
    return JsonSchema({"type": "array", "allOf": wanted, "unevaluatedItems": False})


def one_of_patterns(count: int) -> JsonSchema:
    return JsonSchema({"type": "string", "oneOf": [{"pattern": f"{chr(97 + k)}.{{{k % 7}}}{k}"} for k in range(count)]})


def web(count: int) -> JsonSchema:
    """Definitions that each apply the next two to the same value: 2^count ways through them."""
    rules: dict[str, Any] = {
        f"d{k}": {
            "allOf": [{"$ref": f"#/$defs/d{k + 1}"}, {"$ref": f"#/$defs/d{k + 2}"}],
            "properties": {f"m{k}": {"minLength": k}},
        }
        for k in range(count)
    }
    last = {f"d{count + k}": {"type": "object"} for k in range(2)}
    return JsonSchema({"$defs": {**rules, **last}, "$ref": "#/$defs/d0"})


def dynamic(count: int) -> JsonSchema:
    """Resources of which each extends the next, and all have the same dynamic anchor."""
    resources = {
        f"r{k}": {
            "$id": f"https://example.com/r{k}", "$dynamicAnchor": "node", "properties": {f"m{k}": {"$dynamicRef": "#node"}},
            "anyOf": [{"$ref": f"https://example.com/r{k + 1}"} if k < count - 1 else True, {"required": [f"m{k}"]}],
        }
        for k in range(count)
    }  # fmt: skip
    return JsonSchema(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "https://example.com/r0",
            "$defs": resources,
        }
    )


def products(count: int) -> JsonSchema:
    """Conjunctions of alternatives of objects, and of texts inside them."""

    def option(k: int, j: int) -> dict[str, Any]:
        return {
            "properties": {f"m{(k + j) % count}": {"pattern": f"[a-{chr(98 + j)}].{{{k}}}$", "maxLength": 40 + j}},
            "required": [f"m{k}"],
        }

    return JsonSchema({"type": "object", "allOf": [{"anyOf": [option(k, j) for j in range(4)]} for k in range(count)]})


def large_numbers(count: int) -> JsonSchema:
    """Steps and bounds of hundreds of digits."""
    bounds = {
        f"n{k}": {
            "type": "number",
            "multipleOf": float(f"{2 * k + 3}e-{280 + k % 20}"),
            "minimum": float(f"-{k + 1}e{k % 290}"),
        }
        for k in range(count)
    }
    whole = {
        f"i{k}": {"type": "integer", "multipleOf": 10 ** (k % 290) + 2 * k + 1, "maximum": 7**300 + k}
        for k in range(count)
    }
    return JsonSchema(closed({**bounds, **whole}))


def names_minus(count: int) -> JsonSchema:
    left = {"enum": names(count), "not": {"pattern": "7[0-4]*$"}, "minLength": 3}
    return JsonSchema(
        {"type": "object", "propertyNames": left, "minProperties": 50, "additionalProperties": {"type": "integer"}}
    )


def otherwise(count: int) -> JsonSchema:
    """A chain of `if` and `else`, each with members of its own."""
    rules: dict[str, Any] = {
        f"d{k}": {
            "if": {"properties": {"kind": {"const": k}}, "required": ["kind"]},
            "then": {"required": [f"m{k}"]},
            "else": {"$ref": f"#/$defs/d{k + 1}"},
        }
        for k in range(count)
    }
    return JsonSchema({"$defs": {**rules, f"d{count}": False}, "type": "object", "$ref": "#/$defs/d0"})


def negations(count: int) -> JsonSchema:
    inner: Any = {"properties": {"a": {"pattern": "^[a-f]+x"}}, "required": ["a"]}
    for k in range(count):
        inner = {
            "not": {
                "anyOf": [{"not": inner}, {"properties": {f"m{k % 7}": {"maxLength": k}}, "required": [f"m{k % 5}"]}]
            }
        }
    return JsonSchema({"type": "object", **inner})


def overlapping(count: int) -> JsonSchema:
    """Alternatives that contain one another, called by themselves."""
    here = {"$ref": "#/$defs/node"}
    options: list[Any] = [
        {
            "type": "object",
            "properties": {f"m{k}": here, f"m{(3 * k + 1) % count}": {"type": "array", "items": here}},
            "minProperties": k % 4,
        }
        for k in range(count)
    ]
    return JsonSchema({"$defs": {"node": {"anyOf": [*options, {"type": "string"}]}}, **here})


def tuples(count: int) -> JsonSchema:
    items = [{"enum": [k, str(k), None]} for k in range(count)]
    return JsonSchema({"type": "array", "prefixItems": items, "items": {"type": "boolean"}, "uniqueItems": True})


def members_under_patterns(count: int) -> JsonSchema:
    patterns = {f"{k}.*[a-f{k}]": {"minLength": k} for k in range(12)}
    return JsonSchema(
        {
            "type": "object",
            "properties": {name: {"maxLength": 90} for name in names(count)},
            "patternProperties": patterns,
        }
    )


def schemas_of_members(count: int) -> JsonSchema:
    asked = {
        f"k{k}": {
            "properties": {f"k{(7 * k + 1) % count}": {"pattern": f"^{k}"}},
            "required": [f"k{(3 * k + 2) % count}"],
        }
        for k in range(count)
    }
    return JsonSchema({"type": "object", "dependentSchemas": asked}, property_order="any")


def aliases(count: int) -> JsonSchema:
    rules: dict[str, Any] = {f"d{k}": {"$ref": f"#/$defs/d{k + 1}"} for k in range(count)}
    return JsonSchema({"$defs": {**rules, f"d{count}": {"type": "integer"}}, "$ref": "#/$defs/d0"})


def identifiers(count: int) -> JsonSchema:
    """Resources whose addresses are relative to the one around them."""
    rules = {f"d{k}": {"$id": f"x/{k}", "$ref": f"../x/{(k + 1) % count}"} for k in range(count)}
    return JsonSchema({"$id": "https://example.com/", "$defs": rules, "$ref": "x/0"})


def listed_objects(count: int) -> JsonSchema:
    values = [{"a": {"b": k, "c": [k, str(k)]}, "d": k % 7} for k in range(count)]
    part = {
        "properties": {"a": {"properties": {"b": {"multipleOf": 3}}}},
        "not": {"properties": {"d": {"enum": [1, 2]}}},
    }
    return JsonSchema({"enum": values, "allOf": [part]})


def formats_of_lengths(count: int) -> JsonSchema:
    known = ("email", "hostname", "uri", "date-time", "duration", "ipv6", "iri-reference", "json-pointer")
    texts = {
        f"f{k}": {
            "format": known[k % len(known)],
            "minLength": 20 + k,
            "maxLength": 90 + 2 * k,
            "pattern": f"{k % 9}.*{k % 7}",
        }
        for k in range(count)
    }
    return JsonSchema(closed({name: {"type": "string", **text} for name, text in texts.items()}))


def required_by_patterns(count: int) -> JsonSchema:
    patterns = {f"^n.*{k}$": {"type": "integer", "minimum": k} for k in range(10)}
    return JsonSchema(
        {"type": "object", "required": names(count), "patternProperties": patterns, "additionalProperties": False}
    )


def long_and_patterned(length: int) -> JsonSchema:
    return patterned("^(?:[a-f]{3,90}[^x]{2,70}){2,900}$", "(?:ab|ba){9,99}", minLength=length, maxLength=2 * length)


# ---- patterns and choices


def unicode_repetitions() -> JsonSchema:
    return patterned(r"^(?:(?:\p{L}{1,40}\p{N}{0,30}[^\p{Lu}]{2,9}){1,30}\s?){1,40}$", r"\p{Lu}\p{M}{2,8}$")


def lookaheads(count: int) -> Regex:
    return Regex(
        "".join(f"(?=.*[{chr(97 + k)}-{chr(100 + k)}].{{{k}}}[0-{k % 10}])" for k in range(count)) + "[a-z0-9 ]+"
    )


def lookbehinds(count: int) -> Regex:
    return Regex(
        "^(?:"
        + "|".join(f"[a-z]+(?<={chr(97 + k % 26)}{{{k % 6 + 1}}})x(?!y{{{k % 5}}}z)" for k in range(count))
        + ")+$"
    )


def common_endings(count: int) -> JsonSchema:
    return JsonSchema(
        {"enum": [f"{k * 7919 % 1_000_003:x}{'the same end of all of them' * (k % 3)}" for k in range(count)]}
    )


# ---- grammars


def may_be_empty(count: int) -> Gbnf:
    rules = (f'r{k} ::= r{k + 1}? r{(7 * k + 3) % count}? "a{k % 9}"?' for k in range(count))
    return Gbnf("\n".join(["root ::= r0", *rules, f'r{count} ::= "z"?']))


def unused_rules(count: int) -> Gbnf:
    return Gbnf(
        "\n".join(['root ::= "a"', *(f'u{k} ::= ("x" u{(k + 1) % count} | [a-z]{{2,9}}){{1,3}}' for k in range(count))])
    )


def hidden_left_recursion(count: int) -> Gbnf:
    rules = (
        f'r{k} ::= e{k} r{(k + 1) % count} "a" | "b{k % 7}" r{(5 * k + 1) % count} | "c"\ne{k} ::= "d{k % 5}"?'
        for k in range(count)
    )
    return Gbnf("\n".join(["root ::= r0", *rules]))


def terminals_that_overlap(count: int) -> Lark:
    terminals = [f"T{k}.{k % 5}: /[a-{chr(99 + k % 20)}]{{{k % 9 + 1},{k % 30 + 12}}}/" for k in range(count)]
    every = " | ".join(f"T{k}" for k in range(count))
    return Lark("\n".join([f"start: ({every})+", *terminals, "%ignore /[ab ]+/"]))


def templates(count: int) -> Lark:
    made = [f'_t{k}{{x}}: _t{k + 1}{{x}} | "[" _t{k + 1}{{x}} "," x "]"' for k in range(count)]
    return Lark("\n".join(["start: _t0{w}", *made, f'_t{count}{{x}}: x | "(" x ")"', "w: /[a-z]+/"]))


def differences(count: int) -> Ebnf:
    rules = [f'r{k} ::= ([a-z]+ - ("x{k}" | "y" | [a-f]* "q{k}")) r{(k + 1) % count}?' for k in range(count)]
    return Ebnf("\n".join(rules), root="r0", notation="w3c")


def nested_options(depth: int) -> Ebnf:
    inner = '"a"'
    for k in range(depth):
        inner = f'({inner} | ({inner}) "b{k % 3}")*' if k < 12 else f'({inner} "c{k}"?)*'
    return Ebnf(f"root ::= {inner}")


def one_long_text(length: int) -> Gbnf:
    return Gbnf(f'root ::= "{"ab" * length}" | "{"ab" * (length - 1)}c" root?')


# ---- tags and tools


def excluded(count: int) -> StructuralTag:
    return StructuralTag({"type": "structural_tag", "format": {"type": "any_text", "excludes": names(count)}})


def excluded_text(count: int) -> StructuralTag:
    return StructuralTag({"type": "structural_tag", "format": {"type": "any_text", "excludes": ["ab" * count]}})


def constants(count: int) -> StructuralTag:
    choice = {"type": "or", "elements": [{"type": "const_string", "value": name} for name in names(count)]}
    return StructuralTag({"type": "structural_tag", "format": {"type": "sequence", "elements": [choice] * count}})


def triggers(count: int) -> StructuralTag:
    tags = [
        {"type": "tag", "begin": f"<{name}>", "content": {"type": "any_text"}, "end": "</>"} for name in names(count)
    ]
    tagged = {"type": "triggered_tags", "triggers": [f"<{name}" for name in names(count)], "tags": tags}
    return StructuralTag({"type": "structural_tag", "format": tagged})


def tags_in_tags(depth: int) -> StructuralTag:
    inner: Any = {"type": "any_text", "excludes": ["xyz"]}
    for k in range(depth):
        each = [{"type": "tag", "begin": f"<t{k}x{j}>", "content": inner, "end": [f"</t{k}>", "</"]} for j in range(2)]
        inner = {"type": "triggered_tags", "triggers": [f"<t{k}"], "tags": each}
    return StructuralTag({"type": "structural_tag", "format": inner})


def tools_alike(count: int) -> Tools:
    """Tools whose parameters all contain the same recursive tree, each in definitions of its own."""
    node = closed(
        {
            "left": {"$ref": "#/$defs/node"},
            "right": {"$ref": "#/$defs/node"},
            "name": {"type": "string", "format": "email"},
        }
    )
    parameters = [
        {**closed({f"p{k}": {"$ref": "#/$defs/node"}, "q": {"enum": names(20)}}), "$defs": {"node": node}}
        for k in range(count)
    ]
    return Tools(
        [{"name": f"do_{k}", "description": "x" * 90, "parameters": each} for k, each in enumerate(parameters)],
        style="qwen3-coder",
    )


FURTHER: dict[str, Callable[[], Any]] = {
    "20,000 excluded strings": lambda: excluded(20_000),
    "14 conditions of items": lambda: conditions_of_items(14),
    "3,000 triggers of tags": lambda: triggers(3_000),
    "25 patterns in oneOf": lambda: one_of_patterns(25),
    "a constant of 200,000 numbers": lambda: JsonSchema({"const": list(range(200_000))}),
    "a constant of 4,000 lists": lambda: JsonSchema({"const": [[k, [str(k)]] for k in range(4_000)]}),
    "a text of ten million characters": lambda: JsonSchema({"const": "x" * 10_000_000}),
    "1,500 rules that may be empty": lambda: may_be_empty(1_500),
    "a web of 60 references": lambda: web(60),
    "60 dynamic references": lambda: dynamic(60),
    "products of 12 alternatives": lambda: products(12),
    "800 numbers of many digits": lambda: large_numbers(400),
    "100,000 strings that end alike": lambda: common_endings(100_000),
    "a million items of a kind": lambda: JsonSchema(
        {"type": "array", "contains": {"multipleOf": 3}, "minContains": 999_999}
    ),
    "nearly all of an enum": lambda: JsonSchema(
        {"type": "array", "uniqueItems": True, "minItems": 1990, "items": {"enum": names(2_000)}}
    ),
    "30,000 names but some": lambda: names_minus(30_000),
    "180 conditions in else": lambda: otherwise(180),
    "45 negations": lambda: negations(45),
    "40 alternatives that overlap": lambda: overlapping(40),
    "20,000 places of items": lambda: tuples(20_000),
    "9,000 members under patterns": lambda: members_under_patterns(9_000),
    "60 schemas of members": lambda: schemas_of_members(60),
    "30,000 aliases": lambda: aliases(30_000),
    "10,000 objects beside conditions": lambda: listed_objects(10_000),
    "300 formats of lengths": lambda: formats_of_lengths(300),
    "20,000 required names under patterns": lambda: required_by_patterns(20_000),
    "long texts of two patterns": lambda: long_and_patterned(20_000),
    "repetitions of Unicode": unicode_repetitions,
    "12 lookaheads": lambda: lookaheads(12),
    "300 lookbehinds": lambda: lookbehinds(300),
    "4,000 long choices": lambda: Choice(f"{'abc' * 900}{k}" for k in range(4_000)),
    "60,000 rules that are not used": lambda: unused_rules(60_000),
    "900 rules of hidden left recursion": lambda: hidden_left_recursion(900),
    "400 terminals that overlap": lambda: terminals_that_overlap(400),
    "25 templates of Lark": lambda: templates(25),
    "300 differences of EBNF": lambda: differences(300),
    "90 nested options of EBNF": lambda: nested_options(90),
    "two texts of four million characters": lambda: one_long_text(2_000_000),
    "9 levels of tags": lambda: tags_in_tags(9),
    "a class of four million characters": lambda: Gbnf(f"root ::= [{'ab' * 2_000_000}]"),
    "a terminal of two million characters": lambda: Lark(f'start: A\nA: "{"ab" * 1_000_000}"'),
    "an excluded text of a million characters": lambda: excluded_text(500_000),
    "100,000 required names": lambda: JsonSchema({"type": "object", "required": names(100_000)}),
    "30,000 identifiers": lambda: identifiers(30_000),
    "40,000 constants of tags": lambda: constants(200),
    "1,000 tools with trees": lambda: tools_alike(1_000),
}
