"""Who answers the tasks of `answers.py`: this engine in its settings, transformers with masks of three libraries, llama.cpp.

All get the same prompt text, from the model's own chat template, and the same schema. transformers runs the weights of a GGUF file
dequantised to float32; this engine and llama.cpp multiply by them as they are stored, so greedy answers may differ in near ties.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from maskwright import LLM, GenerationOutput, LogitsProcessor, SamplingParams
from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.engine.gguf.files import is_gguf, open_gguf
from maskwright.engine.gguf.tokenizer import gguf_tokenizer

FREE = "no constraint"
OWN = (FREE, "compact", "spaced", "flexible", "auto")
CANONICAL = "auto, canonical"
PARTICLES = "auto, 8 particles"
OTHERS = ("maskwright in transformers", "llguidance in transformers", "xgrammar in transformers", "llama.cpp's grammar")
SETTINGS = (*OWN, CANONICAL, PARTICLES, *OTHERS)
MAX_TOKENS = 200
BATCH = 8  # prompts that transformers runs together
NUM_PARTICLES = 8
NUM_BLOCKS = 4096  # of 16 tokens in the cache: more than a piece of the work needs
NO_MASS = 1e-30  # a kept mass of 0 in float32


class Asked(Protocol):
    """Of a task, what an engine is told."""

    @property
    def prompt(self) -> str: ...

    @property
    def schema(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Decoding:
    """Greedy without a seed."""

    seed: int | None = None
    temperature: float = 0.7

    @property
    def name(self) -> str:
        return "greedy" if self.seed is None else f"seed {self.seed}"


@dataclass(frozen=True)
class Answer:
    """One output. Log-probabilities are the model's own, before mask and temperature, and leave out the end of the text."""

    text: str
    num_tokens: int
    num_computed: int  # tokens that a model was asked for, those of outputs that are not given included
    logprob: float | None = None  # of all its tokens; None where the engine does not tell
    log_kept: float | None = None  # sum of the logarithms of what the masks left of the model's probability


class Engines:
    """The engines for one model; each is loaded when it is first asked."""

    def __init__(self, model: str) -> None:
        self._model = Path(model)

    def answers(self, setting: str, tasks: Sequence[Asked], decoding: Decoding) -> list[Answer]:
        """An answer to each task. An engine that refuses a schema gives an empty text."""
        if setting in OWN or setting == CANONICAL:
            return self._own(setting, tasks, decoding)
        if setting == PARTICLES:
            return self._particles(tasks, decoding)
        prompts, schemas = [self._rendered(task) for task in tasks], [task.schema for task in tasks]
        if setting == "llama.cpp's grammar":
            return self._llama_cpp.answers(prompts, schemas, decoding)
        return self._transformers.answers(setting.partition(" ")[0], prompts, schemas, decoding)

    # ---- this engine

    def _own(self, setting: str, tasks: Sequence[Asked], decoding: Decoding) -> list[Answer]:
        temperature = 0.0 if decoding.seed is None else decoding.temperature
        sampling = SamplingParams(
            temperature=temperature, seed=decoding.seed or 0, max_tokens=MAX_TOKENS, logprobs=0, canonical=setting == CANONICAL
        )
        outputs = self._llm.generate([task.prompt for task in tasks], sampling=sampling, **_constraints(setting, tasks))
        return [_answer(output) for output in outputs]

    def _particles(self, tasks: Sequence[Asked], decoding: Decoding) -> list[Answer]:
        if decoding.seed is None:
            raise ValueError("particles are drawn: they need a seed")
        sampling = SamplingParams(temperature=decoding.temperature, seed=decoding.seed, max_tokens=MAX_TOKENS)
        found = self._llm.particles(
            [task.prompt for task in tasks], count=NUM_PARTICLES, sampling=sampling, **_constraints("auto", tasks)
        )
        return [_best(output) for output in found]

    def _rendered(self, task: Asked) -> str:
        text: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": task.prompt}], tokenize=False, add_generation_prompt=True
        )
        return text

    @cached_property
    def _llm(self) -> LLM:
        return LLM(self._model, prompt_style="chat", num_kv_blocks=NUM_BLOCKS)

    # ---- others

    @cached_property
    def _tokenizer(self) -> Any:
        if is_gguf(self._model):
            return gguf_tokenizer(open_gguf(self._model))
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self._model)

    @cached_property
    def _transformers(self) -> InTransformers:
        return InTransformers(self._model, self._tokenizer)

    @cached_property
    def _llama_cpp(self) -> LlamaCpp:
        return LlamaCpp(self._model)


def _constraints(setting: str, tasks: Sequence[Asked]) -> dict[str, Any]:
    if setting == FREE:
        return {}
    whitespace: Any = "auto" if setting == CANONICAL else setting
    return {"constraint": [JsonSchema(task.schema, whitespace=whitespace) for task in tasks]}


