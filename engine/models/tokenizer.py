"""The tokenizer of a model folder: text and conversations to token ids, and the vocabulary of the way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...constraints.vocabulary.vocabulary import Vocabulary
from ...foundation.deadline import stopped_after
from ..errors import ModelFolderError, RequestError, UnsupportedModel
from ..gguf.files import is_gguf, open_gguf
from ..gguf.sentencepiece import SentencePieces, build, read_sentence_pieces
from ..gguf.tokenizer import add_tokens, gguf_tokenizer, put_around
from .architecture import ModelInfo
from .chat_templates import built_in_template
from .families import token_ids
from .files import read_json

_HERE = "\u2060[[the reply goes on here]]\u2060"  # marks the end of a message in a rendered conversation
TEMPLATE_SECONDS, TEMPLATE_CHARACTERS = 10.0, 1 << 26  # what a chat template, which is a program of a stranger, may take
_GENERIC_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")  # tokenizer.json says everything


class Tokenizer:
    """Wraps transformers' fast tokenizer. `vocabulary` names all end-of-text ids and fits the model's head."""

    def __init__(self, backend: Any, vocabulary: Vocabulary) -> None:
        self._backend, self.vocabulary = backend, vocabulary

    @property
    def has_chat_template(self) -> bool:
        return self._backend.chat_template is not None

    @property
    def chat_template(self) -> str:
        """The model's chat template, "" if there is none. Of several the one for tools."""
        template = self._backend.chat_template
        if isinstance(template, dict):
            template = template.get("tool_use", template.get("default"))
        return template or ""

    @property
    def bos_token(self) -> str:
        """The token that begins a text, "" if there is none."""
        return self._backend.bos_token or ""

    @property
    def eos_token(self) -> str:
        """The token that ends a text, "" if there is none."""
        return self._backend.eos_token or ""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Token ids of a prompt, with the special tokens (BOS, ...) that the tokenizer puts around a text.

        Raises `RequestError` for what is no text, and for half of a surrogate pair, as Python reads bytes of a terminal that are no
        UTF-8.
        """
        if not isinstance(text, str):
            raise RequestError(f"a text is a str, not {type(text).__name__}").about("prompt")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"U+{ord(text[error.start]):04X}"
            raise RequestError(f"the prompt is not Unicode: {half} in it is half of a surrogate pair").about("prompt") from None
        quiet = {"verbose": False}  # about length: admission judges that by the engine's own limit
        return tuple(self._backend.encode(text, add_special_tokens=add_special_tokens, **quiet))

    def specification(self) -> dict[str, Any]:
        """What its tokenizer.json says, or would say."""
        read: dict[str, Any] = json.loads(self._backend.backend_tokenizer.to_str())
        return read

    def word_starts(self, text: str) -> list[int]:
        """The places in a text where the words begin that are tokenised one by one."""
        return [start for _, (start, _) in self._backend.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)]

    def __call__(self, text: str | Sequence[str], **options: Any) -> Any:
        """What transformers' tokenizer makes of a text or several: "input_ids", "attention_mask" and what its options ask for."""
        return self._backend(text, **options)

    def decode(self, token_ids: int | Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of token ids, as transformers' tokenizer writes it; spaces are left as they are.

        Raises RequestError for an id that the vocabulary does not have.
        """
        ids = [token_ids] if isinstance(token_ids, int) else [int(token_id) for token_id in token_ids]
        wrong = next((token_id for token_id in ids if not 0 <= token_id < self.vocabulary.size), None)
        if wrong is not None:
            raise RequestError(f"there is no token {wrong}; the vocabulary has the ids 0 to {self.vocabulary.size - 1}")
        tidy = {"clean_up_tokenization_spaces": False}
        return str(self._backend.decode(ids, skip_special_tokens=skip_special_tokens, **tidy))

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        is_begun: bool = False,
        **variables: Any,
    ) -> tuple[int, ...]:
        """Token ids of a conversation up to where the assistant's turn begins, by the model's chat template.

        is_begun: the last message is that turn, as far as it has been written; then up to the end of its text.
        `variables` are handed to the template. Raises RequestError when there is no template or it rejects the messages.
        """
        return self.encode(self.render_chat(messages, tools=tools, is_begun=is_begun, **variables), add_special_tokens=False)

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        is_begun: bool = False,
        **variables: Any,
    ) -> str:
        """The text that `encode_chat` encodes."""
        if not is_begun:
            return self._rendered(messages, tools, variables, add_generation_prompt=True)
        begun = messages[-1]["content"]
        marked = [*messages[:-1], {**messages[-1], "content": begun + _HERE}]
        text, _, _ = self._rendered(marked, tools, variables, add_generation_prompt=False).rpartition(_HERE)
        if not text.endswith(begun.lstrip()):
            raise RequestError("the model's chat template does not write the last message as it is: it cannot be continued")
        return text

    def _rendered(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        variables: Mapping[str, Any],
        *,
        add_generation_prompt: bool,
    ) -> str:
        if not self.has_chat_template and not variables.get("chat_template"):
            raise RequestError("this model has no chat template; give a plain prompt instead of messages")
        try:
            with stopped_after(TEMPLATE_SECONDS, "<template>"):  # what jinja calls a template that is no file
                rendered: str = self._backend.apply_chat_template(
                    [dict(message) for message in messages],
                    tools=None if tools is None else [dict(tool) for tool in tools],
                    tokenize=False,
                    add_generation_prompt=add_generation_prompt,
                    **variables,
                )
            if len(rendered) > TEMPLATE_CHARACTERS:
                raise ValueError(f"it writes {len(rendered)} characters, and {TEMPLATE_CHARACTERS} are allowed")
        except Exception as error:  # templates raise whatever jinja makes of them
            raise RequestError(f"the model's chat template rejects these messages: {error}") from error
        return rendered


def load_tokenizer(folder: Path, spec: ModelInfo) -> Tokenizer:
    """The tokenizer in `folder`, or in a GGUF file, its vocabulary cut or kept to what the model's head can produce.

    Raises ModelFolderError when there is none, UnsupportedModel when its tokens have no bytes of their own.
    """
    is_file = is_gguf(folder)
    backend = gguf_tokenizer(open_gguf(folder)) if is_file else load_backend(folder)
    eos = sorted({*token_ids(backend.eos_token_id), *(spec.eos_token_ids if is_file else end_ids(folder, spec))})
    if backend.chat_template is None:
        backend.chat_template = built_in_template(folder, backend.get_vocab())
    return Tokenizer(backend, _vocabulary(folder, backend, eos, spec.vocab_size))


def load_backend(folder: Path) -> Any:
    """transformers' fast tokenizer of a folder. Raises ModelFolderError where there is none."""
    if not (folder / "tokenizer.json").is_file() and not (folder / "tokenizer.model").is_file():
        raise ModelFolderError(f"{folder}: no tokenizer.json in this folder, nor a tokenizer.model; copy one from the model")
    pieces = None if (folder / "tokenizer.json").is_file() else read_sentence_pieces(folder / "tokenizer.model")
    try:
        if pieces is not None:
            return _of_pieces(folder, pieces)
        return _tokenizer_class(folder).from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # anything from a JSON error to a missing class
        raise ModelFolderError(f"{folder}: the tokenizer cannot be loaded: {_reason(error)}") from error


def _of_pieces(folder: Path, pieces: SentencePieces) -> Any:
    """The tokenizer of a folder with nothing but a SentencePiece model, and perhaps a tokenizer_config.json."""
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    path, template = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    config = read_json(path) if path.exists() else {}
    backend = build(pieces)
    add_tokens(backend, pieces.texts, pieces.types)
    added = sorted((int(number), token) for number, token in (config.get("added_tokens_decoder") or {}).items())
    backend.add_tokens([AddedToken(**token) for number, token in added if number >= len(pieces.texts)])
    names = {name: config.get(f"{name}_token") or pieces.text_of(name) for name in ("bos", "eos", "unk", "pad")}
    texts = {name: text["content"] if isinstance(text, dict) else text for name, text in names.items()}
    around = [texts[name] if config.get(f"add_{name}_token", name == "bos") else None for name in ("bos", "eos")]
    put_around(backend, *(None if text is None else (text, backend.token_to_id(text)) for text in around))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        chat_template=template.read_text(encoding="utf-8") if template.is_file() else config.get("chat_template"),
        clean_up_tokenization_spaces=False,
        **{f"{name}_token": text for name, text in texts.items() if text is not None},
    )


