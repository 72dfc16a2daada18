"""Train the embedded model on the synthetic corpus; resumable, and reproducible from its configuration.

    python training/train.py --folder runs/embedded --steps 12000

On a busy machine several workers with one thread each waste less time waiting than one with several threads; their weights are averaged
every few steps:

    torchrun --nproc-per-node 2 training/train.py --folder runs/embedded --threads 1
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from data import examples, first_lessons, varied_examples
from example import Example
from export import export, load_weights
from model import Llama, ModelConfig
from muon import Muon
from tokenizer import ASSISTANT, END, train_tokenizer
from tokenizers import Tokenizer
from torch import Tensor
from values import Source, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """What a run is; two runs with the same configuration and library versions see the same batches in the same order."""

    steps: int = 12_000
    warmup_steps: int = 100
    decay_steps: int = 4_000        # at the end, linearly to zero
    first_shards: int = 16          # shards at the start that are mostly `first_lessons`
    batch_tokens: int = 4_096       # padded
    shard_examples: int = 1_024     # examples sorted by length together
    max_tokens: int = 384           # longer examples are dropped
    matrix_lr: float = 0.02
    vector_lr: float = 0.003        # embedding and norms
    seed: int = 0
    threads: int = 2
    average_every: int = 5          # steps between averages of the workers' weights
    ema_steps: float = 150.0        # horizon of the running average of weights that is exported
    compile: bool = True            # needs a C++ compiler; a third quicker
    save_every: int = 200
    varied: bool = False            # also in the ways of `wordings.py`, and what lies beside the task
    start_from: str = ""            # an exported folder whose weights a new run begins with


@dataclass(frozen=True, slots=True)
class Batch:
    tokens: Tensor   # [batch, length], right-padded
    answer: Tensor   # [n] flat positions whose next token is part of an answer
    targets: Tensor  # [n]


def prompt_of(example: Example) -> str:
    """All that stands before the answer."""
    told = "".join(f"<|{m['role']}|>{m['content']}" for m in example.messages) + ASSISTANT
    return (example.prompt if example.is_bare else told) + example.begun


def encode(batch: list[Example], tokenizer: Tokenizer) -> list[tuple[list[int], int]]:
    """For each example its token ids, and the position of the first token of the answer."""
    prompts = [prompt_of(each) for each in batch]
    questions = [each.ids for each in tokenizer.encode_batch_fast(prompts)]
    answers = [each.ids for each in tokenizer.encode_batch_fast([each.answer + END for each in batch])]
    return [(question + answer, len(question)) for question, answer in zip(questions, answers, strict=True)]


def collate(rows: list[tuple[list[int], int]]) -> Batch:
    length = max(len(ids) for ids, _ in rows)
    tokens = torch.zeros(len(rows), length, dtype=torch.long)
    positions: list[int] = []
    targets: list[int] = []
    for index, (ids, start) in enumerate(rows):
        tokens[index, : len(ids)] = torch.tensor(ids)
        positions.extend(range(index * length + start - 1, index * length + len(ids) - 1))
        targets.extend(ids[start:])
    return Batch(tokens, torch.tensor(positions), torch.tensor(targets))


def batches_of(rows: list[tuple[list[int], int]], batch_tokens: int) -> Iterator[Batch]:
    """Rows of similar length together, so that little is padding."""
    rows = sorted(rows, key=lambda row: len(row[0]))
    chunk: list[tuple[list[int], int]] = []
    for row in rows:
        if chunk and (len(chunk) + 1) * len(row[0]) > batch_tokens:
            yield collate(chunk)
            chunk = []
        chunk.append(row)
    if chunk:
        yield collate(chunk)


def shard(index: int, config: TrainConfig, tokenizer: Tokenizer, split: Split = "train") -> list[Batch]:
    """The batches made of one shard of examples, in random order."""
    seed = config.seed * 1_000_003 + index
    stream = varied_examples(seed) if config.varied and split == "train" else examples(seed, split)
    if index < config.first_shards and split == "train":
        source = Source(random.Random(f"first-{config.seed}-{index}"), split)
        stream = (first_lessons(source) for _ in itertools.count())
    rows = encode(list(itertools.islice(stream, config.shard_examples)), tokenizer)
    batches = list(batches_of([row for row in rows if len(row[0]) <= config.max_tokens], config.batch_tokens))
    random.Random(index).shuffle(batches)
    return batches


def learning_rate_factor(step: int, config: TrainConfig) -> float:
    """Warm up, stay, decay."""
    return min(1.0, (step + 1) / config.warmup_steps, max(0.0, (config.steps - step) / config.decay_steps))


def make_optimizers(model: Llama, config: TrainConfig) -> list[torch.optim.Optimizer]:
    blocks = list(model.blocks)
    groups = [
        {"params": [block.qkv.weight for block in blocks], "parts": 3},
        {"params": [block.output.weight for block in blocks], "parts": 1},
        {"params": [block.gate_up.weight for block in blocks], "parts": 2},
        {"params": [block.down.weight for block in blocks], "parts": 1},
    ]
    in_muon = {id(parameter) for group in groups for parameter in group["params"]}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in in_muon]
    return [Muon(groups, lr=config.matrix_lr), torch.optim.AdamW(rest, lr=config.vector_lr, betas=(0.9, 0.95), weight_decay=0.0)]


@torch.no_grad()
def held_out_loss(model: Llama, batches: list[Batch]) -> tuple[float, float]:
    """Mean loss per answer token, and the share of answer tokens predicted right."""
    loss, right, count = 0.0, 0, 0
    for batch in batches:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states = model.hidden(batch.tokens, torch.bfloat16).flatten(0, 1)[batch.answer]
            logits = torch.nn.functional.linear(states, model.embedding.weight.bfloat16()).float()
        loss += torch.nn.functional.cross_entropy(logits, batch.targets, reduction="sum").item()
        right += int((logits.argmax(-1) == batch.targets).sum())
        count += len(batch.targets)
    return loss / count, right / count


class Workers:
    """The processes that train together; one alone unless started by torchrun."""

    def __init__(self) -> None:
        self.rank, self.count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        if self.count > 1:
            dist.init_process_group("gloo")

    @torch.no_grad()
    def average(self, model: Llama) -> None:
        """Every worker gets the mean of all weights."""
        if self.count > 1:
            weights = torch.nn.utils.parameters_to_vector(model.parameters())
            dist.all_reduce(weights)
            torch.nn.utils.vector_to_parameters(weights / self.count, model.parameters())


class Run:
    """A training run in a folder: tokenizer, checkpoint, log, and the latest export under `current`."""

    def __init__(self, folder: Path, config: TrainConfig, model_config: ModelConfig) -> None:
        self.folder, self.config, self.workers = folder, config, Workers()
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer = self.load_tokenizer(model_config.vocab_size)
        torch.manual_seed(config.seed)
        self.model = Llama(model_config)
        if config.compile:
            for block in self.model.blocks:
                block.compile(dynamic=True)
        self.optimizers = make_optimizers(self.model, config)
        if config.start_from:
            load_weights(self.model, Path(config.start_from))
        self.averaged = Llama(model_config).requires_grad_(False)
        self.averaged.load_state_dict(self.model.state_dict())
        self.step, self.shard_index = 0, 0
        if (folder / "checkpoint.pt").exists():
            self.resume()

    def load_tokenizer(self, vocab_size: int) -> Tokenizer:
        path = self.folder / "tokenizer.json"
        if not path.exists():
            train_tokenizer(vocab_size).save(str(path))
        return Tokenizer.from_file(str(path))

    def resume(self) -> None:
        state = torch.load(self.folder / "checkpoint.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.averaged.load_state_dict(state.get("averaged", state["model"]))
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.shard_index = state["step"], state["shard_index"]

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "shard_index": self.shard_index,
        }
        unfinished = self.folder / "checkpoint.pt.tmp"
        torch.save(state, unfinished)
        unfinished.replace(self.folder / "checkpoint.pt")
        export(self.averaged, self.tokenizer, self.folder / "current")

    @torch.no_grad()
    def average(self) -> None:
        """Average the workers' weights, and move the running average towards them."""
        self.workers.average(self.model)
        share = min(1.0, self.config.average_every / self.config.ema_steps)
        for mean, parameter in zip(self.averaged.parameters(), self.model.parameters(), strict=True):
            mean.lerp_(parameter, share)

    def train_step(self, batch: Batch) -> float:
        factor = learning_rate_factor(self.step, self.config)
        for optimizer, lr in zip(self.optimizers, (self.config.matrix_lr, self.config.vector_lr), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = lr * factor
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.model.loss(batch.tokens, batch.answer, batch.targets, torch.bfloat16)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss.item()

    def log(self, **entry: float) -> None:
        line = json.dumps({"step": self.step, **{name: round(value, 4) for name, value in entry.items()}})
        with (self.folder / "log.jsonl").open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)

    def train(self) -> None:
        held_out = shard(0, self.config, self.tokenizer, "held_out")[:8]
        losses: list[float] = []
        tokens, started = 0, time.monotonic()
        while self.step < self.config.steps:
            batches = shard(self.shard_index + self.workers.rank, self.config, self.tokenizer)
            self.shard_index += self.workers.count
            for batch in batches[: self.config.steps - self.step]:
                losses.append(self.train_step(batch))
                tokens += batch.tokens.numel() * self.workers.count
                if self.step % self.config.average_every == 0:
                    self.average()
                if self.workers.rank > 0:
                    continue
                if self.step % 50 == 0:
                    speed = tokens / (time.monotonic() - started)
                    self.log(loss=sum(losses) / len(losses), tokens_per_second=speed)
                    losses, tokens, started = [], 0, time.monotonic()
                if self.step % self.config.save_every == 0:
                    loss, accuracy = held_out_loss(self.averaged, held_out)
                    self.log(held_out_loss=loss, held_out_accuracy=accuracy)
                    self.save()
        self.average()
        if self.workers.rank == 0:
            self.save()


def parse_arguments() -> tuple[Path, TrainConfig]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the run; continued when it has a checkpoint")
    for each in fields(TrainConfig):
        is_flag = each.type == "bool"
        how: dict[str, Any] = {"action": argparse.BooleanOptionalAction} if is_flag else {"type": type(each.default)}
        parser.add_argument("--" + each.name.replace("_", "-"), default=each.default, **how)
    arguments = vars(parser.parse_args())
    return arguments.pop("folder"), TrainConfig(**arguments)


def main() -> None:
    folder, config = parse_arguments()
    torch.set_num_threads(config.threads)
    run = Run(folder, config, ModelConfig())
    (folder / "config.json").write_text(json.dumps({"train": asdict(config), "model": asdict(ModelConfig())}, indent=2) + "\n")
    run.train()


if __name__ == "__main__":
    main()
