"""The base of sources whose parts may have budgets of tokens: GBNF, EBNF, Lark and structural tags."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable

from ...base.errors import ConstraintError, ConstraintLimit
from ...base.utf8 import BYTE_ORDER_MARK
from ...grammar.expression import Grammar, Node
from ...grammar.merged_repetitions import untangled
from ...grammar.source import Limits, Source
from ...grammar.stages import Budgets, Stages, refuse_budgets, stages_of
from ...runtime.constraint import Constraint
from ...runtime.front_end import FrontEnd
from ...runtime.staged import staged

_MAY_BE_BUDGET = re.compile(r"max_tokens|Token\s*\(|<[^\s<>]+>")  # the last one: one token


class Budgeted(FrontEnd):
    """A source with parts that may be limited to a number of tokens."""

    __slots__ = ()

    @abstractmethod
    def lower_with_budgets(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        """The node of the source, not left-factored, and the budgets in it."""

    @property
    @abstractmethod
    def may_have_budgets(self) -> bool:
        """Whether looking for budgets is worth it."""

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The node of the grammar. Raises `GrammarSyntaxError`, `UnsupportedKeyword`, `ConstraintLimit`, and
        `ConstraintError` for names that are not defined."""
        root, budgets = self.lower_with_budgets(grammar, limits)
        refuse_budgets(budgets)
        return untangled(grammar, root, limits)

    def lower_whole(self, grammar: Grammar, limits: Limits) -> Node:
        """The node of a grammar that stands alone, so that `finish` can see to its budgets of tokens. Raises as
        `lower`."""
        return untangled(grammar, self.lower_with_budgets(grammar, limits)[0], limits)

    def stages(self, grammar: Grammar, limits: Limits) -> Stages:
        """The parts of the grammar, cut at rules with a budget of tokens."""
        return stages_of(grammar, *self.lower_with_budgets(grammar, limits))

    def finish(self, constraint: Constraint, compiled: Callable[[Source], Constraint]) -> Constraint:
        """The constraint with its budgets of tokens."""
        return staged(self, constraint, compiled) if self.may_have_budgets else constraint


class BudgetedText(Budgeted):
    """A source with budgets that is a grammar in `text`, which some editors begin with a byte order mark."""

    __slots__ = ()
    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConstraintError(f"the text of a grammar is a string, not {type(self.text).__name__}")
        object.__setattr__(self, "text", self.text.removeprefix(BYTE_ORDER_MARK))

    @abstractmethod
    def _written(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        """The expression that the text describes, and the budgets of its rules."""

    @property
    def source_text(self) -> str:
        return self.text

    @property
    def may_have_budgets(self) -> bool:
        return _MAY_BE_BUDGET.search(self.text) is not None

    def lower_with_budgets(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        if len(self.text) > limits.source_bytes:
            value = limits.source_bytes
            raise ConstraintLimit(f"a grammar of {len(self.text)} characters", limit="source_bytes", value=value)
        return self._written(grammar, limits)
