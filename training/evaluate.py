"""Measure a model folder on held-out names, numbers and phrasings: fields filled exactly, free and under the constraint.

    python training/evaluate.py --model api/embedded --examples 1000 --output benchmarks/results/embedded-model.json

Free: greedy decoding by transformers' model, nothing else. Constrained: the same model and prompts, with the mask of `maskwright.constraints`
applied to the logits before each choice.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import transformers
from calls import call_schema
from data import examples
from example import Example
from handwritten import HANDWRITTEN, UNSEEN
from scoring import Score
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from maskwright import constraints
from maskwright.constraints import Compiler, Constraint, Vocabulary

MAX_NEW_TOKENS = 256
BATCH = 32


class Decoder(Protocol):
    """Restricts a batch while it is decoded."""

    def allow(self, logits: Tensor, remaining: int) -> None:
        """Set the logits [batch, vocabulary] of forbidden tokens to -inf."""

    def advance(self, tokens: list[int]) -> None:
        """Take note of the tokens chosen."""


class Free:
    """No restriction."""

    def allow(self, logits: Tensor, remaining: int) -> None:
        pass

    def advance(self, tokens: list[int]) -> None:
        pass


class Constrained:
    """One compiled constraint, or none, for each sequence of the batch."""

    def __init__(self, constraints: Sequence[Constraint | None]) -> None:
        self.constraints = constraints
        self.states = [None if each is None else each.start() for each in constraints]

    def allow(self, logits: Tensor, remaining: int) -> None:
        for row, (constraint, state) in enumerate(zip(self.constraints, self.states, strict=True)):
            if constraint is not None and state is not None:
                bits = np.unpackbits(constraint.mask(state, budget=remaining).view(np.uint8), bitorder="little")
                allowed = torch.from_numpy(bits[: logits.shape[1]].astype(bool))
                logits[row].masked_fill_(~allowed, -torch.inf)

    def advance(self, tokens: list[int]) -> None:
        self.states = [
            None if constraint is None or state is None else constraint.advance(state, token)
            for constraint, state, token in zip(self.constraints, self.states, tokens, strict=True)
        ]


class Evaluator:
    """A model folder, and greedy answers from it."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.compiler = Compiler(Vocabulary.from_tokenizer(self.tokenizer))

    def compile(self, example: Example) -> Constraint | None:
        """The constraint of an example, as the front door would make it."""
        for kind, value in example.constraint.items():
            source: Any = {
                "schema": constraints.JsonSchema,
                "tools": lambda tools: constraints.JsonSchema(call_schema(tools)),
                "choice": constraints.Choice,
                "regex": constraints.Regex,
                "grammar": constraints.Gbnf,
            }[kind](value)
            return self.compiler.compile(source)
        return None

    @torch.inference_mode()
    def answer(self, batch: Sequence[Example], decoder: Decoder) -> list[str]:
        """Greedy answers, decoded together with a key-value cache."""
        prompts = [self.tokenizer.apply_chat_template(each.messages, tokenize=False, add_generation_prompt=True) for each in batch]
        inputs = self.tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        attention, eos = inputs["attention_mask"], self.tokenizer.eos_token_id
        position = (attention.cumsum(-1) - 1).clamp(min=0)
        output = self.model(input_ids=inputs["input_ids"], attention_mask=attention, position_ids=position, use_cache=True)
        answers: list[list[int]] = [[] for _ in batch]
        finished = [False] * len(batch)
        for remaining in range(MAX_NEW_TOKENS, 0, -1):
            logits = output.logits[:, -1]
            decoder.allow(logits, remaining)
            tokens = logits.argmax(-1).tolist()
            decoder.advance(tokens)
            for row, token in enumerate(tokens):
                finished[row] |= token == eos
                if not finished[row]:
                    answers[row].append(token)
            if all(finished):
                break
            attention = torch.cat([attention, attention.new_ones(len(batch), 1)], dim=-1)
            output = self.model(
                input_ids=torch.tensor(tokens)[:, None],
                attention_mask=attention,
                position_ids=attention.sum(-1, keepdim=True) - 1,
                past_key_values=output.past_key_values,
                use_cache=True,
            )
        return [self.tokenizer.decode(ids) for ids in answers]

    def score(self, batch: Sequence[Example], is_constrained: bool, mistakes: list[dict[str, str]] | None = None) -> Score:
        score = Score()
        for start in range(0, len(batch), BATCH):
            chunk = batch[start : start + BATCH]
            decoder = Constrained([self.compile(each) for each in chunk]) if is_constrained else Free()
            for example, text in zip(chunk, self.answer(chunk, decoder), strict=True):
                if not score.add(example, text) and mistakes is not None:
                    mistakes.append({"prompt": example.prompt, "asked": str(example.messages[0]["content"]), "expected": example.answer, "actual": text})
        return score


def evaluate(folder: Path, num_examples: int, seed: int, modes: Sequence[str], show_mistakes: int = 0) -> dict[str, Any]:
    """Scores on new values in new phrasings, on new values in phrasings that were trained on, and on the texts written by hand."""
    evaluator = Evaluator(folder)
    sets = {
        "held_out": list(itertools.islice(examples(seed, "held_out"), num_examples)),
        "held_out_values": list(itertools.islice(examples(seed, "held_out", phrasings="train"), num_examples)),
        "handwritten": list(HANDWRITTEN),
        "unseen": list(UNSEEN),
    }
    results: dict[str, Any] = {}
    for name, batch in sets.items():
        mistakes: list[dict[str, str]] = []
        for mode in modes:
            mistakes = []
            results.setdefault(name, {})[mode] = evaluator.score(batch, mode == "constrained", mistakes).summary()
        for mistake in mistakes[:show_mistakes]:
            print("\n".join(f"{key:9} {value}" for key, value in mistake.items()), end="\n\n")
    return results


def environment() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "device": f"cpu, {platform.machine()}, {torch.get_num_threads()} threads",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", nargs="+", choices=["free", "constrained"], default=["free", "constrained"])
    parser.add_argument("--mistakes", type=int, default=0, help="print so many wrong answers of each set")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    results = evaluate(arguments.model, arguments.examples, arguments.seed, arguments.modes, arguments.mistakes)
    command = f"python training/evaluate.py --model {arguments.model} --examples {arguments.examples} --seed {arguments.seed}"
    report = json.dumps({**environment(), "command": command, **results}, indent=2)
    print(report)
    if arguments.output:
        arguments.output.write_text(report + "\n")


if __name__ == "__main__":
    main()
