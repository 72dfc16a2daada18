"""Assertions of terminals that would see what stands beside the terminal.

A terminal is one set of texts, put together with others. What an assertion says there must follow from the terminal's own text:
a word edge inside of it, a lookahead before the rest of it. One that may stand at an edge and looks across (`/a\\b/`,
`/a(?!b)/`, `/(?<!b)a/`) depends on the neighbours, which differ from place to place, so it is refused. `^` and `$` are the ends
of the terminal.
"""

from __future__ import annotations

from typing import NoReturn

from ...base.errors import UnsupportedKeyword
from ..regex.parser import line_and_column
from ..regex.regex import tree_length
from ..regex.tree import Anchor, Concat, Lookahead, Lookbehind, Place, Tree, assertions, children
from .syntax_tree import Token

_WORD_EDGES = {Place.WORD_EDGE: "\\b", Place.NOT_WORD_EDGE: "\\B", Place.NOT_WORD_EDGE_OF_TEXT: "\\B"}
_BEHIND = (Place.AFTER, Place.START_OR_AFTER)


def check_edges(text: str, token: Token, pattern: Tree) -> None:
    """Raises `UnsupportedKeyword` for an assertion that looks beyond the terminal that is used at `token`."""
    if not assertions(pattern):
        return
    seen: set[tuple[int, bool, bool]] = set()
    work = [(pattern, True, True)]
    while work:
        part, is_first, is_last = work.pop()
        if (id(part), is_first, is_last) in seen:
            continue
        seen.add((id(part), is_first, is_last))
        if isinstance(part, Concat):
            work += _parts(part, is_first, is_last)
        elif isinstance(part, Lookahead) and is_last:
            _refuse(text, token, "(?!" if part.negative else "(?=", "behind")
        elif isinstance(part, Anchor) and part.place in _WORD_EDGES and (is_first or is_last):
            _refuse(text, token, _WORD_EDGES[part.place], "before" if is_first else "behind")
        elif isinstance(part, Lookbehind) or (isinstance(part, Anchor) and part.place in _BEHIND and is_first):
            _refuse(text, token, "(?<", "before")
        elif not isinstance(part, Lookahead):
            work += [(child, is_first, is_last) for child in children(part)]


def _parts(tree: Concat, is_first: bool, is_last: bool) -> list[tuple[Tree, bool, bool]]:
    """Each part, and whether it may begin and whether it may end the terminal."""
    may_be_empty = [tree_length(part)[0] == 0 for part in tree.parts]
    return [
        (part, is_first and all(may_be_empty[:at]), is_last and all(may_be_empty[at + 1 :])) for at, part in enumerate(tree.parts)
    ]


def _refuse(text: str, token: Token, keyword: str, where: str) -> NoReturn:
    line, column = line_and_column(text, token.start_pos or 0)
    reason = f"at an edge of a terminal it depends on what stands {where} the terminal"
    instead = "the neighbours as a part of the terminal"
    raise UnsupportedKeyword(reason, keyword=keyword, instead=instead, line=line, column=column)
