"""The playground in headless Chromium, against a server with the embedded model."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from maskwright import LLM, grammars
from maskwright.server.settings import ServerSettings

from .browser import chromium
from .serving import Served, served

SECONDS = 1000.0
WAIT = 60 * SECONDS  # the machine may be busy
NUM_TOKENS = 1500  # takes seconds, so that it can be stopped


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


Opener = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, server: Served) -> Iterator[Opener]:
    """Opens the page, and at the end asserts that nothing went wrong on it and that it asked nobody else."""
    contexts, wrong = [], []

    def open_page(url: str = server.url, *, expect: tuple[int, ...] = (), **options: Any) -> Any:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and "Failed to load resource" not in said.text and wrong.append(said.text))
        origin = url.partition("/#")[0]
        page.on("request", lambda request: request.url.startswith(origin) or wrong.append(request.url))
        page.on("response", lambda answer: answer.status >= 400 and answer.status not in expect and wrong.append(f"{answer.status} {answer.url}"))
        page.goto(url)
        page.locator("#example option").first.wait_for(state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def choose(page: Any, kind: str) -> None:
    page.locator(f"input[value={kind}]").check(force=True)


def run(page: Any) -> None:
    page.locator("#run").click()
    page.locator("#output[aria-busy=false]").wait_for()
    page.locator("#run:not([disabled])").wait_for()


def texts(page: Any, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def shown_text(page: Any) -> str:
    """What the tokens say of themselves, joined: `"text", forced, 0.0 % masked`."""
    labels = page.evaluate("[...document.querySelectorAll('.token')].map((token) => token.ariaLabel)")
    return "".join(json.loads(label[: label.rindex('",') + 1]) for label in labels)


# -- a run


def test_a_schema_is_filled_in(opened: Opener) -> None:
    page = opened()
    run(page)
    person = json.loads(shown_text(page))
    assert list(person) == ["name", "age", "city", "job", "likes"]
    assert page.locator("#state").inner_text().startswith("complete")
    for kind in ("forced", "constrained", "free"):
        assert page.locator(f".token.{kind}").count() > 0
    assert texts(page, "#object > .tree > li > .line > .key") == list(person)
    assert page.locator("#object .v-number").first.inner_text() == str(person["age"])
    assert "integer 0…150" in page.locator("#object").inner_text()
    assert page.locator("#object .open, #object .waiting").count() == 0


def test_the_strip_shows_what_was_measured(opened: Opener) -> None:
    page = opened()
    run(page)
    assert float(page.locator("#m-rate").inner_text()) > 0
    assert re.fullmatch(r"[\d.]+ m?s", page.locator("#m-first").inner_text())
    assert re.fullmatch(r"[\d.]+ m?s", page.locator("#m-compile").inner_text())
    num_forced, num_tokens = page.locator(".token.forced").count(), page.locator(".token").count()
    assert float(page.locator("#m-forced").inner_text().rstrip(" %")) == pytest.approx(100 * num_forced / num_tokens, abs=0.06)
    assert page.locator("#m-tokens").inner_text() == str(num_tokens) == str(page.locator(".ribbon i").count())
    assert page.locator("#m-masked").inner_text().endswith("%")


def test_pointing_at_a_token_shows_what_was_masked_and_why(opened: Opener) -> None:
    page = opened()
    run(page)
    page.locator(".token", has_text=re.compile("^36$|^3$")).first.hover()
    assert page.locator("#inspector .big").inner_text().split()[-1] == "constrained"
    assert "$.age" in page.locator("#inspector .numbers").inner_text()
    page.locator(".token", has_text="job").hover()
    assert page.locator("#inspector .big").inner_text().split() == ["job", "forced"]
    rows = page.locator("#inspector .candidates li")
    assert rows.count() == 8 and page.locator("#inspector .chosen").count() == 1
    masked = page.locator("#inspector .masked")
    assert masked.count() > 0 and "masked" in masked.first.inner_text()
    assert "the constraint wants" in page.locator("#inspector .title").inner_text() or page.locator("#inspector .why").count() > 0
    assert all(re.search(r"\d %|< 0.01 %", text) for text in rows.all_inner_texts())


def test_the_token_where_most_was_masked_is_shown_at_the_end(opened: Opener) -> None:
    page = opened()
    run(page)
    selected = page.locator(".token[aria-selected=true]")
    shares = [float(label) for label in page.evaluate("[...document.querySelectorAll('.token')].map((token) => token.ariaLabel.match(/([\\d.]+) % masked/)[1])")]
    assert float(re.search(r"([\d.]+) % masked", selected.get_attribute("aria-label"))[1]) == max(shares)  # type: ignore[index]


def test_arrow_keys_walk_through_the_tokens(opened: Opener) -> None:
    page = opened()
    run(page)
    page.locator(".token[tabindex='0']").focus()
    page.keyboard.press("Home")
    assert page.locator("#inspector-place").inner_text().startswith("1 of")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#inspector-place").inner_text().startswith("3 of")
    assert page.locator(".token[tabindex='0']").count() == page.locator(".token[aria-selected=true]").count() == 1
    page.keyboard.press("End")
    total = page.locator(".token").count()
    assert page.locator("#inspector-place").inner_text() == f"{total} of {total}"


def test_tokens_arrive_one_by_one_and_can_be_stopped(opened: Opener, server: Served) -> None:
    page = opened()
    choose(page, "regex")
    page.locator("#source").fill(f"[a-z ]{{{NUM_TOKENS}}}")
    page.locator("summary").click()
    page.locator("#max-tokens").fill(str(NUM_TOKENS))
    page.locator("#run").click()
    page.locator(".token").nth(5).wait_for()
    assert page.locator("#run").is_disabled()
    page.locator("#stop").click()
    page.locator("#run:not([disabled])").wait_for()
    assert page.locator("#state").inner_text() == "stopped"
    assert 5 < page.locator(".token").count() < NUM_TOKENS
    while server.service.worker.num_open:  # ends, or the test's own limit does
        page.wait_for_timeout(20)


def test_a_value_that_is_being_written_shows_what_is_still_to_come(opened: Opener) -> None:
    page = opened()
    page.evaluate("""async () => {
      const { ObjectView } = await import("/playground/object_view.mjs");
      const { JsonReader } = await import("/playground/json_reader.mjs");
      const reader = new JsonReader();
      reader.feed('{"name":"Ada","age":3');
      const schema = { type: "object", properties: { name: { type: "string" }, age: { type: "integer" }, city: { enum: ["Oslo"] }, note: {} }, required: ["city"] };
      new ObjectView(document.getElementById("object")).showValues([{ title: "", root: reader.root, schema }]);
    }""")
    assert texts(page, "#object .key") == ["name", "age", "city", "note"]
    assert texts(page, "#object .open") == ["3"]
    assert texts(page, "#object .waiting .key") == ["city", "note"]
    assert texts(page, "#object .waiting .type") == ['"Oslo"', "any, optional"]


def test_markup_in_texts_stays_text(opened: Opener) -> None:
    page = opened()
    choose(page, "choices")
    page.locator("#source").fill("<img src=x onerror=alert(1)>")
    run(page)
    assert shown_text(page) == page.locator("#object").inner_text() == "<img src=x onerror=alert(1)>"
    assert page.locator("#object img, #tokens img, .paint img").count() == 0


# -- every kind of constraint


def test_a_regular_expression(opened: Opener) -> None:
    page = opened()
    choose(page, "regex")
    run(page)
    assert re.fullmatch(r"\d{3}-\d{4}", shown_text(page))
    assert page.locator("#object").inner_text() == shown_text(page)


def test_grammars_of_the_library(opened: Opener) -> None:
    page = opened()
    choose(page, "grammar")
    page.locator("#example option", has_text="semver").wait_for(state="attached")
    assert set(grammars.names()) <= set(texts(page, "#example option"))
    page.locator("#example").select_option(label="semver")
    assert page.locator("#source").input_value() == grammars.text("semver") and page.locator("#language").input_value() == "gbnf"
    run(page)
    assert re.match(r"\d+\.\d+\.\d+", shown_text(page))
    page.locator("#example").select_option(label="sql-select")
    assert page.locator("#language").input_value() == "lark"


def test_choices(opened: Opener) -> None:
    page = opened()
    choose(page, "choices")
    page.locator("#source").fill("red\ngreen")
    run(page)
    assert shown_text(page) in ("red", "green")


def test_tools(opened: Opener) -> None:
    page = opened()
    choose(page, "tools")
    run(page)
    assert page.locator("#object .call").inner_text() == "get_weather"
    assert texts(page, "#object .key") == ["city", "unit"]


def test_free_text(opened: Opener) -> None:
    page = opened()
    choose(page, "free")
    run(page)
    assert page.locator(".token").count() == page.locator(".token.free").count() > 0
    assert not page.locator("#source-field").is_visible()


def test_what_was_edited_is_kept_while_others_are_looked_at(opened: Opener) -> None:
    page = opened()
    page.locator("#source").fill('{"type": "boolean"}')
    page.locator("#prompt").fill("yes")
    choose(page, "regex")
    choose(page, "schema")
    assert page.locator("#source").input_value() == '{"type": "boolean"}' and page.locator("#prompt").input_value() == "yes"
    assert "".join(texts(page, ".paint")).strip() == '{"type": "boolean"}'


def test_the_request_is_what_the_page_says(opened: Opener) -> None:
    page = opened()
    page.locator("summary").click()
    for name, value in {"temperature": "0.5", "seed": "7", "top-k": "5", "max-tokens": "150"}.items():
        page.locator(f"#{name}").fill(value)
    page.locator("#endpoint").select_option("completions")
    with page.expect_request("**/v1/completions") as asked:
        run(page)
    body = asked.value.post_data_json
    assert (body["temperature"], body["seed"], body["top_k"], body["max_tokens"]) == (0.5, 7, 5, 150)
    page.locator("#show-request").click()
    command = page.locator("#request-text").inner_text()
    assert command.startswith("curl") and json.loads(command[command.index("'{") + 1 : -1]) == body
    page.keyboard.press("Escape")
    assert not page.locator("#request-dialog").is_visible()


def test_without_details_there_is_only_text(opened: Opener) -> None:
    page = opened()
    page.locator("summary").click()
    page.locator("#details").uncheck()
    run(page)
    assert page.locator(".token").count() == 0
    assert json.loads(page.locator("#tokens").inner_text())["name"]
    assert page.locator("#object .key").first.inner_text() == "name"


def test_control_and_enter_run(opened: Opener) -> None:
    page = opened()
    page.locator("#prompt").press("Control+Enter")
    page.locator("#run:not([disabled])").wait_for()
    page.locator(".token").first.wait_for()


# -- errors at their place


def marked(page: Any) -> str:
    return "".join(texts(page, ".paint mark"))


def error_of(page: Any) -> str:
    page.locator("#error").wait_for()
    return page.locator("#error").inner_text()


def test_an_error_of_a_schema_stands_at_its_path(opened: Opener) -> None:
    page = opened(expect=(400,))
    page.locator("#example").select_option(label="A schema with a mistake")
    run(page)
    told = error_of(page)
    assert "#/properties/name" in told and "line 6" in told and "▲" in told and "Instead" in told
    assert marked(page).startswith('"pattern"')
    assert page.locator(".gutter .wrong").inner_text() == "6"
    source = page.locator("#source")
    assert source.get_attribute("aria-invalid") is not None and source.get_attribute("aria-describedby") == "error"
    page.locator("#error-go").click()
    start = source.input_value().index('"pattern"')
    assert page.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == ["source", start]
    page.keyboard.type(" ")
    assert page.locator(".paint mark").count() == 0


def test_text_that_is_not_json_is_not_sent(opened: Opener) -> None:
    page = opened()
    page.locator("#source").fill('{\n  "type": "object"\n  "required": []\n}')
    page.route("**/v1/**", lambda route: pytest.fail("sent"))
    page.locator("#run").click()
    told = error_of(page)
    assert "not JSON" in told and "line 3, column 3" in told


def test_an_error_of_a_grammar_stands_at_line_and_column(opened: Opener) -> None:
    page = opened(expect=(400,))
    choose(page, "grammar")
    page.locator("#source").fill('root ::= "a" b\nb := "c"\n')
    run(page)
    assert "line 2, column 3" in error_of(page)
    assert marked(page) == ":"


def test_an_error_of_a_regular_expression_stands_at_its_column(opened: Opener) -> None:
    page = opened(expect=(400,))
    choose(page, "regex")
    page.locator("#source").fill("ab(c")
    run(page)
    assert "line 1, column 3" in error_of(page)
    assert marked(page) == "("


def test_an_error_of_a_tool_stands_in_its_parameters(opened: Opener) -> None:
    page = opened(expect=(400,))
    choose(page, "tools")
    page.locator("#source").fill('[{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "strin"}}}}]')
    run(page)
    assert "strin" in error_of(page) and marked(page) == '"type": "strin"'


def test_tools_that_are_no_list_are_refused_here(opened: Opener) -> None:
    page = opened()
    choose(page, "tools")
    page.locator("#source").fill("{}")
    page.locator("#run").click()
    assert "list of functions" in error_of(page)


def test_an_error_of_something_else_marks_nothing(opened: Opener) -> None:
    page = opened(expect=(400,))
    page.locator("summary").click()
    page.locator("#max-tokens").fill("3")
    run(page)
    assert "max_tokens" in error_of(page) and page.locator(".paint mark").count() == 0


# -- what is kept, and shared


def linked(page: Any) -> str:
    """The address, when it has become a link to what is shown."""
    page.locator("#link").click()
    return str(page.url)


def test_edits_survive_a_reload(opened: Opener) -> None:
    page = opened()
    page.locator("#prompt").fill("Zoë ☃")
    choose(page, "regex")
    page.locator("#source").fill("a+")
    page.locator("#add-system").click()
    page.locator("#system").fill("Be brief.")
    page.locator("summary").click()
    page.locator("#seed").fill("7")
    page.reload()
    assert page.locator("input[name=kind]:checked").get_attribute("value") == "regex"
    assert [page.locator(f"#{name}").input_value() for name in ("source", "system", "seed")] == ["a+", "Be brief.", "7"]
    choose(page, "schema")
    assert page.locator("#prompt").input_value() == "Zoë ☃" and page.locator("#undo").is_visible()
    page.locator("#undo").click()
    assert page.locator("#prompt").input_value().startswith("Ada") and not page.locator("#undo").is_visible()


def test_a_link_shares_what_is_shown_and_nothing_else(opened: Opener) -> None:
    page = opened()
    choose(page, "choices")
    page.locator("#source").fill("private")
    choose(page, "schema")
    page.locator("#source").fill('{"type": "boolean"}')
    page.locator("#prompt").fill("<b>&#x27;\u2028")
    page.locator("summary").click()
    page.locator("#temperature").fill("0.5")
    page.locator("#details").uncheck()
    page.evaluate("sessionStorage.setItem('maskwright-key', 'secret')")
    url = linked(page)
    told = base64.urlsafe_b64decode(url.partition("#s=")[2] + "===").decode()
    assert "boolean" in told and "secret" not in told and "private" not in told
    other = opened(url)
    assert other.locator("#source").input_value() == '{"type": "boolean"}' and other.locator("#prompt").input_value() == "<b>&#x27;\u2028"
    assert other.locator("#temperature").input_value() == "0.5" and not other.locator("#details").is_checked()
    other.locator("#prompt").fill("edited")
    other.reload()
    assert other.locator("#prompt").input_value() == "edited"


def test_another_link_in_the_same_tab_is_followed(opened: Opener) -> None:
    page = opened()
    choose(page, "regex")
    page.locator("#source").fill("first")
    first = linked(page)
    page.locator("#source").fill("second")
    linked(page)
    page.evaluate("(url) => { location.href = url; }", first)
    page.wait_for_url(first)
    assert page.locator("#source").input_value() == "first"


@pytest.mark.parametrize("link", ["#s=%%%", "#s=", "#s=bnVsbA", "#s=eyJ2ZXJzaW9uIjo5fQ"])  # null; another version
def test_a_link_that_cannot_be_read_is_told(opened: Opener, server: Served, link: str) -> None:
    page = opened(f"{server.url}/{link}")
    assert "link cannot be read" in error_of(page)
    assert page.locator("#prompt").input_value().startswith("Ada")


def test_of_a_link_only_what_fits_is_taken(opened: Opener, server: Served) -> None:
    wrong = {"source": ["x"], "prompt": "kept", "turns": [{"role": "robot", "content": ""}], "system": {}}
    state = {"version": 1, "kind": "regex", "one": wrong, "all": {"temperature": "hot", "seed": 3, "endpoint": "elsewhere"}}
    page = opened(f"{server.url}/#s={base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip('=')}")
    assert page.locator("#prompt").input_value() == "kept" and page.locator("#source").input_value() != "x"
    assert (page.locator("#temperature").input_value(), page.locator("#seed").input_value()) == ("0", "3")
    assert page.locator("#endpoint").input_value() == "chat" and page.locator("#turns li").count() == 0


# -- conversations


def messages_of(page: Any) -> Any:
    """What is sent when it is run."""
    with page.expect_request("**/v1/chat/completions") as asked:
        run(page)
    return asked.value.post_data_json["messages"]


def test_a_system_message_and_a_second_turn(opened: Opener) -> None:
    page = opened()
    page.locator("#prompt").fill("Ada Lovelace, 36, lives in London.")
    page.locator("#add-system").click()
    page.keyboard.type("Be exact.")  # where it can be written at once
    assert messages_of(page) == [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Ada Lovelace, 36, lives in London."}]
    reply = shown_text(page)
    page.locator("#next-turn").click()
    assert page.evaluate("document.activeElement.id") == "prompt" and page.locator("#prompt").input_value() == ""
    page.keyboard.type("Grace Hopper, 85, lives in Arlington.")
    page.reload()
    assert [message["content"] for message in messages_of(page)] == ["Be exact.", "Ada Lovelace, 36, lives in London.", reply, "Grace Hopper, 85, lives in Arlington."]
    assert page.locator("#state").inner_text().startswith("complete")
    page.locator("#turns textarea").nth(1).fill("edited")
    assert messages_of(page)[2] == {"role": "assistant", "content": "edited"}
    page.locator("#start-over").click()
    assert page.locator("#turns li").count() == 0 and page.locator("#prompt").input_value() == "Ada Lovelace, 36, lives in London."


def test_the_result_of_a_call_is_a_turn(opened: Opener) -> None:
    page = opened()
    choose(page, "tools")
    run(page)
    page.locator("#next-turn").click()
    assert page.evaluate("document.activeElement.className") == "result"
    page.keyboard.type("It rains.")
    question, call, result = messages_of(page)
    assert question["role"] == "user" and call["tool_calls"][0]["function"]["name"] == "get_weather"
    assert json.loads(call["tool_calls"][0]["function"]["arguments"])["city"] == "Oslo"
    assert result == {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "It rains."}
    assert page.locator("#state").inner_text().startswith("complete")


def test_completions_have_no_conversation(opened: Opener) -> None:
    page = opened()
    page.locator("#add-system").click()
    page.locator("#system").fill("Be exact.")
    page.locator("summary").click()
    page.locator("#endpoint").select_option("completions")
    assert not page.locator("#system").is_visible() and not page.locator("#add-system").is_visible()
    run(page)
    assert not page.locator("#next-turn").is_visible()
    page.locator("#endpoint").select_option("chat")
    assert page.locator("#system").input_value() == "Be exact." and page.locator("#system").is_visible()


# -- how it looks and feels

DESK, WALL, PHONE = {"width": 1280, "height": 720}, {"width": 1920, "height": 1080}, {"width": 390, "height": 844}


def assert_seen(page: Any, *selectors: str) -> None:
    """All of each is in the window, without scrolling."""
    size = page.viewport_size
    assert page.evaluate("[scrollX, scrollY]") == [0, 0]
    for selector in selectors:
        box = page.locator(selector).bounding_box()
        assert box is not None, selector
        assert box["x"] >= 0 and box["y"] >= 0 and box["x"] + box["width"] <= size["width"] and box["y"] + box["height"] <= size["height"], (selector, box)


@pytest.mark.parametrize("viewport", [DESK, WALL, PHONE], ids=["desk", "wall", "phone"])
def test_an_error_is_seen_without_scrolling(opened: Opener, viewport: dict[str, int]) -> None:
    page = opened(viewport=viewport, expect=(400,))
    page.locator("#example").select_option(label="A schema with a mistake")
    page.locator("summary").click()
    run(page)
    assert_seen(page, "#error", "#run")
    page.locator("#error-go").click()
    assert page.locator("#source").is_visible() and page.evaluate("document.activeElement.id") == "source"


@pytest.mark.parametrize("viewport", [DESK, WALL, PHONE], ids=["desk", "wall", "phone"])
def test_what_came_is_seen_without_scrolling(opened: Opener, viewport: dict[str, int]) -> None:
    page = opened(viewport=viewport)
    run(page)
    assert_seen(page, "#output", "#object .key >> nth=0", "#run")
    if viewport is not PHONE:
        assert_seen(page, "#form", "#inspector", "#object")
        for panel in (".request", ".inspector"):  # down to the end of the window
            box = page.locator(panel).bounding_box()
            assert box["y"] + box["height"] > viewport["height"] - 40


def test_on_a_phone_the_request_and_its_result_take_turns(opened: Opener) -> None:
    page = opened(viewport=PHONE)
    assert page.locator("#form").is_visible() and not page.locator("#results").is_visible()
    run(page)
    assert page.locator("#results").is_visible() and not page.locator("#form").is_visible()
    page.get_by_role("button", name="Request", exact=True).click()
    assert page.locator("#form").is_visible() and not page.locator("#results").is_visible()


def test_in_the_first_example_the_model_says_what_the_prompt_states(opened: Opener) -> None:
    """The constraint keeps it from next to nothing, and no value is made up."""
    page = opened()
    prompt = page.locator("#prompt").input_value()
    run(page)
    person = json.loads(shown_text(page))
    assert all(str(value) in prompt for value in (person["name"], person["age"], person["city"], person["job"], *person["likes"]))
    shares = page.evaluate("[...document.querySelectorAll('.token')].map((token) => Number(token.ariaLabel.match(/([\\d.]+) % masked/)[1]))")
    assert max(shares) < 10


def test_shares_next_to_nothing_are_not_alarming(opened: Opener) -> None:
    page = opened()
    run(page)
    page.locator(".token", has_text="job").hover()
    heat, soft = page.evaluate("['--heat', '--soft'].map((name) => { const probe = document.createElement('i'); probe.style.color = `var(${name})`; document.body.append(probe); return getComputedStyle(probe).color; })")
    rows = page.evaluate("[...document.querySelectorAll('#inspector .masked')].map((row) => [row.querySelector('.share').textContent, getComputedStyle(row.querySelector('.verdict')).color])")
    colours = dict(rows)
    assert soft in colours.values()
    for share, colour in colours.items():
        assert share != "0 %" and (colour == heat) == (not share.startswith("<") and float(share.split()[0]) >= 0.5), (share, colour)


def test_what_is_forced_is_told_without_contradiction(opened: Opener) -> None:
    page = opened()
    run(page)
    for index in range(page.locator(".token.forced").count()):
        page.locator(".token.forced").nth(index).hover()
        told = page.locator("#inspector .facts").inner_text()
        assert ("The only token that could follow" in told) != ("Only one text could follow" in told)


def test_nothing_is_wider_than_the_window(opened: Opener) -> None:
    page = opened()
    choose(page, "grammar")
    page.locator("#example option", has_text="sql-select").wait_for(state="attached")
    page.locator("#example").select_option(label="sql-select")
    page.locator("summary").click()
    page.locator("#max-tokens").fill("60")
    run(page)
    for width in (380, 500, 700, 900, 1100, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_theme_is_the_systems_until_it_is_chosen(opened: Opener) -> None:
    page = opened(color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(background)
    assert light != dark
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Theme: dark" and page.evaluate(background) == dark
    page.reload()
    assert page.evaluate(background) == dark


def test_nothing_moves_for_those_who_do_not_want_it(opened: Opener) -> None:
    page = opened(reduced_motion="reduce")
    run(page)
    assert page.evaluate("getComputedStyle(document.querySelector('.token')).animationName") == "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barriers(opened: Opener, scheme: str) -> None:
    """Labels, roles, contrast and what else Deque's axe-core knows."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = opened(color_scheme=scheme, reduced_motion="reduce", bypass_csp=True, expect=(400,))  # axe is injected as a script
    for viewport in (DESK, PHONE):
        page.set_viewport_size(viewport)
        for example in ("A person", "A schema with a mistake"):
            if viewport is PHONE:
                page.get_by_role("button", name="Request", exact=True).click()
            page.locator("#example").select_option(label=example)
            run(page)
            found = axe.Axe().run(page)
            assert found.violations_count == 0, found.generate_report()


