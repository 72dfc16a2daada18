"""Schemathesis reads the OpenAPI document and asks what it describes, and what it does not: the answers are as documented."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from maskwright import LLM
from maskwright.server.settings import ServerSettings

from ..serving import TIMEOUT, Served, served
from .installed import QUIET, client_library

schemathesis = client_library("schemathesis")
pytestmark = QUIET
NUM_EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "15"))  # of each endpoint, valid and invalid
PATHS = [
    ("POST", "/v1/chat/completions"), ("POST", "/v1/completions"), ("POST", "/v1/responses"), ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"), ("POST", "/tokenize"), ("POST", "/detokenize"), ("GET", "/v1/models"), ("GET", "/v1/models/{name}"),
    ("GET", "/v1/responses/{response_id}"), ("DELETE", "/v1/responses/{response_id}"), ("GET", "/v1/responses/{response_id}/input_items"),
    ("POST", "/v1/responses/{response_id}/cancel"), ("POST", "/completion"), ("POST", "/completions"), ("GET", "/props"), ("GET", "/slots"),
    ("POST", "/apply-template"), ("POST", "/infill"), ("POST", "/generate"), ("GET", "/get_model_info"), ("GET", "/model_info"),
    ("GET", "/flush_cache"), ("POST", "/flush_cache"), ("POST", "/abort_request"), ("POST", "/abort_requests"), ("POST", "/reset_prefix_cache"),
    ("GET", "/ping"), ("POST", "/ping"), ("GET", "/load"), ("GET", "/server_info"), ("POST", "/v1/embeddings"), ("POST", "/v1/rerank"),
    ("POST", "/v1/score"), ("POST", "/pooling"), ("POST", "/embedding"), ("POST", "/embeddings"), ("POST", "/encode"), ("POST", "/classify"),
    ("POST", "/rerank"), ("POST", "/score"), ("POST", "/chat/completions"), ("GET", "/models"), ("GET", "/v1/health"), ("GET", "/health_generate"),
    ("GET", "/get_server_info"), ("POST", "/v2/rerank"), ("POST", "/reranking"), ("POST", "/v1/reranking"),
    ("POST", "/v1/files"), ("GET", "/v1/files"), ("GET", "/v1/files/{file_id}"), ("DELETE", "/v1/files/{file_id}"), ("GET", "/v1/files/{file_id}/content"),
    ("POST", "/v1/batches"), ("GET", "/v1/batches"), ("GET", "/v1/batches/{batch_id}"), ("POST", "/v1/batches/{batch_id}/cancel"),
    ("POST", "/v1/load_lora_adapter"), ("POST", "/v1/unload_lora_adapter"),
    ("POST", "/api/chat"), ("POST", "/api/generate"), ("POST", "/api/show"), ("POST", "/api/embed"), ("POST", "/api/embeddings"), ("GET", "/api/tags"), ("GET", "/api/ps"), ("GET", "/api/version"),
    ("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("GET", "/version"),
]  # fmt: skip


@pytest.fixture(scope="module")
def small(llm: LLM) -> Iterator[Served]:
    with served(llm, ServerSettings(max_tokens=4, max_n=2)) as running:
        yield running


@pytest.fixture(scope="module")
def document(small: Served) -> Any:
    return schemathesis.openapi.from_url(f"{small.url}/openapi.json")


@pytest.mark.parametrize(("method", "path"), PATHS, ids=lambda value: value)
def test_answers_are_as_documented(document: Any, method: str, path: str) -> None:
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    operation = document[path][method]
    modes = list(GenerationMode) if operation.body else [GenerationMode.POSITIVE]  # of nothing, nothing is wrong

    def check(case: Any) -> None:
        if case.meta.generation.mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
            case.body.pop("model", None)  # else nearly all would ask for models that do not exist
        # A document cannot say which schemas, grammars and conversations make sense, so much of what it describes is refused.
        case.call_and_validate(timeout=TIMEOUT, excluded_checks=[positive_data_acceptance])

    for mode in modes:
        settings(max_examples=NUM_EXAMPLES)(given(case=operation.as_strategy(generation_mode=mode))(check))()


def test_all_endpoints_are_asked(document: Any) -> None:
    described = {(operation.ok().method.upper(), operation.ok().path) for operation in document.get_all_operations()}
    assert described == set(PATHS)
