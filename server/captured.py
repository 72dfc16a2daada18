"""The extension `captures` of answers: what the rules with a capture in a Lark or EBNF grammar have read, by name."""

from __future__ import annotations

from typing import Any

from ..constraints import Compiler, ConstraintError, Reasoning, Source, Tools
from ..constraints.capturing.capture import captures, captures_by_name, names_captures
from ..constraints.front_ends.tags.answer import Answer
from ..constraints.runtime.front_end import FrontEnd
from ..constraints.runtime.healed import HealedConstraint
from ..engine.requests.output import RequestOutput
from ..planning import Plan
from .service import Service


async def captures_of(
    service: Service, plan: Plan, ended: RequestOutput, content: str, *, has_calls: bool = False
) -> dict[str, Any]:
    """Members of an answer: "captures" when the grammar has some, or "captures_error" when they cannot be told; else no
    member.

    ended: one output of the plan. content: its text without reasoning. has_calls: whether it is calls, which no grammar has read.
    """
    grammar = None if has_calls else _grammar(plan.choice.source)
    if grammar is None:
        return {}
    request = plan.requests[0]
    healed = plan.constraint if isinstance(plan.constraint, HealedConstraint) else None
    begun = (request.begun if healed is None else healed.begun).decode(errors="replace")
    is_apart = grammar is not plan.choice.source or bool(begun or request.healed)
    return await service.in_thread(_read, service.llm.compiler, plan, grammar, begun + content if is_apart else ended.token_ids)


def _grammar(source: Any) -> Source | None:
    """The source that may name parts of the content."""
    if isinstance(source, Reasoning) and isinstance(source.inner, Answer):
        source = source.inner.inner
    if isinstance(source, Tools):
        source = source.answer
    return source if isinstance(source, FrontEnd) and source.may_have_captures else None


def _read(compiler: Compiler, plan: Plan, grammar: Source, output: str | tuple[int, ...]) -> dict[str, Any]:
    try:
        constraint = plan.constraint if plan.choice.source is grammar else compiler.compile(grammar)
        if not names_captures(constraint):
            return {}
        return {"captures": captures_by_name(captures(constraint, output))}
    except ConstraintError as error:
        return {"captures": None, "captures_error": str(error)}
