"""The same file in llama.cpp: small models of every architecture, and a trained one where there is one."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from maskwright.engine.models.model import Model, load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.models.tokenizer import load_tokenizer

from ..conftest import SIZES, save_tiny_model
from ..models import test_decoder
from .llama_cpp import MISSING, LlamaCpp, random_text
from .test_models import BLOCKS, MODELS
from .writing import Kind, write_gguf

pytestmark = pytest.mark.skipif(find_spec("xllamacpp") is None, reason=MISSING)

REAL = os.environ.get("MASKWRIGHT_GGUF", "")  # a trained model: `make real` fetches one
needs_trained_model = pytest.mark.skipif(not REAL, reason="MASKWRIGHT_GGUF names no file: `make real` fetches one")


class Comparison(NamedTuple):
    apart: float  # the largest difference of log probabilities, of tokens that llama.cpp gives more than e**-5
    others: int  # steps in which this engine would have chosen another token than llama.cpp
    margin: float  # by how much that token is more likely here, at most


def compared(model: Model, llama_cpp: LlamaCpp, prompt: list[int], max_tokens: int) -> Comparison:
    """llama.cpp chooses, and this engine says what it thinks of every choice."""
    theirs = llama_cpp.greedy(prompt, max_tokens)
    chosen = torch.tensor([token for token, _ in theirs])
    cache = model.allocate_cache(num_blocks=128, block_size=4)
    tokens = [*prompt, *chosen[:-1].tolist()]
    logits = test_decoder.forward(model, cache, [(tokens, 0, list(range(128)))])[len(prompt) - 1 :]
    mine = logits.log_softmax(dim=-1)
    likely = ((i, token, value) for i, (_, step) in enumerate(theirs) for token, value in step.items() if value > -5)
    gaps = mine.max(dim=-1).values - mine.gather(1, chosen[:, None])[:, 0]
    apart = max(abs(mine[i, token].item() - value) for i, token, value in likely)
    return Comparison(apart, int((gaps > 0).sum()), gaps.max().item())


def loaded(path: Path) -> Model:
    return load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 512)


# What llama.cpp leaves out: windows of these, and norms of heads of a command-r that has less than 64 layers.
NO_WINDOW = {"sliding_window": None}
IN_LLAMA_CPP = {
    "phi3": NO_WINDOW, "phi3-long": NO_WINDOW, "starcoder2": NO_WINDOW, "command-r": {"use_qk_norm": False},
    "exaone4-sliding": {"num_hidden_layers": 64},  # where it slides at all
}


@pytest.mark.parametrize("name", MODELS)
def test_an_architecture_is_read_as_llama_cpp_reads_it(name: str, tmp_path: Path) -> None:
    class_name, changes = MODELS[name]
    changes = {**changes, **IN_LLAMA_CPP.get(name, {})}
    folder = save_tiny_model(tmp_path / "folder", class_name, {**BLOCKS, **changes}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.F32)
    prompt = torch.randint(3, SIZES["vocab_size"], (20,), generator=torch.Generator().manual_seed(1)).tolist()
    with LlamaCpp(path, context=128) as llama_cpp:
        found = compared(loaded(path), llama_cpp, prompt, 8)
    assert found.apart < 0.1 and found.margin < 0.1


PROMPTS = [
    "What is the capital of France?", "Write one sentence about the sea.", "2 + 2 =", "Name three colours.", "Who wrote Hamlet?",
    "Translate 'good morning' into Spanish.", "Give me a JSON object with a name and an age.", "Why is the sky blue?",
    "List the days of the week.", "Tell a short joke.", "What is photosynthesis?", "Write a haiku about autumn.",
    "What comes after Monday?", "How many legs has a spider?", "Explain gravity to a child.", "Say hello in German.",
    "What is a prime number?", "Describe a cat.", "What do bees make?", "Finish: once upon a time",
]  # fmt: skip


@needs_trained_model
def test_a_trained_model_says_what_it_says_in_llama_cpp() -> None:
    """Twenty conversations, 24 tokens each: the same token at every step, unless another is at most e**0.5 times as likely here.

    llama.cpp rounds what it multiplies by to 8 bits, which moves these log probabilities by a few tenths.
    """
    path = Path(REAL)
    tokenizer, model = load_tokenizer(path, read_spec(path)), loaded(path)
    prompts = [list(tokenizer.encode_chat([{"role": "user", "content": prompt}])) for prompt in PROMPTS]
    with LlamaCpp(path, by_itself=True) as llama_cpp:
        found = [compared(model, llama_cpp, prompt, 24) for prompt in prompts]
    apart, others, margin = (values for values in zip(*found, strict=True))
    print(f"log probabilities apart by {max(apart):.3f}; {sum(others)} other choices, by a margin of {max(margin):.3f}")
    assert max(apart) < 1.0 and max(margin) < 0.5


@needs_trained_model
def test_a_trained_model_computes_what_transformers_computes_of_its_numbers() -> None:
    pytest.importorskip("accelerate", reason="transformers needs accelerate to read GGUF files")
    from transformers import AutoModelForCausalLM

    path = Path(REAL)
    tokenizer, model = load_tokenizer(path, read_spec(path)), loaded(path)
    reference = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    for prompt in PROMPTS[:5]:
        tokens = list(tokenizer.encode_chat([{"role": "user", "content": prompt}]))
        with torch.inference_mode():
            expected = reference(torch.tensor([tokens])).logits[0]
        found = test_decoder.forward(model, model.allocate_cache(128, 4), [(tokens, 0, list(range(128)))])
        assert torch.allclose(found, expected, atol=1e-3)


@needs_trained_model
def test_a_trained_tokenizer_encodes_as_llama_cpp_does() -> None:
    path = Path(REAL)
    tokenizer = load_tokenizer(path, read_spec(path))
    special = tuple(list(tokenizer.vocabulary.special_tokens)[:6])
    with LlamaCpp(path, by_itself=True) as llama_cpp:
        for seed in range(2_000):
            text = random_text(seed, special)
            assert list(tokenizer.encode(text)) == llama_cpp.tokenize(text), text
