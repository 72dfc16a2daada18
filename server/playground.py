"""GET /: the playground, a static page that talks to this server's own endpoints; and what it is made of, below /playground/.

None of it needs a key: it is the same for everybody, and the page asks for the key.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from .. import grammars
from .errors import ApiError

router = APIRouter(include_in_schema=False)
PAGE = files(__package__).joinpath("page")
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "mjs": "text/javascript", "svg": "image/svg+xml"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("/", summary="The playground", include_in_schema=False)
async def page() -> Response:
    return _file("index.html")


@router.get("/playground/grammars", summary="The grammars that ship with Maskwright")
async def library() -> list[dict[str, Any]]:
    """The grammars that ship. Each has its name, language (gbnf or lark), what it accepts, and its text, to be sent as
    `response_format.grammar`."""
    return [
        {
            "name": name,
            "language": grammars.path(name).name.rpartition(".")[2],
            "description": grammars.description(name),
            "grammar": grammars.text(name),
        }
        for name in grammars.names()
    ]


@router.get("/playground/{name}", summary="A file of the playground", include_in_schema=False)
async def part(name: str) -> Response:
    return _file(name)


def _file(name: str) -> Response:
    media_type = MEDIA_TYPES.get(name.rpartition(".")[2])
    found = PAGE.joinpath(name) if media_type is not None and name.isascii() and "/" not in name and "\\" not in name else None
    if found is None or not found.is_file():
        raise ApiError(404, f"the playground has no file {name!r}", code="not_found")
    return Response(found.read_bytes(), media_type=media_type, headers=HEADERS)
