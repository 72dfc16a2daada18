"""What an operator decides about the server. The engine has settings of its own."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Every field is an option of `maskwright serve`; the comments are its help."""

    host: str = "127.0.0.1"  # the address to listen on
    port: int = 8000  # the port to listen on; 0 takes a free one
    api_key: tuple[str, ...] = ()  # who may ask: one of these keys as bearer token; none = everybody; also MASKWRIGHT_API_KEY
    served_model_name: tuple[str, ...] = ()  # what clients call the model, several names too; else as it was named to --model
    any_model: bool = False  # clients may call the model by any name
    client_grammars: bool = True  # clients may send grammars, regular expressions and structural tags, not only JSON schemas
    tool_style: str = "auto"  # how the model writes calls, such as hermes; auto: by its chat template
    max_body_bytes: int = 8 << 20  # of one request
    max_header_bytes: int = 64 << 10  # names and values of one request's headers
    max_headers: int = 100  # of one request
    max_open: int = 1024  # outputs that run or wait at the same time; more are answered by 429
    max_n: int = 16  # outputs of one request
    max_prompts: int = 128  # prompts of one request to /v1/completions
    max_tokens: int | None = None  # of one output; else as long as the model allows
    max_logprobs: int = 20  # alternatives of each token
    max_stop: int = 16  # stop strings of one request
    max_tools: int = 128  # tools of one request
    compile_seconds: float = 10.0  # processor time for one constraint
    constraint_cache_bytes: int = 1 << 30  # of compiled constraints that are kept for the next request
    compile_threads: int = 2  # constraints compiled at the same time
    keep_alive_seconds: float = 15.0  # a comment is sent when a stream was silent for that long
    head_seconds: float = 30.0  # for the head of a request to arrive
    body_seconds: float = 60.0  # for its body to arrive
    request_seconds: float = 3600.0  # for an output, waiting included
    send_seconds: float = 60.0  # a client that takes nothing of a stream for that long is gone
    log_format: str = "text"  # of log lines: text, or json for one object a line
    traces: bool = False  # OpenTelemetry spans, sent over OTLP as the OTEL_ variables of the environment say
    drain_seconds: int | None = None  # how long running requests may take after SIGTERM; else until they are done

    def __post_init__(self) -> None:
        for name in ("max_body_bytes", "max_header_bytes", "max_headers", "max_open", "max_n", "max_prompts", "compile_threads"):
            _require(name, getattr(self, name), at_least=1)
        for name in ("max_logprobs", "max_stop", "max_tools", "port", "constraint_cache_bytes"):
            _require(name, getattr(self, name), at_least=0)
        for name in ("max_tokens", "drain_seconds"):
            if getattr(self, name) is not None:
                _require(name, getattr(self, name), at_least=1)
        for name in ("compile_seconds", "keep_alive_seconds", "head_seconds", "body_seconds", "request_seconds", "send_seconds"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is more than 0, not {getattr(self, name)!r}")
        if self.log_format not in ("text", "json"):
            raise UsageError(f"log_format is text or json, not {self.log_format!r}")
        if isinstance(self.served_model_name, str) or not all(self.served_model_name):
            raise UsageError("served_model_name has names that are not empty, such as (\"a\", \"b\")")
        if not all(self.api_key):
            raise UsageError("an API key is not empty")


def _require(name: str, value: int, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise UsageError(f"{name} is an integer of at least {at_least}, not {value!r}")
