"""The remarks of an answer about itself, beside OpenAI's members."""

from __future__ import annotations

from typing import Any

from ..engine.requests.output import RequestOutput
from ..planning import Plan


def remarks_of(plan: Plan) -> dict[str, Any]:
    """"residue", a list, where something was asked for that is not enforced, which needs "strict": false; "notes", another, where
    the constraint was read in another way than it is written (a keyword that is not known, a narrower format).

    This is known before the first token, so streams tell it with their first event.
    """
    if plan.constraint is None:
        return {}
    told = {"residue": list(plan.constraint.residue), "notes": list(plan.constraint.notes)}
    return {name: remarks for name, remarks in told.items() if remarks}


def loops_of(output: RequestOutput) -> dict[str, Any]:
    """{"loops": [...]} where the model repeated itself in values until they were ended (`loop_bound`); else {}."""
    told = [{"path": each.path, "text": each.text, "count": each.count, "start": each.start} for each in output.loops]
    return {"loops": told} if told else {}
