"""The official JSON Schema test suite: every case is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maskwright.constraints.base.errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from maskwright.constraints.front_ends.json_schema.documents.values import parse_json
from maskwright.constraints.grammar.reference import Reference

from ..json_texts import accepts_value, matcher

REMOTES = "http://localhost:1234/"
DRAFTS = {"draft4": "4", "draft6": "6", "draft7": "7", "draft2019-09": "2019-09", "draft2020-12": "2020-12"}


def compiled(schema: Any, draft: str, resources: dict[str, Any]) -> Reference | None:
    """None for a schema without values."""
    named = isinstance(schema, dict) and "$schema" in schema
    try:
        return matcher(schema, draft=None if named else draft, formats="annotation", resources=resources)
    except ConstraintError as error:
        if "no value satisfies" not in error.reason:
            raise
        return None


def has_text(value: Any) -> bool:
    """Whether a value is within the limit of digits."""
    try:
        accepts_value(matcher({"type": "null"}), value)
    except ConstraintLimit:
        return False
    return True


@pytest.mark.parametrize("draft", DRAFTS)
def test_official_suite(draft: str, shared_data: Path) -> None:
    suite = shared_data / "json_schema_test_suite"
    remotes = sorted((suite / "remotes").rglob("*.json"))
    resources = {REMOTES + path.relative_to(suite / "remotes").as_posix(): parse_json(path.read_text()) for path in remotes}
    known = refused = 0
    for path in sorted((suite / "tests" / draft).glob("*.json")):
        for group in parse_json(path.read_text()):
            needed = resources if REMOTES in str(group["schema"]) else {}
            try:
                reference = compiled(group["schema"], DRAFTS[draft], needed)
            except UnsupportedKeyword:
                refused += 1
                continue
            known += 1
            for case in group["tests"]:
                if has_text(case["data"]):
                    accepted = reference is not None and accepts_value(reference, case["data"])
                    assert accepted == case["valid"], (path.name, group["description"], case["description"])
    assert refused <= 0.01 * known
