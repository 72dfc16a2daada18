"""XGrammar's `excludes` of a JSON schema: substrings that no string and no name of a member contains.

That is said in JSON Schema itself, beside the schema: every string at any depth fails the pattern of an excluded one. XGrammar
leaves strings with a `pattern` or `format` alone; here all strings are meant.
"""

from __future__ import annotations

import re
from typing import Any

from ...base.errors import UnsupportedKeyword

SCHEMA = "urn:schema"  # the address of what was given
_ESCAPED_IN_JSON = re.compile(r'["\\\x00-\x1f]')


def without(schema: Any, excludes: tuple[str, ...], path: str) -> tuple[Any, dict[str, Any]]:
    """A schema of the values that hold none of the excluded strings, and the documents that it refers to.

    Raises `UnsupportedKeyword` for a substring that JSON writes with escapes, so that its text and the string differ.
    """
    for i, text in enumerate(excludes):
        if not text or _ESCAPED_IN_JSON.search(text):
            reason = f"{text!r} is empty, or has characters that JSON writes with an escape"
            raise UnsupportedKeyword(reason, path=f"{path}/excludes/{i}", keyword="excludes", instead="other substrings")
    allowed = {"not": {"pattern": "|".join(map(_literal, excludes)), "type": "string"}}
    clean = {"allOf": [allowed], "propertyNames": allowed, "additionalProperties": {"$ref": "#/$defs/clean"}}
    clean["items"] = clean["additionalProperties"]
    return {"allOf": [{"$ref": SCHEMA}, {"$ref": "#/$defs/clean"}], "$defs": {"clean": clean}}, {SCHEMA: schema}


def _literal(text: str) -> str:
    """A pattern of ECMA-262 that matches a text."""
    return re.sub(r"[\^$\\.*+?()\[\]{}|/]", r"\\\g<0>", text)
