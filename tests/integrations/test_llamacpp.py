"""Our logits processor as llama-cpp-python calls it: from C, with rows of its buffer and a field of its candidates."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Regex, Vocabulary
from maskwright.errors import OutputError, UsageError
from maskwright.integrations.llamacpp import ConstraintProcessor, constrain, vocabulary_of

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"], "additionalProperties": False}
CANDIDATE = np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)], align=True)  # llama_token_data


class Llama:
    """What of `llama_cpp.Llama` (0.3.36) processors meet: the loop of `generate`, and the callback of its sampler, which loses
    exceptions as ctypes does."""

    def __init__(self, size: int, seed: int = 0, draft_model: Callable[[Any], list[int]] | None = None) -> None:
        self.input_ids, self.n_tokens, self.draft_model = np.zeros(512, np.intc), 0, draft_model
        self._size, self._random = size, np.random.default_rng(seed)
        self.lost: list[BaseException] = []

    def n_vocab(self) -> int:
        return self._size

    def _sample(self, processors: Any) -> int:
        candidates = np.zeros(self._size, CANDIDATE).view(np.recarray)
        candidates.logit[:] = self._random.normal(size=self._size)
        try:
            for processor in processors or ():
                candidates.logit[:] = processor(self.input_ids[: self.n_tokens], candidates.logit)
        except Exception as error:
            self.lost.append(error)
        return int(np.argmax(candidates.logit))

    def generate(self, prompt: list[int], processors: Any, ends: set[int], max_tokens: int, logit_bias: Any = None) -> Iterator[int]:
        if logit_bias is not None:
            processors = processors.extend([logit_bias])  # as the release does, whose list returns None
        tokens, self.n_tokens = list(prompt), 0
        sample_at = len(prompt) - 1
        count = 0
        while True:
            self.input_ids[self.n_tokens : self.n_tokens + len(tokens)] = tokens
            self.n_tokens += len(tokens)
            while sample_at < self.n_tokens:
                token = self._sample(processors)
                sample_at += 1
                count += 1
                if token in ends or count > max_tokens:
                    return
                yield token
                tokens = [token]
                if sample_at < self.n_tokens and token != self.input_ids[sample_at]:
                    self.n_tokens = sample_at
                    break
            if self.draft_model is not None:
                tokens += self.draft_model(tokens)


def text_of(vocabulary: Vocabulary, tokens: list[int]) -> bytes:
    return b"".join(vocabulary.text_tokens[i] or b"" for i in tokens if i < vocabulary.size)


@pytest.fixture(scope="module")
def schema(compiler: Compiler) -> Constraint:
    return compiler.compile(JsonSchema(SCHEMA))


@pytest.mark.parametrize("max_tokens", [14, 40])
def test_completions_are_complete(max_tokens: int, schema: Constraint) -> None:
    vocabulary = schema.vocabulary
    for seed in range(12):
        llama = Llama(vocabulary.size, seed)
        processors = constrain(llama, schema, max_tokens=max_tokens)
        tokens = list(llama.generate([65, 66, 67], processors, set(vocabulary.eos_token_ids), max_tokens))
        assert schema.accepts(text_of(vocabulary, tokens)) and not llama.lost
        processors.check()
        processors.check(text_of(vocabulary, tokens).decode())


def test_a_completion_that_was_cut_is_told(schema: Constraint) -> None:
    llama = Llama(schema.vocabulary.size)
    processors = constrain(llama, schema)
    with pytest.raises(OutputError, match="never called"):
        processors.check()
    list(llama.generate([65], processors, set(schema.vocabulary.eos_token_ids), 3))
    with pytest.raises(OutputError, match="before it was complete"):
        processors.check()


def test_a_completion_that_was_cut_behind_a_possible_end_is_told_by_its_text(compiler: Compiler) -> None:
    constraint = compiler.compile(Regex("a|abc"))
    processors = constrain(Llama(constraint.vocabulary.size), constraint)
    for row in ([65], [65, ord("a")]):
        processors(np.array(row, np.intc), np.zeros(constraint.vocabulary.size, np.single))
    processors.check("a")
    with pytest.raises(OutputError, match="before it was complete"):
        processors.check("ab")


def test_a_logit_bias_does_not_leave_the_constraint_out(schema: Constraint) -> None:
    vocabulary, biased = schema.vocabulary, []

    def bias(input_ids: Any, scores: Any) -> Any:
        biased.append(len(input_ids))
        scores = np.copy(scores)
        scores[ord("z")] += 100
        return scores

    llama = Llama(vocabulary.size)
    processors = constrain(llama, schema, max_tokens=40)
    text = text_of(vocabulary, list(llama.generate([65], processors, set(vocabulary.eos_token_ids), 40, bias)))
    assert schema.accepts(text) and biased and b"zzz" in text


@pytest.mark.parametrize("guess", [[49], [49, 50, 51]])
def test_guesses_ahead_end_the_completion_and_are_told(guess: list[int], schema: Constraint) -> None:
    vocabulary = schema.vocabulary
    llama = Llama(vocabulary.size, 0, draft_model=lambda tokens: guess)
    with pytest.raises(UsageError, match="draft_model"):
        constrain(llama, schema)
    processor = ConstraintProcessor(schema)
    tokens = list(llama.generate([65], [processor], set(vocabulary.eos_token_ids), 40))
    assert len(tokens) <= 2 and not llama.lost
    with pytest.raises(UsageError, match="draft_model"):
        processor.check()


def test_a_processor_is_for_one_completion(schema: Constraint) -> None:
    vocabulary = schema.vocabulary
    llama, processor = Llama(vocabulary.size), ConstraintProcessor(schema, max_tokens=40)
    ends = set(vocabulary.eos_token_ids)
    list(llama.generate([65], [processor], ends, 40))
    processor.check()
    assert list(llama.generate([65], [processor], ends, 40)) == []
    with pytest.raises(UsageError, match="a processor for each completion"):
        processor.check()


def test_a_token_that_another_processor_forced_is_told(compiler: Compiler) -> None:
    constraint = compiler.compile(Regex("[a-y]{3}"))
    llama, processor = Llama(constraint.vocabulary.size), ConstraintProcessor(constraint)
    list(llama.generate([65], [processor, lambda ids, scores: np.where(np.arange(len(scores)) == ord("z"), 0, -np.inf)], set(constraint.vocabulary.eos_token_ids), 2))
    with pytest.raises(UsageError, match="against the mask"):
        processor.check()


def test_what_does_not_fit_is_refused(schema: Constraint) -> None:
    with pytest.raises(UsageError, match="vocabulary_of"):
        constrain(Llama(schema.vocabulary.size + 1), schema)
    with pytest.raises(UsageError, match="shortest output"):
        constrain(Llama(schema.vocabulary.size), schema, max_tokens=2)
    with pytest.raises(UsageError, match="no EOS"):
        ConstraintProcessor(Compiler(Vocabulary([b"a"])).compile(Regex("a")))


def test_the_vocabulary_of_a_file(tmp_path: Path) -> None:
    """All ids of the file, as wide as llama.cpp's logits: bytes, merges, and the tokens that end a turn."""
    from tokenizers import pre_tokenizers

    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "<|endoftext|>", "<|im_end|>", "unused"]
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3, 3, 5])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(257)
    writer.add_tensor("token_embd.weight", np.zeros((len(tokens), 32), np.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    vocabulary = vocabulary_of(tmp_path / "model.gguf")
    assert vocabulary.size == len(tokens) and vocabulary.eos_token_ids == (257, 258)
    assert sorted(token for token in vocabulary.text_tokens[:256] if token) == [bytes([byte]) for byte in range(256)]
    assert vocabulary.text_tokens[256:] == (b"ab", None, None, None)


REAL = os.environ.get("MASKWRIGHT_GGUF", "")  # a trained model: `make real` fetches one


@pytest.mark.skipif(not REAL or find_spec("llama_cpp") is None, reason="MASKWRIGHT_GGUF names no file, or llama-cpp-python is not installed")
@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.0}, {"temperature": 1.5, "top_k": 0, "top_p": 1.0}, {"mirostat_mode": 2}, {"logit_bias": {13: -5.0}}, {"repeat_penalty": 1.3}],
)
def test_the_library_itself_completes_what_a_constraint_asks_for(options: dict[str, Any]) -> None:
    from llama_cpp import Llama as Library

    library = Library(REAL, n_ctx=256, n_threads=1, n_threads_batch=1, seed=1, verbose=False)
    schema = Compiler(vocabulary_of(REAL)).compile(JsonSchema(SCHEMA))
    processors = constrain(library, schema, max_tokens=40)
    text = library.create_completion("JSON: ", logits_processor=processors, max_tokens=40, **options)["choices"][0]["text"]
    processors.check(text)
    assert json.loads(text).keys() == {"a", "b"}
