"""Stages beyond the plain filters, in every loop of the engine, with drafts, forks and sessions: the tokens are those of the plain loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maskwright.constraints import Compiler, Regex
from maskwright.engine.drafts.draft_model import DraftModel
from maskwright.engine.errors import RequestError
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.requests.request import Request
from maskwright.engine.sessions.session_file import load_snapshot, save_snapshot
from maskwright.engine.sessions.sessions import Sessions
from maskwright.sampling import SamplingParams

from .conftest import EOS, run_all, tiny_vocabulary
from .test_pipeline import LOOPS, summaries

VOCABULARY = tiny_vocabulary()
COMPILER = Compiler(VOCABULARY)
PROMPT = (10, 20, 30, 40, 10, 20, 30, 40, 10, 20)
STAGES = {
    "typical": {"typical_p": 0.6},
    "xtc": {"xtc_probability": 0.5, "xtc_threshold": 0.05},
    "own order": {"stages": ("top_p", "temperature", "top_a"), "top_p": 0.7, "temperature": 2.0, "top_a": 0.1},
    "mirostat 1": {"mirostat": 1, "mirostat_tau": 3.0, "mirostat_eta": 0.3},
    "mirostat 2": {"mirostat": 2, "mirostat_tau": 3.0, "mirostat_eta": 0.3},
    "dry": {"dry_multiplier": 2.0, "dry_allowed_length": 1, "temperature": 0.0},
    "ngrams": {"no_repeat_ngram_size": 2, "temperature": 0.0},
    "words": {"bad_words_ids": ((5,), (6, 7), (20, 30, 40)), "temperature": 3.0},
    "allowed": {"allowed_token_ids": (7, 9, 11, 30), "temperature": 2.0},
    "window": {"repeat_last_n": 4, "repetition_penalty": 1.6, "frequency_penalty": 0.5},
    "smooth": {"smoothing_factor": 0.2, "dynatemp_range": 0.5, "top_n_sigma": 1.5, "min_p": 0.01},
    "plain": {"top_p": 0.9, "temperature": 1.3},
    "greedy": {"temperature": 0.0},
}


def requests(**more) -> list[Request]:
    """One of each, free and constrained in turn."""
    constraint = COMPILER.compile(Regex("([a-z]{1,5} ){2,6}(left|right)[0-9]{1,4}"))
    made = []
    for place, options in enumerate(STAGES.values()):
        sampling = SamplingParams(**{"max_tokens": 30, "seed": place, **options, **more})
        made.append(Request(prompt_token_ids=PROMPT, sampling=replace(sampling, logit_bias={EOS: -100.0}), constraint=None))
        made.append(Request(prompt_token_ids=PROMPT, sampling=sampling, constraint=constraint))
    return made


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_every_loop_draws_the_same_tokens(loop, tiny_model, make_engine):
    """In one batch, and each request alone."""
    folder = tiny_model("llama").folder
    plain = run_all(make_engine(folder), {0: requests()})
    assert summaries(run_all(make_engine(folder, **loop), {0: requests()[:9], 3: requests()[9:]})) == summaries(plain)
    for place, each in list(enumerate(requests()))[::5]:
        (alone,) = run_all(make_engine(folder, **loop), {0: [each]}).values()
        assert alone.token_ids == plain[place].token_ids


@pytest.mark.parametrize("kind", ["lookup", "model"])
def test_drafts_change_nothing(kind, tiny_model, make_engine):
    """A draft is checked by the draw that would have been made without it, whatever the stages are."""
    folder = tiny_model("llama").folder
    plain = run_all(make_engine(folder), {0: requests()})
    drafter = None if kind == "lookup" else DraftModel(make_engine(folder).runner, VOCABULARY.size)
    engine = make_engine(folder, speculation="lookup", drafter=drafter)
    assert summaries(run_all(engine, {0: requests()})) == summaries(plain)
    assert engine.statistics.num_accepted_tokens > (0 if kind == "lookup" else 100)


def test_rejection_sampling_goes_together_with_every_stage(tiny_model, make_engine):
    """Its tokens are others; what is certain whatever is drawn holds."""
    folder = tiny_model("llama").folder
    drafter = DraftModel(make_engine(tiny_model("qwen2").folder).runner, VOCABULARY.size, keeps_tokens=False)
    outputs = run_all(make_engine(folder, speculation="lookup", drafter=drafter), {0: requests()})
    for each, (_, output) in zip(requests(), sorted(outputs.items()), strict=True):
        if each.constraint is None:
            check_certain(each.sampling, output.token_ids)


def check_certain(sampling: SamplingParams, token_ids: tuple[int, ...]) -> None:
    text = (*PROMPT, *token_ids)
    if sampling.allowed_token_ids:
        assert set(token_ids) <= set(sampling.allowed_token_ids)
    for word in sampling.bad_words_ids:
        assert all(token_ids[place : place + len(word)] != word for place in range(len(token_ids)))
    if size := sampling.no_repeat_ngram_size:
        grams = [text[place : place + size] for place in range(len(text) - size + 1)]
        assert all(gram not in grams[:place] for place, gram in enumerate(grams) if place + size > len(PROMPT))


def test_what_is_asked_for_holds_and_what_must_end_ends(tiny_model, make_engine):
    outputs = run_all(make_engine(tiny_model("llama").folder), {0: requests()})
    for each, (_, output) in zip(requests(), sorted(outputs.items()), strict=True):
        if each.constraint is None:
            check_certain(each.sampling, output.token_ids)
        else:
            assert each.constraint.is_accepting(each.constraint.advance_bytes(each.constraint.start(), output.text.encode()))


@pytest.mark.parametrize("name", [name for name in STAGES if name not in ("plain", "greedy")])
def test_a_session_goes_on_as_it_would_have(name, tiny_model, make_engine, tmp_path):
    """Also mirostat, whose surprise so far is learnt anew from the records, and what reads the text."""
    folder = tiny_model("llama").folder
    asked = requests()[2 * list(STAGES).index(name)]
    plain = make_engine(folder)
    (expected,) = run_all(plain, {0: [asked]}).values()
    engine = make_engine(folder)
    request_id = engine.add_request(asked)
    for _ in range(12):
        engine.step()
    save_snapshot(Sessions(engine, lambda: model_fingerprint(folder)).snapshot(request_id), tmp_path / "session")
    other = make_engine(folder, block_size=7)
    Sessions(other, lambda: model_fingerprint(folder)).resume(load_snapshot(tmp_path / "session"))
    (event,) = [event for event in _events(other) if event.output is not None]
    assert event.output.token_ids == expected.token_ids


def _events(engine):
    while engine.has_work:
        yield from engine.step()


def test_mirostat_holds_the_surprise(tiny_model, make_engine):
    """The mean surprise of 300 tokens is near what was asked for, whatever the temperature."""
    import math

    for tau, temperature in ((2.0, 1.5), (4.0, 2.0)):
        sampling = SamplingParams(mirostat=2, mirostat_tau=tau, mirostat_eta=0.2, temperature=temperature, seed=3, max_tokens=120)
        asked = Request(prompt_token_ids=(10, 20), sampling=replace(sampling, logit_bias={EOS: -100.0}))
        (output,) = run_all(make_engine(tiny_model("llama").folder), {0: [asked]}).values()
        surprises = [-math.log2(record.share) for record in output.records if record.share is not None]
        assert len(surprises) == 120 and sum(surprises[30:]) / 90 == pytest.approx(tau, abs=0.45)


def test_min_tokens_bans_the_end_as_long_as_the_constraint_has_a_choice(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    ending = {EOS: 100.0}

    def length(pattern: str, min_tokens: int) -> tuple[int, bool]:
        sampling = SamplingParams(temperature=0.0, max_tokens=30, min_tokens=min_tokens, logit_bias=ending)
        request = Request(prompt_token_ids=PROMPT, sampling=sampling, constraint=COMPILER.compile(Regex(pattern)))
        (output,) = run_all(make_engine(folder), {0: [request]}).values()
        assert output.finish_reason == "stop"
        return len(output.token_ids), output.bans_overridden

    assert length("[a-z]{2,20}", 0)[0] < 7 <= length("[a-z]{2,20}", 7)[0]
    assert length("[a-z]{2}", 7)[0] <= 2  # the constraint has the last word


def test_texts_have_to_be_tokens_by_now(tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder)
    for options in ({"bad_words": ("x",)}, {"logit_bias": {"x": 1.0}}):
        with pytest.raises(RequestError, match=f"{next(iter(options))} must be token ids by now"):
            engine.add_request(Request(prompt_token_ids=PROMPT, sampling=SamplingParams(**options)))
