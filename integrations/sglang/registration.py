"""How SGLang learns of the backend: by an entry point of the group `sglang.srt.plugins`, which is loaded in every process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..versions import check_version
from .backend import MaskwrightGrammarBackend

NAME = "maskwright"
TESTED = ("0.5.23",)


def register() -> None:
    """Make the backend known to the SGLang of this process. Idempotent. Raises `UnsupportedEngine` for releases not tested, which
    SGLang's loader logs; the server then does not know the name."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

    check_version("SGLang", ("sglang",), TESTED)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, create_backend)


def create_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None) -> Any:
    """The backend that the server's settings describe, within SGLang's own wrapper where the model reasons first."""
    from sglang.srt.runtime_context import get_serving, get_spec

    from ..compilers import whitespace_of

    serving = get_serving()
    whitespace = whitespace_of(
        compact=serving.constrained_json_disable_any_whitespace,
        most=serving.constrained_json_max_whitespace_cnt,
        pattern=serving.constrained_json_whitespace_pattern,
    )
    eos = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids
    packed = bool(get_spec().speculative_algorithm) or bool(serving.enable_strict_thinking)
    backend = MaskwrightGrammarBackend(tokenizer, vocab_size, eos or None, whitespace, packed)
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    return ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)
