"""The same file in llama.cpp: small models of every architecture, and a trained one where there is one."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from maskwright.engine.models.model import load_model
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


def log_probabilities(path: Path, tokens: list[int], from_token: int) -> torch.Tensor:
    """Of the tokens that may follow each, from one on."""
    model = load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 512)
    cache = model.allocate_cache(num_blocks=128, block_size=4)
    logits = test_decoder.forward(model, cache, [(tokens, 0, list(range(128)))])
    return logits[from_token:].log_softmax(dim=-1)


def difference(path: Path, llama_cpp: LlamaCpp, prompt: list[int], max_tokens: int) -> tuple[float, int]:
    """(largest difference of log probabilities of likely tokens, how many steps choose another token by more than that).

    llama.cpp chooses, and this engine says what it thinks of each choice.
    """
    theirs = llama_cpp.greedy(prompt, max_tokens)
    chosen = [token for token, _ in theirs]
    mine = log_probabilities(path, prompt + chosen[:-1], len(prompt) - 1)
    apart = [abs(mine[i, token].item() - value) for i, (_, step) in enumerate(theirs) for token, value in step.items() if value > -10]
    others = sum((mine[i].max() - mine[i, token]).item() > 2 * max(apart) for i, token in enumerate(chosen))
    return max(apart), others


# What llama.cpp leaves out: windows of these, and norms of heads of a command-r that has less than 64 layers.
NO_WINDOW = {"sliding_window": None}
IN_LLAMA_CPP = {"phi3": NO_WINDOW, "phi3-long": NO_WINDOW, "starcoder2": NO_WINDOW, "command-r": {"use_qk_norm": False}}


@pytest.mark.parametrize("name", MODELS)
def test_an_architecture_is_read_as_llama_cpp_reads_it(name: str, tmp_path: Path) -> None:
    class_name, changes = MODELS[name]
    changes = {**changes, **IN_LLAMA_CPP.get(name, {})}
    folder = save_tiny_model(tmp_path / "folder", class_name, {**BLOCKS, **changes}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.F32)
    prompt = torch.randint(3, SIZES["vocab_size"], (20,), generator=torch.Generator().manual_seed(1)).tolist()
    with LlamaCpp(path, context=128) as llama_cpp:
        apart, others = difference(path, llama_cpp, prompt, 8)
    assert apart < 0.1 and others == 0


PROMPTS = [
    "What is the capital of France?", "Write one sentence about the sea.", "2 + 2 =", "Name three colours.", "Who wrote Hamlet?",
    "Translate 'good morning' into Spanish.", "Give me a JSON object with a name and an age.", "Why is the sky blue?",
    "List the days of the week.", "Tell a short joke.", "What is photosynthesis?", "Write a haiku about autumn.",
    "What comes after Monday?", "How many legs has a spider?", "Explain gravity to a child.", "Say hello in German.",
    "What is a prime number?", "Describe a cat.", "What do bees make?", "Finish: once upon a time",
]  # fmt: skip


@needs_trained_model
def test_a_trained_model_says_what_it_says_in_llama_cpp() -> None:
    """Twenty conversations, 24 tokens each: the same tokens, unless two are as likely as the engines are apart."""
    path = Path(REAL)
    tokenizer = load_tokenizer(path, read_spec(path))
    with LlamaCpp(path) as llama_cpp:
        found = [
            difference(path, llama_cpp, list(tokenizer.encode_chat([{"role": "user", "content": prompt}])), 24) for prompt in PROMPTS
        ]
    print(f"largest difference of log probabilities: {max(apart for apart, _ in found):.3f}")
    assert all(apart < 1.0 and others == 0 for apart, others in found), found


@needs_trained_model
def test_a_trained_tokenizer_encodes_as_llama_cpp_does() -> None:
    path = Path(REAL)
    tokenizer = load_tokenizer(path, read_spec(path))
    special = tuple(list(tokenizer.vocabulary.special_tokens)[:6])
    with LlamaCpp(path) as llama_cpp:
        for seed in range(2_000):
            text = random_text(seed, special)
            assert list(tokenizer.encode(text)) == llama_cpp.tokenize(text), text
