"""The register: what the open JSON objects and arrays of a text have already, so that no key and no item of an array with
unique items comes twice.

It is a function of the text and its events (`Event`), not a part of the automaton's state. It advances beside the
state, byte by byte (`seen_after`), and is one hash-consed value for all texts that agree in it. Every open bracket has a
*frame*:

    REGISTER(frame, mode, word)      the innermost frame, where in a string we are, the word that is being read
    OBJECT(parent, done, before)   done: the keys that were marked, as a set; inside a unique array whole members
    ARRAY(parent, done, before)    done: the items, as a list; inside a unique array only
    UNIQUE(parent, done, before)   an array whose items must differ, or one that may still be such an array
    LIST(rest, word, -)            a list; a set is a list that is sorted by node number
    WORD(prefix, symbol, -)        a byte, or CONTAINER + LIST for an array or object that was closed

    {"a": 1, "b      REGISTER(OBJECT(no parent, {"a"}, no word), IN_KEY, the word "b)

A *word* is the text of a key or item. It is NIL where nothing is recorded: outside of keys and unique arrays.
`before` is the word of the parent up to and with the opening bracket. White space outside of strings is left out,
numbers and strings have one spelling each, and members are a set; so equal keys and equal items are one node. Words,
lists and sets share what they have in common.

A repeated key is refused at its closing quote, a repeated item at the comma or bracket behind it. register_product.py refuses a
text before that, as soon as it cannot become anything else.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ..automaton.nodes import intern_node, wide
from ..automaton.tables import REC, layout
from ..base.kinds import Event, Kind
from ..numba_support.jit import entry, inner, words_at

NIL = 0  # no frame, no word; the empty list
EMPTY_WORD = 1  # the empty word
CONTAINER = 256  # symbols from here on are lists
REPEATED = 0  # instead of a register
QUOTE, BACKSLASH, COMMA = 0x22, 0x5C, 0x2C
OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET = 0x7B, 0x7D, 0x5B


class TextMode(IntEnum):
    """Where in a string a text is."""

    OUTSIDE = 0
    IN_STRING = 1
    ESCAPE = 2
    IN_KEY = 3  # inside a key that was marked
    KEY_ESCAPE = 4


@inner
def register(arena, tables, frame, mode, word):
    """The REGISTER node of a frame, a mode and a word."""
    return intern_node(arena, tables, wide(Kind.REGISTER), wide(frame), wide(mode), wide(word))


@inner
def longer(arena, tables, word, symbol):
    """A word and one more symbol; NIL where nothing is recorded."""
    return wide(NIL) if word == NIL else intern_node(arena, tables, wide(Kind.WORD), wide(word), wide(symbol), wide(0))


@inner
def is_space(byte):
    """Whether a byte is white space of JSON."""
    return byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09


@inner
def is_bracket_or_comma(byte):
    return byte == COMMA or byte | 0x20 == OPEN_BRACE or byte | 0x20 == CLOSE_BRACE  # [ and { differ in one bit


@inner
def is_recorded(arena, tables, frame):
    """Whether all text in a frame is recorded, not just keys."""
    return arena[tables.kind + REC * frame] == Kind.UNIQUE or arena[tables.c + REC * frame] != NIL


@inner
def is_in_key(mode):
    return mode == TextMode.IN_KEY or mode == TextMode.KEY_ESCAPE


@inner
def mode_after(mode, byte, event):
    """The mode behind a byte with an event."""
    if mode == TextMode.OUTSIDE:
        return TextMode.OUTSIDE if byte != QUOTE else TextMode.IN_KEY if event == Event.KEY_OPEN else TextMode.IN_STRING
    if mode == TextMode.ESCAPE or mode == TextMode.KEY_ESCAPE:
        return TextMode.IN_STRING if mode == TextMode.ESCAPE else TextMode.IN_KEY
    if byte == BACKSLASH:
        return TextMode.ESCAPE if mode == TextMode.IN_STRING else TextMode.KEY_ESCAPE
    return TextMode.OUTSIDE if byte == QUOTE else mode


@inner
def seen_after(arena, tables, seen, byte, event):
    """The register behind a byte with an event; REPEATED when the byte ends a key or an item that is there already, and on
    a fault."""
    frame, mode, word = wide(arena[tables.a + REC * seen]), wide(arena[tables.b + REC * seen]), wide(arena[tables.c + REC * seen])
    inside = mode_after(mode, byte, event)
    if mode != TextMode.OUTSIDE and inside != TextMode.OUTSIDE:
        return seen if inside == mode and word == NIL else register(arena, tables, frame, inside, longer(arena, tables, word, byte))
    if mode != TextMode.OUTSIDE:
        word = longer(arena, tables, word, byte)
        if event == Event.KEY_CLOSE and has_key(arena, tables, wide(arena[tables.b + REC * frame]), word):
            return wide(REPEATED)
        if not is_recorded(arena, tables, frame):
            if event == Event.KEY_CLOSE:
                frame = with_element(arena, tables, frame, word)
            word = wide(NIL)
        return register(arena, tables, frame, TextMode.OUTSIDE, word)
    if is_space(byte):
        return seen
    if byte == QUOTE:
        if event == Event.KEY_OPEN and word == NIL:
            word = wide(EMPTY_WORD)
        return register(arena, tables, frame, inside, longer(arena, tables, word, byte))
    if not is_bracket_or_comma(byte):
        return seen if word == NIL else register(arena, tables, frame, TextMode.OUTSIDE, longer(arena, tables, word, byte))
    if byte == OPEN_BRACE or byte == OPEN_BRACKET:
        kind = wide(Kind.OBJECT if byte == OPEN_BRACE else Kind.UNIQUE if event == Event.ARRAY_OPEN else Kind.ARRAY)
        opened = intern_node(arena, tables, kind, frame, wide(NIL), longer(arena, tables, word, byte))
        return register(arena, tables, opened, TextMode.OUTSIDE, EMPTY_WORD if word != NIL or kind == Kind.UNIQUE else NIL)
    if is_recorded(arena, tables, frame) and word != EMPTY_WORD:
        if (event == Event.ITEM_CLOSE or event == Event.ARRAY_CLOSE) and has_item(
            arena, tables, wide(arena[tables.b + REC * frame]), word
        ):
            return wide(REPEATED)
        frame, word = with_element(arena, tables, frame, word), wide(EMPTY_WORD)
    if byte == COMMA:
        if arena[tables.kind + REC * frame] == Kind.UNIQUE and event != Event.ITEM_CLOSE:
            frame, word = no_longer_unique(arena, tables, frame, word)
        return register(arena, tables, frame, TextMode.OUTSIDE, word)
    value = CONTAINER + wide(arena[tables.b + REC * frame])
    return register(
        arena,
        tables,
        wide(arena[tables.a + REC * frame]),
        TextMode.OUTSIDE,
        longer(arena, tables, wide(arena[tables.c + REC * frame]), value),
    )


@inner
def no_longer_unique(arena, tables, frame, word):
    """(frame, word) of an array when no text that may still come asks whether its items differ."""
    parent, before = wide(arena[tables.a + REC * frame]), wide(arena[tables.c + REC * frame])
    if before == NIL:
        return intern_node(arena, tables, wide(Kind.ARRAY), parent, wide(NIL), before), wide(NIL)
    return intern_node(arena, tables, wide(Kind.ARRAY), parent, wide(arena[tables.b + REC * frame]), before), word


@inner
def begins(arena, tables, prefix, word):
    """Whether a word begins with another one, `prefix`. Prefixes are made first, so they have the smaller numbers."""
    while word > prefix:
        word = wide(arena[tables.a + REC * word])
    return word == prefix


@inner
def has_key(arena, tables, done, key):
    """Whether a list has an element that begins with a key (its quotes included)."""
    while done != NIL:
        if begins(arena, tables, key, wide(arena[tables.b + REC * done])):
            return True
        done = wide(arena[tables.a + REC * done])
    return False


@inner
def has_item(arena, tables, done, item):
    """Whether a list has an item."""
    while done != NIL:
        if arena[tables.b + REC * done] == item:
            return True
        done = wide(arena[tables.a + REC * done])
    return False


@inner
def with_element(arena, tables, frame, word):
    """A frame with one more element done: sorted into the set of an object, at the end of the list of an array."""
    kind, done = wide(arena[tables.kind + REC * frame]), wide(arena[tables.b + REC * frame])
    larger, rest = wide(0), done
    while kind == Kind.OBJECT and rest != NIL and arena[tables.b + REC * rest] > word:
        larger, rest = larger + 1, wide(arena[tables.a + REC * rest])
    moved = np.empty(larger, np.int64)
    for i in range(larger):
        moved[i], done = arena[tables.b + REC * done], wide(arena[tables.a + REC * done])
    rest = intern_node(arena, tables, wide(Kind.LIST), rest, word, wide(0))
    for i in range(larger - 1, -1, -1):
        rest = intern_node(arena, tables, wide(Kind.LIST), rest, moved[i], wide(0))
    return intern_node(arena, tables, kind, wide(arena[tables.a + REC * frame]), rest, wide(arena[tables.c + REC * frame]))


@entry
def empty_memory(arena_address):
    """The register before any text."""
    arena = words_at(arena_address)
    tables = layout(arena)
    return register(arena, tables, NIL, TextMode.OUTSIDE, NIL)
