"""Why a schema has no value: the fewest of its keywords that leave none, as QuickXplain finds them.

What can be left out are the keywords of the schema itself, of its `allOf` and of the members that it requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .documents.keyword_table import ANNOTATIONS, KEYWORDS
from .documents.paths import escape_token

MAX_NAMED = 5  # keywords of a message
Place = tuple[str | int, ...]  # where a keyword stands, from the root
HasNoValue = Callable[[Any], bool]


def clash(schema: Any, has_no_value: HasNoValue) -> str | None:
    """The keywords of a schema without a value that exclude each other, in words; None where they are not found.

    has_no_value: whether another schema is known to have none.
    """
    places = list(_places(schema, (), _required(schema))) if isinstance(schema, dict) else []
    if has_no_value(_without(schema, frozenset(places))):
        return None
    found = _fewest([], False, places, lambda kept: has_no_value(_without(schema, frozenset(places) - {*kept})))
    if len(found) > MAX_NAMED:
        return None
    *names, last = [f'"{_pointer(place)}"' for place in places if place in found]
    return f"{', '.join(names)} and {last} exclude each other" if names else f"{last} leaves none"


def _fewest(
    background: list[Place], is_new: bool, places: list[Place], are_too_many: Callable[[Sequence[Place]], bool]
) -> list[Place]:
    """The fewest of `places` that are too many together with `background`, which is tried when it `is_new`."""
    if is_new and are_too_many(background):
        return []
    if len(places) == 1:
        return places
    half = len(places) // 2
    first, second = places[:half], places[half:]
    of_second = _fewest([*background, *first], True, second, are_too_many)
    of_first = _fewest([*background, *of_second], bool(of_second), first, are_too_many)
    return [*of_first, *of_second]


def _required(schema: dict[str, Any]) -> frozenset[str]:
    """The names that a schema and its `allOf` require."""
    own = schema.get("required")
    names = frozenset(name for name in own if isinstance(name, str)) if isinstance(own, list) else frozenset[str]()
    return names.union(*(_required(branch) for branch in _branches(schema) if isinstance(branch, dict)))


def _branches(schema: dict[str, Any]) -> list[Any]:
    branches = schema.get("allOf")
    return branches if isinstance(branches, list) else []


def _places(schema: Any, at: Place, required: frozenset[str]) -> Iterator[Place]:
    """Where keywords stand that can be left out. A schema that is true or false is one, too."""
    if not isinstance(schema, dict):
        yield at
        return
    for keyword, value in schema.items():
        here = (*at, keyword)
        if keyword == "allOf" and isinstance(value, list):
            for index, branch in enumerate(value):
                yield from _places(branch, (*here, index), required)
        elif keyword == "properties" and isinstance(value, dict):
            for name, member in value.items():
                if name in required:
                    yield from _places(member, (*here, name), _required(member) if isinstance(member, dict) else frozenset())
        elif keyword in KEYWORDS and keyword not in ANNOTATIONS:
            yield here


def _without(schema: Any, left_out: frozenset[Place], at: Place = ()) -> Any:
    """The schema without the keywords at some places."""
    if at in left_out:
        return True
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        here = (*at, keyword)
        if keyword == "allOf" and isinstance(value, list):
            kept[keyword] = [_without(branch, left_out, (*here, index)) for index, branch in enumerate(value)]
        elif keyword == "properties" and isinstance(value, dict):
            kept[keyword] = {name: _without(member, left_out, (*here, name)) for name, member in value.items()}
        elif here not in left_out:
            kept[keyword] = value
    return kept


def _pointer(place: Place) -> str:
    return "/".join(escape_token(str(token)) for token in place)
