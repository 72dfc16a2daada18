"""What is left of formulas in each case of one member: of each part once for all cases in which the same is true of it.

Of a hundred alternatives by a kind each asks one thing of it, so a case of the kind changes few of them.
"""

from __future__ import annotations

from collections.abc import Callable

from ..algebra.formulas import Formula, Has, Joined, Negated, all_of, any_of, negation, one_of

_NONE: tuple[Has, ...] = ()


class Restrictions:
    """Restricts formulas to the cases of the member `name`; `truth(fact, case)` says whether a fact about it holds in a case."""

    def __init__(self, name: str, truth: Callable[[Has, int], bool]) -> None:
        self._name, self._truth = name, truth
        self._asked: dict[Joined, tuple[Has, ...]] = {}
        self._known: dict[tuple[Joined, tuple[bool, ...]], Formula] = {}

    def of(self, formula: Formula, case: int) -> Formula:
        """What is left of a formula; the formula itself where it does not speak of the member."""
        if isinstance(formula, Has):
            return self._truth(formula, case) if formula.name == self._name else formula
        if isinstance(formula, Negated):
            left = self.of(formula.part, case)
            return formula if left is formula.part else negation(left)
        if not isinstance(formula, Joined):
            return formula
        asked = self._facts(formula)
        if not asked:
            return formula
        key = formula, tuple([self._truth(fact, case) for fact in asked])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._of_parts(formula, case)
        return known

    def _of_parts(self, formula: Joined, case: int) -> Formula:
        decisive = None if formula.how == "one" else formula.how == "any"  # of a part, for the whole
        parts: list[Formula] = []
        for part in formula.parts:
            left = self.of(part, case)
            if left is decisive:
                return left
            parts.append(left)
        return one_of(parts) if formula.how == "one" else all_of(parts) if formula.how == "all" else any_of(parts)

    def _facts(self, formula: Formula) -> tuple[Has, ...]:
        """What a formula asks about the member."""
        if isinstance(formula, Has):
            return (formula,) if formula.name == self._name else _NONE
        if isinstance(formula, Negated):
            return self._facts(formula.part)
        if not isinstance(formula, Joined):
            return _NONE
        known = self._asked.get(formula)
        if known is None:
            found: dict[Has, None] = {}
            for part in formula.parts:
                asked = self._facts(part)
                if asked:
                    found |= dict.fromkeys(asked)
            known = self._asked[formula] = tuple(found)
        return known
