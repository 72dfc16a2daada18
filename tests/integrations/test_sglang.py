"""The backend against SGLang's own base classes, its reasoning wrapper, its batched fill and its walk over drafts, out of the released
wheel, without the engine."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.integrations import versions
from maskwright.integrations.versions import UnsupportedEngine

from .released import released
from .stand_ins import HEAD_PADDING, TURN, cut_out, installed, load, module, tokenizer

SCHEMA = {"type": "object", "properties": {"a": {"enum": ["ab", True, 12]}}, "required": ["a"], "additionalProperties": False}
SETTINGS = {
    "constrained_json_whitespace_pattern": None, "constrained_json_disable_any_whitespace": False,
    "constrained_json_max_whitespace_cnt": None, "enable_strict_thinking": False, "reasoning_parser": None,
}  # fmt: skip


class Detector:
    """A detector of reasoning between <think> and </think>."""

    think_end_token, think_excluded_tokens = "</think>", ["<tool_call>"]

    def __init__(self, **_: Any) -> None:
        self.detector = self

    def get_think_end_token_ids(self, tokenizer: Any) -> list[int]:
        return [tokenizer.convert_tokens_to_ids("</think>")]

    def get_answer_frame(self) -> None:
        return None


@pytest.fixture(scope="module")
def engine() -> Iterator[SimpleNamespace]:
    """SGLang's released classes, and the adapter. `serving` and `spec` are the server's settings."""
    folder = released("sglang==0.5.23")
    serving, spec = SimpleNamespace(**SETTINGS), SimpleNamespace(speculative_algorithm=None)
    context = {"get_context": None, "get_exec": None, "get_resources": None, "get_serving": lambda: serving, "get_spec": lambda: spec}
    most = SimpleNamespace(SGLANG_MAX_THINK_TOKENS=SimpleNamespace(get=lambda: 2))
    modules = {
        "sglang.srt.runtime_context": module("sglang.srt.runtime_context", **context),
        "sglang.srt.parser.reasoning_parser": module("sglang.srt.parser.reasoning_parser", ReasoningParser=Detector),
        "sglang.srt.parser.response_template": module("r", ResponseTemplateReasoningDetector=type("Template", (), {})),
        "sglang.srt.server_args": module("sglang.srt.server_args", ServerArgs=object),
        "sglang.srt.environ": module("sglang.srt.environ", envs=most),
    }
    with installed(modules, "maskwright.integrations.sglang"):
        load(folder, "sglang.srt.utils.token_sequence_matcher")
        choices = load(folder, "sglang.srt.arg_groups.choices")
        base = load(folder, "sglang.srt.constrained.base_grammar_backend")
        reasoner = load(folder, "sglang.srt.constrained.reasoner_grammar_backend")
        from maskwright.integrations import sglang as adapter

        yield SimpleNamespace(
            folder=folder, base=base, choices=choices, reasoner=reasoner, adapter=adapter, serving=serving, spec=spec
        )


def size() -> int:
    return len(tokenizer()) + HEAD_PADDING


@pytest.fixture(scope="module", params=[False, True], ids=["rows", "packed"])
def backend(engine: Any, request: pytest.FixtureRequest) -> Any:
    return engine.adapter.MaskwrightGrammarBackend(tokenizer(), size(), {tokenizer().eos_token_id}, packed=request.param)


def encoded(text: str) -> list[int]:
    return list(tokenizer().encode(text))


def ids(*tokens: str) -> list[int]:
    return list(tokenizer().convert_tokens_to_ids(list(tokens)))


def sampled_from(mask: Any, rows: int) -> list[set[int]]:
    """The tokens that may be sampled in each row, behind `apply`, as the sampler sees them."""
    logits = torch.zeros(rows, size())
    mask.apply(logits)
    return [set(torch.nonzero(row == 0).flatten().tolist()) for row in logits]


def batch_masks(engine: Any, grammars: list[Any]) -> list[set[int]]:
    """SGLang's own way through a batch that decodes without drafts."""
    path = engine.folder / "sglang/srt/sampling/sampling_batch_info.py"
    scope = cut_out(path, "update_regex_vocab_mask", GrammarRow=engine.base.GrammarRow, GrammarMask=engine.base.GrammarMask)
    batch = SimpleNamespace(grammars=grammars, vocab_size=size(), temperatures=[1.0] * len(grammars), device="cpu", grammar_mask=None)
    scope["update_regex_vocab_mask"](batch)
    return sampled_from(batch.grammar_mask, len(grammars))


