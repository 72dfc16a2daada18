"""Particles: the model's own distribution given the constraint, where masked sampling has another one."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import Choice, Compiler, Regex
from maskwright.engine.errors import RequestError
from maskwright.engine.requests.request import Request
from maskwright.engine.search.particles import Particles, systematic
from maskwright.sampling import SamplingParams

from .conftest import EOS, save_tiny_model, tiny_vocabulary
from .test_beams import PROMPT, run

VOCABULARY = tiny_vocabulary()
COMPILER = Compiler(VOCABULARY)
WORDS = ["ab", "ac", "b", "ca", "cbb", "cbc"]


@pytest.fixture(scope="module")
def mild(tmp_path_factory, make_engine_once):
    """A model that finds all outputs possible, and its distribution over WORDS: the truth that is to be approximated."""
    folder = tmp_path_factory.mktemp("mild")
    model = save_tiny_model(folder, "LlamaConfig", {"initializer_range": 0.35}).reference
    return model, folder


def log_joint(model, word: str, temperature: float) -> float:
    ids = torch.tensor([[*PROMPT, *(ord(letter) - 29 for letter in word), EOS]])
    with torch.inference_mode():
        logits = (model(ids).logits[0].double() / temperature).log_softmax(-1)
    return sum(float(logits[place - 1, ids[0, place]]) for place in range(len(PROMPT), ids.shape[1]))


def request(constraint, seed=0, **sampling) -> Request:
    return Request(prompt_token_ids=PROMPT, sampling=SamplingParams(**{"max_tokens": 8, "seed": seed, **sampling}), constraint=constraint)


@pytest.mark.parametrize(("temperature", "resample_below"), [(1.0, 0.5), (2.0, 1.0)])
def test_weights_are_those_of_the_model(temperature, resample_below, mild, make_engine):
    """Many small swarms: their mean weight is the constraint's probability, without bias, and weighted outputs the distribution."""
    model, folder = mild
    constraint = COMPILER.compile(Choice(WORDS))
    joint = {word: math.exp(log_joint(model, word, temperature)) for word in WORDS}
    evidence = sum(joint.values())
    engine = make_engine(folder, max_sequences=60, num_blocks=600)
    search, count = Particles(count=6, resample_below=resample_below), 160
    ids = [engine.add_search(request(constraint, seed, temperature=temperature), search) for seed in range(count)]
    estimates, mass = [], defaultdict(list)
    for best in run(engine, *ids):
        outputs = [best, *best.alternatives]
        assert len(outputs) == 6 and sum(output.score.weight for output in outputs) == pytest.approx(1)
        assert all(output.finish_reason == "stop" and output.text in WORDS for output in outputs)
        estimates.append(math.exp(best.score.log_evidence))
        for word in WORDS:
            mass[word].append(estimates[-1] * sum(output.score.weight for output in outputs if output.text == word))
    assert is_mean(estimates, evidence)
    for word in WORDS:
        assert is_mean(mass[word], joint[word])


def is_mean(values: list[float], expected: float) -> bool:
    """Within four standard errors."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return abs(mean - expected) < 4 * math.sqrt(variance / len(values)) + 1e-12


def test_many_particles_come_close_where_masks_alone_do_not(mild, make_engine):
    model, folder = mild
    joint = {word: math.exp(log_joint(model, word, 1.0)) for word in WORDS}
    truth = {word: value / sum(joint.values()) for word, value in joint.items()}
    constraint = COMPILER.compile(Choice(WORDS))

    def distance(found: dict[str, float]) -> float:
        return sum(abs(found.get(word, 0.0) - truth[word]) for word in WORDS) / 2

    engine = make_engine(folder, max_sequences=64, max_batch_tokens=512, num_blocks=800)
    masked = run(engine, *[engine.add_request(request(constraint, seed)) for seed in range(600)])
    counts = defaultdict(float)
    for output in masked:
        counts[output.text] += 1 / len(masked)
    weighted = defaultdict(float)
    for best in run(engine, *[engine.add_search(request(constraint, seed), Particles(count=60)) for seed in range(8)]):
        for output in (best, *best.alternatives):
            weighted[output.text] += output.score.weight / 8
    assert distance(weighted) < 0.08
    assert distance(counts) > 2 * distance(weighted)


def test_a_seed_means_the_same_in_any_batch(mild, make_engine):
    _, folder = mild
    constraint = COMPILER.compile(Regex("[a-e]{2,6}( [a-e]{1,4})?"))
    search = Particles(count=5, resample_below=0.9)
    plain = make_engine(folder)
    (alone,) = run(plain, plain.add_search(request(constraint, 7), search))
    engine = make_engine(folder, num_blocks=17, max_model_len=40, max_batch_tokens=16)
    ids = [engine.add_search(request(constraint, seed), search) for seed in (3, 7, 9)]
    beside = run(engine, *ids)[1]
    assert [(o.text, o.score.weight) for o in (beside, *beside.alternatives)] == [
        (o.text, pytest.approx(o.score.weight, rel=1e-4)) for o in (alone, *alone.alternatives)
    ]


def test_without_a_constraint_all_weigh_the_same(mild, make_engine):
    engine = make_engine(mild[1])
    (best,) = run(engine, engine.add_search(request(None), Particles(count=4)))
    assert [output.score.weight for output in (best, *best.alternatives)] == pytest.approx([0.25] * 4)
    assert best.score.log_evidence == pytest.approx(0)
    assert len({output.token_ids for output in (best, *best.alternatives)}) == 4


def test_what_is_refused(mild, make_engine):
    engine = make_engine(mild[1])
    for asked, message in [
        (request(None, temperature=0.0), "temperature must be above 0"),
        (request(None, top_k=5), "does not understand top_k=5"),
    ]:
        with pytest.raises(RequestError, match=message):
            engine.add_search(asked, Particles())
    for wrong in ({"count": 0}, {"resample_below": 1.5}):
        with pytest.raises(RequestError, match=next(iter(wrong))):
            Particles(**wrong)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(any), st.floats(0, 1, exclude_max=True))
def test_resampling_gives_each_its_share(raw, start):
    weights = [weight / sum(raw) for weight in raw]
    copies = systematic(weights, start)
    assert sum(copies) == len(weights)
    for weight, number in zip(weights, copies, strict=True):
        assert abs(number - weight * len(weights)) < 1 + 1e-6
