"""What an operator decides about the server. The engine has settings of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..constraints import Limits
from ..constraints.front_ends.tags.styles import STYLES
from ..errors import UsageError
from ..foundation.option_names import unknown_name

MOST_PORTS = 65535
TIMES = ("idle_seconds", "keep_alive_seconds", "head_seconds", "body_seconds", "request_seconds", "send_seconds")
AT_LEAST_ONE = (
    "max_body_bytes", "max_header_bytes", "max_headers", "max_open", "max_n", "max_prompts", "max_compiles", "max_file_bytes",
    "max_files_bytes", "max_batches", "max_batch_lines", "max_batch_requests",
)  # fmt: skip
_TOKEN = re.compile(r"[!-~]+")
_ROOT_PATH = re.compile(r"(/[\w.~-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Every field is an option of `maskwright serve`; the comments are its help."""

    host: str = "127.0.0.1"  # the address to listen on
    port: int = 8000  # the port to listen on; 0 takes a free one
    root_path: str = ""  # the path below which a proxy in front serves this, such as /llm
    ssl_certfile: Path | None = None  # the certificate for https, and those that vouch for it, as PEM
    ssl_keyfile: Path | None = None  # its private key, where the certificate's file does not hold it
    ssl_ca_certs: Path | None = None  # clients have to show a certificate that one of these vouches for
    allowed_origins: tuple[str, ...] = ()  # pages of other sites that may ask from a browser, such as https://a.example; "*" = all
    allowed_headers: tuple[str, ...] = ("*",)  # that these may send
    allow_credentials: bool = False  # whether browsers may send cookies along
    api_key: tuple[str, ...] = ()  # who may ask: one of these keys as bearer token; none = everybody; also MASKWRIGHT_API_KEY
    admin_api_key: tuple[str, ...] = ()  # of operators: these may also end requests of others and empty the cache of prefixes
    served_model_name: tuple[str, ...] = ()  # what clients call the model, several names too; else as it was named to --model
    lora_modules: tuple[str, ...] = ()  # LoRA adapters, as NAME=PATH of a folder or GGUF file: model=NAME runs with it
    runtime_adapters: bool = False  # clients may load and unload adapters of this machine's folders, as vLLM's do
    any_model: bool = False  # clients may call the model by any name
    client_grammars: bool = True  # clients may send grammars, regular expressions and structural tags, not only JSON schemas
    client_logits_processors: tuple[str, ...] = ()  # registered ones that clients may name, with parameters of their own
    client_stopping_criteria: tuple[str, ...] = ()  # registered ones that clients may name, with parameters of their own
    client_grammar_languages: tuple[str, ...] = ()  # registered ones in which clients may write grammars, as their "syntax"
    trust_request_chat_template: bool = False  # clients may send chat templates of their own: programs, run in jinja's sandbox
    tool_style: str = "auto"  # how the model writes calls, such as hermes; auto: by its chat template
    max_body_bytes: int = 8 << 20  # of one request
    max_header_bytes: int = 64 << 10  # names and values of one request's headers
    max_headers: int = 100  # of one request
    max_open: int = 1024  # outputs that run or wait at the same time; more are answered by 429
    max_n: int = 16  # outputs of one request
    max_prompts: int = 128  # prompts of one request to /v1/completions
    max_tokens: int | None = None  # of one output; else as long as the model allows
    max_logprobs: int = 20  # alternatives of each token
    mask_metrics: bool = True  # maskwright:kept_mass is observed of each constrained token, for which a CPU computes the whole head
    max_stop: int = 16  # stop strings of one request
    max_tools: int = 128  # tools of one request
    max_stored_responses: int = 1000  # of /v1/responses; those used least recently go; 0 stores none
    max_stored_bytes: int = 64 << 20  # that stored responses and what was asked may have together
    batch_folder: Path | None = None  # of this server alone, for the files and batches of clients; none = it takes none
    max_file_bytes: int = 200 << 20  # of one file of requests
    max_files_bytes: int = 2 << 30  # that all files may have together
    max_batches: int = 64  # that run or wait; more are answered by 429
    max_batch_lines: int = 50_000  # requests of one batch
    max_batch_requests: int = 16  # of batches, that run at a time
    compile_seconds: float = 10.0  # processor time for one constraint
    constraint_cache_bytes: int = 1 << 30  # of compiled constraints that are kept for the next request
    compile_processes: int | None = None  # that compile, in the quick lane and in the slow one each; else a quarter of the cores
    compile_memory_bytes: int = 1 << 30  # that one of them may hold
    max_compiles: int = 128  # constraints that are being compiled or wait for that; more are answered by 429
    idle_seconds: float = 5.0  # a connection is kept open for the next request; more than a proxy in front keeps it
    keep_alive_seconds: float = 15.0  # a comment is sent when a stream was silent for that long
    head_seconds: float = 30.0  # for the head of a request to arrive
    body_seconds: float = 60.0  # for its body to arrive
    request_seconds: float = 3600.0  # for an output, waiting included
    send_seconds: float = 60.0  # a client that reads nothing of its answer for that long is gone
    log_format: str = "text"  # of log lines: text, or json for one object a line
    traces: bool = False  # OpenTelemetry spans, sent over OTLP as the OTEL_ variables of the environment say
    drain_seconds: int | None = None  # how long running requests may take after SIGTERM; else until they are done

    def __post_init__(self) -> None:
        for name in AT_LEAST_ONE:
            _require(name, getattr(self, name), at_least=1)
        for name in ("max_logprobs", "max_stop", "max_tools", "port", "constraint_cache_bytes", "compile_memory_bytes"):
            _require(name, getattr(self, name), at_least=0)
        for name in ("max_stored_responses", "max_stored_bytes"):
            _require(name, getattr(self, name), at_least=0)
        for name in ("max_tokens", "drain_seconds", "compile_processes"):
            if getattr(self, name) is not None:
                _require(name, getattr(self, name), at_least=1)
        for name in (*TIMES, "compile_seconds"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is more than 0, not {getattr(self, name)!r}")
        if self.log_format not in ("text", "json"):
            raise UsageError(f"log_format is text or json, not {self.log_format!r}")
        for key in (*self.api_key, *self.admin_api_key):
            if not _TOKEN.fullmatch(key):
                raise UsageError("an API key is made of visible ASCII characters, one at least: a header carries no others")
        if self.port > MOST_PORTS:
            raise UsageError(f"port is at most {MOST_PORTS}, not {self.port}")
        if self.tool_style not in ("auto", *STYLES):
            raise UsageError(unknown_name("tool_style", self.tool_style, ("auto", *STYLES)))
        if not _ROOT_PATH.fullmatch(self.root_path):
            raise UsageError(f"root_path begins with a slash and does not end with one, such as /llm; it is not {self.root_path!r}")
        if self.allow_credentials and ("*" in self.allowed_origins or not self.allowed_origins):
            raise UsageError("allow_credentials needs allowed_origins that are named, or any page could use its visitor's cookies")
        if self.ssl_certfile is None and (self.ssl_keyfile or self.ssl_ca_certs):
            raise UsageError("ssl_keyfile and ssl_ca_certs need ssl_certfile")
        named_paths(self.lora_modules)
        if isinstance(self.served_model_name, str) or not all(self.served_model_name):
            raise UsageError("served_model_name has names that are not empty, such as (\"a\", \"b\")")

    @property
    def model_options(self) -> dict[str, Any]:
        """What `LLM` is to be given."""
        limits = Limits(seconds=self.compile_seconds, bytes=self.compile_memory_bytes // 2)  # what is counted is not all
        cache_bytes = self.constraint_cache_bytes
        return {"constraint_limits": limits, "constraint_cache_bytes": cache_bytes, "adapters": named_paths(self.lora_modules)}


def named_paths(entries: Iterable[str]) -> dict[str, Path]:
    """Adapters out of NAME=PATH, or vLLM's {"name": NAME, "path": PATH}. Raises UsageError for anything else, or a name that comes
    twice."""
    found: dict[str, Path] = {}
    for entry in entries:
        name, path = _name_and_path(entry)
        if not (name and path):
            raise UsageError(f"an adapter is given as NAME=PATH, such as sql=adapters/sql, not {entry!r}")
        if name in found:
            raise UsageError(f'two adapters are named "{name}"')
        found[name] = Path(path)
    return found


def _name_and_path(entry: str) -> tuple[str, str]:
    """Both of an adapter, empty where they cannot be told."""
    if not entry.startswith("{"):
        name, _, path = entry.partition("=")
        return name, path
    with suppress(ValueError, RecursionError):
        given = json.loads(entry)
        if isinstance(given, dict) and all(isinstance(given.get(key), str) for key in ("name", "path")):
            return given["name"], given["path"]
    return "", ""


def _require(name: str, value: int, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise UsageError(f"{name} is an integer of at least {at_least}, not {value!r}")
