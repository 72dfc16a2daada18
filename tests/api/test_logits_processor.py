"""transformers' `generate` under a constraint: greedy, sampled, with beams, in batches with padding."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from maskwright import LLM, LogitsProcessor
from maskwright.constraints import Compiler, Regex, Vocabulary

PATTERN = "[ab]{2}(c|de){1,3}[0-9]"


@pytest.fixture(scope="module")
def model(model_folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model_folder).eval()


@pytest.fixture(scope="module")
def constraint(llm: LLM) -> Any:
    return Compiler(llm.vocabulary).compile(Regex(PATTERN))


def texts(llm: LLM, rows: Any, prompt_length: int) -> list[str]:
    tokens = llm.vocabulary.text_tokens
    return [b"".join(tokens[i] or b"" for i in row[prompt_length:].tolist() if i < len(tokens)).decode() for row in rows]


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "temperature": 2.0, "num_return_sequences": 4},
        {"do_sample": False, "num_beams": 4, "num_return_sequences": 4},
        {"do_sample": True, "num_beams": 3, "temperature": 2.0},
    ],
)
def test_every_output_matches(llm: LLM, model: Any, constraint: Any, options: Any) -> None:
    torch.manual_seed(0)
    pad = llm.vocabulary.eos_token_ids[0] + 1
    prompts = torch.tensor([[pad, pad, 65, 66], [65, 66, 67, 68]])
    attention = (prompts != pad).long()
    rows = model.generate(
        input_ids=prompts,
        attention_mask=attention,
        max_new_tokens=12,
        pad_token_id=pad,
        logits_processor=[LogitsProcessor(constraint)],
        **options,
    )
    for text in texts(llm, rows, prompts.shape[1]):
        assert re.fullmatch(PATTERN, text), text


def test_one_processor_serves_one_call_after_the_other(llm: LLM, model: Any, constraint: Any) -> None:
    processor = LogitsProcessor(constraint)
    for prompt in ([65, 66], [65, 66], [70, 71, 72]):
        ids = torch.tensor([prompt])
        rows = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, logits_processor=[processor], do_sample=False
        )
        assert re.fullmatch(PATTERN, texts(llm, rows, len(prompt))[0])


def test_the_mask_is_that_of_the_constraint_for_every_row(llm: LLM, constraint: Any) -> None:
    """Rows in different states, reordered between calls, under a head wider than the vocabulary."""
    size = llm.vocabulary.size
    a, b, c = (llm.vocabulary.tokens.index(letter) for letter in (b"a", b"b", b"c"))
    processor = LogitsProcessor(constraint)
    scores = torch.zeros(2, size + 7)
    processor(torch.tensor([[9], [9]]), scores)
    processor(torch.tensor([[9, a], [9, b]]), scores)
    masked = processor(torch.tensor([[9, b, b], [9, a, a]]), scores)
    masked = processor(torch.tensor([[9, a, a, c], [9, b, b, c]]), scores)
    state = constraint.start()
    for token in (a, a, c):
        state = constraint.advance(state, token)
    bits = np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little")[:size].astype(bool)
    for row in masked:
        assert torch.equal(torch.isfinite(row[:size]), torch.from_numpy(bits))
        assert torch.isneginf(row[size:]).all()


def test_a_row_that_was_continued_against_the_mask_may_only_end(llm: LLM, constraint: Any) -> None:
    size = llm.vocabulary.size
    processor = LogitsProcessor(constraint)
    processor(torch.tensor([[9]]), torch.zeros(1, size))
    wrong = llm.vocabulary.tokens.index(b"z")
    masked = processor(torch.tensor([[9, wrong]]), torch.zeros(1, size))
    assert torch.isfinite(masked[0]).nonzero().flatten().tolist() == list(llm.vocabulary.eos_token_ids)


def test_a_head_narrower_than_the_vocabulary_is_refused(llm: LLM, constraint: Any) -> None:
    with pytest.raises(ValueError, match=f"size={llm.vocabulary.size - 1}"):
        LogitsProcessor(constraint)(torch.tensor([[9]]), torch.zeros(1, llm.vocabulary.size - 1))


def test_a_vocabulary_without_an_end_is_refused() -> None:
    endless = Compiler(Vocabulary([bytes([byte]) for byte in range(256)])).compile(Regex("a"))
    with pytest.raises(ValueError, match="no EOS token"):
        LogitsProcessor(endless)
