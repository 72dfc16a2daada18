"""The playground's modules that need no browser, tested by Node's own test runner; and what is served of the page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

import maskwright.server.playground as playground
from maskwright import LLM
from maskwright.server.settings import ServerSettings

from .serving import served

TESTS = Path(__file__).parent / "page"
FILES = sorted(entry.name for entry in playground.PAGE.iterdir())
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="needs Node 20 or newer")
@pytest.mark.parametrize("test", sorted(path.name for path in TESTS.glob("*.test.mjs")))
def test_modules(test: str) -> None:
    assert NODE is not None
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip("v\n").split(".")[0]) < 20:
        pytest.skip(f"needs Node 20 or newer, not {version.strip()}")
    ended = subprocess.run([NODE, "--test", str(TESTS / test)], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]


def test_the_page_is_served_with_a_strict_policy(http: httpx.Client) -> None:
    answer = http.get("/")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == "'self'"
    assert "unsafe" not in str(policy)


@pytest.mark.parametrize("name", FILES)
def test_every_part_is_served(http: httpx.Client, name: str) -> None:
    answer = http.get(f"/playground/{name}")
    assert answer.status_code == 200 and answer.headers["x-content-type-options"] == "nosniff"
    assert answer.content == playground.PAGE.joinpath(name).read_bytes()


@pytest.mark.parametrize("name", ["none.mjs", "../playground.py", "%2e%2e%2fplayground.py", "..%5capp.py", "__init__.py", "index", "a/b.mjs", "é.css"])
def test_nothing_else_is(http: httpx.Client, name: str) -> None:
    assert http.get(f"/playground/{name}").status_code == 404


@pytest.mark.parametrize("name", FILES)
def test_nothing_comes_from_elsewhere(name: str) -> None:
    """No address but those that name an XML dialect, and no module that is not there."""
    text = playground.PAGE.joinpath(name).read_text(encoding="utf-8")
    assert re.findall(r"(?:https?:)?//[\w.]+\.\w+(?:/|\b)", text.replace("http://www.w3.org/2000/svg", "")) == []
    for imported in re.findall(r'from "\./([^"]+)"', text):
        assert imported in FILES


class Page(HTMLParser):
    """Ids, what refers to them, and controls of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.controls: list[tuple[str, dict[str, str | None], bool]] = []  # tag, attributes, whether inside a label
        self.inline: list[str] = []
        self._labels = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.references += [str(given[name]) for name in ("for", "aria-labelledby", "aria-describedby") if given.get(name)]
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        self._labels += tag == "label"
        if tag in ("input", "select", "textarea"):
            self.controls.append((tag, given, self._labels > 0))

    def handle_endtag(self, tag: str) -> None:
        self._labels -= tag == "label"


@pytest.fixture(scope="module")
def page() -> Page:
    parsed = Page()
    parsed.feed(playground.PAGE.joinpath("index.html").read_text(encoding="utf-8"))
    return parsed


def test_ids_are_unique_and_what_is_referred_to_exists(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids)) and set(page.references) <= set(page.ids)


def test_every_control_has_a_label(page: Page) -> None:
    for tag, given, is_inside in page.controls:
        assert is_inside or given.get("id") in page.references, (tag, given)


def test_nothing_is_inline(page: Page) -> None:
    assert page.inline == []


def test_every_element_that_the_modules_ask_for_is_there(page: Page) -> None:
    text = playground.PAGE.joinpath("app.mjs").read_text(encoding="utf-8")
    assert set(re.findall(r'byId\("([\w-]+)"\)', text)) <= set(page.ids)


def test_the_library_is_there_to_start_from(http: httpx.Client) -> None:
    library = http.get("/playground/grammars").json()
    assert {grammar["name"]: grammar["language"] for grammar in library} | {"semver": "gbnf", "sql-select": "lark"} == {
        grammar["name"]: grammar["language"] for grammar in library
    }
    (semver,) = [grammar for grammar in library if grammar["name"] == "semver"]
    asked = {"messages": [{"role": "user", "content": "2.4.1"}], "response_format": {"type": "grammar", "grammar": semver["grammar"], "syntax": "gbnf"}}
    assert http.post("/v1/chat/completions", json={**asked, "max_tokens": 40}).status_code == 200


@pytest.fixture(scope="module")
def guarded(llm: LLM) -> Iterator[Any]:
    with served(llm, ServerSettings(api_key=("secret",))) as server, server.http() as http:
        yield http


@pytest.mark.parametrize("path", ["/", "/playground/app.mjs", "/playground/grammars"])
def test_the_page_itself_needs_no_key(guarded: httpx.Client, path: str) -> None:
    assert guarded.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/models", "/playgrounds", "/v1/models?x=/playground/"])
def test_all_else_still_does(guarded: httpx.Client, path: str) -> None:
    assert guarded.get(path).status_code == 401
