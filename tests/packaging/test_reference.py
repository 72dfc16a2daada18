"""Public names are documented in full, and the reference that is built of their docstrings leads nowhere astray."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from maskwright.constraints import FrontEnd, Source
from maskwright.field_comments import field_comments

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("build_reference", ROOT / "docs" / "build_reference.py")
assert _spec is not None and _spec.loader is not None
build_reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build_reference)

NAMES = {name: value for _, name, value in build_reference.public_names()}
CODE = re.compile(r"`([\w.]+)`")
MOST_STEPS = 2  # from a docstring to the one that says what an argument is
NOT_MADE_BY_USERS = ("Constraint", "Session", "AsyncSession")  # calls give these


def _function(member: Any) -> Any:
    """The function of a method, property or the like; None for other members."""
    for kind, name in ((property, "fget"), (cached_property, "func"), (classmethod, "__func__"), (staticmethod, "__func__")):
        if isinstance(member, kind):
            member = getattr(member, name)
    return member if inspect.isfunction(member) else None


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class defines itself."""
    for name, member in vars(cls).items():
        function = _function(member)
        if function is not None and not name.startswith("_"):
            yield name, function


CALLS = [(name, value, None) for name, value in NAMES.items() if inspect.isfunction(value)] + [
    (f"{name}.{member}", function, value)
    for name, value in NAMES.items() if inspect.isclass(value) for member, function in _members(value)
]  # fmt: skip
CLASSES = [(name, value) for name, value in NAMES.items() if inspect.isclass(value)]


def _own_docs(function: Any, cls: type | None) -> list[str]:
    """The docstring of a function, and of those that it overrides."""
    bases = () if cls is None else (*cls.__mro__, Source, FrontEnd)
    overridden = [_function(vars(base).get(function.__name__)) for base in bases]
    return [each.__doc__ for each in (function, *overridden) if each is not None and each.__doc__]


def _docs(function: Any, cls: type | None) -> list[str]:
    """What is said about a call: by itself, by what it overrides, by its class, and by the calls that these name."""
    docs = _own_docs(function, cls)
    if cls is not None:
        docs += [cls.__doc__ or "", FrontEnd.__doc__ or "" if hasattr(cls, "lower") else ""]
    return [*docs, *(each for doc in docs for each in _followed(doc, cls, MOST_STEPS))]


def _followed(doc: str, cls: type | None, steps: int) -> Iterator[str]:
    """The docstrings of the calls that a docstring names, as in "See `LLM.generate`.", and of those that these name."""
    for code in CODE.findall(doc) if steps else ():
        owner, call = _named(code, cls)
        if callable(call) and call.__doc__:
            yield call.__doc__
            yield from _followed(call.__doc__, owner, steps - 1)


def _named(code: str, cls: type | None) -> tuple[type | None, Any]:
    """(class, what it means) of `Class.method`, or `method` of a docstring's own class; None for what is no public name."""
    first, *rest = code.split(".")
    if first in NAMES and len(rest) == 1:
        return NAMES[first], getattr(NAMES[first], rest[0], None)
    return cls, None if rest else NAMES.get(first, getattr(cls, first, None))


@pytest.mark.parametrize(("name", "function", "cls"), CALLS, ids=[name for name, _, _ in CALLS])
def test_a_call_says_what_it_gives_and_what_it_takes(name: str, function: Any, cls: type | None) -> None:
    assert _own_docs(function, cls), f"{name} has no docstring"
    docs = _docs(function, cls)
    parameters = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
    unsaid = [each for each in parameters if not any(re.search(rf"\b{each}\b", doc) for doc in docs)]
    assert not unsaid, f"{name}: the docstring does not say what {', '.join(unsaid)} is"


@pytest.mark.parametrize(("name", "cls"), CLASSES, ids=[name for name, _ in CLASSES])
def test_a_class_says_what_it_is_and_what_it_holds(name: str, cls: type) -> None:
    own = vars(cls).get("__doc__") or ""
    is_written_by_python = is_dataclass(cls) and own == name + str(inspect.signature(cls)).removesuffix(" -> None")
    assert own and not is_written_by_python, f"{name} has no docstring"
    if not is_dataclass(cls):
        is_called = "__init__" in vars(cls) and not issubclass(cls, Exception) and name not in NOT_MADE_BY_USERS and cls is not Source
        parameters = list(inspect.signature(cls).parameters) if is_called else []
        said = [own, cls.__init__.__doc__ or "", *_followed(own, cls, MOST_STEPS)]
        unsaid = [each for each in parameters if not any(re.search(rf"\b{each}\b", doc) for doc in said)]
    else:
        said = [base.__doc__ or "" for base in cls.__mro__ if is_dataclass(base)] + [inspect.getdoc(inspect.getmodule(cls)) or ""]
        public = [each.name for each in fields(cls) if not each.name.startswith("_")]
        unsaid = [each for each in public if each not in field_comments(cls) and not any(re.search(rf"\b{each}\b", doc) for doc in said)]
    assert not unsaid, f"{name}: nothing says what {', '.join(unsaid)} is"


def test_docstrings_name_what_there_is() -> None:
    """`Class.member` in the docstring of a public name, where there is such a class, names a member that it has."""
    docs = [(name, function.__doc__) for name, function, _ in CALLS] + [(name, cls.__doc__) for name, cls in CLASSES]
    for name, doc in docs:
        for code in CODE.findall(doc or ""):
            first, *rest = code.split(".")
            if rest and inspect.isclass(NAMES.get(first)):
                holds = {each.name for each in fields(NAMES[first])} if is_dataclass(NAMES[first]) else set()
                assert hasattr(NAMES[first], rest[0]) or rest[0] in holds, f"{name} names `{code}`, which there is not"


class _Links(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets, self.places = list[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.places.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.targets.append(str(given["href"]))


def test_links_of_the_built_reference_lead_somewhere(tmp_path: Path) -> None:
    pytest.importorskip("pdoc", reason="needs pdoc: pip install pdoc")
    written = build_reference.build(tmp_path)
    pages = {path: _Links(path.read_text(encoding="utf-8")) for path in written if path.suffix == ".html"}
    assert sum(len(page.targets) for page in pages.values()) > 500
    for path, page in pages.items():
        for target in page.targets:
            file, _, place = target.partition("#")
            if "://" in file or file.startswith("mailto:"):
                continue
            leads_to = (path.parent / file).resolve() if file else path
            assert leads_to in pages, f"{path.name} links to {target}"
            assert not place or place in pages[leads_to].places, f"{path.name} links to {target}"
    names = {place for page in pages.values() for place in page.places}
    missing = [name for name, _, _ in CALLS if name not in names and not _is_inherited_text(name)]
    assert not missing


def _is_inherited_text(name: str) -> bool:
    """Whether a member has no text of its own, and is told where it is defined first."""
    return not next(function for each, function, _ in CALLS if each == name).__doc__
