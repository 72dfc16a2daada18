"""What goes from one process to another: sources, what became of them, and why they were refused."""

from __future__ import annotations

import copy
import pickle

import pytest

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    GrammarSyntaxError,
    JsonSchema,
    Regex,
    SavedConstraintError,
    Source,
    StructuralTag,
    UnsupportedKeyword,
)
from maskwright.constraints.runtime.loading import handed_over

from .test_saved import SOURCES, VOCABULARY, walks

ALL: dict[str, Source] = SOURCES | {
    "structural tag": StructuralTag({"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}),
    "resources": JsonSchema('{"$ref": "urn:é"}', resources={"urn:é": {"type": "integer"}}),
}
ERRORS: list[ConstraintError] = [
    ConstraintError("a reason", path="#/a", keyword="enum", instead="another"),
    GrammarSyntaxError("does not parse", line=2, column=5),
    UnsupportedKeyword("not enforced", path="#", keyword="format"),
    ConstraintLimit("too long", limit="seconds", value=10.0, path="#/b"),
    SavedConstraintError("cut short", keyword="file"),
]


@pytest.mark.parametrize("name", ALL)
def test_what_another_process_compiles_is_the_same_here(name: str) -> None:
    source, elsewhere, here = ALL[name], Compiler(VOCABULARY), Compiler(VOCABULARY)
    sent = pickle.loads(pickle.dumps(source))
    compiled = elsewhere.compile(sent)
    compiled.mask(compiled.start())
    taken = here.take_over(source, pickle.loads(pickle.dumps(handed_over(compiled))))
    assert sent == source and taken.source == source and taken.fingerprint == compiled.fingerprint
    assert here.knows(source) and here.compile(source) is taken
    assert walks(taken) == walks(elsewhere.compile(source))


def test_what_was_found_elsewhere_is_not_computed_again() -> None:
    compiled, here = Compiler(VOCABULARY).compile(Regex("a[a-c]{3}")), Compiler(VOCABULARY)
    compiled.mask(compiled.start())
    taken = here.take_over(Regex("a[a-c]{3}"), handed_over(compiled))
    assert taken.statistics == compiled.statistics and taken.statistics["rows"]


def test_a_schema_is_sent_however_deep_it_is() -> None:
    schema = JsonSchema('{"not":' * 900 + "true" + "}" * 900)
    assert pickle.loads(pickle.dumps(schema)) == schema


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_sent_as_it_is(error: ConstraintError) -> None:
    error.show_in("one\ntwo two")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error) and other is not error
        assert str(other) == str(error) and vars(other) == vars(error)