def allowed(engine: Any, grammar: Any) -> set[int]:
    return batch_masks(engine, [grammar])[0]


EVERY_KIND = [
    ("json", json.dumps(SCHEMA), '{"a":"ab"}', '{"b":1}'),
    ("json", "$$ANY$$", "[1]", "ab"),
    ("regex", "ab[cd]{2}", "abcd", "abc"),
    ("ebnf", 'root ::= "a" [0-9]+', "a12", "a"),
    ("ebnf", "root = 'ab' | 'abc' ;", "abc", "abca"),
    ("ebnf", 'start: "a" NUMBER\nNUMBER: /[0-9]+/', "a12", "a"),
    ("structural_tag", json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": "abc"}}), "abc", "ab"),
    ("structural_tag", json.dumps({"structures": [{"begin": "<a>", "schema": SCHEMA, "end": "</a>"}], "triggers": ["<a>"]}), 'x<a>{"a":12}</a>y', '<a>{"b"'),
    ("structural_tag", json.dumps({"structures": [{"begin": "<a>", "schema": None, "end": "</a>"}], "triggers": ["<a>"], "at_least_one": True}), "<a>[1]</a>", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "good", "bad"), EVERY_KIND)
def test_every_kind_of_request(engine: Any, backend: Any, kind: str, text: str, good: str, bad: str) -> None:
    eos = tokenizer().eos_token_id
    template = backend._init_value_dispatch((kind, text), False)
    assert isinstance(template, engine.base.BaseGrammarObject) and template.grammar_stats.dispatch_type == kind
    grammar = template.copy()
    for token in [*encoded(good), eos]:
        assert token in allowed(engine, grammar)
        grammar.accept_token(token)
        assert grammar.current_token == token
    assert grammar.is_terminated() and not template.is_terminated() and template.walk.num_taken == 0
    grammar.accept_token(eos)  # behind the end nothing counts
    assert grammar.walk.num_taken == len(encoded(good)) + 1
    grammar = template.copy()
    with pytest.raises(ValueError, match="not allowed after"):
        for token in [*encoded(bad), eos]:
            grammar.accept_token(token)


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("json", '{"type": "object", "properties": {"a": {"pattern": "(x)\\\\1"}}}', "#/properties/a 'pattern'"),
        ("json", "{", "line 1"),
        ("regex", "a(b", "line 1"),
        ("ebnf", "root ::= missing", "missing"),
        ("structural_tag", '{"type": "structural_tag", "format": {"type": "nonsense"}}', "nonsense"),
        ("structural_tag", '{"structures": 1, "triggers": [], "at_least_one": true}', "list of objects"),
    ],
)
def test_refusals_carry_their_message(engine: Any, backend: Any, kind: str, text: str, told: str) -> None:
    refused = backend._init_value_dispatch((kind, text), False)
    assert isinstance(refused, engine.base.InvalidGrammarObject) and told in refused.error_message


def test_the_pool_compiles_and_the_cache_gives_copies(engine: Any, backend: Any) -> None:
    key = ("regex", "ab+")
    future, is_cached = backend.get_cached_or_future_value(key, False)
    assert not is_cached
    backend.set_cache(key, future.result(30).copy())
    first, is_cached = backend.get_cached_or_future_value(key, False)
    second, _ = backend.get_cached_or_future_value(key, False)
    assert is_cached and first.grammar_stats.is_cache_hit and not future.result().grammar_stats.is_cache_hit
    first.accept_token(ids("ab")[0])
    assert second.walk.num_taken == 0


def test_the_cache_forgets_the_oldest(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.integrations.sglang.backend.MOST_CACHED", 2)
    backend = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size())
    for letter in "abc":
        backend.set_cache(("regex", letter), backend.dispatch_regex(letter))
    assert [text for _, text in backend.cache] == ["b", "c"]


def test_rows_of_requests_that_are_gone_are_forgotten(engine: Any) -> None:
    backend = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size())
    grammar = backend.dispatch_regex("a")
    assert allowed(engine, grammar) == set(ids("a"))
    assert len(backend._rows._names) == 1
    backend._compilers._compilers.clear()
    del grammar
    gc.collect()
    assert len(backend._rows._names) == 0


