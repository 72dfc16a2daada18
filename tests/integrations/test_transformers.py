"""transformers' assisted generation and continuous batching under constraints, with a random model really run."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")

from transformers import GenerationConfig
from transformers.generation.configuration_utils import ContinuousBatchingConfig
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessorList
from transformers.generation.logits_process import LogitsProcessorList

from maskwright import LogitsProcessor
from maskwright.constraints import Compiler, Constraint, JsonSchema, Regex, Vocabulary
from maskwright.errors import UsageError
from maskwright.integrations.transformers import ContinuousBatchingConstraint, constrained
from maskwright.kernels.sampler.interface import UNCONSTRAINED

PATTERN = "[ab]{2}(c|de){1,3}[0-9]"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"], "additionalProperties": False}
PROMPTS = [[65, 66], [67] * 9, [68, 97, 98], [69]]


@pytest.fixture(scope="module")
def pattern(compiler: Compiler) -> Constraint:
    return compiler.compile(Regex(PATTERN))


@pytest.fixture(scope="module")
def schema(compiler: Compiler) -> Constraint:
    return compiler.compile(JsonSchema(SCHEMA))


def text_of(vocabulary: Vocabulary, tokens: Any) -> bytes:
    eos = vocabulary.eos_token_ids[0]
    tokens = [int(token) for token in tokens]
    tokens = tokens[: tokens.index(eos)] if eos in tokens else tokens
    return b"".join(vocabulary.text_tokens[i] or b"" for i in tokens if i < vocabulary.size)


def is_valid(text: bytes) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return list(value) == ["a", "b"] and isinstance(value["a"], int) and isinstance(value["b"], str)


def settings(vocabulary: Vocabulary, **options: Any) -> GenerationConfig:
    eos = vocabulary.eos_token_ids[0]
    return GenerationConfig(eos_token_id=eos, pad_token_id=eos + 1, **{"max_new_tokens": 40, "do_sample": False, **options})


# -- assisted generation


def generated(model: Any, vocabulary: Vocabulary, processor: LogitsProcessor, prompt: list[int], **options: Any) -> list[int]:
    ids = torch.tensor([prompt])
    eos = vocabulary.eos_token_ids[0]
    rows = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), pad_token_id=eos + 1, logits_processor=[processor],
        **{"max_new_tokens": 40, "do_sample": False, **options},
    )  # fmt: skip
    return list(map(int, rows[0, len(prompt) :]))


@pytest.mark.parametrize("kind", ["assistant", "lookup", "early exit"])
@pytest.mark.parametrize("known", [True, False], ids=["prompt known", "prompt found"])
def test_guesses_ahead_change_no_greedy_output(
    kind: str, known: bool, model: Any, assistant: Any, vocabulary: Vocabulary, schema: Constraint, pattern: Constraint
) -> None:
    options: dict[str, Any] = {"assistant": {"assistant_model": assistant}, "lookup": {"prompt_lookup_num_tokens": 4}, "early exit": {"assistant_early_exit": 1}}[kind]
    for constraint in (schema, pattern):
        for prompt in ([65, 66], list(b'{"a": 1, "b": "abcabc"} {"a"'), list(b"abc3 abde")):
            length = len(prompt) if known else None
            plain = generated(model, vocabulary, LogitsProcessor(constraint, prompt_length=length, max_new_tokens=40), prompt)
            guessed = generated(model, vocabulary, LogitsProcessor(constraint, prompt_length=length, max_new_tokens=40), prompt, **options)
            assert guessed == plain
            assert constraint.accepts(text_of(vocabulary, guessed))


@pytest.mark.parametrize("kind", ["assistant", "lookup"])
def test_sampled_guesses_satisfy_the_constraint(kind: str, model: Any, assistant: Any, vocabulary: Vocabulary, pattern: Constraint) -> None:
    options: dict[str, Any] = {"assistant": {"assistant_model": assistant}, "lookup": {"prompt_lookup_num_tokens": 3}}[kind]
    torch.manual_seed(0)
    for seed in range(8):
        prompt = [*b"abc3 ab", 65 + seed]
        found = generated(model, vocabulary, LogitsProcessor(pattern), prompt, do_sample=True, temperature=1.5, **options)
        assert re.fullmatch(PATTERN, text_of(vocabulary, found).decode())


def test_an_assistant_that_reads_other_tokens_is_refused(vocabulary: Vocabulary, pattern: Constraint) -> None:
    processor = LogitsProcessor(pattern)
    processor(torch.tensor([[9]]), torch.zeros(1, vocabulary.size + 9))
    with pytest.raises(UsageError, match="tokenizer of its own"):
        processor(torch.tensor([[9]]), torch.zeros(1, vocabulary.size + 5))
    processor.reset()
    processor(torch.tensor([[9]]), torch.zeros(1, vocabulary.size + 5))


# -- what a row is known by


def test_with_the_prompt_s_length_a_row_alone_decides(vocabulary: Vocabulary, schema: Constraint) -> None:
    """Rows in any order and of any length, as long as the prompt is; a twin that walks each from its start."""
    random.seed(0)
    processor = LogitsProcessor(schema, prompt_length=3)
    outputs = [list(b'{"a": 12, "b": "xyz"}'), list(b'{"a":7,"b":"'), [300], list(b"x")]
    for _ in range(60):
        prompt = [random.randrange(256) for _ in range(3)]
        output = random.choice(outputs)
        output = output[: random.randrange(len(output) + 1)]
        masked = processor(torch.tensor([prompt + output]), torch.zeros(1, vocabulary.size))
        state = schema.start()
        for token in output:
            state = None if state is None or token >= vocabulary.size else schema.advance(state, token)  # type: ignore[assignment]
        words = schema.mask(state) if state is not None else None
        expected = list(vocabulary.eos_token_ids) if words is None else np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        assert torch.isfinite(masked[0]).nonzero().flatten().tolist() == expected


def test_a_prompt_that_goes_on_from_an_output_is_a_prompt_where_its_length_is_told(model: Any, vocabulary: Vocabulary, pattern: Constraint) -> None:
    told = LogitsProcessor(pattern, prompt_length=3)
    found = generated(model, vocabulary, LogitsProcessor(pattern), [65, 66])
    after = generated(model, vocabulary, told, [65, 66, found[0]])
    assert re.fullmatch(PATTERN, text_of(vocabulary, after).decode())
    with pytest.raises(UsageError, match="prompt_length=3"):
        told(torch.tensor([[1, 2]]), torch.zeros(1, model.config.vocab_size))


@pytest.mark.parametrize("budget", [12, 15, 20])
def test_max_new_tokens_completes_every_output(budget: int, model: Any, vocabulary: Vocabulary, schema: Constraint) -> None:
    torch.manual_seed(0)
    eos = vocabulary.eos_token_ids[0]
    pad = eos + 1
    prompts = torch.tensor([[pad, pad, 65], [65, 66, 67]])
    needed = schema.min_tokens(schema.start())
    assert needed <= budget
    rows = model.generate(
        input_ids=prompts, attention_mask=(prompts != pad).long(), max_new_tokens=budget, pad_token_id=pad, do_sample=True, num_return_sequences=6,
        logits_processor=[LogitsProcessor(schema, max_new_tokens=budget)],
    )  # fmt: skip
    assert all(is_valid(text_of(vocabulary, row[3:])) for row in rows)


def test_a_budget_that_no_output_fits_is_refused(schema: Constraint) -> None:
    with pytest.raises(UsageError, match="shortest output takes"):
        LogitsProcessor(schema, max_new_tokens=2)


# -- continuous batching


@pytest.fixture
def batching() -> ContinuousBatchingConfig:
    return ContinuousBatchingConfig(num_blocks=16, page_size=32, max_batch_tokens=64, use_async_batching=False)


def test_continuous_batching_gives_what_generate_gives(model: Any, vocabulary: Vocabulary, schema: Constraint, batching: Any) -> None:
    with constrained(model, schema):
        outputs = list(model.generate_batch(PROMPTS, settings(vocabulary), batching).values())
    for prompt, output in zip(PROMPTS, outputs, strict=True):
        expected = generated(model, vocabulary, LogitsProcessor(schema, max_new_tokens=40), prompt)
        assert output.error is None
        assert text_of(vocabulary, output.generated_tokens) == text_of(vocabulary, expected)
    assert "init_continuous_batching" not in vars(model)


def results(manager: Any, count: int) -> Iterator[Any]:
    for _ in range(count):
        found = None
        while found is None:
            assert manager.is_running()
            found = manager.get_result(timeout=5)
        yield found


def test_each_request_has_its_own_constraint(model: Any, vocabulary: Vocabulary, schema: Constraint, pattern: Constraint, batching: Any) -> None:
    torch.manual_seed(0)
    narrow = Compiler(Vocabulary([bytes([byte]) for byte in range(256)])).compile(Regex("a"))
    wanted = {f"{k}": [schema, pattern, None][k % 3] for k in range(18)}
    config = settings(vocabulary, do_sample=True, temperature=2.0)
    with constrained(model, pattern), model.continuous_batching_context_manager(config, continuous_batching_config=batching) as manager:
        for name, constraint in wanted.items():
            manager.add_request([65, int(name)], request_id=name, constraint=constraint)
        manager.add_request([65], request_id="default")
        manager.add_request([65], request_id="endless", constraint=narrow)
        manager.add_request([65], request_id="no constraint", constraint="[a-z]")
        found = {output.request_id: output for output in results(manager, len(wanted) + 3)}
    texts = {name: text_of(vocabulary, output.generated_tokens) for name, output in found.items()}
    for name, constraint in {**wanted, "default": pattern}.items():
        assert found[name].error is None
        assert constraint is None or constraint.accepts(texts[name]), texts[name]
    assert sum(not is_valid(texts[name]) for name, constraint in wanted.items() if constraint is None) > 3
    assert "EOS" in found["endless"].error and "Constraint" in found["no constraint"].error


def test_several_outputs_of_a_request_and_few_blocks(model: Any, vocabulary: Vocabulary, schema: Constraint) -> None:
    """Requests are forked, and displaced when the cache is full: what they had generated joins their prompts."""
    torch.manual_seed(0)
    few = ContinuousBatchingConfig(num_blocks=10, page_size=8, max_batch_tokens=16, use_async_batching=False, allow_block_sharing=False)
    config = settings(vocabulary, do_sample=True, num_return_sequences=2)
    with constrained(model, schema, num_masks=16):
        outputs = model.generate_batch(PROMPTS, config, few)
    assert len(outputs) == 8
    for output in outputs.values():
        assert output.error is None and is_valid(text_of(vocabulary, output.generated_tokens))


class _Request:
    """What continuous batching tells of a request."""

    def __init__(self, name: str, prompt: int, generated: list[int], constraint: Constraint | None, moved: int = 0) -> None:
        self.request_id, self.max_new_tokens = name, None
        self.initial_tokens, self.generated_tokens = [1] * prompt + generated[:moved], generated[moved:]
        self._true_initial_tokens = prompt if moved else 0
        self.position_offset = prompt + len(generated)
        self.logit_processor_kwargs = {"constraint": constraint}
        self.state = self


def test_rows_of_masks_are_those_of_the_states(vocabulary: Vocabulary, schema: Constraint, pattern: Constraint) -> None:
    """Requests in every order, taken back, displaced and forked, in a table that is too small for all masks ever met."""
    random.seed(1)
    head = vocabulary.size + 7
    processor = ContinuousBatchingConstraint(None, head, "cpu", num_masks=6)
    texts = [list(b'{"a": 12, "b": "xyz"}'), list(b'{"a": -7, "b": ""}')], [list(b"abcc3"), list(b"badede9")]
    for _ in range(80):
        requests, expected = [], []
        for number in random.sample(range(8), random.randrange(1, 6)):
            constraint = [schema, pattern, None][number % 3]
            tokens = random.choice(texts[number % 2 if constraint is None else [schema, pattern].index(constraint)])
            tokens = tokens[: random.randrange(len(tokens) + 1)]
            requests.append(_Request(f"{number}", 3, tokens, constraint, moved=random.choice([0, len(tokens) // 2])))
            state = None if constraint is None else constraint.start()
            for token in tokens if constraint else ():
                state = constraint.advance(state, token)  # type: ignore[union-attr, arg-type]
            words = None if constraint is None else constraint.mask(state)  # type: ignore[arg-type]
            bits = np.ones(head, bool) if words is None else np.unpackbits(np.pad(words, (0, 1)).view(np.uint8), bitorder="little")[:head].astype(bool)
            expected.append(bits)
        rows = processor.prepare_tensor_args(requests)
        assert rows.dtype == torch.int32 and rows.tolist().count(UNCONSTRAINED) == sum(r.logit_processor_kwargs["constraint"] is None for r in requests)
        storage = torch.full((10,), UNCONSTRAINED, dtype=torch.int32)
        storage[: len(rows)] = rows
        masked = processor(torch.zeros(len(rows), head), storage)
        assert np.array_equal(torch.isfinite(masked).numpy(), np.stack(expected))


def test_a_step_prepared_before_its_token_is_refused(schema: Constraint, vocabulary: Vocabulary) -> None:
    processor = ContinuousBatchingConstraint(schema, vocabulary.size, "cpu")
    request = _Request("0", 3, list(b'{"'), schema)
    request.generated_tokens.pop()
    with pytest.raises(UsageError, match="use_async_batching=False"):
        processor.prepare_tensor_args([request])


def test_a_constraint_of_a_wider_vocabulary_is_refused(schema: Constraint, vocabulary: Vocabulary) -> None:
    with pytest.raises(UsageError, match=f"size={vocabulary.size - 1}"):
        ContinuousBatchingConstraint(schema, vocabulary.size - 1, "cpu")


def test_a_plain_processor_is_refused_by_continuous_batching(schema: Constraint) -> None:
    with pytest.raises(UsageError, match=r"maskwright\.integrations\.transformers"):
        ContinuousBatchingLogitsProcessorList(LogitsProcessorList([LogitsProcessor(schema)]))


def test_a_constraint_is_one_thing_however_it_is_copied(schema: Constraint) -> None:
    assert copy.deepcopy({"constraint": schema})["constraint"] is schema
