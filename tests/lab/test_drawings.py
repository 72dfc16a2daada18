"""Pictures: well-formed, every rule named, every text of the grammar in them."""

from __future__ import annotations

from xml.etree import ElementTree as etree

import pytest
from hypothesis import given, settings

from maskwright import grammars
from maskwright.constraints.lab.grammar_file import GrammarFile
from maskwright.constraints.lab.language import byte_compiler
from maskwright.drawing.automaton_map import automaton_map
from maskwright.drawing.canvas import Drawing
from maskwright.drawing.page import html_page
from maskwright.drawing.railroad import railroad

from .test_findings import _GRAMMARS

SVG = "{http://www.w3.org/2000/svg}"


def drawn(name: str, text: str) -> Drawing:
    outline = GrammarFile.named(name, text).outline
    assert outline is not None
    return railroad(outline)


def texts(drawing: Drawing) -> list[str]:
    return ["".join(node.itertext()) for node in etree.fromstring(drawing.svg()).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["json", "sql-select", "xml-element", "mermaid-flowchart"])
def test_every_rule_is_drawn_and_linked(name: str) -> None:
    path = grammars.path(name)
    outline = GrammarFile.named(path.name, grammars.text(name)).outline
    assert outline is not None
    drawing = railroad(outline)
    root = etree.fromstring(drawing.svg())
    assert set(outline.rules) <= set(texts(drawing))
    anchors = {node.attrib["id"] for node in root.iter(f"{SVG}g") if "id" in node.attrib}
    assert {node.attrib["href"][1:] for node in root.iter(f"{SVG}a")} <= anchors == {anchor for anchor, _ in drawing.links}


def test_what_is_drawn() -> None:
    found = texts(drawn("x.gbnf", 'root ::= "a<&\\n" [a-z]{2,5} | ( other "b" )+ | ""\nother ::= "x"{3} [0-9]*'))
    assert {'"a<&\\n"', "[a-z]", "2 to 5 times", "other", '"b"', '"x"', "3 times", "[0-9]", "line 2"} <= set(found)


def test_long_rows_are_broken() -> None:
    drawing = drawn("x.gbnf", "root ::= " + " ".join(f'"word number {i}"' for i in range(40)))
    assert drawing.width < 1200 and drawing.height > 150


@settings(max_examples=40)
@given(_GRAMMARS)
def test_every_box_is_inside_the_picture(text: str) -> None:
    drawing = drawn("x.gbnf", text)
    work = [(etree.fromstring(drawing.svg()), 0.0, 0.0)]
    while work:
        node, x, y = work.pop()
        if "transform" in node.attrib:
            dx, dy = map(float, node.attrib["transform"].removeprefix("translate(").removesuffix(")").split())
            x, y = x + dx, y + dy
        if node.tag == f"{SVG}rect":
            left, top = x + float(node.attrib.get("x", 0)), y + float(node.attrib.get("y", 0))
            assert 0 <= left <= left + float(node.attrib["width"]) <= drawing.width + 1
            assert 0 <= top <= top + float(node.attrib["height"]) <= drawing.height + 1
        work.extend((child, x, y) for child in node)


def test_an_automaton() -> None:
    constraint = byte_compiler().compile(grammars.load("json"))
    found = texts(automaton_map(constraint, b"[1,\x01", "[1,\x01"))
    assert '"[" ' not in found and {'"["', '"1"', '","', "state 0", "state 3"} <= set(found)
    assert any("masked" in text for text in found) and any("tokens allowed" in text for text in found)
    ended = texts(automaton_map(constraint, b"{}", "{}"))
    assert any("may end here" in text for text in ended)


def test_a_state_that_comes_again_is_named_as_before() -> None:
    constraint = byte_compiler().compile(GrammarFile.named("x.gbnf", 'root ::= "a"* "b"').source)
    assert texts(automaton_map(constraint, b"aa", "aa")).count("state 0") >= 3


def test_a_page() -> None:
    page = html_page("Rules <of> x", drawn("x.gbnf", 'root ::= "a"'))
    assert page.startswith("<!doctype html>") and "Rules &lt;of&gt; x" in page and 'href="#rule-root"' in page
    etree.fromstring(page.partition("\n")[2])  # well-formed, too
