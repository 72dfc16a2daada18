"""What grammar texts have in common whose rules may have budgets of tokens: EBNF and Lark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from .constraint import Constraint
from .errors import ConstraintLimit
from .expression import Grammar, Node
from .left_factoring import left_factored
from .source import Limits, Source
from .staged import staged
from .stages import Budgets, Stages, refuse_budgets, stages_of


class BudgetedText:
    """A source that is a grammar in `text`."""

    __slots__ = ()
    text: str

    @abstractmethod
    def _written(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        """The expression that the text describes, and the budgets of its rules."""

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The expression of the grammar. Raises `GrammarSyntaxError`, `UnsupportedKeyword`, `ConstraintLimit`, and
        `ConstraintError` for names that are not defined."""
        root, budgets = self._lowered(grammar, limits)
        refuse_budgets(budgets)
        return left_factored(grammar, root, limits)

    def lower_whole(self, grammar: Grammar, limits: Limits) -> Node:
        """The same for a grammar that stands alone: budgets of tokens are left to `finish`."""
        return left_factored(grammar, self._lowered(grammar, limits)[0], limits)

    def stages(self, grammar: Grammar, limits: Limits) -> Stages:
        """The parts of the grammar, cut at rules with a budget of tokens."""
        return stages_of(grammar, *self._lowered(grammar, limits))

    def finish(self, constraint: Constraint, compiled: Callable[[Source], Constraint]) -> Constraint:
        """The constraint with its budgets of tokens."""
        return staged(self, constraint, compiled) if "max_tokens" in self.text else constraint

    def _lowered(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        if len(self.text) > limits.source_bytes:
            value = limits.source_bytes
            raise ConstraintLimit(f"a grammar of {len(self.text)} characters", limit="source_bytes", value=value)
        return self._written(grammar, limits)
