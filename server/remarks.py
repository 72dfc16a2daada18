"""The remarks of an answer about itself, beside OpenAI's members."""

from __future__ import annotations

from typing import Any

from ..engine.requests.output import RequestOutput
from ..planning import Plan


def remarks_of(plan: Plan) -> dict[str, Any]:
    """{"residue": [...]} where something was asked for that is not enforced, which needs "strict": false; else {}.

    This is known before the first token, so streams tell it with their first event.
    """
    residue = plan.constraint.residue if plan.constraint is not None else ()
    return {"residue": list(residue)} if residue else {}


def loops_of(output: RequestOutput) -> dict[str, Any]:
    """{"loops": [...]} where the model repeated itself in values until they were ended (`loop_bound`); else {}."""
    told = [{"path": each.path, "text": each.text, "count": each.count, "start": each.start} for each in output.loops]
    return {"loops": told} if told else {}
