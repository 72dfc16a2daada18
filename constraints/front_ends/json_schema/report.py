"""The verdict on each keyword of a schema: exact, refused, or taken with a remark.

The verdicts are the compiler's own. The schema is compiled with `on_unsupported="relax"`; what that leaves in `residue` is refused,
what it says in `notes` is remarked, and a keyword in force of which it says nothing is enforced exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base.errors import ConstraintError, ConstraintLimit
from .documents.document import Site
from .documents.drafts import DRAFTS, NAMES
from .documents.keyword_table import ANNOTATIONS, KEYWORDS
from .documents.keywords import in_force
from .documents.policy import read_entry
from .documents.reach import reachable

if TYPE_CHECKING:
    from ...runtime.compiler import Compiler
    from .json_schema import JsonSchema

EXACT, REFUSED, NOTE = "exact", "refused", "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one keyword of one subschema. `path` is "" for a remark about the schema as a whole."""

    path: str
    keyword: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts on a schema. `failure` is why it cannot be compiled at all; then only what was refused until then is known."""

    draft: str
    findings: tuple[Finding, ...]
    failure: str = ""

    @property
    def is_exact(self) -> bool:
        return not self.failure and not self.of(REFUSED)

    def of(self, verdict: str) -> list[Finding]:
        """The findings of one verdict."""
        return [finding for finding in self.findings if finding.verdict == verdict]

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON value."""
        return {
            "exact": self.is_exact,
            "draft": self.draft,
            "failure": self.failure or None,
            "counts": {verdict: len(self.of(verdict)) for verdict in (EXACT, REFUSED, NOTE)},
            "findings": [asdict(finding) for finding in self.findings],
        }


def report(source: JsonSchema, compiler: Compiler) -> Report:
    """Compile a schema and tell what became of its keywords.

    Raises `ConstraintError` for what is no matter of the schema, such as an unknown `draft`. What is wrong with the schema is told.
    """
    try:
        root = source.root(compiler.limits)
    except ConstraintError as error:
        return Report("", (_refusal(error),), str(error))
    draft = NAMES[DRAFTS.index(root.document.draft)]
    try:
        constraint = compiler.compile(replace(source, on_unsupported="relax"))
    except ConstraintError as error:
        return Report(draft, (_refusal(error),), str(error))
    return Report(draft, tuple(_findings(list(reachable(root)), constraint.residue, constraint.notes)))


def _findings(sites: list[Site], residue: tuple[str, ...], notes: tuple[str, ...]) -> Iterator[Finding]:
    refused = {(path, keyword): reason for path, keyword, reason in map(read_entry, residue)}
    remarks = _Remarks(notes, {site.path for site in sites})
    told = set()
    for site in sites:
        for keyword in site.schema if isinstance(site.schema, dict) else ():
            if (site.path, keyword) in told or keyword in ANNOTATIONS:
                continue
            told.add((site.path, keyword))
            if (site.path, keyword) in refused:
                yield Finding(site.path, keyword, REFUSED, refused[site.path, keyword])
            elif remark := remarks.of(site, keyword):
                yield Finding(site.path, keyword, NOTE, remark)
            elif keyword not in KEYWORDS:
                yield Finding(site.path, keyword, NOTE, "not a keyword of JSON Schema: ignored")
            elif not in_force(site, keyword):
                yield Finding(site.path, keyword, NOTE, "not a keyword of the schema's draft or vocabularies")
            else:
                yield Finding(site.path, keyword, EXACT)
    for (path, keyword), reason in refused.items():
        if (path, keyword) not in told:  # of several keywords together, or of none that is written there
            yield Finding(path, keyword, REFUSED, reason)
    yield from (Finding(path, "", NOTE, remark) for path, remark in remarks.left())


class _Remarks:
    """The compiler's notes by the path that they begin with; "" for those about the schema as a whole."""

    def __init__(self, notes: tuple[str, ...], paths: set[str]) -> None:
        self._by_path: dict[str, list[str]] = {}
        self._used: set[str] = set()
        for note in notes:
            path = max((path for path in _beginnings(note) if path in paths), key=len, default="")
            self._by_path.setdefault(path, []).append(note[len(path) + 2 :] if path else note)

    def of(self, site: Site, keyword: str) -> str:
        """The remarks about a keyword in one text; "" for none."""
        value = site.active.get(keyword)
        here = [
            note for note in self._by_path.get(site.path, ()) if repr(keyword) in note or note.startswith(f"{keyword} ")
        ]
        here += [note for note in self._by_path.get("", ()) if note.startswith(f"{keyword} {value!r} ")]
        self._used.update(here)
        return "; ".join(here)

    def left(self) -> Iterator[tuple[str, str]]:
        """The path and text of the remarks in which no keyword was named."""
        return ((path, note) for path, notes in self._by_path.items() for note in notes if note not in self._used)


def _beginnings(note: str) -> Iterator[str]:
    """The beginnings of a note that could be its path; a path may have a colon and a space in it."""
    at = note.find(": ")
    while at >= 0:
        yield note[:at]
        at = note.find(": ", at + 1)


def _refusal(error: ConstraintError) -> Finding:
    """The finding of an error that stopped the compiler. Raises the error again when it is not about the schema."""
    if error.path is None and not isinstance(error, ConstraintLimit):
        raise error
    return Finding(error.path or "#", error.keyword or "", REFUSED, error.reason)
