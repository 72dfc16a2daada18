"""Groups of bytes that automata mostly read alike: letters, digits, parts of characters beyond ASCII; and the trie by
groups.

Where a state goes the same way on all small letters, thousands of tokens differ in nothing. When each byte is replaced
by the first of its group, the 266,000 nodes of the trie of a vocabulary of 131,072 tokens become 14,500, and only 70 of
them are of letters and digits. A walk of that trie asks whether a state reads a group alike, and looks at the tokens
below one by one where it does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .byte_order import sorted_ids
from .trie import TokenTrie

LOWER, UPPER = ord("a"), ord("A")
# First byte and end of every group of several. Those from 0x80 on keep apart what UTF-8 does not allow behind some first bytes
# (RFC 3629, section 4). C2, E1 to E3 and EF begin the white space and the controls beyond ASCII, which many classes leave out.
GROUP_RANGES = (
    (ord("0"), ord("9") + 1), (UPPER, ord("Z") + 1), (LOWER, ord("z") + 1),
    (0x80, 0x90), (0x90, 0xA0), (0xA0, 0xC0), (0xC3, 0xE0), (0xE4, 0xED), (0xF1, 0xF4),
)  # fmt: skip


def _group_ends() -> NDArray[np.int32]:
    ends = np.arange(1, 257, dtype=np.int32)
    for first, end in GROUP_RANGES:
        ends[first:end] = end
    return ends


GROUP_ENDS = _group_ends()  # [256] where the group of a byte ends
_FIRST_OF_GROUP = np.array(
    [next((first for first, end in GROUP_RANGES if first <= byte < end), byte) for byte in range(256)], np.uint8
)


def grouped(trie: TokenTrie) -> TokenTrie:
    """The trie of a vocabulary's tokens with each byte replaced by the first of its group. Token ids and bytes stay as
    they are."""
    text = _FIRST_OF_GROUP[trie.token_bytes]
    return TokenTrie.of_spellings(sorted_ids(np.sort(trie.order), trie.token_offsets, text), trie.token_offsets, text)
