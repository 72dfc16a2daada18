"""The engines that are compared, behind one small interface: compile a schema, then mask and accept token by token.

Each is set up as its documentation says for JSON Schema, on one thread, with white space as flexible as it allows, because the
texts are those that `json.dumps` writes by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Matcher(Protocol):
    """One sequence under one schema."""

    def mask(self) -> None:
        """Compute the mask of the next token."""

    def allowed(self) -> NDArray[np.int64]:
        """The tokens of the mask that was computed last, EOS among them."""

    def accept(self, token_id: int) -> bool:
        """Read a token; False when it is not allowed."""

    def finished(self) -> bool:
        """Whether the text may end here."""


class Engine(Protocol):
    name: str

    def compile(self, schema: str) -> Callable[[], Matcher]:
        """A maker of fresh matchers. Raises when the engine refuses the schema."""


class GrammarEngine(Engine, Protocol):
    """One that is compared on grammars, too."""

    def compile_grammar(self, notations: Mapping[str, str]) -> Callable[[], Matcher]:
        """The same for a grammar that is given in several notations, by the endings of their files: gbnf, ebnf, lark."""


class Maskwright:
    """This project, with nothing shared between schemas but the vocabulary."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, property_order: str = "declared") -> None:
        from maskwright.constraints import Compiler, Vocabulary, warm_up

        warm_up()
        self.name = f"maskwright {version('maskwright')}" + (" any order" if property_order == "any" else "")
        self._compiler, self._order = Compiler(Vocabulary.from_tokenizer(tokenizer), cache_bytes=0), property_order
        self._num_compiled = 0

    def compile(self, schema: str) -> Callable[[], MaskwrightMatcher]:
        from maskwright.constraints import JsonSchema

        source = JsonSchema(schema, whitespace="flexible", property_order=self._order)
        constraint = self._compiler.compile(source)
        return lambda: MaskwrightMatcher(constraint)

    def compile_grammar(self, notations: Mapping[str, str]) -> Callable[[], MaskwrightMatcher]:
        from maskwright.constraints import Gbnf

        self._num_compiled += 1  # a comment that differs, so that nothing is found in the compiler's cache
        constraint = self._compiler.compile(Gbnf(f"{notations['gbnf']}\n# {self._num_compiled}"))
        return lambda: MaskwrightMatcher(constraint)


class MaskwrightMatcher:
    def __init__(self, constraint: Any) -> None:
        self.constraint, self._state = constraint, constraint.start()

    def mask(self) -> None:
        self._mask = self.constraint.mask(self._state)

    def allowed(self) -> NDArray[np.int64]:
        return _token_ids(self._mask)

    def accept(self, token_id: int) -> bool:
        after = self.constraint.advance(self._state, token_id)
        if after is not None:
            self._state = after
        return after is not None

    def finished(self) -> bool:
        return bool(self.constraint.is_accepting(self._state))


class Llguidance:
    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.numpy

        self.name = f"llguidance {version('llguidance')}"
        self._library, self._tokenizer = llguidance, llguidance.hf.from_tokenizer(tokenizer)
        self._bitmask = llguidance.numpy.allocate_token_bitmask(1, self._tokenizer.vocab_size)

    def compile(self, schema: str) -> Callable[[], Matcher]:
        return self._maker(self._library.LLMatcher.grammar_from_json_schema(schema))

    def compile_grammar(self, notations: Mapping[str, str]) -> Callable[[], Matcher]:
        return self._maker(self._library.LLMatcher.grammar_from_lark(notations["lark"]))

    def _maker(self, grammar: str) -> Callable[[], Matcher]:
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

    def allowed(self) -> NDArray[np.int64]:
        return _token_ids(self._bitmask)

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.consume_token(token_id))

    def finished(self) -> bool:
        return bool(self._matcher.is_accepting())


