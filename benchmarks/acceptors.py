"""Engines as acceptors: a schema compiled for a vocabulary of single bytes, then asked whether it accepts a whole text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Protocol

BYTES = [bytes([byte]) for byte in range(256)]
EOS = len(BYTES)

Accepts = Callable[[str], bool]


@dataclass(frozen=True)
class Question:
    """A schema and how it is meant. `order` is "declared" or "any", `formats` "assert" or "annotate"."""

    schema: str  # JSON text
    draft: str | None
    order: str
    formats: str
    resources: tuple[tuple[str, str], ...] = ()  # address, JSON text


class Declined(Exception):
    """The engine does not take this schema. `kind` is "refused" or "malformed", `keyword` what it names as the cause."""

    def __init__(self, kind: str, keyword: str, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.keyword, self.reason = kind, keyword, reason


class Acceptor(Protocol):
    name: str

    def compile(self, question: Question) -> Accepts:
        """Whether a text satisfies the schema. Raises `Declined`; anything else that it raises is a crash."""


class Maskwright:
    def __init__(self) -> None:
        from maskwright.constraints import Compiler, Vocabulary, warm_up

        warm_up(lambda line: None)
        self.name = f"maskwright {version('maskwright')}"
        words = [b'":', b"true", b"false", b"null", b"},", b'","']
        vocabulary = Vocabulary([*BYTES, None, *words], eos_token_ids=[EOS])
        self._compiler = Compiler(vocabulary, cache_bytes=1 << 24)

    def compile(self, question: Question) -> Accepts:
        from maskwright.constraints import ConstraintError, ConstraintLimit, JsonSchema, UnsupportedKeyword

        try:
            source = JsonSchema(
                question.schema, draft=question.draft, property_order=question.order, formats=question.formats,
                resources=dict(question.resources),
            )  # fmt: skip
            constraint = self._compiler.compile(source)
        except UnsupportedKeyword as error:
            raise Declined("refused", error.keyword or "?", str(error)) from None
        except ConstraintLimit as error:
            raise Declined("refused", f"limit {error.limit}", str(error)) from None
        except ConstraintError as error:
            if "no value satisfies" in error.reason or "nothing satisfies" in error.reason:
                return lambda text: False
            raise Declined("malformed", error.keyword or "?", str(error)) from None
        return lambda text: constraint.accepts(text.encode())


class Llguidance:
    def __init__(self) -> None:
        import llguidance

        self.name = f"llguidance {version('llguidance')}"
        self._library, self._tokenizer = (
            llguidance,
            llguidance.LLTokenizer(llguidance.TokenizerWrapper(_ByteTokenizer())),
        )

    def compile(self, question: Question) -> Accepts:
        try:
            grammar = self._library.LLMatcher.grammar_from_json_schema(_with_draft(question))
        except ValueError as error:
            raise Declined("refused", _named(str(error)), str(error)) from None
        first = self._library.LLMatcher(self._tokenizer, grammar, log_level=0)
        if first.is_error():
            if "Unsatisfiable schema" in first.get_error():
                return lambda text: False
            raise Declined("refused", _named(first.get_error()), first.get_error())

        def accepts(text: str) -> bool:
            matcher, data = first.deep_copy(), list(text.encode())
            return bool(matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting())

        return accepts


class Xgrammar:
    """`strict`: objects without `additionalProperties` are closed, which is its default."""

    def __init__(self, strict: bool) -> None:
        import xgrammar

        self.name = f"xgrammar {version('xgrammar')} {'strict' if strict else 'compliant'}"
        self._library, self._strict = xgrammar, strict
        info = xgrammar.TokenizerInfo([*BYTES, b"</s>"], stop_token_ids=[EOS])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, question: Question) -> Accepts:
        try:
            grammar = self._compiler.compile_json_schema(
                _with_draft(question), strict_mode=self._strict, any_order=question.order == "any"
            )
        except RuntimeError as error:
            if "cannot accept any value" in str(error):
                return lambda text: False
            raise Declined("refused", _named(str(error)), str(error)) from None

        def accepts(text: str) -> bool:
            matcher = self._library.GrammarMatcher(grammar)
            return bool(matcher.accept_string(text.encode()) and matcher.is_completed())

        return accepts


class _ByteTokenizer:
    """What llguidance asks of a tokenizer."""

    eos_token_id = EOS
    bos_token_id = None
    tokens = (*BYTES, b"</s>")
    special_token_ids = (EOS,)

    def __call__(self, data: bytes) -> list[int]:
        return list(data)


ACCEPTORS: dict[str, Callable[[], Acceptor]] = {
    "maskwright": Maskwright,
    "llguidance": Llguidance,
    "xgrammar": lambda: Xgrammar(strict=True),
    "xgrammar-compliant": lambda: Xgrammar(strict=False),
}


def _with_draft(question: Question) -> str:
    """The schema naming its draft, for engines that have no option for it."""
    number = {"4": "04", "6": "06", "7": "07"}.get(question.draft or "")
    if number is None or not question.schema.startswith("{"):
        return question.schema
    declared = json.dumps({"$schema": f"http://json-schema.org/draft-{number}/schema#"})[:-1]
    return declared + (question.schema if question.schema == "{}" else "," + question.schema[1:]).removeprefix("{")


def _named(message: str) -> str:
    """What a peer's message says is not supported, in a few words and without the line of its source."""
    return " ".join(re.sub(r"^\[[\d:]+\] \S+: ", "", message).split())[:60]
