from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maskwright.engine.requests.detokenizer import Detokenizer


@given(st.lists(st.one_of(st.text(max_size=4).map(str.encode), st.binary(max_size=3), st.none()), max_size=12))
def test_pieces_join_to_the_decoded_bytes(tokens: list[bytes | None]):
    detokenizer = Detokenizer(tokens)
    pieces = [detokenizer.feed(token_id) for token_id in range(len(tokens))] + [detokenizer.flush()]
    assert "".join(pieces) == b"".join(token or b"" for token in tokens).decode("utf-8", errors="replace")


@given(st.text(min_size=1))
def test_a_split_character_appears_whole_with_its_last_byte(text: str):
    data = text.encode()
    detokenizer = Detokenizer([bytes([byte]) for byte in data])
    shown = ""
    for place in range(len(data)):
        shown += detokenizer.feed(place)
        assert text.startswith(shown)
    assert shown == text and detokenizer.flush() == ""