def _answer(output: GenerationOutput) -> Answer:
    assert output.logprobs is not None
    logprobs = [record.logprob for record in output.logprobs if record.logprob is not None]
    kept = [math.log(max(record.kept_mass, NO_MASS)) for record in output.logprobs if record.kept_mass is not None]
    return Answer(output.text, len(output.token_ids), len(output.token_ids), sum(logprobs), sum(kept))


def _best(output: GenerationOutput) -> Answer:
    """The heaviest particle. What masks left of each is not told apart from the weights."""
    assert output.score is not None
    num_computed = sum(len(each.token_ids) for each in (output, *output.alternatives))
    return Answer(output.text, len(output.token_ids), num_computed, output.score.logprob)


class InTransformers:
    """`generate` of transformers with a logits processor for each library."""

    def __init__(self, model: Path, tokenizer: Any) -> None:
        from transformers import AutoModelForCausalLM

        folder, file = (model.parent, {"gguf_file": model.name}) if is_gguf(model) else (model, {})
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **file).eval()
        self._tokenizer, self._makers = tokenizer, dict[str, Callable[[dict[str, Any]], Row]]()
        self._eos = tokenizer.eos_token_id

    def answers(self, library: str, prompts: Sequence[str], schemas: Sequence[dict[str, Any]], decoding: Decoding) -> list[Answer]:
        answers = list[Answer]()
        for start in range(0, len(prompts), BATCH):
            answers += self._batch(library, prompts[start : start + BATCH], schemas[start : start + BATCH], decoding)
        return answers

    def _batch(self, library: str, prompts: Sequence[str], schemas: Sequence[dict[str, Any]], decoding: Decoding) -> list[Answer]:
        rows = [self._row(library, schema) for schema in schemas]
        masks = Masks(rows, self._eos)
        encoded = self._tokenizer(list(prompts), return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
        torch.manual_seed(decoding.seed or 0)
        drawn = {"do_sample": True, "temperature": decoding.temperature, "top_k": 0, "top_p": 1.0}
        with torch.inference_mode():
            ids = self._model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                logits_processor=[masks],
                max_new_tokens=MAX_TOKENS,
                eos_token_id=self._eos,
                pad_token_id=self._eos,
                **({"do_sample": False} if decoding.seed is None else drawn),
            )
        masks.finish(ids)
        return [self._answer(place, masks) for place in range(len(rows))]

    def _answer(self, place: int, masks: Masks) -> Answer:
        ids = masks.tokens[place]
        text = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return Answer(text, len(ids), len(ids), masks.logprobs[place], masks.log_kept[place])

    def _row(self, library: str, schema: dict[str, Any]) -> Row | None:
        """None where the library refuses the schema."""
        if library not in self._makers:
            self._makers[library] = _MAKERS[library](self._tokenizer, self._model.config.vocab_size)
        try:
            return self._makers[library](schema)
        except Exception as error:  # whatever a library raises
            print(f"{library} refuses a schema: {error!s:.200}")
            return None


class Row(Protocol):
    """One output under a library's constraint."""

    def allowed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Of the next token: bool [V]."""

    def take(self, token_id: int) -> None: ...


class Masks:
    """A logits processor of a batch, which writes down what the model thought of each token and what its mask left."""

    def __init__(self, rows: Sequence[Row | None], eos: int) -> None:
        self._rows, self._eos = rows, eos
        self.tokens = [list[int]() for _ in rows]
        self.logprobs, self.log_kept = [0.0] * len(rows), [0.0] * len(rows)
        self._is_done = [row is None for row in rows]
        self._before: torch.Tensor | None = None  # log-probabilities [rows, V] of the last step, and what its masks left
        self._kept = [0.0] * len(rows)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._take(input_ids)
        logprobs = torch.log_softmax(scores.float(), -1)
        masked = torch.full_like(scores, -torch.inf)
        for place, row in enumerate(self._rows):
            if row is None or self._is_done[place]:
                masked[place, self._eos] = 0.0
                continue
            allowed = torch.from_numpy(row.allowed()[: scores.shape[-1]])
            masked[place, : len(allowed)] = scores[place, : len(allowed)].masked_fill(~allowed, -torch.inf)
            kept = logprobs[place, : len(allowed)][allowed]
            self._kept[place] = max(float(kept.logsumexp(0)), math.log(NO_MASS)) if len(kept) else math.log(NO_MASS)
        self._before = logprobs
        return masked

    def finish(self, ids: torch.Tensor) -> None:
        """All tokens are there: take the last one."""
        self._take(ids)

    def _take(self, ids: torch.Tensor) -> None:
        if self._before is None:
            return
        for place, row in enumerate(self._rows):
            token_id = int(ids[place, -1])
            if row is None or self._is_done[place]:
                continue
            if token_id == self._eos:
                self._is_done[place] = True
                continue
            row.take(token_id)
            self.tokens[place].append(token_id)
            self.logprobs[place] += float(self._before[place, token_id])
            self.log_kept[place] += self._kept[place]


class _PackedRow:
    """A row of a library that fills packed bit rows."""

    def __init__(self, fill: Callable[[], Any], take: Callable[[int], Any]) -> None:
        self._fill, self._take = fill, take

    def allowed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        packed = np.ascontiguousarray(self._fill()).reshape(-1)
        return np.unpackbits(packed.view(np.uint8), bitorder="little").astype(bool)

    def take(self, token_id: int) -> None:
        self._take(token_id)


class _MaskwrightRow:
    """A row of `maskwright.LogitsProcessor`'s constraint."""

    def __init__(self, constraint: Any) -> None:
        self._processor = LogitsProcessor(constraint)
        self._constraint, self._state = constraint, constraint.start()

    def allowed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.unpackbits(self._constraint.mask(self._state).view(np.uint8), bitorder="little").astype(bool)

    def take(self, token_id: int) -> None:
        self._state = self._constraint.advance(self._state, token_id)


