"""Guessing ahead changes no token: whatever guesses, whatever is asked of sampling, under every constraint."""

from __future__ import annotations

import logging
import random
from collections import Counter

import numpy as np
import pytest
import torch

from maskwright.constraints import Compiler, Regex
from maskwright.constraints.base.errors import ConstraintLimit
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.drafts.draft_model import DraftModel
from maskwright.engine.drafts.drafter import Drafter
from maskwright.engine.requests.ngrams import Ngrams
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import EOS, run_all, tiny_vocabulary
from .fake_constraint import Failing, brackets, choice

VOCABULARY = tiny_vocabulary()
REPEATING = (10, 20, 30, 40, 50, 10, 20, 30, 40, 50, 10, 20, 30)
CONSTRAINTS = [None, brackets(VOCABULARY), choice(VOCABULARY, b"left-hand side", b"right-hand side", b"left-over")]
SAMPLINGS = [
    {"temperature": 0.0},
    {"temperature": 0.8, "top_p": 0.9},
    {"temperature": 1.5, "repetition_penalty": 1.2, "frequency_penalty": 0.3},
    {"temperature": 0.0, "logprobs": 2},
]


class Oracle(Drafter):
    """Guesses right with a given probability, else anything."""

    def __init__(self, outputs: dict[tuple[int, ...], tuple[int, ...]], accuracy: float) -> None:
        self.outputs, self.accuracy, self.random = outputs, accuracy, random.Random(0)

    def propose(self, chunks):
        return [self._of(chunk.sequence) for chunk in chunks]

    def _of(self, sequence):
        right = self.outputs[sequence.request.prompt_token_ids][len(sequence.records) :][:9]
        return [token if self.random.random() < self.accuracy else self.random.randrange(99) for token in right] + [5]


def requests() -> list[Request]:
    out = []
    for number, (sampling, constraint) in enumerate((s, c) for s in SAMPLINGS for c in CONSTRAINTS):
        params = SamplingParams(seed=number, max_tokens=25, stop=("a",) if constraint is None else (), **sampling)
        out.append(Request(prompt_token_ids=(*REPEATING, number + 3), sampling=params, constraint=constraint))
    return out


def summaries(outputs: dict) -> list[tuple]:
    return [(o.token_ids, o.text, o.finish_reason, o.closed_by_budget, o.logprobs is None) for _, o in sorted(outputs.items())]


@pytest.fixture(scope="module")
def arrivals() -> dict[int, list[Request]]:
    return {0: requests()[:7], 4: requests()[7:]}


def encode(text: str) -> list[int]:
    return [ord(character) - 29 for character in text]


def draft_model(name: str, tiny_model, make_engine, *, keeps_tokens: bool = True, **options) -> DraftModel:
    return DraftModel(make_engine(tiny_model(name).folder, **options).runner, VOCABULARY.size, keeps_tokens=keeps_tokens)


@pytest.mark.parametrize("tight", [{}, {"num_blocks": 30, "max_model_len": 100, "max_batch_tokens": 20, "num_host_blocks": 9}])
@pytest.mark.parametrize("kind", ["lookup", "forced", "right", "half right", "wrong", "same model", "other model"])
def test_tokens_are_those_of_plain_decoding(kind, tight, arrivals, tiny_model, make_engine):
    folder = tiny_model("llama").folder
    plain = run_all(make_engine(folder), arrivals)
    if kind in ("lookup", "forced"):
        engine = make_engine(folder, speculation=kind, encode=encode, **tight)
    else:
        known = {r.prompt_token_ids: plain[place].token_ids for place, r in enumerate(requests())}
        accuracies = {"right": 1.0, "half right": 0.5, "wrong": 0.0}
        if kind in accuracies:
            drafter: Drafter = Oracle(known, accuracies[kind])
        else:
            drafter = draft_model({"same model": "llama", "other model": "qwen2"}[kind], tiny_model, make_engine, **tight)
        engine = make_engine(folder, speculation="lookup", drafter=drafter, num_draft_tokens=4, **tight)
    outputs = run_all(engine, arrivals)
    assert summaries(outputs) == summaries(plain)
    statistics = engine.statistics
    assert statistics.num_drafted_tokens == sum(output.num_drafted_tokens for output in outputs.values())
    assert statistics.num_accepted_tokens == sum(output.num_accepted_tokens for output in outputs.values())
    if kind == "same model" and not tight:
        assert statistics.acceptance_rate > 0.9
    if kind == "right":
        assert statistics.num_accepted_tokens > 100