def test_a_batch_of_all_sorts(engine: Any, backend: Any) -> None:
    """Rows without a grammar, of finished requests and behind the end of a text stay free."""
    a, b, ended, finished = (backend.dispatch_regex(pattern) for pattern in ("a", "b+", "c?", "d"))
    ended.accept_token(tokenizer().eos_token_id)
    finished.finished = True
    rows = batch_masks(engine, [None, a, b, ended, None, finished, a.copy()])
    everything = set(range(size()))
    assert rows == [everything, set(ids("a")), set(ids("b")), everything, everything, everything, set(ids("a"))]


def test_masks_of_other_backends_in_one_batch_are_filled_by_themselves(engine: Any, backend: Any) -> None:
    calls = []
    other = SimpleNamespace(fill_vocab_mask=lambda mask, row: calls.append(row))
    ours = backend.dispatch_regex("a")
    mask = ours.allocate_vocab_mask(size(), 2, "cpu")
    rows = [engine.base.GrammarRow(0, other), engine.base.GrammarRow(1, ours)]
    ours.fill_vocab_mask_batched(rows, mask)
    assert calls == [0] and sampled_from(engine.base.GrammarMask(ours, mask), 2)[1] == set(ids("a"))
    ours.reset_vocab_mask(mask)
    assert sampled_from(engine.base.GrammarMask(ours, mask), 2) == [set(range(size()))] * 2


@given(st.data())
def test_any_order_of_calls_is_what_replaying_the_tokens_says(engine: Any, backend: Any, data: Any) -> None:
    kind, text, *_ = data.draw(st.sampled_from(EVERY_KIND))
    template = backend._init_value_dispatch((kind, text), False)
    grammar, tokens, constraint = template.copy(), list[int](), template.walk.constraint
    for _ in range(data.draw(st.integers(1, 10))):
        state = constraint.start()
        for token in tokens:
            state = constraint.advance(state, token)
        is_ended = bool(tokens) and tokens[-1] == tokenizer().eos_token_id
        mask = set(range(size()))
        if not is_ended:
            mask = {token for token in mask if constraint.advance(state, token) is not None}
        assert allowed(engine, grammar) == mask and grammar.is_terminated() == is_ended
        match data.draw(st.sampled_from(["accept", "accept", "refuse", "rollback", "copy"])):
            case "accept" if not is_ended:
                tokens.append(data.draw(st.sampled_from(sorted(mask))))
                grammar.accept_token(tokens[-1])
            case "refuse" if not is_ended:
                with pytest.raises(ValueError, match="token"):
                    grammar.accept_token(data.draw(st.sampled_from(sorted({-1, size(), *range(size())} - mask))))
            case "rollback":
                count = data.draw(st.integers(0, len(tokens)))
                grammar.rollback(count)
                tokens = tokens[: len(tokens) - count]
            case "copy":
                grammar = grammar.copy()


def test_jumps_are_tokenised_anew(engine: Any, backend: Any) -> None:
    grammar = backend.dispatch_regex('ab[c]true|ab"x')
    assert grammar.try_jump_forward(tokenizer()) == ([], "ab")
    old = ids("a")
    grammar.accept_token(old[0])
    helper = grammar.try_jump_forward(tokenizer())
    text, state = grammar.jump_forward_str_state(helper)
    assert (text, state) == ("b", -1)
    new = encoded("a" + text)
    assert new == ids("ab") != old
    grammar.jump_and_retokenize(old, new, state)
    assert grammar.walk.num_taken == 1
    with pytest.raises(ValueError, match="behind a jump"):
        grammar.jump_and_retokenize(new, encoded("ax"), state)
    assert allowed(engine, grammar) == set(ids("c", '"'))  # as before
    grammar.jump_and_retokenize(new, encoded("abctru"), state)
    grammar.jump_and_retokenize(encoded("abctru"), encoded("abctrue"), state)
    grammar.jump_and_retokenize(encoded("abctrue"), encoded("ab"), state)  # fewer than there were
    assert allowed(engine, grammar) == set(ids("c", '"'))
    with pytest.raises(ValueError, match="given back"):
        grammar.jump_and_retokenize([1] * 9, encoded("ab"), state)


