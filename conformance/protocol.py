"""What a backend has to offer. Two small protocols: nothing has to be inherited, nothing of this package imported."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from ..constraints import Vocabulary

KINDS = ("json_schema", "regex", "grammar", "structural_tag")


class Matcher(Protocol):
    """One text under one constraint, token by token."""

    def mask(self) -> NDArray[Any]:
        """Allowed tokens, packed: [ceil(V / 32)] words of 32 bits, bit t % 32 of word t // 32 is token t. EOS exactly where the
        text may end."""

    def accept(self, token_id: int) -> bool:
        """Read a token; False where it is not allowed. EOS is read too."""

    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens. NotImplementedError where that is not offered."""

    def is_finished(self) -> bool:
        """Whether the text has ended: EOS was read."""


class BudgetMatcher(Matcher, Protocol):
    """One that can finish in time; optional."""

    def mask_within(self, count: int) -> NDArray[Any]:
        """The mask of those tokens after which the text can be complete with `count` tokens in all, EOS not counted."""


class Backend(Protocol):
    """Made without arguments. `name` is what the report calls it, `version` that of the library behind it."""

    name: str
    version: str

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> Matcher:
        """A fresh matcher. Whatever it raises is a refusal, and its text the reason.

        kind, source: "json_schema": the schema, as `json.loads` gives it. "regex": a pattern for the whole text. "grammar":
        {"gbnf": ..., "lark": ...}, the same language in both, of which one may be chosen; some have no "lark".
        "structural_tag": XGrammar's JSON form.
        """
