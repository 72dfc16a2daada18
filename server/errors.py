"""Errors in OpenAI's shape: {"error": {"message", "type", "param", "code"}}, and for constraints where and what instead."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from ..constraints.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
from ..engine.errors import BudgetTooSmall, PromptTooLong, RequestError
from ..errors import UsageError
from ..sampling import SamplingError

logger = logging.getLogger(__name__)

TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
    504: "server_error",
}
CONSTRAINT_CODES = (
    (UnsupportedKeyword, "unsupported_constraint"),
    (ConstraintLimit, "constraint_limit"),
    (GrammarSyntaxError, "constraint_syntax"),
    (ConstraintError, "invalid_constraint"),
)
PARAMETER_NAMES = {"stop_token_ids": "stop_token_ids", "include_stop_in_output": "include_stop_str_in_output"}


class ApiError(HTTPException):
    """An answer that is an error. `details` join the error object."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.status, self.message, self.param, self.code, self.details = status, message, param, code, details

    @property
    def body(self) -> dict[str, Any]:
        kind = TYPES.get(self.status, "invalid_request_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error | {name: value for name, value in self.details.items() if value is not None}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, dict(self.headers or {}))


class ClientGone(Exception):
    """Nobody reads the answer any more."""


def api_error(error: Exception, param: str | None = None) -> ApiError:
    """What a client is told about any error. `param` says which parameter a constraint came from."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ConstraintError):
        return _of_constraint(error, param)
    if isinstance(error, PromptTooLong):
        return ApiError(400, str(error), param="messages", code="context_length_exceeded")
    if isinstance(error, BudgetTooSmall):
        return ApiError(400, str(error), param="max_tokens", code="max_tokens_too_small")
    if isinstance(error, SamplingError):
        name = PARAMETER_NAMES.get(error.option, error.option)
        return ApiError(400, str(error), param=name, code="invalid_value")
    if isinstance(error, RequestError | UsageError):
        return ApiError(400, str(error), param=param)
    logger.error("a request failed", exc_info=error)
    return ApiError(500, "the request failed inside the server; its log says why", code="internal_error")


def add_handlers(app: FastAPI) -> None:
    """Every error of an endpoint becomes an error object."""

    async def known(_: Request, error: Exception) -> Response:
        return api_error(error).response()

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _of_validation(error).response()

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return ApiError(error.status_code, str(error.detail), headers=error.headers).response()

    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=499)

    for kind in (ApiError, ConstraintError, RequestError, SamplingError, UsageError, Exception):
        app.add_exception_handler(kind, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(ClientGone, gone)


def _of_constraint(error: ConstraintError, param: str | None) -> ApiError:
    code = next(code for kind, code in CONSTRAINT_CODES if isinstance(error, kind))
    details: dict[str, Any] = {"path": error.path, "keyword": error.keyword, "reason": error.reason, "instead": error.instead}
    details |= {"line": error.line, "column": error.column, "limit": getattr(error, "limit", None)}
    return ApiError(400, str(error), param=param, code=code, **details)


def _of_validation(error: RequestValidationError) -> ApiError:
    first = error.errors()[0]
    place = [step for step in first["loc"] if step not in ("body", "query", "path")]
    param = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
    if first["type"] == "extra_forbidden":
        return ApiError(400, f"unknown parameter: {param}", param=param, code="unknown_parameter")
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is not JSON: {first.get('ctx', {}).get('error', first['msg'])}", code="invalid_json")
    message = f"{param}: {first['msg']}" if param else str(first["msg"])
    return ApiError(400, message, param=param or None, code="invalid_value")