def test_jumps_have_whole_characters_only(engine: Any, backend: Any) -> None:
    grammar = backend.dispatch_regex("é[xy]|ê")
    assert grammar.try_jump_forward(tokenizer()) is None  # the first of two bytes is the same
    grammar = backend.dispatch_regex("é[xy]")
    assert grammar.try_jump_forward(tokenizer()) == ([], "é")
    grammar.accept_token(encoded("é")[0])
    assert grammar.try_jump_forward(tokenizer()) is None  # within a character
    tag = {"type": "sequence", "elements": [{"type": "const_string", "value": "ab"}, {"type": "token", "token": "<tool_call>"}]}
    grammar = backend.dispatch_structural_tag(json.dumps({"type": "structural_tag", "format": tag}))
    assert grammar.try_jump_forward(tokenizer()) == ([], "ab")
    grammar.accept_token(ids("ab")[0])
    assert grammar.try_jump_forward(tokenizer()) is None  # a special token comes next, no text
    assert allowed(engine, grammar) == set(ids("<tool_call>"))


def test_drafts_as_trees(engine: Any) -> None:
    """SGLang's own walk over a tree of drafts, which reads packed masks bit by bit."""
    backend = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size(), packed=True)
    path = engine.folder / "sglang/srt/speculative/spec_utils.py"
    scope = cut_out(path, "traverse_tree", "generate_token_bitmask", time=time, TREE_TRAVERSE_TIME_THRESHOLD=60, torch=torch)
    grammar = backend.dispatch_regex("a(b|c)?")
    eos, (a, ab, b, c, x) = tokenizer().eos_token_id, ids("a", "ab", "b", "c", "x")
    # 0 -> a -> {b -> eos, c, x}; the first token of a tree was taken before
    drafts, next_token = torch.tensor([[x, a, b, eos, c, x]]), torch.tensor([[1, 2, 3, -1, -1, -1]])
    siblings = torch.tensor([[-1, -1, 4, -1, 5, -1]])
    mask, _ = scope["generate_token_bitmask"]([SimpleNamespace(grammar=grammar)], next_token, siblings, drafts, size())
    rows = sampled_from(engine.base.GrammarMask(grammar, mask), 6)
    everything = set(range(size()))
    assert rows == [{a, ab}, {b, c, eos}, {eos}, everything, {eos}, everything]  # behind the end, and behind what is not allowed
    assert grammar.walk.num_taken == 0


def test_more_masks_than_the_table_has_room_for(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.integrations.sglang.backend.TABLE_BYTES", 0)
    monkeypatch.setattr("maskwright.integrations.sglang.backend.LEAST_ROWS", 4)
    backend = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size())
    letters = "abcdefghijkl"
    grammars = [backend.dispatch_regex(letter) for letter in letters]
    for start in range(0, 12, 3):  # three new masks a step: some step finds the table full
        assert batch_masks(engine, grammars[start : start + 3]) == [set(ids(letter)) for letter in letters[start : start + 3]]
    assert allowed(engine, grammars[0]) == set(ids("a"))
    with pytest.raises(UsageError, match="4 mask rows"):
        batch_masks(engine, grammars[:5])


# -- settings of the server -----------------------------------------------------------------------------------------------


