"""Results of suites as JUnit's XML, as continuous integration systems read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as etree

from .suite import Result, Suite

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(runs: Iterable[tuple[Suite, Sequence[Result]]]) -> bytes:
    """One test suite for each file, one test case for each string."""
    root = etree.Element("testsuites")
    for suite, results in runs:
        failed = [result for result in results if not result.passed]
        seconds = sum(result.seconds for result in results)
        node = etree.SubElement(
            root, "testsuite", name=_clean(str(suite.path)), tests=str(len(results)), failures=str(len(failed)), errors="0",
            skipped="0", time=f"{seconds:.6f}",
        )  # fmt: skip
        for result in results:
            name, group = _clean(result.case.label), _clean(suite.grammar.name)
            case = etree.SubElement(node, "testcase", classname=group, name=name, time=f"{result.seconds:.6f}")
            if result.reason is not None:
                failure = etree.SubElement(case, "failure", message=_clean(result.reason))
                failure.text = _clean(f"{result.case.wanted}: {result.case.text}\n{result.reason}")
    etree.indent(root)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    """A text without characters that XML cannot hold."""
    return _NOT_IN_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
