"""The synthetic corpus: answers satisfy their constraints, training sees nothing held out, a seed fixes the examples."""

from __future__ import annotations

import itertools
import json
import random
import re
import statistics
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

sys.path.append(str(Path(__file__).parents[2] / "training"))

import data
import domains
import handwritten
import scoring
import talks
import values
import words
from calls import call_schema
from example import Example, canonical_json
from tools import TOOLS

SPLITS = ("train", "held_out")


def first_examples(split: values.Split, count: int = 400, seed: int = 11) -> list[Example]:
    return list(itertools.islice(data.examples(seed, split), count))


@pytest.mark.parametrize("split", SPLITS)
def test_answers_satisfy_their_constraints(split: values.Split) -> None:
    for example in first_examples(split):
        assert satisfies(example.answer, example.constraint), example


def test_handwritten_answers_satisfy_their_constraints() -> None:
    for example in (*handwritten.HANDWRITTEN, *handwritten.UNSEEN, *handwritten.LATER):
        assert satisfies(example.answer, example.constraint), example


def satisfies(answer: str, constraint: dict[str, object]) -> bool:
    """By independent means: jsonschema, `re` and membership. Grammars are left to the tests of the front end."""
    if "choice" in constraint:
        return answer in constraint["choice"]
    if "regex" in constraint:
        return re.fullmatch(constraint["regex"], answer) is not None
    if "schema" in constraint:
        return is_valid(answer, constraint["schema"])
    return "tools" not in constraint or is_valid(answer, call_schema(constraint["tools"]))


def is_valid(answer: str, schema: dict[str, object]) -> bool:
    value = json.loads(answer)
    return Draft202012Validator(schema).is_valid(value) and canonical_json(value) == answer


def test_varied_answers_satisfy_their_constraints() -> None:
    made = list(itertools.islice(data.varied_examples(11), 600))
    for example in made:
        answer = canonical_json(json.loads(example.answer)) if example.constraint and example.kind in scoring.JSON_KINDS else example.answer
        assert satisfies(answer, example.constraint), example
    assert {example.kind for example in made} >= {"fill", "call", "choice", "talk"}
    assert any(example.begun for example in made) and any(example.is_bare for example in made)


def test_tagged_objects_begin_anywhere() -> None:
    source = values.Source(random.Random(2), "train")
    begun = [talks.tagged(source) for _ in range(200)]
    for example in begun:
        whole = example.begun + example.answer
        json.loads(whole[whole.index("{") : whole.rindex("}") + 1])
    ends = {example.begun.rstrip()[-1:] for example in begun}
    assert ends >= {">", "{", ":", '"'}


def test_keys_of_answers_are_in_declared_order() -> None:
    for example in first_examples("train"):
        schema = example.constraint.get("schema", {})
        if schema.get("type") == "object":
            answered = list(json.loads(example.answer))
            assert answered == [key for key in schema["properties"] if key in answered]


@pytest.mark.parametrize("split", SPLITS)
def test_same_seed_same_examples(split: values.Split) -> None:
    assert first_examples(split, 60) == first_examples(split, 60)
    assert first_examples(split, 60) != first_examples(split, 60, seed=12)


def test_pools_are_divided_between_the_splits() -> None:
    for pool in (words.FIRST_NAMES, words.LAST_NAMES, words.CITIES, words.JOBS, words.PRODUCT_NOUNS, words.KEY_NOUNS):
        drawn = {split: draw_all(pool, split) for split in SPLITS}
        assert drawn["train"] and drawn["held_out"]
        assert not drawn["train"] & drawn["held_out"]


def draw_all(pool: list[str], split: values.Split) -> set[str]:
    source = values.Source(random.Random(5), split)
    return {source.pick(pool) for _ in range(600)}


def test_invented_names_and_long_numbers_are_divided_between_the_splits() -> None:
    makers = (values.Source.invented, values.Source.code, values.Source.phone, lambda source: str(source.integer(100, 5000)))
    for make in makers:
        for split in SPLITS:
            source = values.Source(random.Random(6), split)
            assert {values.split_of(make(source)) for _ in range(100)} == {split}


@pytest.mark.parametrize("templates", [each.openers for each in domains.DOMAINS] + [each.requests for each in TOOLS])
def test_training_never_sees_a_held_out_phrasing(templates: tuple[str, ...]) -> None:
    source = values.Source(random.Random(7), "train")
    seen = {source.phrasing(templates) for _ in range(300)}
    assert {values.split_of(each) for each in seen} == {"train"}


def test_score_counts_fields_missed_and_made_up() -> None:
    example = Example("fill", "", '{"a":1,"b":["x","y"],"c":null}', {})
    score = scoring.Score()
    assert not score.add(example, '{"a":1.0,"b":["x","z"],"d":2}')
    summary = score.summary()
    assert summary["fields"] == 5  # a, b[0], b[1], c, and d, which nobody asked for
    assert summary["fields_exact"] == 0.4


def test_score_of_malformed_json_is_zero() -> None:
    score = scoring.Score()
    assert not score.add(Example("fill", "", '{"a":1}', {}), '{"a":')
    assert (score.malformed, score.summary()["fields_exact"]) == (1, 0.0)


def test_true_is_not_one() -> None:
    assert scoring.is_same(1, 1.0)
    assert not scoring.is_same(1, True)


def test_two_models_differ_by_what_drawing_texts_anew_shows() -> None:
    rng = random.Random(3)
    examples = [Example("fill", "", canonical_json(dict.fromkeys("abcde"[: rng.randint(1, 5)], 1)), {}) for _ in range(80)]

    def answered(example: Example, chance: float) -> str:
        return canonical_json({key: int(rng.random() < chance) for key in json.loads(example.answer)} | ({"made up": 1} if rng.random() < 0.1 else {}))

    one, two = ([answered(example, chance) for example in examples] for chance in (0.9, 0.6))
    told = scoring.difference(examples, one, two)

    def points(rows: list[int]) -> float:
        shares = []
        for answers in (one, two):
            score = scoring.Score()
            for row in rows:
                score.add(examples[row], answers[row])
            shares.append(100 * score.right_fields["fill"] / score.fields["fill"])
        return shares[0] - shares[1]

    redrawn = [points(rng.choices(range(80), k=80)) for _ in range(2000)]
    assert told["texts"] == 80
    assert told["points"] == pytest.approx(points(list(range(80))), abs=0.06)
    assert told["error"] == pytest.approx(1.96 * statistics.stdev(redrawn), rel=0.08)


def test_the_same_answers_differ_by_nothing() -> None:
    examples = first_examples("held_out", 40)
    answers = [example.answer for example in examples]
    assert scoring.difference(examples, answers, answers) == {"points": 0.0, "error": 0.0, "texts": sum(example.kind in scoring.JSON_KINDS for example in examples)}