class Xgrammar:
    """Strict: its default, which forbids properties and items that a schema does not name. Compliant: as the specification says."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, strict: bool = True) -> None:
        import xgrammar

        self.name = f"xgrammar {version('xgrammar')} {'strict' if strict else 'compliant'}"
        self._library, self._strict = xgrammar, strict
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._bitmask = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema: str) -> Callable[[], Matcher]:
        return self._maker(self._compiler.compile_json_schema(schema, strict_mode=self._strict))

    def compile_grammar(self, notations: Mapping[str, str]) -> Callable[[], Matcher]:
        return self._maker(self._compiler.compile_grammar(notations["ebnf"]))

    def _maker(self, grammar: Any) -> Callable[[], Matcher]:
        return lambda: _XgrammarMatcher(self._library.GrammarMatcher(grammar), self._bitmask)


class _XgrammarMatcher:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self._matcher, self._bitmask = matcher, bitmask

    def mask(self) -> None:
        self._matcher.fill_next_token_bitmask(self._bitmask, 0)

    def allowed(self) -> NDArray[np.int64]:
        return _token_ids(self._bitmask.numpy())

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.accept_token(token_id))

    def finished(self) -> bool:
        return bool(self._matcher.is_completed())


class Outlines:
    """A regular expression of the schema, and its index over the vocabulary, built before the first mask."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        import outlines_core

        self.name = f"outlines-core {version('outlines-core')}"
        self._library = outlines_core
        tokens, eos = _text_tokens(tokenizer)
        by_text: dict[bytes, list[int]] = {}
        for token_id, token in tokens.items():
            by_text.setdefault(token, []).append(token_id)
        self._vocabulary = outlines_core.Vocabulary(eos, by_text)
        self._bitmask = np.zeros((len(tokenizer) + 31) // 32, np.int32)

    def compile(self, schema: str) -> Callable[[], Matcher]:
        pattern = self._library.json_schema.build_regex_from_schema(schema)
        index = self._library.Index(pattern, self._vocabulary)
        return lambda: _OutlinesMatcher(self._library.Guide(index), self._bitmask)


class _OutlinesMatcher:
    def __init__(self, guide: Any, bitmask: Any) -> None:
        self._guide, self._bitmask = guide, bitmask

    def mask(self) -> None:
        self._guide.write_mask_into(self._bitmask.ctypes.data, self._bitmask.size, self._bitmask.itemsize)

    def allowed(self) -> NDArray[np.int64]:
        return _token_ids(self._bitmask)

    def accept(self, token_id: int) -> bool:
        try:
            self._guide.advance(token_id, return_tokens=False)
        except ValueError:  # no transition
            return False
        return True

    def finished(self) -> bool:
        return bool(self._guide.is_finished())


class Glrmask:
    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        import glrmask

        self.name = f"glrmask {version('glrmask')}"
        self._library = glrmask
        self._vocabulary = glrmask.Vocab.from_id_to_bytes(_text_tokens(tokenizer)[0])

    def compile(self, schema: str) -> Callable[[], Matcher]:
        constraint = self._library.Grammar.from_json_schema(schema).compile(self._vocabulary)
        bitmask = np.zeros(constraint.mask_len(), np.int32)
        return lambda: _GlrmaskMatcher(constraint.start(), bitmask)


class _GlrmaskMatcher:
    def __init__(self, state: Any, bitmask: Any) -> None:
        self._state, self._bitmask = state, bitmask

    def mask(self) -> None:
        self._state.fill_mask(self._bitmask)

    def allowed(self) -> NDArray[np.int64]:
        return _token_ids(self._bitmask)

    def accept(self, token_id: int) -> bool:
        return bool(self._state.commit_token(token_id))

    def finished(self) -> bool:
        return bool(self._state.is_accepting())


class Maskforge:
    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        import maskforge
        from maskforge import _native as library

        self.name = f"maskforge {maskforge.__version__}"
        self._compiler = library.Compiler.without_cache()
        tokens, eos = _text_tokens(tokenizer)
        vocabulary = library.PyVocabulary.from_id_ordered_tokens([tokens.get(i) for i in range(len(tokenizer))], eos)
        self._vocabulary = library.CompiledVocabulary.from_vocabulary(vocabulary)
        self._error = library.MaskforgeError

    def compile(self, schema: str) -> Callable[[], Matcher]:
        bound = self._compiler.compile_json_schema(schema).bind(self._vocabulary)
        bitmask = bytearray(4 * bound.mask_word_count())
        return lambda: _MaskforgeMatcher(bound.start_session(), bitmask, self._error)


class _MaskforgeMatcher:
    def __init__(self, session: Any, bitmask: bytearray, error: type[Exception]) -> None:
        self._session, self._bitmask, self._error = session, bitmask, error

    def mask(self) -> None:
        self._session.write_mask(self._bitmask)

    def allowed(self) -> NDArray[np.int64]:
        return _token_ids(np.frombuffer(self._bitmask, np.uint8))

    def accept(self, token_id: int) -> bool:
        try:
            self._session.advance(token_id)
        except self._error:
            return False
        return not self._session.is_dead()

    def finished(self) -> bool:
        return bool(self._session.is_accepting())


ENGINES: dict[str, Callable[[PreTrainedTokenizerFast], Engine]] = {
    "maskwright": Maskwright,
    "maskwright-any": lambda tokenizer: Maskwright(tokenizer, property_order="any"),
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "xgrammar-compliant": lambda tokenizer: Xgrammar(tokenizer, strict=False),
    "outlines-core": Outlines,
    "glrmask": Glrmask,
    "maskforge": Maskforge,
}


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The fast tokenizer of a model folder; `tokenizer.json` is enough."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token=_eos(folder))


def _token_ids(bitmask: NDArray[Any]) -> NDArray[np.int64]:
    """The tokens whose bits are set."""
    return np.flatnonzero(np.unpackbits(bitmask.reshape(-1).view(np.uint8), bitorder="little"))


def _eos(folder: Path) -> str:
    config = folder / "tokenizer_config.json"
    eos = json.loads(config.read_text()).get("eos_token", "</s>") if config.is_file() else "</s>"
    return str(eos["content"] if isinstance(eos, dict) else eos)


def _text_tokens(tokenizer: PreTrainedTokenizerFast) -> tuple[dict[int, bytes], int]:
    """The bytes of every token that is text, and an id that ends it, for engines that cannot read a tokenizer themselves."""
    from maskwright.constraints import Vocabulary

    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    return {i: token for i, token in enumerate(vocabulary.text_tokens) if token}, vocabulary.eos_token_ids[0]


PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}


def percentiles(microseconds: list[float]) -> dict[str, float]:
    """The figures that are reported of a list of times; none of an empty one."""
    if not microseconds:
        return {}
    values = np.array(microseconds)
    return {"mean": float(values.mean()), **{name: float(np.percentile(values, q)) for name, q in PERCENTILES.items()}}
