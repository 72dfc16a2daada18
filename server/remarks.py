"""The remarks of an answer about itself, beside OpenAI's members."""

from __future__ import annotations

from typing import Any

from ..planning import Plan


def remarks_of(plan: Plan) -> dict[str, Any]:
    """{"residue": [...]} where something was asked for that is not enforced, which needs "strict": false; else {}.

    This is known before the first token, so streams tell it with their first event.
    """
    residue = plan.constraint.residue if plan.constraint is not None else ()
    return {"residue": list(residue)} if residue else {}
