"""Hostile schemas, patterns and grammars: what has broken parsers, validators and matchers before, as sources by name.

Each is made by a function, so that listing them costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from maskwright.constraints import Choice, Ebnf, Gbnf, JsonSchema, Lark, Regex

Case = Callable[[], Any]


def _nested(open_text: str, inner: str, close_text: str, depth: int) -> str:
    return open_text * depth + inner + close_text * depth


def _schema(value: Any, **options: Any) -> JsonSchema:
    return JsonSchema(json.dumps(value), **options)


def _string(**keywords: Any) -> JsonSchema:
    return _schema({"type": "string", **keywords})


def _words(count: int) -> list[str]:
    return [f"value-{(index * 2654435761) % 4294967296:08x}-{index}" for index in range(count)]


def _properties(count: int, required: bool) -> JsonSchema:
    names = _words(count)
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }
    return _schema({**schema, "required": names} if required else schema)


_APPLYING: dict[str, Callable[[Any], Any]] = {
    **{keyword: lambda next_one, keyword=keyword: {keyword: [next_one]} for keyword in ("allOf", "anyOf", "oneOf")},
    "not": lambda next_one: {"not": next_one},
    "if": lambda next_one: {"if": next_one, "then": next_one, "else": {"type": "null"}},
    "then": lambda next_one: {"if": {"type": "null"}, "then": next_one},
    "dependentSchemas": lambda next_one: {"dependentSchemas": {"a": next_one}},
    "unevaluatedProperties": lambda next_one: {"allOf": [next_one], "unevaluatedProperties": False},
}
_INSIDE: dict[str, Callable[[Any], Any]] = {
    "propertyNames": lambda next_one: {"propertyNames": next_one},
    "contains": lambda next_one: {"contains": next_one},
    "negated members": lambda next_one: {"not": {"properties": {"a": next_one}, "required": ["a"]}},
}


def _reference_chain(length: int, last: Any, applied: Callable[[Any], Any] = lambda next_one: next_one) -> JsonSchema:
    definitions: dict[str, Any] = {f"d{index}": applied({"$ref": f"#/$defs/d{index + 1}"}) for index in range(length)}
    return _schema({"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": last}})


def _doubling(keyword: str, levels: int) -> JsonSchema:
    """A definition that names the next one twice: 2^levels paths, levels + 1 schemas."""
    definitions: dict[str, Any] = {
        f"d{index}": {keyword: [{"$ref": f"#/$defs/d{index + 1}"}, {"$ref": f"#/$defs/d{index + 1}"}]}
        for index in range(levels)
    }
    return _schema({"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "string", "maxLength": 5}}})


def _product(count: int, width: int) -> JsonSchema:
    """allOf of anyOfs: width^count ways to choose."""
    unions = [
        {"anyOf": [{"properties": {f"p{index}": {"enum": [option]}}} for option in range(width)]}
        for index in range(count)
    ]
    return _schema({"type": "object", "allOf": unions})


def _unions_of_strings(count: int) -> JsonSchema:
    unions = [
        {"anyOf": [{"minLength": index}, {"maxLength": 2 * index}, {"pattern": f"a{{{index}}}"}]}
        for index in range(count)
    ]
    return _schema({"type": "string", "allOf": unions})


def _nested_schema(keyword: str, depth: int) -> JsonSchema:
    inner = '{"type":"integer"}'
    texts = {
        "properties": ('{"type":"object","properties":{"a":', '},"required":["a"],"additionalProperties":false}'),
        "items": ('{"type":"array","maxItems":2,"items":', "}"),
        "allOf": ('{"allOf":[', "]}"),
        "anyOf": ('{"anyOf":[{"type":"null"},', "]}"),
        "not": ('{"not":', "}"),
        "if": ('{"if":{"type":"string"},"else":', "}"),
    }
    open_text, close_text = texts[keyword]
    return JsonSchema(_nested(open_text, inner, close_text, depth))


def _long_grammar(rules: int) -> Gbnf:
    lines = [f'r{index} ::= "x" r{index + 1} | "y"' for index in range(rules)]
    return Gbnf("\n".join(["root ::= r0", *lines, f'r{rules} ::= "z"']))


SCHEMAS: dict[str, Case] = {
    "text of 10,000 arrays": lambda: JsonSchema("[" * 10_000),
    "text of 100,000 closed arrays": lambda: JsonSchema(_nested("[", "", "]", 100_000)),
    "value of 100,000 levels": lambda: JsonSchema({"const": _deep_value(100_000)}),
    "const of 10,000 levels": lambda: JsonSchema('{"const":' + _nested("[", "", "]", 10_000) + "}"),
    **{
        f"{keyword} {depth} deep": partial(_nested_schema, keyword, depth)
        for keyword in ("properties", "items", "allOf", "anyOf", "not", "if")
        for depth in (45, 180, 10_000)
    },
    "enum of 5,000 strings": lambda: _schema({"enum": _words(5_000)}),
    "enum of 200,000 strings": lambda: _schema({"enum": _words(200_000)}),
    "enum of 5,000 objects": lambda: _schema({"enum": [{"a": index, "b": [index]} for index in range(5_000)]}),
    "enum with one long string": lambda: _schema({"enum": ["x" * 500_000]}),
    "600 optional properties": lambda: _properties(600, required=False),
    "600 required properties": lambda: _properties(600, required=True),
    "20,000 properties": lambda: _properties(20_000, required=False),
    "required without properties": lambda: _schema({"type": "object", "required": _words(5_000)}),
    "a reference to itself": lambda: _schema({"$ref": "#"}),
    "a definition that is itself": lambda: _schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
    "two definitions that are each other": lambda: _schema(
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    ),
    "allOf of itself": lambda: _schema({"allOf": [{"$ref": "#"}, {"type": "string"}]}),
    "anyOf of itself": lambda: _schema({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
    "not itself": lambda: _schema({"not": {"$ref": "#"}}),
    "if itself": lambda: _schema({"if": {"$ref": "#"}, "then": {"type": "string"}, "else": {"type": "null"}}),
    "a reference to nothing": lambda: _schema({"$ref": "#/$defs/missing"}),
    "a reference into a string": lambda: _schema({"$ref": "#/title/0", "title": "abc"}),
    "a reference with broken escapes": lambda: _schema({"$ref": "#/%zz~3%ff"}),
    "an infinite object": lambda: _schema({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
    "an infinite array": lambda: _schema({"type": "array", "items": {"$ref": "#"}, "minItems": 1}),
    "a chain of 100 references": lambda: _reference_chain(100, {"type": "null"}),
    "a chain of 10,000 references": lambda: _reference_chain(10_000, {"type": "null"}),
    **{f"a chain of 15,000 {name}": partial(_reference_chain, 15_000, {"type": "string"}, applied) for name, applied in _APPLYING.items()},
    **{f"a chain of 3,000 {name}": partial(_reference_chain, 3_000, {"type": "string"}, applied) for name, applied in _INSIDE.items()},
    "a chain of 100 allOf": partial(_reference_chain, 100, {"type": "null"}, _APPLYING["allOf"]),
    "allOf of 5,000 patterns": lambda: _schema({"allOf": [{"pattern": f"^a{index}"} for index in range(5_000)]}),
    "a long loop of references": lambda: _reference_chain(1_000, {"$ref": "#/$defs/d0"}),
    **{f"{keyword} doubled 30 times": partial(_doubling, keyword, 30) for keyword in ("allOf", "anyOf", "oneOf")},
    "anyOf to the power of 4": partial(_product, 4, 4),
    "anyOf to the power of 30": partial(_product, 30, 3),
    "unions of strings": partial(_unions_of_strings, 12),
    "oneOf of 500 objects": lambda: _schema(
        {"oneOf": [{"type": "object", "properties": {"k": {"const": index}}, "required": ["k"]} for index in range(500)]}
    ),
    "anyOf of 5,000 strings": lambda: _schema({"anyOf": [{"const": word} for word in _words(5_000)]}),
    "maxLength of 10^6": lambda: _string(maxLength=1_000_000),
    "maxLength of 10^12": lambda: _string(maxLength=10**12),
    "minLength of 10^6": lambda: _string(minLength=1_000_000),
    "minLength of 10^12": lambda: _string(minLength=10**12),
    "maxItems of 10,000": lambda: _schema({"type": "array", "items": {"type": "integer"}, "maxItems": 10_000}),
    "maxItems of 2^31": lambda: _schema({"type": "array", "items": {"type": "string", "maxLength": 2**31}, "maxItems": 2**31}),
    "minContains, maxContains of 10^12": lambda: _schema({"contains": {"type": "null"}, "minContains": 10**12, "maxContains": 10**12}),
    "maxContains of 10^12": lambda: _schema({"contains": {"type": "null"}, "maxContains": 10**12, "maxItems": 2**31 - 1}),
    "not minItems of 10^12": lambda: _schema({"not": {"minItems": 10**12, "items": {"type": "null"}}}),
    "minItems of 10^9": lambda: _schema({"type": "array", "minItems": 10**9}),
    "nested arrays of a million": lambda: _schema(
        {"type": "array", "maxItems": 10**6, "items": {"type": "array", "minItems": 1000, "maxItems": 10**6, "items": {"type": "null"}}}
    ),
    "bounds of 10^400": lambda: JsonSchema('{"type":"number","minimum":1e400,"maximum":1e401}'),
    "bounds of 10^-400": lambda: JsonSchema('{"type":"number","exclusiveMinimum":0,"maximum":1e-400}'),
    "exponent beyond all": lambda: JsonSchema('{"type":"number","minimum":1e999999999}'),
    "exponent beyond decimals": lambda: JsonSchema('{"type":"number","minimum":1e99999999999999999999}'),
    "bounds of 100,000 digits": lambda: JsonSchema('{"type":"integer","minimum":1' + "0" * 100_000 + "}"),
    "a constant of 100,000 digits": lambda: JsonSchema('{"const":1' + "0" * 100_000 + "}"),
    "a fraction of 100,000 digits": lambda: JsonSchema('{"type":"number","maximum":0.' + "1" * 100_000 + "}"),
    "multipleOf 10^-400": lambda: JsonSchema('{"type":"number","multipleOf":1e-400}'),
    "multipleOf of 300 digits": lambda: JsonSchema('{"type":"integer","multipleOf":' + "7" * 300 + "}"),
    "multipleOf a prime": lambda: JsonSchema('{"type":"integer","multipleOf":1000003}'),
    "infinity": lambda: JsonSchema('{"const":Infinity}'),
    "not a number": lambda: JsonSchema({"const": float("nan")}),
    "counts that are no counts": lambda: _schema({"maxLength": -1, "minItems": 1.5, "maxProperties": "a"}),
    "a lone surrogate": lambda: JsonSchema('{"const":"\\ud800"}'),
    "a lone surrogate as a name": lambda: JsonSchema('{"type":"object","properties":{"\\udfff":true},"required":["\\udfff"]}'),
    "a lone surrogate in a pattern": lambda: _string(pattern="\ud800"),
    "a lone surrogate in the text": lambda: JsonSchema('{"const":"\ud800"}'),
    "NUL in strings": lambda: _schema({"enum": ["\0", "a\0b"], "title": "\0"}),
    "NUL in names": lambda: _schema({"type": "object", "properties": {"\0": True}, "additionalProperties": False}),
    "NUL in the text": lambda: JsonSchema("\0{}"),
    "bytes that are no UTF-8": lambda: JsonSchema(b"\xff\xfe{}"),
    "empty text": lambda: JsonSchema(""),
    "a schema that is a number": lambda: JsonSchema("1"),
    "keywords of wrong types": lambda: _schema(
        {"type": 5, "properties": [], "items": 3, "enum": {}, "required": "a", "allOf": {}, "pattern": 1, "$ref": 7}
    ),
    "a megabyte of properties": lambda: _schema(
        {"type": "object", "properties": {f"name{index}": {"type": "string", "maxLength": index} for index in range(20_000)}}
    ),
    "a megabyte of definitions": lambda: _schema(
        {"type": "null", "$defs": {f"d{index}": {"type": "array", "items": {"$ref": f"#/$defs/d{index + 1}"}} for index in range(15_000)}}
    ),
    "a megabyte of description": lambda: _schema({"type": "null", "description": "x" * 1_000_000}),
    "a megabyte of one pattern": lambda: _string(pattern="a" * 1_000_000),
    "patterns that meet": lambda: _schema({"type": "string", "allOf": [{"pattern": f"^.*[a-{end}]{{9}}.*x"} for end in "bcdefghij"]}),
    "every format at once": lambda: _schema({"allOf": [{"format": name} for name in ("email", "uri", "regex", "hostname", "date")], "type": "string"}),
    "no format at all": lambda: _schema(
        {"type": "string", "not": {"anyOf": [{"format": name} for name in ("email", "idn-email", "uri", "regex", "hostname", "date-time")]}}
    ),
    "multiples of 300 digits within bounds": lambda: JsonSchema(
        '{"type":"integer","multipleOf":' + "7" * 300 + ',"minimum":-1' + "0" * 299 + ',"maximum":1' + "0" * 299 + "}"
    ),
    "a step of 10,000 zeros within bounds": lambda: JsonSchema('{"type":"number","multipleOf":1e9999,"minimum":-1e9999,"maximum":1e9999}'),
    "few multiples, many steps": lambda: _schema(
        {"type": "integer", "minimum": 0, "maximum": 999, "allOf": [{"not": {"multipleOf": step}} for step in range(2, 200)]}
    ),
    "any escapes: enum of 5,000 strings": lambda: _schema({"enum": _words(5_000)}, escapes="any"),
    "any escapes: enum with one long string": lambda: _schema({"enum": ["x" * 500_000]}, escapes="any"),
    "any escapes: maxLength of 10^6": lambda: _schema({"type": "string", "maxLength": 10**6, "pattern": "^[a-zé😀/]*$"}, escapes="any"),
    "any escapes: unique towers": lambda: JsonSchema(
        _nested('{"type":"array","uniqueItems":true,"items":', "true", "}", 150), escapes="any"
    ),
    "any escapes: every third character": lambda: _schema(
        {"pattern": "^[" + "".join(chr(code) for code in range(0x3000, 0x3000 + 3 * 3_000, 3)) + "]*$"}, escapes="any"
    ),
    "format and length": lambda: _string(format="idn-email", minLength=100, maxLength=110),
    "propertyNames of a tower": lambda: _schema({"type": "object", "propertyNames": {"pattern": "^(a+)+$"}, "minProperties": 1_000}),
    "uniqueItems of many": lambda: _schema({"type": "array", "uniqueItems": True, "minItems": 1_000, "items": {"type": "integer"}}),
    "contains of many": lambda: _schema({"type": "array", "contains": {"type": "null"}, "minContains": 10_000}),
    "patternProperties that meet": lambda: _schema(
        {"type": "object", "patternProperties": {f"[a-{end}]": {"minimum": ord(end)} for end in "bcdefghijklmnop"}}
    ),
    "40 optional properties, any order": lambda: _schema(
        {"type": "object", "properties": {f"p{index}": {} for index in range(40)}}, property_order="any"
    ),
}  # fmt: skip

_PATTERNS = {
    "(a+)+b": "(a+)+b",
    "(a|a)* tower": _nested("(", "a|a", ")*", 150) + "b",
    "(a*)* tower": _nested("(", "a*", ")*", 150) + "b",
    "(a|aa)+ tower": _nested("(?:a|", "aa", ")+", 100) + "$",
    "(.*)* ten times": "(.*)*" * 10 + "x",
    "groups 10,000 deep": _nested("(", "a", ")", 10_000),
    "groups 190 deep": _nested("(", "a", ")?", 190),
    "lookaheads 190 deep": _nested("(?=", "a", ")a", 190),
    "lookaheads 10,000 deep": _nested("(?=", "a", ")", 10_000),
    "100,000 groups": "(a)" * 100_000,
    "15,000 groups": "(a)" * 15_000,
    "8,000 alternatives": "|".join(map(str, range(8_000))),
    "45,000 empty alternatives": "|" * 45_000,
    "{1,1000000} nested": "((a{1,1000000}){1,1000000}){1,1000000}",
    "x{1000}{1000}": "(?:(?:x{1000}){1000}){1000}",
    "a counter of 10^12": "a{1000000000000}",
    "a counter of 10^30": "a{1,1" + "0" * 30 + "}",
    "a counter with 100,000 digits": "a{" + "9" * 100_000 + "}",
    "counters of overlapping sets": "^[ab]*a[ab]{1000}$",
    "counters in a row": ".{0,1000}.{0,1000}.{0,1000}a",
    "optional 200 times": "a?" * 200 + "a" * 200,
    "unicode classes": r"^(?:\w\W\d\D\s\S)*$",
    "case of everything": "(?i)[\\u0000-\\U0010ffff]+[a-z]{1,1000}",
    "20 lookaheads": "".join(f"(?=.*{letter})" for letter in "abcdefghijklmnopqrst") + ".*",
    "20 negative lookaheads": "".join(f"(?!.*{letter}{letter})" for letter in "abcdefghijklmnopqrst") + ".*",
    "word edges in a row": r"\b" * 100 + "a",
    "an assertion in a counter": r"(?:a\b ?){1,30}",
    "an open set": "[" * 49_000,
    "groups that are left open": "(" * 49_000,
    "plain groups in groups": "(?:(" * 12_000 + "))" * 12_000,
    "an open group": "(" * 10_000,
    "backslashes": "\\" * 10_001,
    "NUL": "\0+",
    "a lone surrogate": "\ud800",
    "nothing": "[^\\s\\S]",
    "empty": "",
    "a megabyte of text": "ab" * 500_000,
    "a megabyte of sets": "[a-z0-9]" * 125_000,
}

_GBNF = {
    "left recursion": 'root ::= root "a" | "b"',
    "hidden left recursion": 'root ::= x root "a" | "b"\nx ::= "y"?',
    "mutual left recursion": 'root ::= a\na ::= b "x" | "p"\nb ::= a "y" | "q"',
    "a rule that is itself": "root ::= root",
    "a rule without end": 'root ::= "a" root',
    "a missing rule": "root ::= missing",
    "no root": 'a ::= "b"',
    "empty": "",
    "groups 10,000 deep": "root ::= " + _nested("(", '"a"', ")", 10_000),
    "stars 150 deep": "root ::= " + _nested("(", '"a"', ")*", 150),
    "a counter of 10^12": 'root ::= "a"{1000000000000}',
    "counters nested": 'root ::= (("a"{1,1000000}){1,1000000}){1,1000000}',
    "10,000 alternatives": "root ::= " + " | ".join(f'"{word}"' for word in _words(10_000)),
    "an open string": 'root ::= "' + "a" * 100_000,
    "bad escapes": r'root ::= "\x" | "\uD800" | "\q"',
    "a lone surrogate": 'root ::= "\ud800"',
    "NUL": 'root ::= "\0"',
    "an unclosed set": "root ::= [" + "a" * 10_000,
    "balanced brackets": 'root ::= "(" root ")" | root2\nroot2 ::= "[" root "]" | ""',
}

_LARK = {
    "left recursion through 1,000 rules": "start: r0\n" + "".join(f'r{i}: r{i + 1} "x" | "z"\n' for i in range(1_000)) + "r1000: r0",
    "each of 40 rules begins with each": "start: r0\n"
    + "".join(f"r{i}: " + " | ".join(f'r{j} "{j}"' for j in range(40)) + ' | "z"\n' for i in range(40)),
    "rules without end": "start: a\na: b\nb: a",
    "empty loops": 'start: (a*)* b*\na: b?\nb: a | "x"? |',
    "terminals of each other": "start: A\nA: B\nB: A",
    "terminals doubled 60 times": "start: T0\n" + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60)) + 'T60: "y"',
    "rules doubled 60 times": "start: r0\n" + "".join(f"r{i}: r{i + 1} r{i + 1}\n" for i in range(60)) + 'r60: "y"',
    "groups 10,000 deep": "start: " + _nested("(", '"a"', ")", 10_000),
    "complements 100 deep": "start: T\nT: " + _nested("~(", "/a/", ")", 100),
    "inline grammars 1,000 deep": _nested("start: %lark { ", 'start: "a"', " }", 1_000),
    "inline schema 10,000 deep": "start: %json " + _nested('{"not":', "{}", "}", 10_000),
    "an option 100,000 deep": '%llguidance {"a":' + _nested("[", "", "]", 100_000) + '}\nstart: "a"',
    "a condition 10,000 deep": 'start: a::0\na::_: "x" %if ' + _nested("not(", "true", ")", 10_000),
    "parameters without end": 'start: a::0\na::_: "x" a::incr(_) | "y"',
    "templates without end": 'start: t{"a"}\nt{x}: t{(x "b")} | x',
    "a counter of 10^12": 'start: "a"~1000000000000',
    "optional parts repeated": "start: (" + '"a"? ' * 500 + ")*",
    "40 lazy heads": "start: (" + " | ".join(f'z{i} "{i}"' for i in range(40)) + ")* T\nT: /(.|\\n)*/\n"
    + "\n".join(f'z{i}[lazy]: T "<{i}>"' for i in range(40)),
    "a lazy head counted": 'start: (h "x"){0,100000} T\nh[lazy]: T "<t>"\nT: /(.|\\n)*/',
    "an open group": 'start: "a" ' + "(" * 20_000,
    "an open string": 'start: "' + "a" * 100_000,
    "NUL": "\0" * 1_000,
    "empty": "",
}  # fmt: skip

_EBNF = {
    "optional parts 10,000 deep": "root = " + _nested("[", "'a'", "]", 10_000) + " ;",
    "repetitions 100 deep": "root = " + _nested("{", "'a'", "}", 100) + " ;",
    "a counter of 10^12": "root = 1000000000000 * 'a' ;",
    "an open comment": "(*" * 20_000,
    "differences of differences": "root ::= ((A - B) - A) - (B - A)\nA ::= [a-z]* 'x'\nB ::= [a-z]* 'yx'",
}

_CHOICES: dict[str, Case] = {
    "200,000 choices": lambda: Choice(_words(200_000)),
    "one long choice": lambda: Choice(["x" * 1_000_000]),
    "empty choices": lambda: Choice(["", ""]),
    "no choice": lambda: Choice([]),
    "a lone surrogate": lambda: Choice(["\ud800"]),
}

CASES: dict[str, Case] = {
    **{f"schema: {name}": case for name, case in SCHEMAS.items()},
    **{f"python: {name}": partial(Regex, pattern) for name, pattern in _PATTERNS.items()},
    **{f"ecma: {name}": partial(Regex, pattern, "ecma", False) for name, pattern in _PATTERNS.items()},
    **{f"gbnf: {name}": partial(Gbnf, text) for name, text in _GBNF.items()},
    "gbnf: 5,000 rules": partial(_long_grammar, 5_000),
    **{f"lark: {name}": partial(Lark, text) for name, text in _LARK.items()},
    **{f"ebnf: {name}": partial(Ebnf, text) for name, text in _EBNF.items()},
    **{f"choice: {name}": case for name, case in _CHOICES.items()},
}


# Cases that may take more than the 2 seconds of all others: they are large, and their time is linear.
SECONDS = {"schema: 20,000 properties": 15.0, "schema: a megabyte of properties": 15.0, "schema: enum of 5,000 objects": 10.0,
           "lark: parameters without end": 15.0}  # fmt: skip


def _deep_value(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value
