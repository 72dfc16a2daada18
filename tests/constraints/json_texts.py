"""Canonical texts of JSON values, and schemas matched by the slow reference."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from maskwright.constraints.front_ends.json_schema.documents.values import scalar_text
from maskwright.constraints.front_ends.json_schema.json_schema import JsonSchema
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits

MAX_SPELLINGS = 200


def matcher(schema: Any, **options: Any) -> Reference:
    """The slow reference for the texts of a schema."""
    grammar = Grammar()
    return Reference(grammar, JsonSchema(schema, **options).lower(grammar, Limits()))


def spellings(value: Any) -> Iterator[str]:
    """The compact texts of a value, with the keys of its objects in every order."""
    if isinstance(value, list):
        for parts in itertools.product(*(tuple(spellings(item)) for item in value)):
            yield "[" + ",".join(parts) + "]"
    elif isinstance(value, dict):
        members = [[f"{scalar_text(name)}:{text}" for text in spellings(item)] for name, item in value.items()]
        for order in itertools.permutations(members):
            for parts in itertools.product(*order):
                yield "{" + ",".join(parts) + "}"
    else:
        yield scalar_text(value)


def accepts_value(reference: Reference, value: Any) -> bool:
    """Whether some order of keys is accepted."""
    return any(reference.accepts(text.encode()) for text in itertools.islice(spellings(value), MAX_SPELLINGS))
