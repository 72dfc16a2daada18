"""What released files of engines import, as far as the tests get there: empty modules with the names that are asked for."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

END, TURN, SPECIAL = "<|end|>", "<|turn|>", ["<think>", "</think>", "<tool_call>", "</tool_call>"]
HEAD_PADDING = 35  # ids of the model beyond the tokenizer's: more than a word of a mask
MERGES = ["a b", "ab c", "t r", "tr u", "tru e", '" :', '" ,', "1 2"]


def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes and a few merges of them; END ends a text, a model may end turns with TURN too."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = [merge.replace(" ", "") for merge in MERGES]
    vocabulary = {token: index for index, token in enumerate([*alphabet, *merged])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(merge.split()) for merge in MERGES]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([END, TURN, *SPECIAL])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


def module(name: str, **names: Any) -> ModuleType:
    """An empty package with some names in it."""
    made = ModuleType(name)
    made.__path__ = []
    made.__dict__.update(names)
    return made


@contextmanager
def installed(modules: dict[str, ModuleType], ours: str) -> Iterator[None]:
    """Some modules, with empty packages around them, can be imported for a while; `ours` is imported anew meanwhile, and forgotten."""
    packages = {name.rsplit(".", k)[0] for name in modules for k in range(1, name.count(".") + 1)} - set(modules)
    added = {name: module(name) for name in packages} | modules
    before = {name: sys.modules.get(name) for name in added}
    ours_before = {name: sys.modules.pop(name) for name in list(sys.modules) if name == ours or name.startswith(ours + ".")}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name == ours or name.startswith(ours + ".")]:
            del sys.modules[name]
        sys.modules.update(ours_before)
        for name, known in before.items():
            if known is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = known


def load(folder: Path, name: str) -> ModuleType:
    """A released file as the module of that name. What it imports must be there already."""
    path = folder / (name.replace(".", "/") + ".py")
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    made.__path__ = []
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def cut_out(path: Path, *names: str, **scope: Any) -> dict[str, Any]:
    """Functions and methods of a released file, by name, without all the rest of it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names}
    for name in names:
        exec(compile(ast.Module([ast.parse("from __future__ import annotations").body[0], found[name]], []), str(path), "exec"), scope)
    return scope
