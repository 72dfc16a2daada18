"""Outlines' own generators with our backend, over a random model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import torch
from pydantic import BaseModel, Field
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from maskwright.constraints import Compiler, ConstraintError, Regex, Vocabulary
from maskwright.errors import UsageError

from .conftest import random_model

outlines = pytest.importorskip("outlines", reason="outlines is not installed: pip install outlines")
ours = pytest.importorskip("maskwright.integrations.outlines")
CFG, JsonSchema = outlines.types.CFG, outlines.types.JsonSchema

END = "<|end|>"


class Person(BaseModel):
    name: Literal["Ada", "Bob"]
    age: Annotated[int, Field(ge=0, le=120)]


@pytest.fixture(scope="module")
def model() -> Any:
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, "ab", '{"', '":', "er"]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=[("a", "b"), ("{", '"'), ('"', ":"), ("e", "r")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END, "<|pad|>"])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token="<|pad|>", padding_side="left")
    eos = len(tokens)
    plain = random_model(Vocabulary([b"x"] * (eos + 2), eos_token_ids=[eos]), 3)
    ours.register()
    ours.register()
    return outlines.from_transformers(plain, wrapped)


def run(model: Any, kind: Any, **options: Any) -> Any:
    return outlines.Generator(model, kind, backend="maskwright")("Hello", do_sample=False, **options)


def test_types_schemas_patterns_and_grammars(model: Any) -> None:
    assert Person.model_validate_json(run(model, Person, max_new_tokens=100))
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 12}}, "required": ["n"], "additionalProperties": False}
    assert json.loads(run(model, JsonSchema(json.dumps(schema)), max_new_tokens=60))["n"] in (10, 11, 12)
    assert run(model, JsonSchema(json.dumps(schema), whitespace_pattern="_"), max_new_tokens=40).count("_") > 0
    assert run(model, Literal["red", "green"], max_new_tokens=20) in ("red", "green")
    assert re.fullmatch("[ab]{2}(c|de){1,3}[0-9]", run(model, outlines.regex("[ab]{2}(c|de){1,3}[0-9]"), max_new_tokens=20))
    assert run(model, CFG('root ::= "x" ("y" | "z"){2}'), max_new_tokens=20) in {"x" + a + b for a in "yz" for b in "yz"}
    assert run(model, CFG('start: "x" ("y"|"z") "!"'), max_new_tokens=20) in ("xy!", "xz!")


def test_one_generator_serves_calls_batches_and_beams(model: Any) -> None:
    generator = outlines.Generator(model, outlines.regex("[ab]{2}(c|de){1,3}[0-9]"), backend="maskwright")
    found = [generator("Hello", max_new_tokens=20), generator("Hello", max_new_tokens=20), *generator.batch(["a", "Hello there"], max_new_tokens=20)]
    found += generator("Hello", num_beams=3, num_return_sequences=3, max_new_tokens=20)
    for text in found:
        assert re.fullmatch("[ab]{2}(c|de){1,3}[0-9]", text), text


def test_the_backends_of_outlines_stay_what_they_are(model: Any) -> None:
    assert type(outlines.backends._get_backend("outlines_core", model)).__name__ == "OutlinesCoreBackend"
    with pytest.raises(ValueError, match="nothing not supported"):
        outlines.backends._get_backend("nothing", model)
    assert ours.MaskwrightBackend(model).compiler is ours.MaskwrightBackend(model).compiler


def test_what_cannot_be_enforced_is_refused_by_name(model: Any) -> None:
    with pytest.raises(ConstraintError, match="pattern"):
        run(model, JsonSchema(json.dumps({"type": "string", "pattern": r"(a)\1"})))


def test_numpy_rows_are_masked_as_those_of_torch_are(compiler: Compiler) -> None:
    constraint = compiler.compile(Regex("ab[0-9]"))
    size = constraint.vocabulary.size
    processors = [ours.ConstraintLogitsProcessor(constraint, library) for library in ("numpy", "torch")]
    for row in ([7, 8], [7, 8, 97], [7, 8, 97, 98], [7, 8, 97, 98, 50]):
        found = processors[0](np.array(row, np.intc), np.zeros(size + 3, np.single))
        expected = processors[1](torch.tensor([row]), torch.zeros(1, size + 3))
        assert found.dtype == np.single and np.array_equal(found, expected[0].numpy())


def test_other_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not object"):
        ours.MaskwrightBackend(object())
