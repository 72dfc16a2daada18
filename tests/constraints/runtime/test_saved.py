"""Compiled constraints in files: what is loaded says what the saved one says, and nothing else is loaded."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.constraints import (
    Choice,
    Compiler,
    Constraint,
    ConstraintError,
    Ebnf,
    Gbnf,
    JsonSchema,
    Lark,
    Limits,
    OutputParser,
    Reasoning,
    Regex,
    SavedConstraintError,
    Source,
    Tools,
    Vocabulary,
)
from maskwright.constraints.runtime.constraint import as_token_ids
from maskwright.constraints.saved import constraint_file
from maskwright.constraints.saved.container import read, write

TOKENS = [*(bytes([byte]) for byte in range(256)), b'{"', b'":', b'","', b'"}', b"ab", b"12", b"true", b"</think>", b"  "]
EOS = len(TOKENS)
VOCABULARY = Vocabulary([*TOKENS, None, b"<call>"], eos_token_ids=[EOS], special_tokens={"<call>": EOS + 1})
TOOL = {"name": "look_up", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}
SOURCES: dict[str, Source] = {
    "schema": JsonSchema({"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 7}, "s": {"maxLength": 20, "type": "string"}}, "required": ["n"]}),
    "keys and items": JsonSchema({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}, "uniqueItems": True}),
    "any order": JsonSchema({"properties": {"a": True, "b": {"type": "null"}, "c": {"enum": [1, 2]}}, "type": "object", "required": ["b"]}, property_order="any"),
    "asked members": JsonSchema({"type": "object", "properties": {"k": {"enum": list(range(9))}}, "required": ["k"], "allOf": [{"if": {"properties": {"k": {"const": i}}}, "then": {"required": [f"a{i}"]}} for i in range(9)]}, property_order="any"),
    "watched items": JsonSchema({"type": "array", "allOf": [{"contains": {"type": "string", "pattern": each}} for each in "abcdef"]}),
    "regex": Regex(r"(?!.*aa)(?=.*b)[ab]{2,20}|\d{3,7}é*"),
    "combination": Regex(r"[a-z]+") & ~Regex(r".*(ab|ba).*"),
    "gbnf": Gbnf('root ::= "(" root ")" | [a-zà-ü]+ | root "+" root'),
    "lark": Lark('start: "a" b* | start "," start\nb: /[0-9]+/ | "(" start ")"\n%ignore / +/'),
    "choice": Choice(["ab", "abc", "12", "true"]),
    "tools": Tools([TOOL], style="hermes"),
    "reasoning": Reasoning(Regex("[0-9]{2}"), max_tokens=12),
    "lark, budgets": Lark('start: (r ",")~1..3 s?\nr[max_tokens=2]: /[a-c]*|x[0-9]x/\ns[max_tokens=1]: /[0-9]+/'),
    "ebnf, budgets": Ebnf('root ::= text "ab" [0-9]*\ntext[max_tokens=3] ::= TagDispatch(("<", tag), excludes=("ab",))\ntag ::= [a-z]{2} ">"'),
}  # fmt: skip


def walks(constraint: Constraint, seed: int = 0, rounds: int = 4, length: int = 9) -> list[Any]:
    """Everything that random walks meet: masks, what is forced, how far the end is, what a budget leaves."""
    rng, seen = random.Random(seed), list[Any]()
    for _ in range(rounds):
        state = constraint.start()
        for _ in range(length):
            distance, allowed = constraint.min_tokens(state), list(as_token_ids(constraint.mask(state)))
            within = list(as_token_ids(constraint.mask(state, distance + 1)))
            seen.append((allowed, within, distance, constraint.forced(state), constraint.is_accepting(state)))
            token_id = rng.choice(within if rng.random() < 0.3 else allowed)
            after = constraint.advance(state, token_id)
            refused = constraint.advance(state, rng.randrange(256))
            seen.append((token_id, after is None, refused is None))
            if after is None or token_id == EOS:
                break
            state = after
    return seen


def digest(constraint: Constraint) -> str:
    return hashlib.sha256(repr(walks(constraint)).encode()).hexdigest()


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler(VOCABULARY)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(("found", "trusted"), [(True, True), (True, False), (False, False)])
def test_what_is_loaded_says_what_was_saved(name: str, found: bool, trusted: bool, compiler: Compiler, tmp_path: Path) -> None:
    constraint = Compiler(VOCABULARY).compile(SOURCES[name])
    before = walks(constraint)
    constraint.save(tmp_path / "file", found=found)
    loaded = compiler.load(tmp_path / "file", SOURCES[name], trusted=trusted)
    assert walks(loaded) == before
    assert walks(loaded, seed=7) == walks(constraint, seed=7)  # and goes on alike
    assert (loaded.residue, loaded.notes, loaded.fingerprint) == (constraint.residue, constraint.notes, constraint.fingerprint)
    assert compiler.compile(SOURCES[name]) is loaded


@pytest.mark.parametrize("name", SOURCES)
def test_saving_again_what_was_loaded(name: str, compiler: Compiler, tmp_path: Path) -> None:
    first = compiler.compile(SOURCES[name])
    first.save(tmp_path / "first")
    compiler.load(tmp_path / "first", trusted=True).save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_what_was_found_is_there(tmp_path: Path) -> None:
    constraint = Compiler(VOCABULARY).compile(SOURCES["schema"])
    walks(constraint)
    constraint.save(tmp_path / "file")
    fresh = Compiler(VOCABULARY)
    assert fresh.load(tmp_path / "file", trusted=True).statistics == constraint.statistics
    assert fresh.load(tmp_path / "file").statistics["states"] < constraint.statistics["states"]


def test_a_growing_automaton_grows_on(tmp_path: Path) -> None:
    limits = Limits(states=300)
    constraint = Compiler(VOCABULARY, limits).compile(Regex("(a|b)*a(a|b){7}"))
    for text in ("ab" * 9, "aab" * 5):
        assert constraint.advance_bytes(constraint.start(), text.encode()) is not None
    constraint.save(tmp_path / "file")
    loaded = Compiler(VOCABULARY, limits).load(tmp_path / "file", trusted=True)
    for number in range(256):
        text = f"{number:08b}".replace("0", "a").replace("1", "b") + "aabb" * 3
        assert loaded.accepts(text) == constraint.accepts(text) == (text[-8] == "a")


def test_parsers_of_loaded_constraints(compiler: Compiler, tmp_path: Path) -> None:
    source = Tools([TOOL], style="hermes")
    reply = '<tool_call>\n{"name":"look_up","arguments":{"q":"x"}}\n</tool_call>'
    compiler.compile(source).save(tmp_path / "file")
    found = []
    for constraint in (compiler.compile(source), compiler.load(tmp_path / "file")):
        parser = OutputParser(constraint)
        found.append([*parser.feed(reply), *parser.finish()])
    assert found[0] == found[1] and len(found[0]) > 1


def test_explanations_name_the_same_places(compiler: Compiler, tmp_path: Path) -> None:
    constraint = compiler.compile(SOURCES["schema"])
    constraint.save(tmp_path / "file", found=False)
    loaded = Compiler(VOCABULARY).load(tmp_path / "file")
    inside = [one.advance_bytes(one.start(), b'{"n":') for one in (constraint, loaded)]
    assert None not in inside
    assert constraint.explain(inside[0], ord("x")) == loaded.explain(inside[1], ord("x"))  # type: ignore[arg-type]


def test_in_a_fresh_process(tmp_path: Path) -> None:
    """One that has compiled nothing, with the same outcome."""
    expected = {}
    for number, (name, source) in enumerate(SOURCES.items()):
        constraint = Compiler(VOCABULARY).compile(source)
        expected[name] = digest(constraint)
        constraint.save(tmp_path / str(number))
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.constraints.runtime.test_saved import SOURCES, VOCABULARY, Compiler, digest\n"
        "compiler = Compiler(VOCABULARY)\n"
        "for number, name in enumerate(SOURCES):\n"
        "    print(digest(compiler.load(f'{sys.argv[2]}/{number}', trusted=True)), digest(compiler.load(f'{sys.argv[2]}/{number}')))\n"
    )
    root = str(Path(__file__).parents[3])
    run = subprocess.run([sys.executable, "-c", script, root, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert dict(zip(SOURCES, map(str.split, run.stdout.splitlines()), strict=True)) == {
        name: [value, value] for name, value in expected.items()
    }


# -- what does not fit --------------------------------------------------------------------------------------------------


@pytest.fixture
def file(compiler: Compiler, tmp_path: Path) -> Path:
    compiler.compile(SOURCES["schema"]).save(tmp_path / "file")
    return tmp_path / "file"


def refused(keyword: str, path: Path, compiler: Compiler, source: Source | None = None) -> str:
    with pytest.raises(SavedConstraintError) as caught:
        compiler.load(path, source)
    assert caught.value.keyword == keyword, caught.value
    return str(caught.value)


def test_another_tokenizer_is_refused(file: Path) -> None:
    others = (
        Vocabulary([*TOKENS[::-1], None, b"<call>"], [EOS], {"<call>": EOS + 1}),
        Vocabulary([*TOKENS, None, b"<call>"], [EOS], {"<tool>": EOS + 1}),
        Vocabulary(TOKENS, [5]),
    )
    for other in others:
        assert f"{other.size} tokens" in refused("vocabulary", file, Compiler(other))


def test_another_version_is_refused(file: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraint_file, "_version", lambda: "maskwright 0.0.0 (beef)")
    assert "maskwright 0.0.0 (beef)" in refused("version", file, compiler)
    monkeypatch.undo()
    monkeypatch.setattr(constraint_file, "FORMAT", 2)
    refused("format", file, compiler)


def test_other_limits_are_refused(file: Path) -> None:
    assert "digits=40" in refused("limits", file, Compiler(VOCABULARY, Limits(digits=40)))


def test_another_source_is_refused(file: Path, compiler: Compiler) -> None:
    assert "Regex" in refused("source", file, compiler, Regex("a"))


def test_missing_files_and_folders(tmp_path: Path, compiler: Compiler) -> None:
    with pytest.raises(FileNotFoundError):
        compiler.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        compiler.compile(Regex("a")).save(tmp_path / "no folder" / "file")


def test_files_cut_short_or_changed_are_refused(file: Path, compiler: Compiler) -> None:
    data, rng = file.read_bytes(), random.Random(1)
    other = file.with_name("other")
    for size in (0, 1, 7, 8, 39, 40, 47, 48, 100, len(data) // 2, len(data) - 1):
        other.write_bytes(data[:size])
        refused("file", other, compiler)
    for _ in range(60):
        at = rng.randrange(len(data))
        other.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        refused("file", other, compiler)
    other.write_bytes(data + b"\0")
    refused("file", other, compiler)
    other.write_bytes(b"{}" * 100)
    refused("file", other, compiler)


def test_a_failed_save_leaves_the_old_file(file: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        compiler.compile(Regex("ab")).save(file)
    assert file.read_bytes() == before and [path.name for path in file.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("name", SOURCES)
def test_hostile_grammars_are_refused_or_harmless(name: str, tmp_path: Path) -> None:
    """Files with right checksums over changed numbers: compiled code must never see what it cannot bear."""
    limits = Limits(states=1000, nodes=20_000, search_states=500, search_nodes=20_000)
    compiler = Compiler(VOCABULARY, limits, cache_bytes=0)
    path, rng = tmp_path / "file", random.Random(name)
    compiler.compile(SOURCES[name]).save(path, found=False)
    header, arrays = read(path)
    num_refused, num_loaded = 0, 0
    for _ in range(60):
        changed = {key: array.copy() for key, array in arrays.items()}
        for _ in range(rng.choice((1, 1, 2, 5))):
            target = changed[rng.choice([key for key, array in changed.items() if array.size])].reshape(-1)
            bound = int(np.iinfo(target.dtype).max)
            near = int(target[rng.randrange(target.size)]) + rng.choice((-2, -1, 1, 2))
            value = rng.choice((near, near, 0, 1, bound, rng.randrange(300)))
            target[rng.randrange(target.size)] = max(min(value, bound), int(np.iinfo(target.dtype).min))
        write(path, header, changed)
        try:
            loaded = compiler.load(path)
            for text in (b"", b"a", b"(", b'{"n":7', b'[{"ab":1', b"<th"):
                at = loaded.advance_bytes(loaded.start(), text)
                if at is not None:
                    loaded.min_tokens(at), loaded.mask(at), loaded.mask(at, 3), loaded.advance(at, 97)
            num_loaded += 1
        except ConstraintError:
            num_refused += 1
    assert num_refused > 10, (num_refused, num_loaded)


@pytest.mark.parametrize(
    "change",
    [
        {"automata": []}, {"automata": None}, {"automata": [{}]}, {"budget": 3}, {"budget": "x"}, {"budget": True}, {"limits": []},
        {"budget": []}, {"budget": [[0], [[None, [], True]]]}, {"budget": [[1], []]}, {"budget": 1.5},
        {"format": None}, {"vocabulary": 1}, {"root": -1}, {"root": "0"}, {"root": 1 << 40}, {"labels": [[1], []]}, {"labels": {}},
        {"labels": [[1 << 40], [""]]}, {"segments": [[9999, {}]]}, {"segments": [[0, {"role": 1}]]}, {"search_share": "x"},
        {"search_share": float("nan")}, {"rule_names": 5}, {"rule_names": ["a"] * 99}, {"notes": 1}, {"residue": None},
    ],
)  # fmt: skip
def test_hostile_headers_are_refused(change: dict[str, Any], file: Path, compiler: Compiler) -> None:
    header, arrays = read(file)
    key = next(iter(change))
    if key in header:
        header |= change
    else:
        header["automata"][0] |= change
    write(file, header, arrays)
    with pytest.raises(SavedConstraintError):
        compiler.load(file)


@pytest.mark.parametrize(
    "budget", [
        [[0], []], [[0], [[[2, False], [1], False]]], [[9], None], [[0], [[[0, False], [0], True]]], [[0], [[[2, False], ["0"], True]]],
        [[0], [[[2, False], [0]]]], [[0], [[2, [], True]]], [[0], [[[2, 1, 0], [], True]]], None,
    ],
)  # fmt: skip
def test_hostile_budgets_are_refused(budget: Any, compiler: Compiler, tmp_path: Path) -> None:
    compiler.compile(Lark("start: r\nr[max_tokens=2]: /a*/")).save(tmp_path / "file")
    header, arrays = read(tmp_path / "file")
    assert header["budget"] == [[0], [[[2, False], [], True]]]
    write(tmp_path / "file", header | {"budget": budget}, arrays)
    with pytest.raises(SavedConstraintError):
        compiler.load(tmp_path / "file")


def test_hostile_directories_are_refused(file: Path, compiler: Compiler) -> None:
    data = file.read_bytes()
    length = int.from_bytes(data[40:48], "little")
    header = data[48 : 48 + length]
    for old, new in ((b'"<i4"', b'"|O8"'), (b'"arrays"', b'"arrayz"'), (b"[4,", b"[-4,"), (b"[4,", b"[4000000000,"), (header, b"[" * 5000)):
        changed = header.replace(old, new)
        rest = len(changed).to_bytes(8, "little") + changed + data[48 + length :]
        file.write_bytes(data[:8] + hashlib.blake2b(rest, digest_size=32).digest() + rest)
        refused("file", file, compiler)


def test_limits_of_a_loaded_constraint(compiler: Compiler, file: Path) -> None:
    assert compiler.load(file).limits == compiler.limits == replace(Limits())


def test_strings_are_no_sources(compiler: Compiler) -> None:
    for text in ("abc", b"abc"):
        with pytest.raises(TypeError, match=r"not (str|bytes)"):
            compiler.compile(text)  # type: ignore[arg-type]