# -- other servers


def test_a_server_with_a_key_asks_for_it(opened: Opener, llm: LLM) -> None:
    with served(llm, ServerSettings(api_key=("secret",))) as guarded:
        page = opened(guarded.url, expect=(401,))
        page.locator("#key-dialog").wait_for()
        page.locator("#key").fill("secret")
        page.locator("#key-dialog .primary").click()
        page.locator("#server", has_text="embedded").wait_for()
        run(page)
        assert page.locator(".token").count() > 0
        assert page.evaluate("JSON.stringify(localStorage)") == "{}"


def test_a_server_that_allows_fewer_candidates_gives_fewer(opened: Opener, llm: LLM) -> None:
    with served(llm, ServerSettings(max_logprobs=2)) as modest:
        page = opened(modest.url, expect=(400,))
        page.locator("#run").click()
        page.locator("#state", has_text="complete").wait_for()
        assert page.locator("#inspector .candidates li").count() == 2


def test_a_server_that_takes_no_grammars_says_so(opened: Opener, llm: LLM) -> None:
    with served(llm, ServerSettings(client_grammars=False)) as strict:
        page = opened(strict.url, expect=(403,))
        choose(page, "regex")
        run(page)
        assert "Refused by the operator" in error_of(page)


def test_a_server_that_is_gone_is_told(opened: Opener) -> None:
    page = opened()
    page.route("**/v1/chat/completions", lambda route: route.abort())
    page.locator("#run").click()
    assert "does not answer" in error_of(page)
