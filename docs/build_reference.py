"""Build the API reference from docstrings, as HTML: `python docs/build_reference.py [folder]`, or `make docs`.

What is public is listed here, and tests/packaging/test_reference.py sees to it that all of it is documented.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from maskwright.field_comments import field_comments

if TYPE_CHECKING:
    from pdoc.doc import Module

# Modules that users import, each with the names that are for them; None: all that it exports.
PUBLIC: dict[str, tuple[str, ...] | None] = {
    "maskwright": None,
    "maskwright.constraints": None,
    "maskwright.grammars": None,
    "maskwright.engine": ("EngineConfig", "EngineFeatures", "EngineStatistics"),
    "maskwright.server.settings": ("ServerSettings",),
}


def public_names() -> Iterator[tuple[str, str, Any]]:
    """(module, name, what it names), for every public name."""
    for module_name, names in PUBLIC.items():
        module = import_module(module_name)
        for name in names or module.__all__:
            yield module_name, name, getattr(module, name)


def build(folder: Path) -> list[Path]:
    """Write the pages into a folder, and return them. Needs pdoc."""
    import pdoc.doc
    import pdoc.render

    pdoc.render.configure(docformat="google", include_undocumented=False, show_source=False, footer_text="Maskwright")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of annotations that pdoc cannot evaluate; it shows them as written
        modules = {name: _page(name, names) for name, names in PUBLIC.items()}
        pages = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(module, modules) for name, module in modules.items()}
        pages |= {"index.html": pdoc.render.html_index(modules), "search.js": pdoc.render.search_index(modules)}
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [folder / path for path in pages]


def _page(name: str, names: Sequence[str] | None) -> Module:
    """A module as pdoc sees it: public names alone, and fields of dataclasses with their comments."""
    import pdoc.doc

    real = import_module(name)
    shown = ModuleType(name, real.__doc__)
    shown.__dict__.update({each: getattr(real, each) for each in names or real.__all__}, __all__=list(names or real.__all__))
    page = pdoc.doc.Module(shown)
    for member in page.members.values():
        if isinstance(member, pdoc.doc.Class) and is_dataclass(member.obj):
            for field, comment in field_comments(member.obj).items():
                if field in member.members:
                    member.members[field].docstring = comment  # type: ignore[misc]  # a property that is kept once it is known
    return page


if __name__ == "__main__":
    written = build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference"))
    print(f"{len(written)} files in {written[-2].parent}")