@pytest.fixture()
def created(engine: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the backend as a server with some settings would."""
    monkeypatch.setattr(versions, "_version", lambda name: "0.5.23" if name == "sglang" else None)
    engine.adapter.register()

    def create(speculative_algorithm: str | None = None, **settings: Any) -> Any:
        monkeypatch.setattr(engine.spec, "speculative_algorithm", speculative_algorithm)
        for name, value in settings.items():
            monkeypatch.setattr(engine.serving, name, value)
        return engine.base.GRAMMAR_BACKEND_REGISTRY["maskwright"](SimpleNamespace(), tokenizer(), size(), {tokenizer().eos_token_id})

    return create


def test_registration_is_done_once(engine: Any, created: Any) -> None:
    engine.adapter.register()
    assert engine.choices.GRAMMAR_BACKEND_CHOICES.count("maskwright") == 1
    assert isinstance(created(), engine.adapter.MaskwrightGrammarBackend)


def test_releases_that_were_not_tested_are_refused_by_name(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_version", lambda name: "0.6.0")
    with pytest.raises(UnsupportedEngine, match=r"SGLang 0\.6\.0 .*0\.5\.23"):
        engine.adapter.register()


def test_masks_are_packed_where_somebody_reads_them(engine: Any, created: Any) -> None:
    assert not created().packed
    assert created(speculative_algorithm="EAGLE").packed
    assert created(enable_strict_thinking=True).packed


@pytest.mark.parametrize(
    ("settings", "read"),
    [
        ({}, "{ "),
        ({"constrained_json_disable_any_whitespace": True}, "{"),
        ({"constrained_json_max_whitespace_cnt": 1}, "{ "),
        ({"constrained_json_max_whitespace_cnt": 0}, "{"),
        ({"constrained_json_whitespace_pattern": "_*"}, "{__"),
    ],
)
def test_white_space_is_what_the_server_says(engine: Any, created: Any, settings: dict[str, Any], read: str) -> None:
    grammar = created(**settings).dispatch_json(json.dumps(SCHEMA))
    for text in ("{  ", "{__"):
        legal = grammar.walk.legal_prefix(encoded(text))
        longest = "{" if text[1] not in read else read if len(read) < 3 and settings else text[: 3 if not settings else len(read)]
        assert tokenizer().decode(legal) == longest


def test_the_models_own_ends(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size(), ids(TURN))
    assert allowed(engine, backend.dispatch_regex("a?")) == set(ids("a", TURN))


def test_reasoning_first(engine: Any, created: Any) -> None:
    backend = created(reasoning_parser="some")
    assert isinstance(backend, engine.reasoner.ReasonerGrammarBackend)
    grammar = backend._init_value_dispatch(("regex", "ab"), True)
    grammar.maybe_init_reasoning(True)
    end, (a, ab) = ids("</think>")[0], ids("a", "ab")
    everything = set(range(size()))
    assert allowed(engine, grammar) == everything
    for token in (a, ab, end):
        grammar.accept_token(token)
    assert allowed(engine, grammar) == {a, ab}
    grammar.accept_token(a)
    grammar.rollback(2)  # back into the reasoning
    assert allowed(engine, grammar) == everything
    grammar.accept_token(end)
    assert allowed(engine, grammar) == {a, ab}
    twin = grammar.copy()
    twin.accept_token(ab)
    assert allowed(engine, grammar) == {a, ab} and allowed(engine, twin) == {tokenizer().eos_token_id}
    plain = backend._init_value_dispatch(("regex", "ab"), False)
    plain.maybe_init_reasoning(False)
    assert allowed(engine, plain) == {a, ab}


def test_strict_thinking_filters_tokens(engine: Any, created: Any) -> None:
    backend = created(reasoning_parser="some", enable_strict_thinking=True)
    grammar = backend._init_value_dispatch(("regex", "ab"), True)
    grammar.maybe_init_reasoning(True)
    everything, (a, end, call) = set(range(size())), ids("a", "</think>", "<tool_call>")
    assert allowed(engine, grammar) == everything - {call}
    grammar.accept_token(a)
    grammar.accept_token(a)
    assert allowed(engine, grammar) == {end}  # two tokens of thinking are the most
    free = backend.init_strict_reasoning_grammar(True)
    assert allowed(engine, free) == everything - {call}


def test_single_bits_of_packed_masks(engine: Any) -> None:
    backend = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size(), packed=True)
    mask = backend.allocate_vocab_mask(size(), 2, "cpu")
    backend.set_token_filter(mask, [0, 31, 32, 40], 1, is_allowed=True)
    bits = np.unpackbits(mask[1].numpy().view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == {0, 31, 32, 40} and (mask[0] == -1).all()
    backend.set_token_filter(mask, [31], 1, is_allowed=False, reset_vocab_mask=False)
    backend.set_token_filter(mask, [33], 1, is_allowed=True, reset_vocab_mask=False)
    bits = np.unpackbits(mask[1].numpy().view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == {0, 32, 33, 40}
    rows = engine.adapter.MaskwrightGrammarBackend(tokenizer(), size())
    assert not rows.is_support_token_filter
    with pytest.raises(ValueError, match="packed"):
        rows.set_token_filter(rows.allocate_vocab_mask(size(), 1, "cpu"), [1], 0)
