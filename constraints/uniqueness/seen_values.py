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

from ..automaton.nodes import FAIL, intern_node
from ..automaton.tables import Tables, tables_at
from ..base.ids import NodeId, RegisterId
from ..base.kinds import Event, Kind
from ..numba_support.jit import entry, inner

NIL = NodeId(0)  # no frame, no word; the empty list
EMPTY_WORD = NodeId(1)  # the empty word
CONTAINER = 256  # symbols from here on are lists
NO_REGISTER = RegisterId(FAIL)
REPEATED = NO_REGISTER  # instead of a register
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
def register(m: Tables, frame: NodeId, mode: int, word: NodeId) -> RegisterId:
    """The REGISTER node of a frame, a mode and a word."""
    return RegisterId(intern_node(m, Kind.REGISTER, frame, mode, word))


@inner
def longer(m: Tables, word: NodeId, symbol: int) -> NodeId:
    """A word and one more symbol; NIL where nothing is recorded."""
    return NIL if word == NIL else intern_node(m, Kind.WORD, word, symbol, 0)


@inner
def is_space(byte: int) -> bool:
    """Whether a byte is white space of JSON."""
    return byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09


@inner
def is_bracket_or_comma(byte: int) -> bool:
    return byte == COMMA or byte | 0x20 == OPEN_BRACE or byte | 0x20 == CLOSE_BRACE  # [ and { differ in one bit


@inner
def is_recorded(m: Tables, frame: NodeId) -> bool:
    """Whether all text in a frame is recorded, not just keys."""
    return m.nodes[frame].kind == Kind.UNIQUE or m.nodes[frame].c != NIL


@inner
def is_in_key(mode: int) -> bool:
    return mode == TextMode.IN_KEY or mode == TextMode.KEY_ESCAPE


@inner
def mode_after(mode: int, byte: int, event: int) -> int:
    """The mode behind a byte with an event."""
    if mode == TextMode.OUTSIDE:
        return TextMode.OUTSIDE if byte != QUOTE else TextMode.IN_KEY if event == Event.KEY_OPEN else TextMode.IN_STRING
    if mode == TextMode.ESCAPE or mode == TextMode.KEY_ESCAPE:
        return TextMode.IN_STRING if mode == TextMode.ESCAPE else TextMode.IN_KEY
    if byte == BACKSLASH:
        return TextMode.ESCAPE if mode == TextMode.IN_STRING else TextMode.KEY_ESCAPE
    return TextMode.OUTSIDE if byte == QUOTE else mode


@inner
def seen_after(m: Tables, seen: RegisterId, byte: int, event: int) -> RegisterId:
    """The register behind a byte with an event; REPEATED when the byte ends a key or an item that is there already, and on
    a fault."""
    frame, mode, word = m.nodes[seen].a, m.nodes[seen].b, m.nodes[seen].c
    inside = mode_after(mode, byte, event)
    if mode != TextMode.OUTSIDE and inside != TextMode.OUTSIDE:
        return seen if inside == mode and word == NIL else register(m, frame, inside, longer(m, word, byte))
    if mode != TextMode.OUTSIDE:
        word = longer(m, word, byte)
        if event == Event.KEY_CLOSE and has_key(m, m.nodes[frame].b, word):
            return REPEATED
        if not is_recorded(m, frame):
            if event == Event.KEY_CLOSE:
                frame = with_element(m, frame, word)
            word = NIL
        return register(m, frame, TextMode.OUTSIDE, word)
    if is_space(byte):
        return seen
    if byte == QUOTE:
        if event == Event.KEY_OPEN and word == NIL:
            word = EMPTY_WORD
        return register(m, frame, inside, longer(m, word, byte))
    if not is_bracket_or_comma(byte):
        return seen if word == NIL else register(m, frame, TextMode.OUTSIDE, longer(m, word, byte))
    if byte == OPEN_BRACE or byte == OPEN_BRACKET:
        kind = Kind.OBJECT if byte == OPEN_BRACE else Kind.UNIQUE if event == Event.ARRAY_OPEN else Kind.ARRAY
        opened = intern_node(m, kind, frame, NIL, longer(m, word, byte))
        return register(m, opened, TextMode.OUTSIDE, EMPTY_WORD if word != NIL or kind == Kind.UNIQUE else NIL)
    if is_recorded(m, frame) and word != EMPTY_WORD:
        if (event == Event.ITEM_CLOSE or event == Event.ARRAY_CLOSE) and has_item(m, m.nodes[frame].b, word):
            return REPEATED
        frame, word = with_element(m, frame, word), EMPTY_WORD
    if byte == COMMA:
        if m.nodes[frame].kind == Kind.UNIQUE and event != Event.ITEM_CLOSE:
            frame, word = no_longer_unique(m, frame, word)
        return register(m, frame, TextMode.OUTSIDE, word)
    value = CONTAINER + m.nodes[frame].b
    return register(m, m.nodes[frame].a, TextMode.OUTSIDE, longer(m, m.nodes[frame].c, value))


@inner
def no_longer_unique(m: Tables, frame: NodeId, word: NodeId) -> tuple[NodeId, NodeId]:
    """(frame, word) of an array when no text that may still come asks whether its items differ."""
    parent, before = m.nodes[frame].a, m.nodes[frame].c
    if before == NIL:
        return intern_node(m, Kind.ARRAY, parent, NIL, before), NIL
    return intern_node(m, Kind.ARRAY, parent, m.nodes[frame].b, before), word


@inner
def begins(m: Tables, prefix: NodeId, word: NodeId) -> bool:
    """Whether a word begins with another one, `prefix`. Prefixes are made first, so they have the smaller numbers."""
    while word > prefix:
        word = m.nodes[word].a
    return word == prefix


@inner
def has_key(m: Tables, done: NodeId, key: NodeId) -> bool:
    """Whether a list has an element that begins with a key (its quotes included)."""
    while done != NIL:
        if begins(m, key, m.nodes[done].b):
            return True
        done = m.nodes[done].a
    return False


@inner
def has_item(m: Tables, done: NodeId, item: NodeId) -> bool:
    """Whether a list has an item."""
    while done != NIL:
        if m.nodes[done].b == item:
            return True
        done = m.nodes[done].a
    return False


@inner
def with_element(m: Tables, frame: NodeId, word: NodeId) -> NodeId:
    """A frame with one more element done: sorted into the set of an object, at the end of the list of an array."""
    kind, done = m.nodes[frame].kind, m.nodes[frame].b
    larger, rest = 0, done
    while kind == Kind.OBJECT and rest != NIL and m.nodes[rest].b > word:
        larger, rest = larger + 1, m.nodes[rest].a
    moved = np.empty(larger, np.int64)
    for i in range(larger):
        moved[i], done = m.nodes[done].b, m.nodes[done].a
    rest = intern_node(m, Kind.LIST, rest, word, 0)
    for i in range(larger - 1, -1, -1):
        rest = intern_node(m, Kind.LIST, rest, moved[i], 0)
    return intern_node(m, kind, m.nodes[frame].a, rest, m.nodes[frame].c)


@entry
def empty_memory(arena_address: int) -> NodeId:
    """The register before any text."""
    m = tables_at(arena_address)
    return register(m, NIL, TextMode.OUTSIDE, NIL)
