"""Host names and mail addresses as nodes whose lengths are counted by weights.

A limit on a whole text whose parts have limits of their own is an intersection, and the machine is slow on those. Here what
is left of the limit is part of the grammar instead: one node for each weight that is left. A label counts as a multiple of
`_STEP` characters, so that few weights are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....base.utf8 import Ranges, normalize
from ....grammar.expression import EMPTY, Grammar, Node
from ...regex.tree import Unit

_STEP = 8  # a label and its dot take at most this many characters for each unit of weight
_LONGEST_LABEL = 63
_LETTER_OR_DIGIT = normalize([(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)])
_SMALL_OR_DIGIT = normalize([(0x30, 0x39), (0x61, 0x7A)])
_LDH = normalize([*_LETTER_OR_DIGIT, (0x2D, 0x2D)])
_HYPHEN, _DOT, _AT, _QUOTE = ((ord(char), ord(char)) for char in '-.@"')
_ATEXT = normalize([*_LETTER_OR_DIGIT, *((ord(char), ord(char)) for char in "!#$%&'*+-/=?^_`{|}~")])
_QTEXT = normalize([(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E)])
_PRINTABLE = ((0x20, 0x7E),)
_LOCAL_OCTETS = 64
_HOST_WEIGHT = 31  # 31 * 8 - 1 = 247 of 253 characters
_DOMAIN_WEIGHT = 23  # 183 characters: 64 + 1 + 183 are within the 254 of an address
# Characters of a label of letters beyond ASCII, and its weight: Punycode takes 4 characters and at most 5 a letter, and a hyphen.
_WIDE_LABELS = ((1, 3, 3), (4, 5, 4), (6, 8, 6), (9, 11, 8))
_WIDTHS = ((0x7FF, 2), (0xFFFF, 3), (0x10FFFF, 4))  # octets of characters beyond ASCII

Weighted = tuple[Node, int]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Builds host names and mail addresses in `grammar`. `unit` gives the node for one character of a set."""

    grammar: Grammar
    unit: Unit

    def host_name(self, letters: Ranges = (), limit: int = _HOST_WEIGHT) -> Node:
        """Labels with dots between them; `letters` beyond ASCII may stand in labels of at most 11 characters."""
        labels = [*self._labels(), *self._wide_labels(letters)]
        dot, seq = self.unit((_DOT,)), self.grammar.seq
        rest = self._sequences([(seq(dot, label), weight) for label, weight in labels], limit - 1)
        return self.grammar.alt(*(seq(label, rest[limit - weight]) for label, weight in labels))

    def mailbox(self, literal: Node, letters: Ranges | None = None) -> Node:
        """A mail address whose domain may also be `literal`; with `letters` those of RFC 6531, domains as `host_name` has them."""
        domain = self.grammar.alt(self.host_name(letters or (), _DOMAIN_WEIGHT), literal)
        local = self.grammar.alt(self._dot_string(letters is not None), self._quoted_string(letters is not None))
        return self.grammar.seq(local, self.unit((_AT,)), domain)

    # -- labels -----------------------------------------------------------------------------------------------------

    def _labels(self) -> list[Weighted]:
        """Letters, digits and hyphens: no hyphen first or last, no two of them third and fourth (RFC 5891, 4.2.3.1)."""
        seq, repeat = self.grammar.seq, self.grammar.repeat
        x, h, hyphen = self.unit(_LETTER_OR_DIGIT), self.unit(_LDH), self.unit((_HYPHEN,))
        third_and_fourth = self.grammar.alt(seq(x, h), seq(hyphen, x))
        short = self.grammar.alt(EMPTY, x, seq(h, x), seq(h, h, x))
        short = self.grammar.alt(short, seq(h, third_and_fourth, repeat(h, 0, _STEP - 6), x))
        long = seq(x, h, third_and_fourth)
        bounds = [(low, min(low + _STEP - 1, _LONGEST_LABEL)) for low in range(_STEP, _LONGEST_LABEL + 1, _STEP)]
        return [(seq(x, short), 1)] + [
            (seq(long, repeat(h, low - 5, high - 5), x), weight) for weight, (low, high) in enumerate(bounds, start=2)
        ]

    def _wide_labels(self, letters: Ranges) -> list[Weighted]:
        if not letters:
            return []
        plain, beyond = self.unit(_SMALL_OR_DIGIT), self.unit(letters)
        some = self.unit(normalize([*_SMALL_OR_DIGIT, *letters]))
        return [(self._with_one_beyond(plain, beyond, some, low, high), weight) for low, high, weight in _WIDE_LABELS]

    def _with_one_beyond(self, plain: Node, beyond: Node, some: Node, low: int, high: int) -> Node:
        """`low` to `high` characters, one of them beyond ASCII: others are lighter as `_labels`, so a text has one weight, and what
        may follow is known behind it."""
        label = beyond
        for most in range(2, high + 1):
            least = max(low - (high - most), 1)
            behind = self.grammar.repeat(some, least - 1, most - 1)
            label = self.grammar.alt(self.grammar.seq(plain, label), self.grammar.seq(beyond, behind))
        return label

    # -- local parts ------------------------------------------------------------------------------------------------

    def _dot_string(self, wide: bool) -> Node:
        atoms, dot = self._octets(_ATEXT, wide), self.unit((_DOT,))
        parts = atoms + [(self.grammar.seq(dot, atom), weight + 1) for atom, weight in atoms]
        rest = self._sequences(parts, _LOCAL_OCTETS - 1, body=atoms[0][0])
        return self.grammar.alt(*(self.grammar.seq(atom, rest[_LOCAL_OCTETS - weight]) for atom, weight in atoms))

    def _quoted_string(self, wide: bool) -> Node:
        quote, pair = self.unit((_QUOTE,)), self.grammar.seq(self.unit(((0x5C, 0x5C),)), self.unit(_PRINTABLE))
        texts = self._octets(_QTEXT, wide)
        inside = self._sequences([*texts, (pair, 2)], _LOCAL_OCTETS - 2, body=texts[0][0])[-1]
        return self.grammar.seq(quote, inside, quote)

    def _octets(self, ascii_chars: Ranges, wide: bool) -> list[Weighted]:
        """One character of a set, or any character beyond ASCII if `wide`, with its octets in UTF-8."""
        lows = [0x80, *(high + 1 for high, _ in _WIDTHS)]
        beyond = [((low, high), octets) for low, (high, octets) in zip(lows, _WIDTHS, strict=False)] if wide else []
        return [(self.unit(ascii_chars), 1), *((self.unit(normalize([one])), octets) for one, octets in beyond)]

    # -- weights ----------------------------------------------------------------------------------------------------

    def _sequences(self, parts: Sequence[Weighted], limit: int, body: Node | None = None) -> list[Node]:
        """For each total up to `limit`, the sequences of parts that weigh at most that much."""
        rest: list[Node] = []
        for left in range(limit + 1):
            options: Iterable[Node] = (
                self.grammar.seq(part, rest[left - weight]) for part, weight in parts if weight <= left
            )
            counted = EMPTY if body is None else self.grammar.repeat(body, 0, left)
            rest.append(self.grammar.alt(EMPTY, counted, *options))
        return rest
