"""The tokens that survive our filters, and the scores after our penalties, are those of transformers."""

from __future__ import annotations

import pytest
import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from maskwright.kernels.sampler.reference import filtered_weights, find_stages, penalised
from maskwright.sampling import BatchPacker, SamplingParams, SequenceSampling

VOCAB_SIZE = 500
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
OUTPUT = [5, 3, 5, 8]


def random_logits() -> torch.Tensor:
    return torch.randn(6, VOCAB_SIZE, generator=torch.Generator().manual_seed(11)) * 2


def survivors(logits: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    sequences = [SequenceSampling(params, vocab_size=VOCAB_SIZE) for _ in logits]
    rows = BatchPacker().pack(sequences)
    lag = logits - logits.amax(-1, keepdim=True)
    return filtered_weights(lag, rows.parameters.temperature[:, None], rows.parameters, find_stages(rows)) > 0


def processed(logits: torch.Tensor, *processors: object) -> torch.Tensor:
    input_ids = torch.zeros(len(logits), 1, dtype=torch.long)
    return LogitsProcessorList(processors)(input_ids, logits.clone())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("top_k", [1, 7, 50, VOCAB_SIZE])
def test_top_k(top_k: int, temperature: float) -> None:
    logits = random_logits()
    theirs = processed(logits, TemperatureLogitsWarper(temperature), TopKLogitsWarper(top_k))
    ours = survivors(logits, SamplingParams(top_k=top_k, temperature=temperature))
    assert torch.equal(ours, theirs.isfinite())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.9, 0.99])
def test_top_p(top_p: float, temperature: float) -> None:
    logits = random_logits()
    theirs = processed(logits, TemperatureLogitsWarper(temperature), TopPLogitsWarper(top_p))
    ours = survivors(logits, SamplingParams(top_p=top_p, temperature=temperature))
    assert torch.equal(ours, theirs.isfinite())


@pytest.mark.parametrize("min_p", [0.001, 0.05, 0.5, 1.0])
def test_min_p(min_p: float) -> None:
    logits = random_logits()
    assert torch.equal(
        survivors(logits, SamplingParams(min_p=min_p)), processed(logits, MinPLogitsWarper(min_p)).isfinite()
    )


def test_all_filters_together() -> None:
    logits = random_logits()
    theirs = processed(
        logits, TemperatureLogitsWarper(1.3), TopKLogitsWarper(40), TopPLogitsWarper(0.8), MinPLogitsWarper(0.1)
    )
    ours = survivors(logits, SamplingParams(temperature=1.3, top_k=40, top_p=0.8, min_p=0.1))
    assert torch.equal(ours, theirs.isfinite())


@pytest.mark.parametrize("penalty", [0.7, 1.0, 1.3])
def test_repetition_penalty(penalty: float) -> None:
    logits = random_logits()[:1]
    params = SamplingParams(repetition_penalty=penalty)
    sequence = SequenceSampling(params, vocab_size=VOCAB_SIZE, prompt_token_ids=PROMPT)
    for token_id in OUTPUT:
        sequence.accept(token_id)
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([PROMPT + OUTPUT]), logits.clone())
    assert torch.equal(penalised(logits, BatchPacker().pack([sequence])), theirs)
