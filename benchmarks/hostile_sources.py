"""Sources that would take a compiler much time or memory, each a family by its name: schemas, patterns, grammars, sets of tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright.constraints import Choice, Ebnf, Gbnf, JsonSchema, Lark, Regex, StructuralTag, Tools


def names(count: int) -> list[str]:
    return [f"n{k * 7919 % 100_003}" for k in range(count)]


def closed(members: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "additionalProperties": False, **others}


def nested(depth: int) -> Any:
    inner: Any = {"type": "string", "pattern": "^(a|b){1,9}c"}
    for level in range(depth):
        inner = closed({f"m{level}": inner, "x": {"anyOf": [inner, {"type": "null"}]}})
    return inner


def patterned(*patterns: str, **others: Any) -> JsonSchema:
    return JsonSchema({"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns], **others})


def in_pairs(count: int) -> JsonSchema:
    members = {f"{letter}{k}": {"type": "integer"} for k in range(count) for letter in "ab"}
    asked = {f"a{k}": [f"b{k * 7 % count}"] for k in range(count)}
    return JsonSchema(closed(members, dependentRequired=asked), property_order="any")


def in_a_chain(count: int) -> JsonSchema:
    conditions = [
        {"if": {"properties": {f"k{k}": {"const": True}}}, "then": {"required": [f"k{k + 1}"]}} for k in range(count - 1)
    ]
    members = {f"k{k}": {"type": "boolean"} for k in range(count)}
    return JsonSchema({"type": "object", "properties": members, "allOf": conditions}, property_order="any")


def one_of_each_two(count: int) -> JsonSchema:
    pairs = [{"oneOf": [{"required": [f"{letter}{k}"]} for letter in "ab"]} for k in range(count)]
    return JsonSchema({"allOf": pairs}, property_order="any")


def references(count: int) -> JsonSchema:
    def called(number: int) -> dict[str, str]:
        return {"$ref": f"#/$defs/d{number % count}"}

    rules = {f"d{k}": closed({"l": called(7 * k + 1), "r": called(3 * k + 2)}) for k in range(count)}
    return JsonSchema({"$defs": rules, **called(0)})


def rules(count: int) -> Gbnf:
    return Gbnf("root ::= r0\n" + "\n".join(f'r{k} ::= "a{k}" r{(31 * k + 1) % count}? | "b{k}"' for k in range(count)))


def branches(count: int) -> JsonSchema:
    return JsonSchema({"oneOf": [closed({"k": {"const": k}, f"m{k}": True}, required=["k"]) for k in range(count)]})


def kinds(count: int) -> JsonSchema:
    wanted = [{"contains": {"type": "string", "pattern": f"{k}$"}} for k in range(count)]
    return JsonSchema({"type": "array", "maxItems": 40, "allOf": wanted})


def many_patterns(count: int) -> JsonSchema:
    return JsonSchema(closed({f"a{k}": {"type": "string", "pattern": f"^[a-z]{{{k % 50}}}x{k}"} for k in range(count)}))


def enums(count: int) -> JsonSchema:
    """Lists of strings and numbers, each beside a pattern that some of them match."""
    listed = {f"e{k}": {"enum": [*names(count), *range(k, k + count)], "pattern": f"{k % 10}$"} for k in range(60)}
    return JsonSchema(closed(listed))


def long_patterns(count: int) -> JsonSchema:
    words = "|".join(f"{name}[a-f]{{1,3}}" for name in names(count))
    return JsonSchema(closed({f"a{k}": {"type": "string", "pattern": f"^(?:{words}|{k}){{1,9}}$"} for k in range(40)}))


def deep(depth: int, width: int) -> JsonSchema:
    inner: Any = {"type": "integer"}
    for level in range(depth):
        others = {f"k{level}x{k}": {"type": "array", "items": {"maxLength": k}} for k in range(width)}
        inner = {"anyOf": [closed({**others, "more": inner}), {"const": level}]}
    return JsonSchema(inner)


def definitions(count: int) -> JsonSchema:
    """Definitions that apply others to the same value."""
    rules: dict[str, Any] = {
        f"d{k}": {"allOf": [{"$ref": f"#/$defs/d{k + 1}"}, {"properties": {f"m{k}": {"minLength": k % 90}}}]} for k in range(count)
    }
    tops = {f"t{k}": {"$ref": f"#/$defs/d{k}"} for k in range(count)}
    return JsonSchema({"$defs": {**rules, f"d{count}": {"type": "object"}}, "properties": tops})


def unique_and_contained(count: int) -> JsonSchema:
    wanted = [{"contains": {"type": "object", "required": [f"a{k}"]}, "maxContains": k + 1} for k in range(count)]
    return JsonSchema({"type": "array", "uniqueItems": True, "items": closed(dict.fromkeys(names(40), True)), "allOf": wanted})


def lark_rules(count: int) -> Lark:
    rules = (f'r{k}: "a{k}" r{(31 * k + 1) % count} | T{k}' for k in range(count))
    terminals = (f"T{k}: /x{k}[a-z]{{1,{2 + k % 40}}}/" for k in range(count))
    return Lark("\n".join(["start: r0", *rules, *terminals]))


def repetitions(count: int) -> Gbnf:
    bodies = (f'r{k} ::= ("a"{{1,{900 + k}}} r{(k + 1) % count}? "b"{{2,{90000 + k}}}){{1,{700 + k}}}' for k in range(count))
    return Gbnf("root ::= r0\n" + "\n".join(bodies))


def formats(count: int) -> JsonSchema:
    known = ("email", "idn-email", "hostname", "uri", "date-time", "iri", "ipv6", "uri-template")
    texts = [{"format": known[k % len(known)], "pattern": f"[{k % 10}a].{{{k % 7}}}{k % 9}"} for k in range(count)]
    return JsonSchema(closed({f"f{k}": {"type": "string", **text} for k, text in enumerate(texts)}))


def tools(count: int) -> Tools:
    parameters = [closed({f"p{j}x{k}": {"enum": names(9)} for j in range(12)}, required=[f"p0x{k}"]) for k in range(count)]
    return Tools([{"name": f"tool_{k}", "parameters": each} for k, each in enumerate(parameters)], style="hermes")


def names_that_differ(count: int) -> JsonSchema:
    """Unlisted names under several patterns, of which so many are needed."""
    wanted = {f"{k}[a-z]{{2,9}}$": {"minLength": k} for k in range(count)}
    return JsonSchema({"type": "object", "patternProperties": wanted, "minProperties": 4 * count, "additionalProperties": False})


def twins(count: int) -> JsonSchema:
    """Branches that differ in what one pattern says of one member."""
    texts = [{"type": "string", "pattern": f"^.{{{k}}}[a-f]+.{{{k}}}$"} for k in range(count)]
    return JsonSchema({"oneOf": [closed({"a": text, "b": {"type": "integer"}}) for text in texts]})


def tags(count: int) -> StructuralTag:
    content = [{"type": "json_schema", "json_schema": closed({f"p{k}": {"enum": names(12)}, "q": True})} for k in range(count)]
    each = [{"type": "tag", "begin": f"<t{k}>", "content": part, "end": f"</t{k}>"} for k, part in enumerate(content)]
    tagged = {"type": "triggered_tags", "triggers": ["<t"], "tags": each}
    return StructuralTag({"type": "structural_tag", "format": tagged})


def conditional_tools(count: int) -> Tools:
    asked = {f"p{j}": [f"p{(j + 1) % 12}"] for j in range(12)}
    members = {f"p{j}": {"type": "string", "format": "idn-email", "pattern": f"{j}$"} for j in range(12)}
    parameters = [closed({**members, f"own{k}": True}, dependentRequired=asked) for k in range(count)]
    return Tools([{"name": f"tool_{k}", "parameters": each} for k, each in enumerate(parameters)], style="hermes")


def in_all_orders(count: int) -> JsonSchema:
    """Members of which three are needed in each of many random groups."""
    groups = [{"anyOf": [{"required": [f"m{(7 * k + j * j) % count}"]} for j in range(1, 4)]} for k in range(count)]
    return JsonSchema({"type": "object", "allOf": groups}, property_order="any")


def ebnf_rules(count: int) -> Ebnf:
    bodies = (f'r{k} ::= "a{k}" (r{(k + 1) % count} | r{(5 * k + 2) % count})* "z"? | "b"' for k in range(count))
    return Ebnf("\n".join(bodies), root="r0")


def negated(count: int) -> JsonSchema:
    parts = [{"not": {"pattern": f"{letter}.{{{k}}}{letter}"}} for k, letter in enumerate("abcdefghijklmnop"[:count], 3)]
    return JsonSchema({"type": "string", "allOf": parts})


def unevaluated(count: int) -> JsonSchema:
    branches = [{"properties": {f"m{k}": {"const": k}}, "patternProperties": {f"^x{k}": {"minLength": k}}} for k in range(count)]
    return JsonSchema({"type": "object", "anyOf": branches, "unevaluatedProperties": False})


def steps_of_numbers(count: int) -> JsonSchema:
    return JsonSchema(closed({f"n{k}": {"type": "number", "multipleOf": 1009 + 2 * k, "minimum": 0.1 * k} for k in range(count)}))


def unique_texts(count: int) -> JsonSchema:
    texts = {"type": "string", "pattern": f"^(?:[a-f]{{2,{count}}}x){{2,{count}}}$"}
    return JsonSchema({"type": "array", "uniqueItems": True, "minItems": 40, "items": texts})


FAMILIES: dict[str, Callable[[], Any]] = {
    "an enum of 90,000 strings": lambda: JsonSchema({"enum": [f"value {k * k}" for k in range(90_000)]}),
    "60,000 members": lambda: JsonSchema(closed({name: {"type": "integer"} for name in names(60_000)})),
    "4,000 patterns": lambda: many_patterns(4_000),
    "3,000 branches": lambda: branches(3_000),
    "400 pairs of members": lambda: in_pairs(400),
    "patterns that multiply": lambda: patterned(*(f"[a-z].{{{k}}}x" for k in (9, 11, 13))),
    "words of a length": lambda: patterned(r"^(\S+\s+){490,990}\S+$", maxLength=8_000),
    "hosts that begin anywhere": lambda: patterned(r"(?=.*\d.{14}[a-f])^(?:[^.]{1,63}\.){1,127}$"),
    "20,000 words, repeated": lambda: Regex("(?:" + "|".join(names(20_000)) + "){2,900}"),
    "3,000 repetitions": lambda: Regex("|".join(f"{name}[a-m]{{2,7}}" for name in names(3_000))),
    "12,000 rules": lambda: rules(12_000),
    "30,000 alternatives": lambda: Gbnf("root ::= " + " | ".join(f'"{name}" root?' for name in names(30_000))),
    "objects in objects": lambda: JsonSchema(nested(14)),
    "a chain of conditions": lambda: in_a_chain(150),
    "one of each two": lambda: one_of_each_two(40),
    "12 kinds of items": lambda: kinds(12),
    "names by patterns": lambda: JsonSchema({"patternProperties": {f"{k}.*{k}": {"minLength": k} for k in range(24)}}),
    "numbers of three steps": lambda: JsonSchema({"allOf": [{"type": "number", "multipleOf": step} for step in (997, 1009, 1013)]}),
    "30,000 unique items": lambda: JsonSchema({"type": "array", "uniqueItems": True, "items": {"enum": names(30_000)}}),
    "5,000 references": lambda: references(5_000),
    "60 enums beside patterns": lambda: enums(900),
    "40 patterns of 2,000 words": lambda: long_patterns(2_000),
    "190 levels": lambda: deep(95, 12),
    "150 definitions in one another": lambda: definitions(150),
    "30 kinds beside uniqueItems": lambda: unique_and_contained(30),
    "90,000 choices": lambda: Choice(f"choice {k * k}" for k in range(90_000)),
    "4,000 rules of Lark": lambda: lark_rules(4_000),
    "long repetitions": lambda: repetitions(3_000),
    "1,200 formats beside patterns": lambda: formats(1_200),
    "1,000 tools": lambda: tools(1_000),
    "names that differ": lambda: names_that_differ(40),
    "60 branches that are twins": lambda: twins(60),
    "2,000 tags": lambda: tags(2_000),
    "300 tools with conditions": lambda: conditional_tools(300),
    "three of 200 in 200 groups": lambda: in_all_orders(200),
    "6,000 rules of EBNF": lambda: ebnf_rules(6_000),
    "12 patterns that may not be": lambda: negated(12),
    "300 branches, unevaluated": lambda: unevaluated(300),
    "3,000 steps of numbers": lambda: steps_of_numbers(3_000),
    "unique texts of a pattern": lambda: unique_texts(40),
    "three lookaheads": lambda: Regex(r"(?=.*a.{12}b)(?=.*c.{11}d)(?=.*e.{10}f)[a-z ]{20,400}"),
    "8,000 classes": lambda: Regex("|".join(f"[{chr(0x4E00 + k)}-{chr(0x4E10 + k)}]{{2,90}}x" for k in range(8_000))),
}