def _maskwright(tokenizer: Any, vocab_size: int) -> Callable[[dict[str, Any]], Row]:
    compiler = Compiler(Vocabulary.from_tokenizer(tokenizer, size=vocab_size))
    return lambda schema: _MaskwrightRow(compiler.compile(JsonSchema(schema)))


def _llguidance(tokenizer: Any, vocab_size: int) -> Callable[[dict[str, Any]], Row]:
    import llguidance
    import llguidance.hf
    import llguidance.numpy

    known = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size)
    bits = llguidance.numpy.allocate_token_bitmask(1, vocab_size)

    def make(schema: dict[str, Any]) -> Row:
        matcher = llguidance.LLMatcher(known, llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema)))
        if matcher.is_error():
            raise ValueError(matcher.get_error())

        def fill() -> Any:
            llguidance.numpy.fill_next_token_bitmask(matcher, bits, 0)
            return bits

        return _PackedRow(fill, matcher.consume_token)

    return make


def _xgrammar(tokenizer: Any, vocab_size: int) -> Callable[[dict[str, Any]], Row]:
    import xgrammar

    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab_size), max_threads=1)
    bits = xgrammar.allocate_token_bitmask(1, vocab_size)

    def make(schema: dict[str, Any]) -> Row:
        matcher = xgrammar.GrammarMatcher(compiler.compile_json_schema(json.dumps(schema)))

        def fill() -> Any:
            bits.fill_(-1)
            matcher.fill_next_token_bitmask(bits)
            return bits.numpy()

        return _PackedRow(fill, matcher.accept_token)

    return make


_MAKERS: dict[str, Callable[[Any, int], Callable[[dict[str, Any]], Row]]] = {
    "maskwright": _maskwright, "llguidance": _llguidance, "xgrammar": _xgrammar,
}  # fmt: skip


class LlamaCpp:
    """llama.cpp's server inside the process (`xllamacpp`), which makes a grammar of the schema."""

    def __init__(self, model: Path) -> None:
        import xllamacpp

        options = xllamacpp.CommonParams()
        options.model.path, options.n_ctx, options.n_parallel, options.verbosity = str(model), 8192, 1, -1
        options.cpuparams.n_threads = options.cpuparams_batch.n_threads = max(torch.get_num_threads(), 1)
        self._server = xllamacpp.Server(options)

    def answers(self, prompts: Sequence[str], schemas: Sequence[dict[str, Any]], decoding: Decoding) -> list[Answer]:
        return [self._answer(prompt, schema, decoding) for prompt, schema in zip(prompts, schemas, strict=True)]

    def _answer(self, prompt: str, schema: dict[str, Any], decoding: Decoding) -> Answer:
        given = self._server.handle_completions({
            "prompt": prompt, "json_schema": schema, "n_predict": MAX_TOKENS, "n_probs": 1, "seed": decoding.seed or 0,
            "temperature": 0.0 if decoding.seed is None else decoding.temperature,
            "samplers": ["temperature"], "cache_prompt": False,
        })  # fmt: skip
        if "choices" not in given:
            print(f"llama.cpp refuses a schema: {given!s:.200}")
            return Answer("", 0, 0)
        (choice,) = given["choices"]
        logprobs = [each["logprob"] for each in choice["logprobs"]["content"] if each["token"]]  # the end has none
        return Answer(choice["text"], len(logprobs), len(logprobs), sum(logprobs))
