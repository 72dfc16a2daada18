"""Whether a model on several ranks is the model on one device: the same tokens, and how far logits lie apart.

All in float32, where sums in another order differ in their last digits only; a token may differ where two are as good as equal.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..sampling import SamplingParams
from .config import EngineConfig
from .engine import Engine
from .features import EngineFeatures
from .loader import checked, load
from .requests.output import RequestOutput
from .requests.request import Request
from .steps.runner import Packing

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token that differs."""

    prompt: int  # its number
    place: int  # in the output
    expected: int | None  # on one device; None: it had ended
    found: int | None
    margin: float | None  # of the expected token's logit over the found one's, on one device


@dataclass(frozen=True, slots=True)
class ParallelReport:
    """What a comparison found."""

    num_prompts: int
    num_tokens: int  # that one device gave
    difference: Difference | None  # None: the tokens are the same
    largest_difference: float  # of two logits of the same token behind the same text
    largest_logit: float  # of any, by magnitude

    @property
    def is_same(self) -> bool:
        return self.difference is None


def verify_parallel(
    config: EngineConfig, features: EngineFeatures, prompts: Sequence[str], max_tokens: int = 32
) -> ParallelReport:
    """Answer prompts greedily on one device with plain features, then on `config.tensor_parallel` with `features`.

    Logits are compared behind all tokens of the prompts and of what one device answered. Raises ConfigError, and RequestError for
    a prompt that does not fit.
    """
    config = replace(config, dtype="float32", products="float32" if config.products == "auto" else config.products)
    checked(config, features)  # what several devices cannot do is told before one has done it
    texts, expected, of_one = _on_one_device(replace(config, tensor_parallel=1), prompts, max_tokens)
    read = [(*text, *answer) for text, answer in zip(texts, expected, strict=True)]
    with _engine(config, features) as (engine, _):
        found = _answers(engine, texts, max_tokens)
        apart = [(_logits(engine, tokens) - logits).abs().max().item() for tokens, logits in zip(read, of_one, strict=True)]
    difference = None
    for number, (ours, theirs) in enumerate(zip(expected, found, strict=True)):
        if difference is None and ours != theirs:
            difference = _difference(number, ours, theirs, of_one[number][len(texts[number]) - 1 :])
    largest = max(logits.abs().max().item() for logits in of_one)
    return ParallelReport(len(texts), sum(map(len, expected)), difference, max(apart), largest)


def _on_one_device(
    config: EngineConfig, prompts: Sequence[str], max_tokens: int
) -> tuple[list[Tokens], list[Tokens], list[Tensor]]:
    """(prompts as tokens, answers, logits behind all of them). What the model took of the memory is free again."""
    with _engine(config, EngineFeatures()) as (engine, encode):
        texts = [encode(prompt) for prompt in prompts]
        answers = _answers(engine, texts, max_tokens)
        logits = [_logits(engine, (*text, *answer)) for text, answer in zip(texts, answers, strict=True)]
    del engine
    gc.collect()
    return texts, answers, logits


@contextmanager
def _engine(config: EngineConfig, features: EngineFeatures) -> Iterator[tuple[Engine, Callable[[str], Tokens]]]:
    engine, tokenizer, _, _ = load(config, features)
    try:
        yield engine, lambda text: tuple(tokenizer.encode(text))
    finally:
        engine.close()


def _answers(engine: Engine, texts: Sequence[Tokens], max_tokens: int) -> list[Tokens]:
    """Greedy outputs. Raises RuntimeError where one ends with an error."""
    greedy = SamplingParams(temperature=0, max_tokens=max_tokens)
    numbers = [engine.add_request(Request(prompt_token_ids=text, sampling=greedy)) for text in texts]
    outputs: dict[int, RequestOutput] = {}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
    failed = next((output.error for output in outputs.values() if output.error is not None), None)
    if failed is not None:
        raise RuntimeError(failed)
    return [outputs[number].token_ids for number in numbers]


def _logits(engine: Engine, tokens: Tokens) -> Tensor:
    """Behind each token, float32 [num_tokens, head width] in host memory. Writes into the cache as if nothing were known."""
    engine.forget_prefixes()
    limits, runner, found = engine.limits, engine.runner, list[Tensor]()
    table = list(range(-(-len(tokens) // limits.block_size)))
    for past in range(0, len(tokens), limits.max_batch_tokens):
        chunk = list(tokens[past : past + limits.max_batch_tokens])
        rows = list(range(len(chunk)))
        packing = Packing(chunk, [past + row for row in rows], rows, [-1] * len(rows), [(past, len(rows), table)])
        found.append(runner.compute(runner.prepared(packing)).float().cpu())
    return torch.cat(found)


def _difference(number: int, ours: Tokens, theirs: Tokens, logits: Tensor) -> Difference:
    """`logits` [places, head width] are those that the output's tokens were drawn from on one device."""
    place = next(place for place in range(max(len(ours), len(theirs))) if ours[place : place + 1] != theirs[place : place + 1])
    expected, found = (tokens[place] if place < len(tokens) else None for tokens in (ours, theirs))
    margin = None
    if expected is not None and found is not None:
        margin = (logits[place, expected] - logits[place, found]).item()
    return Difference(number, place, expected, found, margin)
