"""Many strings against one expression while a schema is being lowered, before there are tables: `Reference` with a memory."""

from __future__ import annotations

from .expression import Grammar, Node
from .reference import Position, Reference


class Matcher:
    """Matches byte strings against a node; every position and step is found once."""

    def __init__(self, grammar: Grammar, node: Node) -> None:
        self._reference = Reference(grammar, node)
        self._start = self._reference.start()
        self._steps: dict[tuple[Position, int], Position] = {}

    def accepts(self, text: bytes) -> bool:
        position = self._start
        for byte in text:
            position = self.step(position, byte)
            if not position:
                return False
        return self._reference.is_accepting(position)

    @property
    def start(self) -> Position:
        return self._start

    def step(self, position: Position, byte: int) -> Position:
        key = (position, byte)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._reference.step(position, byte)
        return known

    def is_accepting(self, position: Position) -> bool:
        return self._reference.is_accepting(position)
