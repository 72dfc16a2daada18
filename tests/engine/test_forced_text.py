"""Forced text enters as the tokens that the tokenizer would give the whole text, whatever follows; outputs stay valid."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from maskwright.constraints import Compiler, Regex
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine.drafts.forced_text import ForcedText
from maskwright.engine.errors import RequestError
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import EOS, run_all, tiny_vocabulary
from .fake_constraint import FakeConstraint

CORPUS = ['{"name":"Ada Lovelace","age":36}', '{"names":["a","b"]}', "the then there theme athe ", "ab abc abcd bcd cde über grün"] * 3


def trained(splits: bool) -> Tokenizer:
    """Byte-pair encoding over bytes, with or without cutting the text into words first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=splits)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, special_tokens=["<end>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


TOKENIZERS = {splits: trained(splits) for splits in (False, True)}


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    from transformers import PreTrainedTokenizerFast

    return Vocabulary.from_tokenizer(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>"))


VOCABULARIES = {splits: vocabulary_of(tokenizer) for splits, tokenizer in TOKENIZERS.items()}


def encoder(splits: bool):
    return lambda text: TOKENIZERS[splits].encode(text, add_special_tokens=False).ids


class Forcing:
    """Forces one text, after which anything may follow, or nothing."""

    def __init__(self, vocabulary: Vocabulary, text: bytes, ends: bool) -> None:
        self.vocabulary, self._text, self._ends = vocabulary, text, ends
        self._fake = FakeConstraint(vocabulary, lambda text: 0)

    def forced(self, state) -> bytes:
        return self._text

    def advance_bytes(self, state, data):
        return data

    def is_accepting(self, state) -> bool:
        return self._ends

    def mask(self, state):
        import numpy as np

        mask = np.zeros(-(-self.vocabulary.size // 32), np.uint32)
        eos = self.vocabulary.eos_token_ids[0]
        mask[eos // 32] = 1 << eos % 32
        return mask


words = st.text(st.sampled_from('abcdeth {}":,nmü'), max_size=8)


@pytest.mark.parametrize("splits", [False, True])
@given(before=words, forced=words.filter(bool), after=st.lists(words, min_size=1, max_size=8))
def test_every_continuation_has_these_tokens(splits, before, forced, after):
    encode, vocabulary = encoder(splits), VOCABULARIES[splits]
    context = encode(before)
    taken = ForcedText(vocabulary, encode).tokens(Forcing(vocabulary, forced.encode(), False), None, context)
    assert forced.encode().startswith(b"".join(vocabulary.tokens[t] for t in taken))
    if splits or encode(before + forced)[: len(context)] != context:
        return  # the next word may begin within the forced text; or the text before it is spelt differently now
    for text in after:
        whole = encode(before + forced + text)
        if whole[: len(context)] == context:
            assert tuple(whole[len(context) :][: len(taken)]) == taken, text


@pytest.mark.parametrize("splits", [False, True])
@given(before=words, forced=words.filter(bool))
def test_at_the_end_all_of_it_is_taken(splits, before, forced):
    encode, vocabulary = encoder(splits), VOCABULARIES[splits]
    context = encode(before)
    taken = ForcedText(vocabulary, encode).tokens(Forcing(vocabulary, forced.encode(), True), None, context)
    assert b"".join(vocabulary.tokens[t] for t in taken) == forced.encode()
    if encode(before + forced)[: len(context)] == context:
        assert [*context, *taken] == encode(before + forced)


def test_a_token_that_may_reach_beyond_is_left_to_the_model():
    encode, vocabulary = encoder(False), VOCABULARIES[False]
    forced_text = ForcedText(vocabulary, encode)
    open_end, closed_end = (forced_text.tokens(Forcing(vocabulary, b"12 {} the", ends), None, ()) for ends in (False, True))
    assert open_end == closed_end[: len(open_end)] and 0 < len(open_end) < len(closed_end)  # "then" and "there" are tokens
    assert forced_text.tokens(Forcing(vocabulary, b"", False), None, ()) == ()


def test_half_a_character_is_not_taken():
    encode, vocabulary = encoder(False), VOCABULARIES[False]
    taken = ForcedText(vocabulary, encode).tokens(Forcing(vocabulary, "ab ü".encode()[:-1], True), None, ())
    assert b"".join(vocabulary.tokens[t] for t in taken) == b"ab "


PATTERN = r'\{"name":"[a-z]{0,5}","age":[0-9]{1,2}\}'


@pytest.fixture(scope="module")
def small_vocabulary() -> Vocabulary:
    words = [b'{"', b'":', b'","', b'"}', b"name", b"age", b"na", b"me", b'{"na', b'":"', b"ag", b'e":']
    single = [bytes([byte]) for byte in b'abcdefghijklmnopqrstuvwxyz0123456789 @.-{}":,']
    return Vocabulary([None, None, b"</s>", *single, *words][:99], eos_token_ids=[EOS])


def greedy_encoder(vocabulary: Vocabulary):
    """The longest token that fits, again and again."""
    known = {token: token_id for token_id, token in enumerate(vocabulary.text_tokens) if token}

    def encode(text: str) -> list[int]:
        data, out = text.encode(), []
        while data:
            length = next((size for size in range(8, 0, -1) if data[:size] in known), None)
            if length is None:
                break
            out.append(known[data[:length]])
            data = data[length:]
        return out

    return encode


@pytest.mark.parametrize("max_tokens", [14, 40])
def test_outputs_stay_valid_and_steps_are_saved(max_tokens, small_vocabulary, tiny_model, make_engine):
    compiler = Compiler(small_vocabulary)
    constraint = compiler.compile(Regex(PATTERN))
    steps = {}
    for jump_forward in (False, True):
        engine = make_engine(tiny_model("llama").folder, vocabulary=small_vocabulary, encode=greedy_encoder(small_vocabulary))
        sampling = [
            SamplingParams(temperature=1.0, seed=seed, max_tokens=max_tokens, jump_forward=jump_forward) for seed in range(8)
        ]
        requests = [Request(prompt_token_ids=(9, 8, 7), sampling=params, constraint=constraint) for params in sampling]
        outputs = run_all(engine, {0: requests[:5], 2: requests[5:]})
        for output in outputs.values():
            assert re.fullmatch(PATTERN, output.text)
            assert output.finish_reason == "stop" and len(output.token_ids) <= max_tokens
            assert (output.num_jumped_tokens > 0) == jump_forward
            spelled = b"".join(small_vocabulary.tokens[t] for t in output.token_ids)
            assert spelled.decode() == output.text and len(output.records) == len(output.token_ids)
        steps[jump_forward] = engine.statistics.num_steps
        assert engine.statistics.num_jumped_tokens == sum(output.num_jumped_tokens for output in outputs.values())
    assert steps[True] < steps[False]


def test_no_jump_where_log_probabilities_are_wanted(small_vocabulary, tiny_model, make_engine):
    constraint = Compiler(small_vocabulary).compile(Regex("name(a|b)"))
    engine = make_engine(tiny_model("llama").folder, vocabulary=small_vocabulary, encode=greedy_encoder(small_vocabulary))
    sampling = SamplingParams(jump_forward=True, logprobs=1)
    output = run_all(engine, {0: [Request(prompt_token_ids=(5,), sampling=sampling, constraint=constraint)]})[0]
    assert re.fullmatch("name[ab]", output.text) and output.num_jumped_tokens == 0
    assert all(record.logprob is not None for record in output.records)


def test_an_engine_without_a_tokenizer_refuses(tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder)
    constraint = FakeConstraint(tiny_vocabulary(), lambda text: 0)
    with pytest.raises(RequestError, match="jump_forward needs the model's tokenizer"):
        engine.add_request(Request(prompt_token_ids=(5,), sampling=SamplingParams(jump_forward=True), constraint=constraint))
