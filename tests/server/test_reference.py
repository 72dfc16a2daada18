"""/docs: the OpenAPI document as a page that needs nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import httpx
import pytest

VOID = {"meta", "link", "br", "img"}


class Read(HTMLParser):
    """Elements that are open, ids, and what is linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.scripts = list[str](), list[str](), list[str](), 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given[name] or "" for name in ("href", "src") if name in given]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(http: httpx.Client) -> str:
    answer = http.get("/docs")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return answer.text


def test_nothing_comes_from_elsewhere(http: httpx.Client, html: str) -> None:
    assert not re.search(r"https?:|[\"'(]//", html)
    read = Read()
    read.feed(html)
    assert read.open == [] and read.scripts == 0 and len(set(read.ids)) == len(read.ids)
    for link in set(read.links):
        assert link[1:] in read.ids if link.startswith("#") else http.get(f"/{link.removeprefix('.')}").status_code == 200, link


def test_every_operation_and_parameter_is_told(http: httpx.Client, html: str) -> None:
    document = http.get("/openapi.json").json()
    for path, item in document["paths"].items():
        for method in item:
            assert f'id="{method}{path}"' in html
    for name, form in document["components"]["schemas"].items():
        assert f'id="{name}"' in html
        assert all(f"<code>{member}</code>" in html for member in form.get("properties", ()))


def test_there_is_no_other(http: httpx.Client) -> None:
    assert http.get("/redoc").status_code == 404
