"""Measure a model folder on held-out names, numbers and phrasings: fields filled exactly, free and under the constraint.

    python training/evaluate.py --model api/embedded --examples 1000 --output benchmarks/results/embedded-model.json

Through the engine, greedy. Free: no constraint, the same prompts. Constrained: masks, and values that loop are ended, as everybody has it by default.
With `--against` another folder is measured too, and the difference of their constrained answers is told with its error.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from calls import call_schema
from data import examples
from example import Example
from handwritten import HANDWRITTEN, LATER, UNSEEN
from scoring import Score, difference
from transformers import AutoTokenizer

from maskwright import LLM, SamplingParams, constraints
from maskwright.constraint_choice import ConstraintOptions

GREEDY = SamplingParams(temperature=0.0, max_tokens=256)


class Evaluator:
    """A model folder, and the engine's greedy answers from it."""

    def __init__(self, folder: Path) -> None:
        self.llm = LLM(str(folder), prompt_style="plain")
        self.template = AutoTokenizer.from_pretrained(folder)

    def prompt(self, example: Example) -> str:
        text = self.template.apply_chat_template(example.messages, tokenize=False, add_generation_prompt=True)
        assert isinstance(text, str)
        return text

    def answers(self, batch: Sequence[Example], is_constrained: bool) -> list[str]:
        """Greedy answers; under constraints values that loop are ended, as they are by default."""
        answers = [""] * len(batch)
        for held in (False, True):
            rows = [row for row, example in enumerate(batch) if (is_constrained and bool(example.constraint)) == held]
            options: ConstraintOptions = {"constraint": [source_of(batch[row]) for row in rows]} if held else {}
            outputs = self.llm.generate([self.prompt(batch[row]) for row in rows], sampling=GREEDY, **options) if rows else []
            for row, output in zip(rows, outputs, strict=True):
                answers[row] = output.text
        return answers

    def score(self, batch: Sequence[Example], is_constrained: bool, mistakes: list[dict[str, str]] | None = None) -> Score:
        score = Score()
        for example, text in zip(batch, self.answers(batch, is_constrained), strict=True):
            if not score.add(example, text) and mistakes is not None:
                mistakes.append({"prompt": example.prompt, "asked": str(example.messages[0]["content"]), "expected": example.answer, "actual": text})
        return score


def source_of(example: Example) -> Any:
    """The constraint of an example, as the front door makes it."""
    ((kind, value),) = example.constraint.items()
    makers: dict[str, Callable[[Any], Any]] = {
        "schema": constraints.JsonSchema,
        "tools": lambda tools: constraints.JsonSchema(call_schema(tools), whitespace="compact"),
        "choice": constraints.Choice,
        "regex": constraints.Regex,
        "grammar": constraints.Gbnf,
    }
    return makers[kind](value)


def sets_of(num_examples: int, seed: int) -> dict[str, list[Example]]:
    """New values in new phrasings, new values in phrasings that were trained on, and the texts written by hand."""
    return {
        "held_out": list(itertools.islice(examples(seed, "held_out"), num_examples)),
        "held_out_values": list(itertools.islice(examples(seed, "held_out", phrasings="train"), num_examples)),
        "handwritten": list(HANDWRITTEN),
        "unseen": list(UNSEEN),
        "unseen_later": list(LATER),
    }


def evaluate(folder: Path, sets: dict[str, list[Example]], modes: Sequence[str], show_mistakes: int = 0) -> dict[str, Any]:
    """Scores on each set, in each mode."""
    evaluator = Evaluator(folder)
    results: dict[str, Any] = {}
    for name, batch in sets.items():
        mistakes: list[dict[str, str]] = []
        for mode in modes:
            mistakes = []
            results.setdefault(name, {})[mode] = evaluator.score(batch, mode == "constrained", mistakes).summary()
        for mistake in mistakes[:show_mistakes]:
            print("\n".join(f"{key:9} {value}" for key, value in mistake.items()), end="\n\n")
    return results


def compare(folder: Path, other: Path, sets: dict[str, list[Example]]) -> dict[str, Any]:
    """How many points of fields the first folder has more than the second, on new phrasings and on all texts that guided nothing."""
    first, second = Evaluator(folder), Evaluator(other)
    batches = {"held_out": sets["held_out"], "unseen together": sets["unseen"] + sets["unseen_later"]}
    return {name: difference(batch, first.answers(batch, True), second.answers(batch, True)) for name, batch in batches.items()}


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
    parser.add_argument("--sets", nargs="+", choices=[*sets_of(0, 0)], default=[*sets_of(0, 0)])
    parser.add_argument("--against", type=Path, help="a folder to compare the constrained answers with")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    sets = sets_of(arguments.examples, arguments.seed)
    results = evaluate(arguments.model, {name: sets[name] for name in arguments.sets}, arguments.modes, arguments.mistakes)
    if arguments.against:
        results["difference"] = compare(arguments.model, arguments.against, sets)
    command = f"python training/evaluate.py --model {arguments.model} --examples {arguments.examples} --seed {arguments.seed}"
    report = json.dumps({**environment(), "command": command, **results}, indent=2)
    print(report)
    if arguments.output:
        arguments.output.write_text(report + "\n")


if __name__ == "__main__":
    main()
