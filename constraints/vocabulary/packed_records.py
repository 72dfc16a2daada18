"""What loops know of a vocabulary: records of the packed vocabulary (packed_vocabulary.py), and how they are read.

Loops take `vocab = vocab_at(address)`, which has a name for each part: `vocab.trie.nodes[i].skip` is a number of node i of the trie
of all tokens. A *place* is an offset in the array: the token at a place is `vocab.array[place]`, so tokens that lie beside
each other are a range of places.
"""

from __future__ import annotations

from ..base.ids import Place, TokenId
from ..numba_support.jit import inner
from ..numba_support.record_access import lay_out, part, view
from ..numba_support.records import Record, Records, View, Words, bits, several

SET_WORDS, ASCII_WORDS = 6, 4  # of a set of first bytes, and those of ASCII
NO_HEIGHT = 1 << 20  # more characters than any token has
ROOT = -1  # node of a trie
NO_PLACE = Place(0)
ROOT_TABLE = 1  # of children
FIRST_LEAD, FIRST_PRINTABLE, QUOTE = 0xC0, 0x20, 0x22


class TrieNode(Record, size=4):
    """See `TokenTrie`. There is one more node behind the last, where all ends."""

    byte: int = bits(8)
    table: int = bits(24, above=8)  # of children, 0 where there is none
    depth: int
    skip: int
    first: int


class Shape(Record, size=8):
    """Of what lies below a node; of the first byte of several: from before it on."""

    height: int  # the most characters begun, NO_HEIGHT when something is not UTF-8
    first_bytes: Words = several(SET_WORDS)  # of these characters: a bit for each of 0x00-0x7F and 0xC0-0xFF
    is_quoted: int  # 1 when a quotation mark has been read


class Trie(View):
    """Nodes are of bytes, or of groups of bytes (byte_classes.py)."""

    place: Place  # of this
    num_nodes: int
    nodes: Records[int, TrieNode]
    children: Words  # [tables, 256] 1 + node by byte, 0 where there is none; table 0 is no table
    order: int  # the place of the first token
    has_shapes: int
    shapes: Records[int, Shape]
    is_grouped: int
    group_ends: Words  # [256] where the group of a byte ends


class ClassTables(View):
    """The tables of a body class, see `BodyClass` in char_class_tables.py."""

    longest: int  # characters of the longest token
    last_slice: int
    slices: int  # their place: [last_slice + 1, words]
    residual: Trie
    has_exits: int  # 1 when there are tries of what leaves the class, see `Exits`
    exits: Trie
    rest: Trie
    num_exits: int
    by_prefix: int  # the place of the first of these tokens
    prefix: Words  # [num_exits]
    longest_outside: int
    num_long_tokens: int
    long_tokens: int  # the place of the first
    long_token_lengths: Words
    first_bytes: Words  # [SET_WORDS]


class Vocab(View):
    """What loops take as `vocab`."""

    array: Words  # all of it
    words: int  # uint32 words of a mask
    depth: int  # bytes of the longest token
    common_depth: int  # bytes that few tokens exceed
    spells: int  # 1 when every byte is a token
    eos: int  # the place of the first EOS id
    num_eos: int
    text_offsets: Words  # [V + 1] where the bytes of each token begin
    text: Words  # the bytes
    trie: Trie  # of all tokens
    grouped: Trie  # of all tokens, by groups of bytes
    quoted_once: Trie  # of the tokens with that many quotation marks or more: those that can open a key,
    quoted_twice: Trie  # end another one before,
    quoted_thrice: Trie  # and so on
    quoted_apart: Trie  # of those in which a key can end and, behind a value, another one begin
    separated: Trie  # of those with a quotation mark or a comma, in which a key or another item can begin
    listed: Trie  # of those with a bracket and a comma, in which an array can begin and have two items
    longer: Trie  # of the tokens that exceed `common_depth`
    controls: int  # the place of the first token with a control character and no quotation mark before it, which no JSON string has
    num_controls: int
    string: Place  # of the tables of the characters of JSON strings
    line: Place  # of those without line separators, which `.` does not match


lay_out(Trie)
lay_out(ClassTables)
vocab_at = view(Vocab)
_trie_in, _class_tables_in = part(Trie), part(ClassTables)


@inner
def trie_of(vocab: Vocab, place: Place) -> Trie:
    """The trie at a place."""
    return _trie_in(vocab.array + place)


@inner
def class_tables_of(vocab: Vocab, place: Place) -> ClassTables:
    """The tables of a body class at a place; they mean nothing at place 0."""
    return _class_tables_in(vocab.array + place)


@inner
def child_of(trie: Trie, node: int, byte: int) -> int:
    """The child of a node by a byte, -1 when there is none."""
    table = ROOT_TABLE if node < 0 else trie.nodes[node].table
    if table != 0:
        return trie.children[256 * table + byte] - 1
    child, end = node + 1, trie.nodes[node].skip
    while child < end:
        if trie.nodes[child].byte >= byte:
            return child if trie.nodes[child].byte == byte else -1
        child = trie.nodes[child].skip
    return -1


@inner
def ending_at(trie: Trie, node: int) -> tuple[int, int]:
    """The places (start, end) of the tokens that end at a node."""
    return trie.order + trie.nodes[node].first, trie.order + trie.nodes[node + 1].first


@inner
def below(trie: Trie, node: int) -> tuple[int, int]:
    """The places (start, end) of the tokens that end at a node or below it."""
    return trie.order + trie.nodes[node].first, trie.order + trie.nodes[trie.nodes[node].skip].first


@inner
def token_bytes(vocab: Vocab, token: TokenId) -> tuple[int, int]:
    """(start, end) of the bytes of a token in `vocab.text`."""
    return vocab.text_offsets[token], vocab.text_offsets[token + 1]


@inner
def is_inside(first_bytes: Words, of_class: Words, first: int) -> bool:
    """Whether characters, of which the first bytes are known, are of a class. of_class: the first bytes that begin no other
    characters. first: the word of the sets to begin at, 0; or 1 to leave out control characters, which are 32."""
    for k in range(first, SET_WORDS):
        if first_bytes[k] & ~of_class[k] != 0:
            return False
    return True


@inner
def is_ascii(shape: Shape) -> bool:
    """Whether everything below a trie node that is made of characters is ASCII. (The bits of ASCII fill the first words
    of the set.)"""
    for k in range(ASCII_WORDS, SET_WORDS):
        if shape.first_bytes[k] != 0:
            return False
    return True


@inner
def first_ascii(tables: ClassTables) -> int:
    """The first ASCII character of a body class, 0x80 when it has none."""
    first = 0
    while first < 0x80 and tables.first_bytes[first >> 5] == 0:
        first += 32
    while first < 0x80 and tables.first_bytes[first >> 5] >> (first & 31) & 1 == 0:
        first += 1
    return first
