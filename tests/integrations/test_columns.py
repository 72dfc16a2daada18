"""A stage for tables: one more column, whatever a row is like."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from maskwright.errors import MaskwrightError, UsageError
from maskwright.integrations.columns import Extract


class Switch(BaseModel):
    on: bool


@pytest.fixture(scope="module")
def stage() -> Extract:
    return Extract("{text}: {number:03d}", schema=Switch, sampling={"temperature": 0}, max_model_len=200)


def test_each_row_has_an_answer_or_the_reason_why_not(stage: Extract) -> None:
    piece = {"text": np.array(["a", "much too long " * 100, "c"], dtype=object), "number": np.array([1, 2, 3]), "other": np.arange(6).reshape(3, 2)}
    made = stage(piece)
    assert set(made) == {"text", "number", "other", "output", "error"} and made["other"] is piece["other"]
    outputs, errors = list(made["output"]), list(made["error"])
    assert [None if text is None else set(json.loads(text)) for text in outputs] == [{"on"}, None, {"on"}]
    assert errors[0] is None and errors[2] is None and "tokens" in errors[1]


def test_a_piece_gives_what_its_rows_give(stage: Extract) -> None:
    texts = ["one", "two", "three"]
    together = stage({"text": texts, "number": [1, 2, 3]})
    alone = [stage({"text": [text], "number": [number]})["output"][0] for number, text in enumerate(texts, 1)]
    assert list(together["output"]) == alone
    empty = stage({"text": [], "number": []})
    assert len(empty["output"]) == len(empty["error"]) == 0


def test_a_stage_can_be_sent_to_other_processes(stage: Extract) -> None:
    piece = {"text": ["x"], "number": [1]}
    assert list(pickle.loads(pickle.dumps(stage))(piece)["output"]) == list(stage(piece)["output"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompt": "{"}, "prompt= cannot be read"),
        ({"prompt": "{}"}, "the name of a column"),
        ({"prompt": "{a.b}"}, "the name of a column"),
        ({"prompt": "{a[0]}"}, "the name of a column"),
        ({"prompt": "x", "output": "y", "error": "y"}, "both are called"),
        ({"prompt": "x", "schema": {"type": "boolean"}, "regex": "a"}, "contradict"),
        ({"prompt": "x", "speculatoin": "lookup"}, "did you mean speculation"),
    ],
)
def test_what_is_wrong_with_a_stage_is_told_when_it_is_made(options: Any, said: str) -> None:
    with pytest.raises(MaskwrightError, match=said):
        Extract(**options)


def test_columns_that_are_missing_or_there_already_are_named(stage: Extract) -> None:
    with pytest.raises(UsageError, match='names the column "number"; there are text'):
        stage({"text": ["a"]})
    with pytest.raises(UsageError, match='a column "error" already'):
        stage({"text": ["a"], "number": [1], "error": [None]})
    with pytest.raises(UsageError, match="batch_format"):
        stage([{"text": "a"}])  # type: ignore[arg-type]
