"""llama.cpp as a measure: the wheel `xllamacpp`, which is no dependency, runs its server inside of this process."""

from __future__ import annotations

import http.client
import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MISSING = "llama.cpp (the wheel xllamacpp) is not installed: `make real` fetches it"


class LlamaCpp:
    """A model that llama.cpp runs: with a cache in float32, as has what it is compared with, and without attention that rounds to
    float16; or as it would by itself. (Without that attention it says something else of the trained model than transformers.)"""

    def __init__(self, path: Path, context: int = 512, *, by_itself: bool = False) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path, params.n_ctx, params.n_parallel, params.cpuparams.n_threads = str(path), context, 1, 1
        params.verbosity = -1
        if not by_itself:
            params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._server = xllamacpp.Server(params)
        self._connection = http.client.HTTPConnection(urlsplit(self._server.listening_address).netloc)

    def post(self, path: str, body: Any) -> Any:
        self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(self._connection.getresponse().read())

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        del self._server

    def tokenize(self, text: str) -> list[int]:
        found: list[int] = self.post("/tokenize", {"content": text, "add_special": True, "parse_special": True})[
            "tokens"
        ]
        return found

    def greedy(self, prompt: list[int], max_tokens: int) -> list[tuple[int, dict[int, float]]]:
        """(chosen token, log probabilities of the best five) until the model ends its turn, which is a step too."""
        body = {
            "prompt": prompt,
            "n_predict": max_tokens,
            "temperature": 0,
            "top_k": 1,
            "n_probs": 5,
            "cache_prompt": False,
        }
        self._connection.close()  # the server does not wait for long between requests; the next one opens it again
        steps = self.post("/completion", body)["completion_probabilities"]
        return [(step["id"], {entry["id"]: entry["logprob"] for entry in step["top_logprobs"]}) for step in steps]


WORDS = ["hello", "World", "don't", "we'll", "It's", "12345", "3.14159", "x2", "naïve", "Straße", "Ελλάδα", "Привет", "мир", "नमस्ते", "สวัสดี", "你好世界", "こんにちは", "안녕하세요", "عربي", "עברית", "😀", "👩\u200d👩\u200d👧", "🇩🇪", "é", "Å", "ﬁ", "½", "²", "٣", "５", "€100", "C++", "foo_bar()", "{}[]<>|\\", "https://a.b/c?d=e#f", "...", "—", "“quoted”", "\xa0", "\u2003", "\u200b", "\u3000", "\ufeff", "CamelCaseWORD", "IOError", "SÉRIEux", "'S", "'LL", "İ", "ǅ"]
SPACES = (
    " ",
    " ",
    " ",
    "",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    " \n",
    "\n  ",
    " \t ",
    "\x0b",
    "\x1f",
    "\x00\x01",
    "\x85",
)


def random_text(seed: int, special: tuple[str, ...] = ()) -> str:
    """Words of many scripts, odd spaces, special tokens, and characters from anywhere in Unicode that is assigned."""
    chance = random.Random(seed)
    parts = []
    for _ in range(chance.randrange(1, 12)):
        kind = chance.random()
        if kind < 0.6:
            parts.append(chance.choice(WORDS))
        elif kind < 0.7 and special:
            parts.append(chance.choice(special))
        elif kind < 0.85:
            parts.append("".join(chr(chance.randrange(33, 127)) for _ in range(chance.randrange(1, 6))))
        else:
            block = chance.choice(
                (0xA1, 0x370, 0x400, 0x5D0, 0x900, 0xE01, 0x1E00, 0x2010, 0x2190, 0x3041, 0x4E00, 0xAC00, 0x1F300)
            )
            parts.append("".join(chr(block + chance.randrange(60)) for _ in range(chance.randrange(1, 4))))
        parts.append(chance.choice(SPACES))
    return "".join(parts)
