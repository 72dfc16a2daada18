"""Trees and tokens of the texts of grammars. Lark's parsers make them too; to import lark takes as long as many compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from ...grammar.stopwatch import look

_BETWEEN_LOOKS: Final = 1023  # trees, a few milliseconds
T = TypeVar("T")


class Token(str):
    """A part of a text. type: its name in the notation; start_pos: where it begins, None of one that stands nowhere."""

    __slots__ = ("start_pos", "type")  # a text of a megabyte has half a million of them

    type: str
    start_pos: int | None
    line = column = end_line = end_column = end_pos = None  # what lark looks for

    def __new__(cls, type: str, value: str, start_pos: int | None = None) -> Token:
        token = super().__new__(cls, value)
        token.type, token.start_pos = type, start_pos
        return token

    @property
    def value(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"Token({self.type!r}, {str(self)!r})"

    def __reduce__(self) -> Any:
        return Token, (self.type, str(self), self.start_pos)


class Tree(Generic[T]):
    """An expression. data: what it is; children: its parts, and None where an optional one is left out."""

    __slots__ = ("children", "data")

    def __init__(self, data: str, children: list[Any], meta: None = None) -> None:
        self.data, self.children = data, children

    def __repr__(self) -> str:
        return f"Tree({str(self.data)!r}, {self.children!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.data == other.data and self.children == other.children

    def iter_subtrees(self) -> Iterator[Tree[T]]:
        """The tree and all below it, what is inside first, each once."""
        found = [self]
        seen = {id(self)}
        for number, tree in enumerate(found, start=1):
            if not number & _BETWEEN_LOOKS:
                look()
            for child in reversed(tree.children):
                if isinstance(child, Tree) and id(child) not in seen:
                    seen.add(id(child))
                    found.append(child)
        return reversed(found)

    def find_data(self, data: str) -> Iterator[Tree[T]]:
        """Those of `iter_subtrees` that are one thing."""
        return (tree for tree in self.iter_subtrees() if tree.data == data)

    def scan_values(self, wanted: Callable[[Any], bool]) -> Iterator[T]:
        """The leaves, in the order of the text."""
        left: list[Any] = [self]
        while left:
            part = left.pop()
            if isinstance(part, Tree):
                left += reversed(part.children)
            elif wanted(part):
                yield part
