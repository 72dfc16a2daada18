"""Errors in OpenAI's shape: {"error": {"message", "type", "param", "code"}}, and for constraints where and what instead.
Under /v1/messages in Anthropic's: {"type": "error", "error": {"type", "message", ...}}, with the same members beside its own."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from ..constraints.base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
from ..engine.errors import BudgetTooSmall, PromptTooLong, RequestError
from ..errors import MessageError, UsageError
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
ANTHROPIC_TYPES = {413: "request_too_large", 500: "api_error", 503: "overloaded_error"}  # where it has another word
ANTHROPIC_PATH = "/v1/messages"
OLLAMA_PATH = "/api/"  # its clients read a string under "error"
CONSTRAINT_CODES = (
    (UnsupportedKeyword, "unsupported_constraint"),
    (ConstraintLimit, "constraint_limit"),
    (GrammarSyntaxError, "constraint_syntax"),
    (ConstraintError, "invalid_constraint"),
)
PARAMETER_NAMES = {"include_stop_in_output": "include_stop_str_in_output"}  # of sampling options that other servers call otherwise


ERROR = "error"  # in the state of a request: the ApiError that answers it
GONE = 499  # the status of a request whose client has left, for logs and metrics


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

    def response(self, path: str = "", request_id: str | None = None) -> JSONResponse:
        """The error as an answer, in the shape that clients of this path read."""
        body = anthropic_body(self, request_id) if path.startswith(ANTHROPIC_PATH) else self.body
        if path.startswith(OLLAMA_PATH):
            body = {**body["error"], "error": self.message}
        return JSONResponse(body, self.status, dict(self.headers or {}))


def no_embeddings(path: str, model: str) -> ApiError:
    """Why a route for embeddings, ranks or scores is refused: one sentence, whoever's route it is."""
    message = f"{path}: the model {model!r} generates text and embeds none; it takes a server with a model of embeddings"
    return ApiError(400, message, code="unsupported_endpoint")


def anthropic_body(error: ApiError, request_id: str | None = None) -> dict[str, Any]:
    """An error as Anthropic's interface tells it."""
    known = error.body["error"]
    told = {**known, "type": ANTHROPIC_TYPES.get(error.status, known["type"])}
    return {"type": "error", "error": told, "request_id": request_id}


KNOWN = (ApiError, ConstraintError, RequestError, SamplingError, UsageError)


@contextmanager
def told_as(names: Mapping[str, str], renamed: Callable[[str], str] = str) -> Iterator[None]:
    """A block in which errors name parameters as this endpoint calls them. names: from a chat completion's names to
    this endpoint's. renamed: the same for places that do not follow from a name."""
    try:
        yield
    except (*KNOWN, RequestValidationError) as error:
        known = _of_validation(error) if isinstance(error, RequestValidationError) else api_error(error)
        if known.param is not None and (place := renamed(known.param)) != known.param:
            message = known.message.replace(known.param, place)
            raise ApiError(known.status, message, param=place, code=known.code, headers=known.headers, **known.details) from error
        first = (known.param or "").split(".")[0].split("[")[0]
        said, space, rest = known.message.partition(" ")
        if first not in names and said not in names:
            raise known from error
        param, message = known.param, names.get(said, said) + space + rest
        if param is not None and first in names:
            param = names[first] + param.removeprefix(first)
            message = known.message.replace(known.param or "", param)
        raise ApiError(known.status, message, param=param, code=known.code, headers=known.headers, **known.details) from error


class ClientGone(Exception):
    """Nobody reads the answer any more."""


def api_error(error: Exception, param: str | None = None) -> ApiError:
    """The error that a client is told for any error. `param` says which parameter a constraint came from."""
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
    if isinstance(error, RequestError) and isinstance(error.__cause__, SamplingError):
        return api_error(error.__cause__)
    if isinstance(error, RequestError) and error.part == "adapter":
        return ApiError(404, str(error), param="model", code="model_not_found")
    if isinstance(error, RequestError):
        return ApiError(400, str(error), param=error.part or param, code="invalid_value")
    if isinstance(error, MessageError):
        return ApiError(400, str(error), param=error.place, code=error.code)
    if isinstance(error, UsageError):
        return ApiError(400, str(error), param=param, code="invalid_value")
    logger.error("a request failed", exc_info=error)
    return ApiError(500, "the request failed inside the server; its log says why", code="internal_error")


