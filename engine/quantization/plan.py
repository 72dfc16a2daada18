"""Which module of a checkpoint is stored how."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ..errors import UnsupportedModel
from .scheme import Scheme

MOST_CHARACTERS = 2000  # of a pattern


@dataclass(frozen=True, slots=True)
class Pattern:
    """Names of modules, such as "model.layers.0.mlp.up_proj"."""

    kind: Literal["all", "name", "part", "regex"]
    text: str = ""

    def matches(self, module: str) -> bool:
        """Whole names; modules below a name, or whose name ends with it; or names that begin as an expression says."""
        if self.kind == "all":
            return True
        if self.kind == "name":
            return module == self.text
        if self.kind == "part":
            return f".{self.text}." in f".{module}."
        return compiled(self.text).match(module) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    patterns: tuple[Pattern, ...]
    scheme: Scheme | None  # None: as plain numbers


@dataclass(frozen=True, slots=True)
class Plan:
    """How the matrices of a checkpoint are stored."""

    method: str  # as config.json names it
    rules: tuple[Rule, ...]  # the first that names a module decides
    rounds_inputs: bool = True  # False: products of the weights with inputs as they are

    def scheme_of(self, module: str) -> Scheme | None:
        """None: as plain numbers."""
        return next((rule.scheme for rule in self.rules if any(pattern.matches(module) for pattern in rule.patterns)), None)


@lru_cache(maxsize=256)
def compiled(expression: str) -> re.Pattern[str]:
    """An expression out of config.json. Raises UnsupportedModel where it is none, or could take forever.

    Only one character may be repeated more than once: repetitions within repetitions, and of alternatives, take time that grows
    exponentially with the length of a name.
    """
    shown = expression if len(expression) < 80 else f"{expression[:77]}..."
    try:
        parser: Any = re._parser
        is_simple = len(expression) <= MOST_CHARACTERS and _is_simple(parser.parse(expression))
        pattern = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnsupportedModel(f'config.json: quantization_config: "{shown}" is no expression for names: {error}') from None
    if not is_simple:
        raise UnsupportedModel(f'config.json: quantization_config: the expression "{shown}" repeats more than single characters')
    return pattern


_SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN")


def _is_simple(parsed: Any) -> bool:
    for operation, argument in parsed:
        name = str(operation)
        if "REPEAT" in name:
            _, most, body = argument
            if not _is_simple(body) or (int(most) > 1 and not (len(body) == 1 and str(body[0][0]) in _SINGLE)):
                return False
        elif name == "BRANCH":
            if not all(_is_simple(branch) for branch in argument[1]):
                return False
        elif name in ("SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"):
            body = argument if name == "ATOMIC_GROUP" else argument[-1]
            if not _is_simple(body):
                return False
        elif name == "GROUPREF_EXISTS":
            return False
    return True
