"""The engines that are compared, behind one small interface: compile a schema, then mask and accept token by token."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from transformers import PreTrainedTokenizerFast


class Matcher(Protocol):
    """One sequence under one schema."""

    def mask(self) -> None:
        """Compute the mask of the next token."""

    def accept(self, token_id: int) -> bool:
        """Read a token; False when it is not allowed."""

    def finished(self) -> bool:
        """Whether the text may end here."""


class Engine(Protocol):
    name: str

    def compile(self, schema: str) -> Callable[[], Matcher]:
        """A maker of fresh matchers. Raises when the engine declines the schema."""


class Maskwright:
    """This project, with nothing shared between schemas but the vocabulary."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        from maskwright.constraints import Compiler, Vocabulary, warm_up

        warm_up()
        self.name = f"maskwright {version('maskwright')}"
        vocabulary = Vocabulary.from_tokenizer(tokenizer)
        self._make = lambda: Compiler(vocabulary)
        self._compiler = self._make()

    def compile(self, schema: str) -> Callable[[], Matcher]:
        from maskwright.constraints import JsonSchema

        constraint = self._compiler.compile(JsonSchema(schema))
        return lambda: _MaskwrightMatcher(constraint)


class _MaskwrightMatcher:
    def __init__(self, constraint: Any) -> None:
        self._constraint, self._state = constraint, constraint.start()

    def mask(self) -> None:
        self._constraint.mask(self._state)

    def accept(self, token_id: int) -> bool:
        after = self._constraint.advance(self._state, token_id)
        if after is not None:
            self._state = after
        return after is not None

    def finished(self) -> bool:
        return bool(self._constraint.is_accepting(self._state))


class Llguidance:
    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.numpy

        self.name = f"llguidance {version('llguidance')}"
        self._library, self._tokenizer = llguidance, llguidance.hf.from_tokenizer(tokenizer)
        self._bitmask = llguidance.numpy.allocate_token_bitmask(1, self._tokenizer.vocab_size)

    def compile(self, schema: str) -> Callable[[], Matcher]:
        grammar = self._library.LLMatcher.grammar_from_json_schema(schema)

        def make() -> Matcher:
            matcher = self._library.LLMatcher(self._tokenizer, grammar)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            return _LlguidanceMatcher(matcher, self._library.numpy, self._bitmask)

        return make


class _LlguidanceMatcher:
    def __init__(self, matcher: Any, arrays: Any, bitmask: Any) -> None:
        self._matcher, self._arrays, self._bitmask = matcher, arrays, bitmask

    def mask(self) -> None:
        self._arrays.fill_next_token_bitmask(self._matcher, self._bitmask, 0)

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.consume_token(token_id))

    def finished(self) -> bool:
        return bool(self._matcher.is_accepting())


class Xgrammar:
    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        import xgrammar

        self.name = f"xgrammar {version('xgrammar')}"
        self._library = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._bitmask = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema: str) -> Callable[[], Matcher]:
        grammar = self._compiler.compile_json_schema(schema)
        return lambda: _XgrammarMatcher(self._library.GrammarMatcher(grammar), self._bitmask)


class _XgrammarMatcher:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self._matcher, self._bitmask = matcher, bitmask

    def mask(self) -> None:
        self._matcher.fill_next_token_bitmask(self._bitmask, 0)

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.accept_token(token_id))

    def finished(self) -> bool:
        return bool(self._matcher.is_completed())


ENGINES: dict[str, Callable[[PreTrainedTokenizerFast], Engine]] = {
    "maskwright": Maskwright,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
}


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The fast tokenizer of a model folder; `tokenizer.json` is enough."""
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token=_eos(folder))


def _eos(folder: Path) -> str:
    config = folder / "tokenizer_config.json"
    eos = json.loads(config.read_text()).get("eos_token", "</s>") if config.is_file() else "</s>"
    return str(eos["content"] if isinstance(eos, dict) else eos)


def percentiles(microseconds: list[float]) -> dict[str, float]:
    """The figures that are reported of a list of times."""
    values = np.array(microseconds) if microseconds else np.zeros(1)
    points = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
    return {"mean": float(values.mean()), **{name: float(np.percentile(values, q)) for name, q in points.items()}}
