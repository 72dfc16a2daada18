"""Chat templates for models whose folder or file has none, chosen by the tokens that only one kind of conversation uses."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

logger = logging.getLogger(__name__)

_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role + '\n' + message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_GEMMA = (
    "{{ bos_token }}{% set system = messages[0].content + '\n\n' if messages[0].role == 'system' else '' %}"
    "{% for message in messages if message.role != 'system' %}"
    "<start_of_turn>{{ 'model' if message.role == 'assistant' else 'user' }}\n"
    "{{ system if loop.first else '' }}{{ message.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
_DEEPSEEK = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'assistant' %}"
    "<｜Assistant｜>{{ message.content }}<｜end▁of▁sentence｜>"
    "{% else %}{{ '<｜User｜>' if message.role == 'user' else '' }}{{ message.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<｜Assistant｜>{% endif %}"
)
_MISTRAL = (
    "{{ bos_token }}{% set system = messages[0].content + '\n\n' if messages[0].role == 'system' else '' %}"
    "{% for message in messages if message.role != 'system' %}"
    "{% if message.role == 'assistant' %} {{ message.content }}{{ eos_token }}"
    "{% else %}[INST] {{ system if loop.first else '' }}{{ message.content }}[/INST]{% endif %}{% endfor %}"
)
_BY_TOKEN = {  # a token of the vocabulary -> (whose conversations have it, the template)
    "<|im_start|>": ("ChatML", _CHATML),
    "<|start_header_id|>": ("Llama 3", _LLAMA3),
    "<start_of_turn>": ("Gemma", _GEMMA),
    "<｜Assistant｜>": ("DeepSeek", _DEEPSEEK),
    "[INST]": ("Mistral", _MISTRAL),
}


def built_in_template(path: Path, tokens: Collection[str]) -> str | None:
    """The template for a vocabulary, None where its tokens tell of no conversations. What is taken is told."""
    for token, (family, template) in _BY_TOKEN.items():
        if token in tokens:
            logger.warning("%s has no chat template; because of its token %s, that of %s is used", path, token, family)
            return template
    return None