def _tokenizer_class(folder: Path) -> Any:
    """AutoTokenizer, or at once the class it would end up with: finding that out takes it two seconds.

    transformers is imported here, not above, so that only who loads a model waits for it.
    """
    path = folder / "tokenizer_config.json"
    names_generic = path.exists() and read_json(path).get("tokenizer_class") in _GENERIC_CLASSES
    if names_generic and (folder / "tokenizer.json").is_file():
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast
    from transformers import AutoTokenizer

    return AutoTokenizer


def end_ids(folder: Path, spec: ModelInfo) -> tuple[int, ...]:
    """End-of-text ids of generation_config.json, where it exists, and of config.json."""
    path = folder / "generation_config.json"
    generation = read_json(path) if path.exists() else {}
    try:
        return token_ids(generation.get("eos_token_id"), str(path)) + spec.eos_token_ids
    except UnsupportedModel as error:
        raise ModelFolderError(str(error)) from None


def _vocabulary(folder: Path, backend: Any, eos: list[int], head_width: int) -> Vocabulary:
    """V is the tokenizer's own size; where the head is narrower, special tokens beyond it are left out."""
    try:
        eos = [token_id for token_id in eos if token_id < head_width]
        size = 1 + max([*backend.get_vocab().values(), *eos])
        return Vocabulary.from_tokenizer(backend, eos_token_ids=eos, size=min(size, head_width))
    except ValueError as error:
        raise UnsupportedModel(f"{folder}: {_one_line(error)}") from error


def _reason(error: Exception) -> str:
    """What an error says, behind its kind where that is no sentence."""
    return f"{type(error).__name__}: {_one_line(error)}" if isinstance(error, LookupError) else _one_line(error)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
