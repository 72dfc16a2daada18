"""Stages of one's own in every loop of the engine, with drafts, forks and sessions; what fails ends its own request alone."""

from __future__ import annotations

import logging
import runpy
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from maskwright.constraints import Compiler, Regex
from maskwright.engine.drafts.draft_model import DraftModel
from maskwright.engine.errors import RequestError, SessionError, UnsupportedModel
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.requests.request import Request
from maskwright.engine.search.beams import BeamSearch
from maskwright.engine.sessions.session_file import load_snapshot, save_snapshot
from maskwright.engine.sessions.sessions import Sessions
from maskwright.engine.steps.runner import ModelRunner
from maskwright.engine.steps.scorer import Scorer
from maskwright.sampling import SamplingParams
from maskwright.sampling.logits_stages import LOGITS_STAGES, LogitsStage

from .conftest import EOS, VOCAB_SIZE, run_all, tiny_vocabulary
from .test_pipeline import LOOPS, summaries

VOCABULARY = tiny_vocabulary()
COMPILER = Compiler(VOCABULARY)
CONSTRAINT = COMPILER.compile(Regex("([a-z]{1,5} ){2,6}(left|right)[0-9]{1,4}"))
PROMPT = (10, 20, 30, 40, 10, 20, 30, 40, 10, 20)


@dataclass(frozen=True)
class Bigrams(LogitsStage):
    """No pair of tokens twice."""

    penalty: float = float("inf")

    def apply(self, logits, context):
        tokens = context.tokens()
        row, place = ((tokens[:, :-1] == tokens[:, -1:]) & (tokens[:, -1:] >= 0)).nonzero(as_tuple=True)
        logits[row, tokens[row, place + 1]] -= self.penalty
        return logits


@dataclass(frozen=True)
class ByPosition(LogitsStage):
    """Another favourite at each place, by the seed of the request."""

    def setup(self, request):
        return request.seed

    def apply(self, logits, context):
        for place, row in enumerate(context.rows):
            logits[place, (row.state * 13 + row.num_output_tokens * 7) % VOCAB_SIZE] += 5.0
        return logits


class Vandal(LogitsStage):
    """Writes NaN and infinities wherever the mask bans."""

    def apply(self, logits, context):
        poison = torch.tensor([float("nan"), float("inf"), float("-inf")])[torch.arange(logits.shape[1]) % 3]
        return torch.where(context.allowed, logits, poison)


class Guilty(LogitsStage):
    """Fails behind some tokens, if the seed of the request is odd."""

    name = "guilty"

    def __init__(self, how: str) -> None:
        self.how = how

    def apply(self, logits, context):
        guilty = [row.request.seed % 2 == 1 and row.num_output_tokens >= 4 for row in context.rows]
        if any(guilty) and self.how == "raises":
            raise RuntimeError("what now?")
        if any(guilty) and self.how == "shape":
            return logits[:1, :3]
        return torch.where(torch.tensor(guilty)[:, None], float("nan"), logits)


BIGRAMS, BY_POSITION = Bigrams(), ByPosition()
FEW = (7, 9, 11, 30, 40, 50, 60)  # tokens, so that some come again
CHAINS = [(), (BIGRAMS,), (BY_POSITION,), (BY_POSITION, BIGRAMS), (Vandal(), BIGRAMS)]


def requests(chains=CHAINS, **more) -> list[Request]:
    """Of each chain greedy and drawn, free and constrained requests."""
    made = []
    for place, chain in enumerate(chains):
        for options in ({"temperature": 0.0}, {"temperature": 1.5, "top_k": 30}):
            sampling = SamplingParams(**{"max_tokens": 24, "seed": place, "logits_processors": chain, **options, **more})
            made.append(Request(prompt_token_ids=PROMPT, sampling=replace(sampling, logit_bias={EOS: -100.0})))
            made.append(Request(prompt_token_ids=PROMPT, sampling=sampling, constraint=CONSTRAINT))
    return made


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_every_loop_draws_the_same_tokens(loop, tiny_model, make_engine):
    folder = tiny_model("llama").folder
    plain = run_all(make_engine(folder), {0: requests()})
    assert all(output.error is None for output in plain.values())
    assert summaries(run_all(make_engine(folder, **loop), {0: requests()[:9], 3: requests()[9:]})) == summaries(plain)
    for place, each in list(enumerate(requests()))[::3]:
        (alone,) = run_all(make_engine(folder, **loop), {0: [each]}).values()
        assert alone.token_ids == plain[place].token_ids


