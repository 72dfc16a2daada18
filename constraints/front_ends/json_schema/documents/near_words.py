"""What a word that means nothing in JSON Schema may have been meant to be: for remarks and errors, never for reading a schema.

Near are words that differ in case, in one letter, or in two neighbours that changed places: those that have a word in common once a
letter is left out of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .keyword_table import KEYWORDS, TYPE_NAMES

_SHORTEST = 3  # letters of what two words have in common; of shorter keywords (`not`, `if`) nearly any word is near
_OTHER_WORDS = {  # of OpenAPI 3.0, and of draft 3
    "nullable": '"null" among the types', "divisibleBy": "'multipleOf'", "extends": "'allOf'", "disallow": "'not'",
}  # fmt: skip
_OTHER_TYPES = {
    "str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "decimal": "number", "bool": "boolean", "dict": "object", "map": "object", "list": "array", "none": "null", "nil": "null",
}  # fmt: skip


@lru_cache(maxsize=1024)  # sources have the same words again and again
def meant_by(word: str) -> str | None:
    """What to write for a word that is no keyword; None where nothing is near."""
    if word in _OTHER_WORDS:
        return _OTHER_WORDS[word]
    found = next((_NEAR[each] for each in _shortened(word.lower()) if each in _NEAR), None)
    return None if found is None else repr(found)


def type_meant_by(word: object) -> str | None:
    """The type of JSON Schema that other languages call so."""
    name = word.lower() if isinstance(word, str) else ""
    return name if name in TYPE_NAMES else _OTHER_TYPES.get(name)


def _shortened(word: str) -> Iterator[str]:
    """A word, and all that have one letter less."""
    yield word
    if len(word) > _SHORTEST:
        yield from (word[:i] + word[i + 1 :] for i in range(len(word)))


_NEAR = {
    each: name
    for name in sorted((name for name in KEYWORDS if not name.startswith("x-") and len(name) > _SHORTEST), key=len, reverse=True)
    for each in _shortened(name.lower())
    if len(each) >= _SHORTEST
}
