"""The tokenizer of the embedded model: a small byte-level BPE under which copying is easy.

A word is spelled by the same tokens wherever it stands: spaces are tokens of their own, so `Ada` after a space and `Ada` after a quote are
one and the same; digits and punctuation stand alone, except the three pairs that JSON keeps repeating (`{"`, `":` and `,"`). All 256 bytes
are tokens, so every text can be written.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import words
from data import examples
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from values import Split

PAD, SYSTEM, USER, ASSISTANT, END = SPECIAL_TOKENS = ("<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")

PIECES = r"""\{"|":|,"|\p{L}+|\p{N}|\s|[^\s\p{L}\p{N}]"""

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{ raise_exception('the embedded model knows the roles system, user and assistant, not ' + message['role']) }}"
    "{%- endif -%}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{%- if message['role'] == 'assistant' -%}{{ '<|end|>' }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)


def train_tokenizer(vocab_size: int, num_examples: int = 40_000, seed: int = 0, split: Split = "train") -> Tokenizer:
    """A tokenizer fitted to the corpus and to a list of common English words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PIECES), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    corpus = itertools.islice(examples(seed, split), num_examples)
    texts = (text for each in corpus for text in (*(message["content"] for message in each.messages), each.answer))
    common = (" ".join(words.COMMON_WORDS) for _ in range(60))
    tokenizer.train_from_iterator(itertools.chain(texts, common), trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write what transformers' `AutoTokenizer` loads."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "model_max_length": 2048,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
