"""Beam search: token for token that of transformers without a constraint; under one, what looking at all outputs gives."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
import torch

from maskwright.constraints import Choice, Compiler, Regex
from maskwright.constraints.base.errors import ConstraintLimit
from maskwright.engine.errors import RequestError
from maskwright.engine.requests.request import Request
from maskwright.engine.search.beams import BeamSearch
from maskwright.sampling import SamplingParams

from .conftest import EOS, VOCAB_SIZE, check_nothing_leaked, save_tiny_model, tiny_vocabulary
from .fake_constraint import Failing

VOCABULARY = tiny_vocabulary()
COMPILER = Compiler(VOCABULARY)
PROMPT = (10, 20, 30, 40, 50, 10, 20)


def run(engine, *ids):
    outputs = {}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
        engine.space.validate()
    check_nothing_leaked(engine)
    return [outputs[request_id] for request_id in ids]


def request(constraint=None, prompt=PROMPT, **sampling) -> Request:
    return Request(prompt_token_ids=prompt, sampling=SamplingParams(**{"max_tokens": 12, **sampling}), constraint=constraint)


def logprob(reference, prompt, tokens) -> float:
    """Of these tokens and the end behind them, as the model gives it."""
    ids = torch.tensor([[*prompt, *tokens, EOS]])
    with torch.inference_mode():
        logits = reference(ids).logits[0].double().log_softmax(-1)
    return sum(float(logits[place - 1, ids[0, place]]) for place in range(len(prompt), ids.shape[1]))


@pytest.fixture(scope="module")
def ending(tmp_path_factory, make_engine_once):
    """A model whose outputs end at different lengths, and an engine."""
    folder = tmp_path_factory.mktemp("ending")
    model = save_tiny_model(folder, "LlamaConfig", {}).reference
    with torch.no_grad():
        model.lm_head.weight[EOS] += 0.6 * model.lm_head.weight[30] + 0.6 * model.lm_head.weight[60]
    model.save_pretrained(folder)
    return model, make_engine_once(folder)


@pytest.mark.parametrize(("length_penalty", "early_stopping"), [(1.0, False), (1.0, True), (2.0, "never"), (0.0, "never"), (-0.7, False)])
def test_beams_are_those_of_transformers(length_penalty, early_stopping, ending):
    model, engine = ending
    for width, prompt in ((1, PROMPT), (3, PROMPT), (4, (44, 5)), (5, tuple(range(60, 80)))):
        with torch.inference_mode():
            wanted = model.generate(
                torch.tensor([prompt]), max_new_tokens=12, do_sample=False, pad_token_id=0, num_beams=width, num_return_sequences=width,
                length_penalty=length_penalty, early_stopping=early_stopping, return_dict_in_generate=True, output_scores=True,
            )  # fmt: skip
        search = BeamSearch(width=width, num_wanted=width, length_penalty=length_penalty, early_stopping=early_stopping)
        (best,) = run(engine, engine.add_search(request(prompt=prompt), search))
        assert len(best.alternatives) == width - 1
        for place, output in enumerate([best, *best.alternatives]):
            expected = wanted.sequences[place, len(prompt) :].tolist()
            expected = expected[: expected.index(EOS)] if EOS in expected else expected
            assert list(output.token_ids) == expected
            assert output.finish_reason == ("length" if len(expected) == 12 else "stop")
            if width > 1:
                assert output.score.score == pytest.approx(float(wanted.sequences_scores[place]), abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "gemma2", "mamba2"])
def test_a_wide_search_finds_the_best_of_all_outputs(name, tiny_model, make_engine, tmp_path):
    if name == "mamba2":
        sizes = {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 8, "initializer_range": 0.4}
        model = save_tiny_model(tmp_path, "Mamba2Config", sizes)
    else:
        model = tiny_model(name)
    words = ["".join(letters) for count in (1, 2, 3) for letters in product("abc", repeat=count)]
    constraint = COMPILER.compile(Regex("[abc]{1,3}"))
    engine = make_engine(model.folder, block_size=128 if name == "mamba2" else 2, num_blocks=512, max_sequences=64)
    for penalty in (0.0, 1.0):
        (best,) = run(engine, engine.add_search(request(constraint), BeamSearch(width=39, num_wanted=39, length_penalty=penalty)))
        found = [best, *best.alternatives]
        scores = {}
        for word in words:
            tokens = [ord(letter) - 29 for letter in word]
            total = logprob(model.reference, PROMPT, tokens)
            scores[word] = total, total / (len(word) + 1) ** penalty
        assert [output.text for output in found] == sorted(words, key=lambda word: -scores[word][1])
        for output in found:
            assert (output.score.logprob, output.score.score) == pytest.approx(scores[output.text], abs=1e-3)
            assert output.finish_reason == "stop" and len(output.records) == len(output.token_ids)
    assert engine.statistics.num_copied > 0  # forks shared their last block until one of them wrote


def test_scores_count_every_token_also_forced_ones(tiny_model, make_engine):
    model = tiny_model("llama")
    constraint = COMPILER.compile(Regex(r'\{"name":"(ann|bob)"\}'))
    engine = make_engine(model.folder)
    (best,) = run(engine, engine.add_search(request(constraint, max_tokens=20), BeamSearch(width=3, num_wanted=3, length_penalty=0.0)))
    assert {best.text, *(other.text for other in best.alternatives)} == {'{"name":"ann"}', '{"name":"bob"}'}
    assert best.score.logprob == pytest.approx(logprob(model.reference, PROMPT, best.token_ids), abs=1e-3)
    assert best.score.logprob > best.alternatives[0].score.logprob


def test_the_budget_is_kept_and_named(tiny_model, make_engine):
    constraint = COMPILER.compile(Regex("(ab|c)*d"))
    engine = make_engine(tiny_model("llama").folder)
    for max_tokens in (1, 2, 5):
        (best,) = run(engine, engine.add_search(request(constraint, max_tokens=max_tokens), BeamSearch(width=4, num_wanted=4)))
        for output in (best, *best.alternatives):
            assert constraint.accepts(output.text.encode()) and len(output.token_ids) <= max_tokens
            assert output.finish_reason == "stop" and output.closed_by_budget


def test_ties_have_one_outcome(make_engine, tmp_path):
    """A model that finds all tokens equally probable."""
    model = save_tiny_model(tmp_path, "LlamaConfig", {})
    with torch.no_grad():
        model.reference.lm_head.weight.zero_()
    model.reference.save_pretrained(tmp_path)
    constraint = COMPILER.compile(Regex("[a-f]{3}"))
    engine = make_engine(tmp_path)
    search = BeamSearch(width=4, num_wanted=4)
    ids = [engine.add_search(request(constraint), search) for _ in range(2)]
    for best in run(engine, *ids):
        assert [best.text, *(other.text for other in best.alternatives)] == ["aaa", "aab", "aac", "aad"]


def test_searches_share_the_engine(tiny_model, make_engine):
    """Beside each other and other requests, preempted, in few blocks: what each gives alone."""
    folder, rng = tiny_model("llama").folder, random.Random(3)
    prompts = [tuple(rng.randrange(3, VOCAB_SIZE) for _ in range(length)) for length in (9, 30, 14, 22)]
    constraints = [None, COMPILER.compile(Regex("[a-z]{2,9}( [a-z]{1,9}){0,3}"))]
    asked = [(request(constraints[place % 2], prompt), BeamSearch(width=3, num_wanted=2)) for place, prompt in enumerate(prompts)]
    plain = make_engine(folder)
    alone = [run(plain, plain.add_search(*each))[0] for each in asked]
    for options in ({"num_blocks": 28}, {"num_blocks": 60, "max_sequences": 4, "prefix_cache": False}, {"max_batch_tokens": 16, "num_blocks": 32}):
        engine = make_engine(folder, **{"max_model_len": 64, **options})
        ids = [engine.add_search(*each) for each in asked[:2]]
        others = [engine.add_request(request(prompt=prompts[0], temperature=0.9, seed=seed)) for seed in range(3)]
        ids += [engine.add_search(*each) for each in asked[2:]]
        cancelled = engine.add_search(*asked[0])
        engine.step()
        engine.step()
        assert engine.cancel(cancelled).finish_reason == "cancelled"
        found = run(engine, *ids, *others)
        assert [(o.token_ids, [a.token_ids for a in o.alternatives]) for o in found[:4]] == [
            (o.token_ids, [a.token_ids for a in o.alternatives]) for o in alone
        ]
        if "max_sequences" not in options:
            assert engine.statistics.num_preemptions > 0


def test_a_failing_constraint_ends_its_search_alone(tiny_model, make_engine, caplog):
    error = ConstraintLimit("too many states", limit="states", value=9)
    engine = make_engine(tiny_model("llama").folder)
    failing = engine.add_search(request(Failing(VOCABULARY, "mask", error, after=5)), BeamSearch(width=2))
    sound = engine.add_search(request(COMPILER.compile(Choice(["left", "right"]))), BeamSearch(width=2))
    failed, other = run(engine, failing, sound)
    assert (failed.finish_reason, other.finish_reason) == ("constraint_limit", "stop")


def test_what_is_refused(tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder, max_sequences=4, num_blocks=40)
    for search, asked, message in [
        (BeamSearch(width=5), request(), "max_sequences=5"),
        (BeamSearch(width=4), request(max_tokens=100), "may need"),
        (BeamSearch(), request(top_p=0.5), "does not understand top_p=0.5"),
        (BeamSearch(), request(stop=("x",)), "does not understand stop"),
    ]:
        with pytest.raises(RequestError, match=message):
            engine.add_search(asked, search)
    for wrong, message in [
        ({"width": 0}, "width"), ({"num_wanted": 9}, "n must be an integer from 1 to width"), ({"length_penalty": math.inf}, "length_penalty"),
        ({"early_stopping": "soon"}, "early_stopping"),
    ]:  # fmt: skip
        with pytest.raises(RequestError, match=message):
            BeamSearch(**wrong)
    with pytest.raises(RequestError, match="is a search"):
        engine.fork(engine.add_search(request(), BeamSearch(width=2)))