def test_a_stage_changes_what_it_says_and_nothing_else(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    few = {"allowed_token_ids": FEW, "max_tokens": 12}
    outputs = run_all(make_engine(folder), {0: requests(**few)})
    without = run_all(make_engine(folder), {0: requests(chains=[()] * len(CHAINS), **few)})
    for place in (4, 6):  # free, with bigrams alone
        tokens = [*PROMPT, *outputs[place].token_ids]
        new = list(pairwise(tokens[len(PROMPT) - 1 :]))
        assert not set(new) & set(pairwise(PROMPT)) and len(new) == len(set(new))
        assert outputs[place].token_ids != without[place].token_ids
    assert [outputs[place].token_ids for place in range(4)] == [without[place].token_ids for place in range(4)]


@pytest.mark.parametrize("speculation", ["lookup", "draft", "distribution"])
def test_drafts_are_checked_by_the_same_draw(speculation, tiny_model, make_engine):
    folder = tiny_model("llama").folder
    asked = [*requests(), *requests([(), (BY_POSITION,)], allowed_token_ids=FEW)]
    plain = run_all(make_engine(folder), {0: asked})
    if speculation == "lookup":
        guessing = make_engine(folder, speculation="lookup")
    else:
        small = make_engine(folder)
        drafter = DraftModel(small.runner, VOCABULARY.size, keeps_tokens=speculation == "draft")
        guessing = make_engine(folder, speculation="lookup", drafter=drafter)
    outputs = run_all(guessing, {0: asked})
    assert sum(output.num_accepted_tokens for output in outputs.values())
    greedy = [place for place, each in enumerate(asked) if each.sampling.is_greedy]
    for place in greedy if speculation == "distribution" else outputs:
        assert outputs[place].token_ids == plain[place].token_ids, place


@pytest.mark.parametrize("loop", [{}, LOOPS[0], *LOOPS[2:4]], ids=str)
@pytest.mark.parametrize("how", ["raises", "shape", "nan"])
def test_a_failure_ends_its_request_and_no_other(how, loop, tiny_model, make_engine, caplog):
    caplog.set_level(logging.CRITICAL + 1)
    folder = tiny_model("llama").folder
    sound = requests(CHAINS[:3])
    plain = run_all(make_engine(folder), {0: sound})
    guilty = [(BIGRAMS, Guilty(how))] * 2  # the first one has an even seed
    engine = make_engine(folder, **loop)
    outputs = run_all(engine, {0: requests(guilty)[:6], 1: sound, 2: requests(guilty)[6:]})
    assert [outputs[6 + place].token_ids for place in plain] == [output.token_ids for output in plain.values()]
    ended = [outputs[place] for place in (4, 5, 18, 19)]
    assert all(output.finish_reason == "error" and output.error.startswith('StageFailure: logits processor "guilty": ') for output in ended)
    assert all({"raises": "what now?", "shape": "[1, 3]", "nan": "NaN"}[how] in output.error for output in ended)
    assert all(output.error is None for place, output in outputs.items() if place not in (4, 5, 18, 19))
    assert engine.statistics.num_failures == 0  # neither the model nor the engine is to blame


def test_what_a_stage_writes_into_banned_columns_never_matters(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    vandalised = run_all(make_engine(folder), {0: requests([(Vandal(),)] * 3)})
    assert summaries(vandalised) == summaries(run_all(make_engine(folder), {0: requests([()] * 3)}))


def test_what_is_told_of_the_model_is_its_own(tiny_model, make_engine):
    """Log-probabilities and kept mass of the same text with a stage that changes logits, but no token."""

    class Flatter(LogitsStage):
        def apply(self, logits, context):
            return logits / 3

    folder = tiny_model("llama").folder
    told, plain = (
        run_all(make_engine(folder), {0: requests([chain], temperature=0.0, logprobs=3)}) for chain in ((Flatter(),), ())
    )
    for place, output in told.items():
        assert output.token_ids == plain[place].token_ids
        for record, expected in zip(output.records, plain[place].records, strict=True):
            assert record.num_allowed == expected.num_allowed and [top.token_id for top in record.top] == [top.token_id for top in expected.top]
            assert record.logprob == pytest.approx(expected.logprob, abs=1e-5) and record.kept_mass == pytest.approx(expected.kept_mass, abs=1e-6)


def test_stages_of_the_engine_come_before_those_of_a_request(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    engine = make_engine(folder)
    engine.logits_processors = (BY_POSITION,)
    own = requests([(), (BIGRAMS,)])
    both = requests([(BY_POSITION,), (BY_POSITION, BIGRAMS)])
    assert summaries(run_all(engine, {0: own})) == summaries(run_all(make_engine(folder), {0: both}))
    with pytest.raises(RequestError, match="logits_processors"):
        engine.add_search(own[0], BeamSearch(width=2))
    with pytest.raises(RequestError, match="logits_processors"):
        make_engine(folder).add_search(Request(prompt_token_ids=PROMPT, sampling=SamplingParams(logits_processors=[BIGRAMS])), BeamSearch(width=2))


def test_a_setup_that_raises_refuses_the_request(tiny_model, make_engine):
    class Choosy(LogitsStage):
        def setup(self, request):
            raise LookupError("no topic")

        def apply(self, logits, context):
            return logits

    engine = make_engine(tiny_model("llama").folder)
    with pytest.raises(RequestError, match='"Choosy" refuses it: LookupError: no topic') as refused:
        engine.add_request(Request(prompt_token_ids=PROMPT, sampling=SamplingParams(logits_processors=[Choosy()])))
    assert refused.value.part == "logits_processors" and not engine.has_work


def test_forks_go_on_with_their_stages(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    (wanted,) = run_all(make_engine(folder), {0: requests()[14:15]}).values()
    engine = make_engine(folder)
    parent = engine.add_request(requests()[14])
    for _ in range(5):
        engine.step()
    child, outputs = engine.fork(parent), {}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
    assert outputs[parent].token_ids == outputs[child].token_ids == wanted.token_ids


def test_a_session_brings_its_stages_or_is_refused_by_name(tiny_model, make_engine, tmp_path):
    folder = tiny_model("llama").folder
    request = requests([(Bigrams(9.0),)])[2]
    (wanted,) = run_all(make_engine(folder), {0: [request]}).values()

    def opened(*stages):
        engine = make_engine(folder)
        engine.logits_processors = stages
        return engine, Sessions(engine, lambda: model_fingerprint(folder))

    def begun(each, *stages):
        engine, sessions = opened(*stages)
        request_id = engine.add_request(each)
        for _ in range(4):
            engine.step()
        return sessions, request_id

    sessions, request_id = begun(request)
    with pytest.raises(SessionError, match="Bigrams is not registered"):
        sessions.snapshot(request_id)
    with LOGITS_STAGES.registered("bigrams", Bigrams):
        save_snapshot(sessions.snapshot(request_id), tmp_path / "session")
        engine, resuming = opened()
        resuming.resume(load_snapshot(tmp_path / "session"))
        (resumed,) = (event.output for _ in range(60) for event in engine.step() if event.output is not None)
        assert resumed.token_ids == wanted.token_ids
        snapshot = load_snapshot(tmp_path / "session")
        with pytest.raises(SessionError, match="this one bigrams"):
            opened(BIGRAMS)[1].resume(snapshot)
        sessions, request_id = begun(requests([()])[2], BIGRAMS)
        save_snapshot(sessions.snapshot(request_id), tmp_path / "of-engine")
        opened(BIGRAMS)[1].resume(load_snapshot(tmp_path / "of-engine"))
        with pytest.raises(SessionError, match="this one none"):
            opened()[1].resume(load_snapshot(tmp_path / "of-engine"))
    with pytest.raises(SessionError, match='it has the logits processor "bigrams", which is not registered here'):
        load_snapshot(tmp_path / "session")


def test_nothing_is_done_where_there_are_no_stages(tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder)
    sequences = [engine.admit(each) for each in requests([()])]
    assert engine.sampler.sampling_inputs(sequences).own_stages is None
    assert engine.sampler.sampling_inputs([*sequences, engine.admit(requests([(BIGRAMS,)])[0])]).own_stages is not None


# ---- a second text


@pytest.mark.parametrize("name", ["llama", "gemma2", "deepseek-v3"])
def test_a_scorer_says_what_the_model_says(name, tiny_model, make_engine):
    model = tiny_model(name)
    scorer = make_engine(model.folder).scorer(max_contexts=2)
    texts = [[5, 6, 7], [5, 6, 7, 8], [9] * 30, [5, 6, 7, 8, 9], [5, 9], [9] * 31]
    for some in ([texts[0]], texts[1:3], texts, texts[::-1], [texts[2], texts[2]]):
        found = scorer.logits(some)
        for row, text in zip(found, some, strict=True):
            with torch.inference_mode():
                expected = model.reference(torch.tensor([text])).logits[0, -1]
            assert torch.allclose(row, expected, atol=2e-3), text
    for wrong in ([], [1] * 200):
        with pytest.raises(RequestError, match="cannot be scored"):
            scorer.logits([wrong])
    with pytest.raises(RequestError, match="max_contexts"):
        make_engine(model.folder).scorer(0)


def test_a_model_that_others_compute_too_has_no_scorer(tiny_model, make_engine):
    class Together(ModelRunner):
        pass

    engine = make_engine(tiny_model("llama").folder)
    engine.runner.__class__ = Together
    with pytest.raises(UnsupportedModel, match="several processes"):
        engine.scorer(1)


def test_a_scorer_reads_new_tokens_alone(tiny_model, make_engine, monkeypatch):
    scorer = make_engine(tiny_model("llama").folder).scorer(max_contexts=2)
    read, read_before = [], Scorer._read
    monkeypatch.setattr(Scorer, "_read", lambda self, places, tokens: read.append(tokens) or read_before(self, places, tokens))
    for text in ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4], [7], [1, 2, 9]):
        scorer.logits([text])
    assert read == [[[1, 2, 3]], [[4]], [[4]], [[7]], [[9]]]


def test_guidance_is_what_two_models_say(tiny_model, make_engine):
    """Greedy, beside transformers' two forward passes for each token."""
    Guidance = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "guidance.py"))["Guidance"]
    model, other, scale = tiny_model("llama"), (4, 5), 2.0
    engine = make_engine(model.folder)
    stage = Guidance(engine.scorer(2), other, scale)
    sampling = SamplingParams(temperature=0.0, max_tokens=10, ignore_eos=True, logits_processors=[stage])
    outputs = run_all(engine, {0: [Request(prompt_token_ids=PROMPT[:n], sampling=sampling) for n in (4, 7, 10)]})
    for output, n in zip(outputs.values(), (4, 7, 10), strict=True):
        tokens: list[int] = []
        for _ in range(10):
            with torch.inference_mode():
                own, free = (model.reference(torch.tensor([[*prompt, *tokens]])).logits[0, -1].log_softmax(-1) for prompt in (PROMPT[:n], other))
            scores = free + scale * (own - free)
            scores[EOS] = float("-inf")
            tokens.append(int(scores.argmax()))
        assert list(output.token_ids) == tokens
