"""Cases, as the files beside this module hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ..constraints import Vocabulary
from ..errors import UsageError
from .vocabularies import cuts

SUITES = (
    "schemas", "spellings", "formats", "patterns", "grammars", "tags", "masks", "dead_ends", "rollback", "endings",
    "budgets", "special_tokens", "unicode",
)  # fmt: skip
FOLDER = "cases"

Text = str | Sequence[str | Mapping[str, str]]  # a text; or parts of one: text, {"bytes": hex}, {"special": name of a token}


@dataclass(frozen=True)
class Case:
    """One question. What is asked follows from `check` (checks.py); docs/conformance.md lists the fields of each."""

    id: str
    check: str
    kind: str  # of the source: KINDS in protocol.py
    source: Any
    origin: str  # the section of a specification, or the kind of report, that it is about
    vocabulary: str = "merged"
    accept: Sequence[Text] = ()
    reject: Sequence[Text] = ()
    strings: Sequence[str] = ()  # all texts of a finite language
    ends: Mapping[str, Sequence[int]] = field(default_factory=dict)  # text -> numbers of characters after which it may end
    walks: int = 0  # random ones
    most: int = 0  # tokens of a walk
    budgets: Sequence[int] = ()  # in tokens
    judge: Mapping[str, Any] = field(default_factory=dict)  # {"schema": ...} or {"pattern": ...}: of what walks write


def load(suite: str) -> list[Case]:
    """The cases of a suite, in the order of their file. Raises UsageError."""
    if suite not in SUITES:
        raise UsageError(f"--suite {suite}: one of {', '.join(SUITES)}")
    text = resources.files(__package__).joinpath(FOLDER, f"{suite}.json").read_text(encoding="utf-8")
    return [Case(**told) for told in json.loads(text)]


def token_ways(text: Text, tokens: Vocabulary, seed: str) -> list[list[int]]:
    """The ways in which a text of a case is written in tokens."""
    parts = [text] if isinstance(text, str) else text
    ways: list[list[int]] = []
    for part in _joined(parts):
        if isinstance(part, bytes):
            found = cuts(part, tokens, seed)
        else:
            names = {**tokens.special_tokens, "EOS": tokens.eos_token_ids[0]}
            found = [[names[part]]]
        count = max(len(ways), len(found), 1)
        ways = [[*(ways[k % len(ways)] if ways else []), *found[k % len(found)]] for k in range(count)]
    return ways or [[]]


def _joined(parts: Sequence[str | Mapping[str, str]]) -> list[bytes | str]:
    """Texts as bytes, neighbours as one; special tokens by name."""
    joined: list[bytes | str] = []
    for part in parts:
        if not isinstance(part, str) and "special" in part:
            joined.append(part["special"])
            continue
        data = part.encode() if isinstance(part, str) else bytes.fromhex(part["bytes"])
        if joined and isinstance(joined[-1], bytes):
            joined[-1] += data
        elif data:
            joined.append(data)
    return joined