def test_right_guesses_save_steps(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    request = Request(prompt_token_ids=REPEATING, sampling=SamplingParams(temperature=0.0, max_tokens=40, ignore_eos=True))
    plain = make_engine(folder)
    expected = run_all(plain, {0: [request]})[0]
    oracle = Oracle({REPEATING: expected.token_ids}, 1.0)
    helped = make_engine(folder, speculation="lookup", num_draft_tokens=4, drafter=oracle)
    output = run_all(helped, {0: [request]})[0]
    assert output.token_ids == expected.token_ids
    assert plain.statistics.num_steps == 40 and helped.statistics.num_steps == 8


def test_guesses_that_the_constraint_forbids_are_not_computed(tiny_model, make_engine):
    constraint = choice(VOCABULARY, b"xy", b"xz", b"x-")
    words = dict.fromkeys([(REPEATING)], tuple(encode("xQQQ")))
    engine = make_engine(tiny_model("llama").folder, speculation="lookup", drafter=Oracle(words, 1.0))
    output = run_all(engine, {0: [Request(prompt_token_ids=REPEATING, constraint=constraint)]})[0]
    assert output.num_drafted_tokens == 0  # "x" was forced, and nothing of "QQQ" may follow


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_rejection_sampling_keeps_greedy_tokens_and_every_constraint(name, tiny_model, make_engine):
    folder = tiny_model("llama").folder
    plain = run_all(make_engine(folder), {0: requests()})
    drafter = draft_model(name, tiny_model, make_engine, keeps_tokens=False)
    engine = make_engine(folder, speculation="lookup", drafter=drafter)
    outputs = run_all(engine, {0: requests()})
    for place, request in enumerate(requests()):
        if request.sampling.is_greedy:
            assert outputs[place].token_ids == plain[place].token_ids
        if request.constraint is not None:
            assert request.constraint.min_tokens(outputs[place].text.encode()) == 0
    assert engine.statistics.num_accepted_tokens > 0


@pytest.mark.parametrize("kind", ["lookup", "other model", "rejection"])
def test_the_distribution_is_that_of_the_model(kind, tiny_model, make_engine):
    """Two tokens out of five, drawn 1,500 times with drafts: the frequencies of the 25 pairs fit the model's probabilities."""
    model, prompt, temperature = tiny_model("llama"), (5, 9, 5, 9, 5, 9, 5), 4.0
    allowed = [5, 9, 11, 13, 17]
    banned = [token for token in range(VOCABULARY.size) if token not in allowed]

    def probabilities(tokens: tuple[int, ...]) -> np.ndarray:
        with torch.inference_mode():
            logits = model.reference(torch.tensor([tokens])).logits[0, -1, allowed].double()
        return torch.softmax(logits / temperature, -1).numpy()

    first = probabilities(prompt)
    expected = {(a, b): p * q for a, p in zip(allowed, first, strict=True) for b, q in zip(allowed, probabilities((*prompt, a)), strict=True)}
    count = 1500
    sampling = [SamplingParams(temperature=temperature, seed=seed, max_tokens=2, banned_token_ids=banned) for seed in range(count)]
    keeps_tokens = kind != "rejection"
    drafter = None if kind == "lookup" else draft_model("qwen2", tiny_model, make_engine, keeps_tokens=keeps_tokens)
    engine = make_engine(model.folder, speculation="lookup", drafter=drafter)
    outputs = run_all(engine, {0: [Request(prompt_token_ids=prompt, sampling=params) for params in sampling]})
    seen = Counter(output.token_ids for output in outputs.values())
    assert engine.statistics.num_drafted_tokens > 0 or kind == "lookup"
    assert chi_square_fits({pair: seen[pair] for pair in expected}, {pair: count * p for pair, p in expected.items()})


def test_the_distribution_of_spellings_is_that_of_the_model(tiny_model, make_engine):
    """Text that the constraint forces, guessed in its usual tokens: the model's own spellings come as often as without guesses."""
    words = [b"ab", b"cd", b"abcd", b"bc", b"abc", b"bcd"]
    single = [bytes([byte]) for byte in range(97, 107)]
    vocabulary = Vocabulary([None, None, b"</s>", *single, *words], eos_token_ids=[EOS])
    known = {token: number for number, token in enumerate(vocabulary.tokens) if token}
    constraint, temperature, count = Compiler(vocabulary).compile(Regex("abcd")), 3.0, 800
    model, prompt = tiny_model("llama"), (5, 9, 5, 9, 5)
    expected: dict[tuple[int, ...], float] = {}
    pending = [((), b"abcd", 1.0)]
    while pending:
        taken, left, chance = pending.pop()
        if not left:
            expected[taken] = chance
            continue
        choices = [token for token in known if left.startswith(token)]
        with torch.inference_mode():
            logits = model.reference(torch.tensor([(*prompt, *taken)])).logits[0, -1, [known[token] for token in choices]].double()
        for token, share in zip(choices, torch.softmax(logits / temperature, -1).tolist(), strict=True):
            pending.append(((*taken, known[token]), left[len(token) :], chance * share))
    engine = make_engine(
        model.folder, vocabulary=vocabulary, speculation="forced", num_draft_tokens=3, skips_forced=False, max_sequences=200,
        max_batch_tokens=1000, num_blocks=800,
        encode=lambda text: [known[b"ab"], known[b"cd"]] if text == "abcd" else [known[bytes([byte])] for byte in text.encode()],
    )  # fmt: skip
    sampling = [SamplingParams(temperature=temperature, seed=seed, max_tokens=6) for seed in range(count)]
    outputs = run_all(engine, {0: [Request(prompt_token_ids=prompt, sampling=each, constraint=constraint) for each in sampling]})
    assert 0 < engine.statistics.num_accepted_tokens < engine.statistics.num_drafted_tokens
    seen = Counter(output.token_ids for output in outputs.values())
    assert seen.keys() <= expected.keys() and len(expected) == 8
    assert chi_square_fits({each: seen[each] for each in expected}, {each: count * p for each, p in expected.items()}, least_freedom=3)


def chi_square_fits(seen: dict, expected: dict, z: float = 3.09, least_freedom: int = 8) -> bool:
    """Pearson's test at one in a thousand (`z`), rare events taken together; quantile after Wilson and Hilferty."""
    common = [key for key, value in expected.items() if value >= 5]
    pairs = [(seen[key], expected[key]) for key in common]
    total = sum(expected.values())
    pairs.append((sum(seen.values()) - sum(s for s, _ in pairs), max(total - sum(e for _, e in pairs), 1e-9)))
    pairs = [pair for pair in pairs if pair[1] >= 1] or pairs
    statistic, freedom = sum((s - e) ** 2 / e for s, e in pairs), len(pairs) - 1
    assert sum(seen.values()) == round(total) and freedom >= least_freedom
    return statistic < freedom * (1 - 2 / (9 * freedom) + z * (2 / (9 * freedom)) ** 0.5) ** 3


def test_ngrams_find_the_latest_longest_match():
    ngrams = Ngrams(2, 4)
    tokens = [1, 2, 3, 9, 2, 3, 7, 1, 2, 3]
    assert ngrams.continuation(tokens, 3) == [9, 2, 3]  # three tokens matched, though two were met later
    assert ngrams.continuation([*tokens, 7], 2) == [1, 2]
    assert ngrams.continuation([*tokens, 7, 7], 2) == []
    assert Ngrams(2, 4).continuation([1], 2) == []


def test_end_of_text_is_never_guessed_past(tiny_model, make_engine):
    """A guess of what follows an end-of-text token is not part of the output."""
    engine = make_engine(tiny_model("llama").folder, speculation="lookup")
    request = Request(prompt_token_ids=(7, EOS, 8, 9, 7), sampling=SamplingParams(temperature=0.0, logit_bias={EOS: 1000.0}))
    assert run_all(engine, {0: [request]})[0].token_ids == ()


@pytest.mark.parametrize("kind", ["lookup", "forced", "other model"])
def test_a_constraint_that_fails_while_guessing_ends_its_own_request_only(kind, tiny_model, make_engine, caplog):
    caplog.set_level(logging.CRITICAL)
    folder = tiny_model("llama").folder
    error = ConstraintLimit("too many states", limit="states", value=9)
    asked = [SamplingParams(temperature=0.0, max_tokens=20, logit_bias={EOS: -100.0}) for _ in range(4)]
    constraints = [brackets(VOCABULARY), Failing(VOCABULARY, "advance", error, after=3), None, Failing(VOCABULARY, "mask", error, after=5)]
    requests = [
        Request(prompt_token_ids=REPEATING, sampling=sampling, constraint=constraint)
        for sampling, constraint in zip(asked, constraints, strict=True)
    ]
    plain = run_all(make_engine(folder), {0: requests})
    drafter = draft_model("qwen2", tiny_model, make_engine) if kind == "other model" else None
    speculation = "forced" if kind == "forced" else "lookup"
    engine = make_engine(folder, speculation=speculation, encode=encode, drafter=drafter)
    outputs = run_all(engine, {0: requests})
    assert summaries(outputs) == summaries(plain)
    assert [outputs[place].finish_reason == "constraint_limit" for place in range(4)] == [False, True, False, True]