def route_path(scope: Scope) -> str:
    """The path of a request below the server's root path, whether a proxy in front has left that on it or not."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) or "/" if root and f"{path}/".startswith(f"{root}/") else path


def add_handlers(app: FastAPI) -> None:
    """Every error of an endpoint becomes an error object."""

    def answer(error: ApiError, request: Request) -> Response:
        setattr(request.state, ERROR, error)
        return error.response(route_path(request.scope), getattr(request.state, "request_id", None))

    async def known(request: Request, error: Exception) -> Response:
        return answer(api_error(error), request)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(_of_validation(error), request)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return answer(_of_http(error, request), request)

    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=GONE)

    for kind in (*KNOWN, Exception):
        app.add_exception_handler(kind, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(ClientGone, gone)


def _of_constraint(error: ConstraintError, param: str | None) -> ApiError:
    code = next(code for kind, code in CONSTRAINT_CODES if isinstance(error, kind))
    details: dict[str, Any] = {"path": error.path, "keyword": error.keyword, "reason": error.reason, "instead": error.instead}
    details |= {"line": error.line, "column": error.column, "limit": getattr(error, "limit", None)}
    return ApiError(400, str(error), param=param, code=code, **details)


def _of_http(error: HTTPException, request: Request) -> ApiError:
    """The error for a request that the framework itself refuses."""
    if error.status_code == 404:
        return ApiError(404, f"there is no {request.url.path} here", code="not_found")
    if error.status_code == 405:
        message = f"{request.url.path} does not take {request.method}"
        return ApiError(405, message, code="method_not_allowed", headers=error.headers)
    if error.status_code == 400:  # all that it says is that it could not parse the body
        return ApiError(400, _unreadable(error.__cause__), code="invalid_json")
    return ApiError(error.status_code, str(error.detail), headers=error.headers)


def _unreadable(cause: BaseException | None) -> str:
    """Why a body is no JSON that can be read, in one sentence for each cause."""
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is not UTF-8: byte {cause.start} is no part of a character"
    if isinstance(cause, RecursionError):
        return "the body nests too deeply"
    if isinstance(cause, ValueError):  # what `int` says of more digits than it reads
        return f"the body has a number of more than {sys.get_int_max_str_digits()} digits"
    return "the body cannot be read"


def _of_validation(error: RequestValidationError) -> ApiError:
    errors = error.errors()
    first = next((each for each in errors if _is_inside(each["loc"])), errors[0])
    param = _param(first["loc"])
    if first["type"] == "extra_forbidden":
        return ApiError(400, f"unknown parameter: {param}", param=param, code="unknown_parameter")
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is not JSON: {first.get('ctx', {}).get('error', first['msg'])}", code="invalid_json")
    if not param:
        reason = "is missing" if first["type"] == "missing" else "is not a JSON object with Content-Type: application/json"
        return ApiError(400, f"the body {reason}", code="invalid_json")
    reasons = dict.fromkeys(each["msg"] for each in errors if _param(each["loc"]) == param)
    message = f"{param}: {_joined(list(reasons))}".replace("dictionary", "object")  # as JSON calls it
    return ApiError(400, message, param=param, code="invalid_value")


def _is_inside(place: Sequence[Any]) -> bool:
    """Whether an error is about a member of a body inside of another one: of several forms it is this one that was meant."""
    return any(isinstance(step, str) and "function-" in step for step in place[:-1])


def _param(place: Sequence[Any]) -> str:
    steps = [step for step in place[1 if place[0] in ("body", "query", "path") else 0 :] if not _is_kind(step)]
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _joined(reasons: list[str]) -> str:
    """The reasons of one parameter that may be of several kinds, in one sentence."""
    start = "Input should be "
    if all(reason.startswith(start) for reason in reasons):
        return start + " or ".join(reason.removeprefix(start) for reason in reasons)
    return "; ".join(reasons)


def _is_kind(step: Any) -> bool:
    """Whether a step of a path says which kind was tried of a parameter that may be of several; it is no part of the
    path then."""
    if not isinstance(step, str):
        return False
    return step in ("str", "int", "float", "bool") or step.startswith(("list[", "dict[", "constrained-", "function-"))
