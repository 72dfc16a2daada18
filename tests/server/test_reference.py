"""/docs: the OpenAPI document as a page that needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import httpx
import pytest

from .browser import chromium
from .serving import Served

VOID = {"meta", "link", "br", "img", "input"}


class Read(HTMLParser):
    """Elements that are open, ids, and what is linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.scripts = list[str](), list[str](), list[str](), list[str | None]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given[name] or "" for name in ("href", "src") if name in given]
        self.scripts += [given.get("src")] if tag == "script" else []
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
    assert read.open == [] and read.scripts == ["playground/reference.mjs"] and len(set(read.ids)) == len(read.ids)
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


def table_of(html: str, form: str) -> dict[str, dict[str, str]]:
    """The rows of a form's table by their names: what stands in each column, without markup."""
    section = html[html.index(f'id="{form}"') :]
    rows = re.findall(r"<tr><th scope=row><code>(\w+)</code></th>(.*?)</tr>", section[: section.index("</section>")])
    return {name: {column: re.sub("<[^>]+>", "", told) for column, told in re.findall(r'<td data-column="(\w+)">(.*?)</td>', cells)} for name, cells in rows}


def test_parameters_have_type_default_and_status(http: httpx.Client, html: str) -> None:
    forms = http.get("/openapi.json").json()["components"]["schemas"]
    for name in ("ChatBody", "CompletionBody", "ResponseBody", "MessageBody"):
        table = table_of(html, name)
        assert set(table) == set(forms[name]["properties"])
        assert {row["Status"] for row in table.values()} == {"honoured", "ignored", "refused"}
        assert all(row["Type"] for row in table.values() if row["Status"] != "refused")
        assert all(row["Meaning"] for row in table.values() if row["Status"] == "refused")
        required = set(forms[name].get("required", ()))
        assert set(list(table)[: len(required)]) == required
        for member, form in forms[name]["properties"].items():
            assert ("required" in table[member]["Default"]) == (member in required)
            assert "default" not in form or table[member]["Default"] in ("required", str(form["default"]), json.dumps(form["default"]))


def test_code_is_shown_as_code(http: httpx.Client, html: str) -> None:
    assert "`" not in html and "<code>stream</code>" in html


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_a_search_shows_what_it_finds(server: Served, width: int) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 800})
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.set_default_timeout(60_000)  # milliseconds
        page.goto(f"{server.url}/docs")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("/")
        page.keyboard.type("stop Strings")
        shown = page.locator("tbody tr:visible").all_inner_texts()
        assert shown and all("stop" in text.lower() and "strings" in text.lower() for text in shown)
        assert page.locator(".route:visible").count() == 0 and "no routes" in page.locator("#found").inner_text()
        page.reload()  # the search stands in the address
        assert page.locator("tbody tr:visible").all_inner_texts() == shown
        page.locator("#search").fill("count_tokens")
        assert page.locator(".route:visible h2").all_inner_texts() == ["POST /v1/messages/count_tokens"]
        page.locator("#search").fill("nothing has this name")
        assert page.locator("section:visible").count() == 0 and page.locator("#found").inner_text() == "no routes, no parameters"
        page.locator("#search").fill("")
        assert page.locator(".route:visible").count() == page.locator(".route").count()
        assert page.evaluate("document.documentElement.scrollWidth") <= width and wrong == []


def test_there_is_no_other(http: httpx.Client) -> None:
    assert http.get("/redoc").status_code == 404
