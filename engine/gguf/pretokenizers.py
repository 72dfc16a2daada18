"""How byte-level tokenizers cut a text into words before merging: the regular expressions behind "tokenizer.ggml.pre".

They are those of llama.cpp, which names them, and of the models' own tokenizer.json where the two differ: tekken's and GPT-4o's,
to which llama.cpp only comes near for letters outside ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    patterns: tuple[
        str, ...
    ]  # each cuts what those before have left in one piece; what it does not match is a piece as well
    ignores_merges: bool = False  # a word that is a token is one, whatever merging would give
    adds_bos: bool = False  # unless the file says otherwise


_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _SPACES
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _SPACES
_QWEN35 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + _SPACES
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s"
_TEKKEN = _CASED % ("", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _SPACES
_GPT4O = _CASED % (f"{_CONTRACTIONS}?", f"{_CONTRACTIONS}?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _SPACES
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    + _SPACES
)
_CJK, _CJK_AND_KANA = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"

_WORDS = PreTokenizer((_GPT2,))
_DIGITS_APART = PreTokenizer((r"\p{N}", _GPT2))
_LIKE_QWEN2 = PreTokenizer((_QWEN2,))
_LIKE_LLAMA3 = PreTokenizer((_LLAMA3,), ignores_merges=True, adds_bos=True)
DEFAULT = "default"  # where a file names none

PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    DEFAULT: PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "lfm2"), _LIKE_LLAMA3),
    **dict.fromkeys(("smaug-bpe", "dbrx", "glm4", "chatglm-bpe"), PreTokenizer((_LLAMA3,))),
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "mellum", "exaone4", "trillion"), _WORDS),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"), _DIGITS_APART),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "grok-2"), _LIKE_QWEN2),
    "qwen35": PreTokenizer((_QWEN35,)),
    "tekken": PreTokenizer((_TEKKEN,), ignores_merges=True, adds_bos=True),
    **dict.fromkeys(("gpt-4o", "llama4", "minimax-m2"), PreTokenizer((_GPT4O,))),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense"), PreTokenizer((r"\p{N}{1,3}", _CJK_AND_KANA, _DEEPSEEK3))),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
}
