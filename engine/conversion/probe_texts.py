"""Texts by which two tokenizers are told apart: words of many scripts, odd spaces, digits and signs, put together at random."""

from __future__ import annotations

import random
from functools import cache

_WORDS = (
    "hello", "World", "don't", "we'll", "It's", "I'VE", "'s", "'LL", "12345", "3.14159", "x2", "7", "1000000",
    "naïve", "Straße", "Ελλάδα", "Привет", "мир", "नमस्ते", "สวัสดี", "你好世界", "中文,标点。", "こんにちは",
    "カタカナ", "안녕하세요", "عربي", "עברית", "😀", "🇩🇪", "é", "½", "²", "٣", "\uff15", "€100", "C++",
    "foo_bar()", "{}[]<>|\\", "https://a.b/c?d=e#f", "...", "—", "“quoted”", "$x+=1;", "#include", "a/b//c",
    "/*", "~!@#%^&*()", "CamelCaseWORD", "IOError", "camelCase", "SÉRIEUX", "ÀÉx", "!important", ".5", "-1",
    "=>", "q", "Z",
)  # fmt: skip
_SPACES = (" ", " ", " ", "", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n  ", " \t ", "\x0b", "\xa0", "\u3000")


@cache
def probe_texts(count: int = 300) -> tuple[str, ...]:
    """The same ones every time."""
    chance = random.Random(0)
    texts = [*_WORDS, *(f"{space}a{space}" for space in _SPACES)]
    for _ in range(count):
        pairs = ((chance.choice(_WORDS), chance.choice(_SPACES)) for _ in range(chance.randrange(1, 9)))
        texts.append("".join(word + space for word, space in pairs))
    return tuple(texts)
