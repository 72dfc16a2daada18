"""The reader of GGUF files: what the library reads of good files, and an error by name for every bad one."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import gguf
import numpy as np
import pytest

from maskwright.engine.errors import ConfigError, ModelFolderError, UnsupportedModel
from maskwright.engine.gguf.files import gguf_in, open_gguf
from maskwright.engine.gguf.reader import Strings, read_gguf
from maskwright.engine.models.spec import read_spec

from .writing import write_gguf

U32, U64, STRING, ARRAY = 4, 10, 8, 9


def text(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def entry(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def file(keys: Sequence[bytes] = (), entries: Sequence[bytes] = (), data: bytes = b"", *, version: int = 3, counts: tuple[int, int] | None = None) -> bytes:
    num_tensors, num_keys = counts or (len(entries), len(keys))
    head = b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys) + b"".join(keys) + b"".join(entries)
    return head + bytes(-len(head) % 32) + data


FLOATS = bytes(64)
DAMAGED = {
    "nothing": (b"", "cannot be read"),
    "another format": (b"GGML" + bytes(30), "begins with b'GGML'"),
    "cut in the counts": (b"GGUF" + struct.pack("<IQ", 3, 1), "key count takes 8 bytes at byte 16, and the file ends at 16"),
    "as many keys as numbers go": (file(counts=(0, 2**64 - 1)), "claims 0 tensors and 18446744073709551615 keys"),
    "more keys than there are": (file(counts=(0, 9)), "takes 4 bytes at byte 32, and the file ends at 32"),
    "more tensors than there are": (file(counts=(9, 0)), "takes 4 bytes at byte 32, and the file ends at 32"),
    "a key longer than the file": (file([struct.pack("<Q", 2**63) + b"a"]), "a key of 9223372036854775808 bytes"),
    "a string longer than the file": (file([key("a", STRING, struct.pack("<Q", 2**62))]), 'value of "a" takes 4611686018427387904'),
    "a key that is no text": (file([key("a", U32, bytes(4)), text(b"\xff") + bytes(8)]), "not UTF-8"),
    "a key twice": (file([key("a", U32, bytes(4))] * 2), 'the key "a" comes twice'),
    "a type that does not exist": (file([key("a", 13, bytes(8))]), "type 13, which does not exist"),
    "a list of lists": (file([key("a", ARRAY, struct.pack("<IQ", ARRAY, 1))]), '"a" is a list of type 9'),
    "a list longer than the file": (file([key("a", ARRAY, struct.pack("<IQ", U32, 2**61))]), 'value of "a" takes'),
    "strings beyond the file": (file([key("a", ARRAY, struct.pack("<IQ", STRING, 2**40))]), "more than the file has room for"),
    "a string of a list beyond it": (file([key("a", ARRAY, struct.pack("<IQQ", STRING, 1, 2**40))]), 'value of "a" takes'),
    "an alignment that is none": (file([key("general.alignment", U32, struct.pack("<I", 24))]), "general.alignment is 24"),
    "an alignment of nothing": (file([key("general.alignment", U32, bytes(4))]), "general.alignment is 0"),
    "no dimension": (file([], [entry("a", ())]), "has 0 dimensions"),
    "many dimensions": (file([], [text("a") + struct.pack("<I", 2**31)]), "has 2147483648 dimensions"),
    "an empty tensor": (file([], [entry("a", (4, 0))]), r"shape \[0, 4\]"),
    "half a block": (file([], [entry("a", (48,), 2)], FLOATS), "not whole blocks of 32"),
    "a tensor beyond the file": (file([], [entry("a", (17,))], FLOATS), "takes 68 bytes at 0, and there are 64"),
    "a tensor larger than numbers go": (file([], [entry("a", (2**63, 2**63))], FLOATS), "tensor a takes"),
    "a place behind the file": (file([], [entry("a", (4,), 0, 2**63)], FLOATS), "tensor a takes 16 bytes at 9223372036854775808"),
    "a place between places": (file([], [entry("a", (4,), 0, 4)], FLOATS), "begins at 4, which is no multiple of 32"),
    "two in one place": (file([], [entry("a", (9,)), entry("b", (4,), 0, 32)], FLOATS), "a and b are in the same place"),
    "a name twice": (file([], [entry("a", (4,)), entry("a", (4,), 0, 32)], FLOATS), "tensor a comes twice"),
    "a long name": (file([], [entry("a" * 65, (4,))], FLOATS), "name of a tensor of 65 bytes"),
}
UNSUPPORTED = {
    "the first version": (file(version=1), "version 1"),
    "a version to come": (file(version=4), "version 4"),
    "big-endian": (file(version=3 << 24), "big-endian"),
    "a type to come": (file([], [entry("a", (4,), 999)], FLOATS), "tensor a is of type 999"),
}


@pytest.mark.parametrize("name", [*DAMAGED, *UNSUPPORTED])
def test_a_bad_file_is_an_error_that_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    content, message = {**DAMAGED, **UNSUPPORTED}[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFolderError if name in DAMAGED else UnsupportedModel, match=message) as raised:
        read_gguf(path)
    assert str(raised.value).startswith(str(path))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tiny_model: Callable) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "model.gguf", tiny_model("llama").folder)


def test_a_good_file_is_read_as_the_library_reads_it(model: Path) -> None:
    found, expected = open_gguf(model), gguf.GGUFReader(model)
    assert list(found.tensors) == [tensor.name for tensor in expected.tensors]
    for tensor in expected.tensors:
        mine = found.tensors[tensor.name]
        assert (mine.type, mine.shape) == (tensor.tensor_type.name, tuple(tensor.shape.tolist())[::-1])
        assert np.array_equal(mine.data.flatten().numpy(), tensor.data.view(np.uint8).flatten())
    for name, value in found.metadata.items():
        plain = value.read() if isinstance(value, Strings) else value.tolist() if isinstance(value, np.ndarray) else value
        assert plain == expected.fields[name].contents()


def test_what_is_read_of_a_file_is_the_file(model: Path) -> None:
    """No tensor is copied."""
    tracemalloc.start()
    found = read_gguf(model)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200_000 and len(found.tensors) == 30


@pytest.mark.parametrize("seed", range(6))
def test_no_damage_does_more_than_an_error(seed: int, model: Path, tmp_path: Path) -> None:
    """Bits, numbers and ends of the header changed at random: a model comes out, or one of our errors, and little memory is taken."""
    chance, content = random.Random(seed), model.read_bytes()
    header = content.index(b"token_embd") + 3000
    path = tmp_path / "model.gguf"
    tracemalloc.start()
    for _ in range(120):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 1, 2, 8))):
            place = chance.randrange(min(header, len(damaged)) or 1)
            change = chance.choice(("bit", "number", "number", "cut", "insert")) if len(damaged) > 9 else "insert"
            if change == "bit":
                damaged[place] ^= 1 << chance.randrange(8)
            elif change == "number":
                damaged[place : place + 8] = struct.pack("<Q", chance.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)))
            elif change == "cut":
                del damaged[place : place + chance.choice((1, 8, len(content)))]
            else:
                damaged[place:place] = bytes(chance.choice((1, 8, 32)))
        path.unlink(missing_ok=True)
        path.write_bytes(damaged)
        try:
            read_spec(path)
        except ConfigError as error:
            assert str(path) in str(error) and "\n" not in str(error)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * len(content)


def test_a_model_in_parts_is_read_whole(tmp_path: Path, tiny_model: Callable) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", tiny_model("llama").folder)
    (tmp_path / "parts").mkdir()
    write_gguf(tmp_path / "parts" / "model.gguf", tiny_model("llama").folder, split=11)
    parts = sorted((tmp_path / "parts").iterdir())
    assert [part.name for part in parts] == [f"model-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    expected = open_gguf(whole)
    for part in parts:  # whichever is named
        found = open_gguf(part)
        assert found.tensors.keys() == expected.tensors.keys() and found.metadata.keys() >= expected.metadata.keys()
    assert gguf_in(tmp_path / "parts") == parts[0]


def test_parts_that_do_not_belong_together_are_named(tmp_path: Path, tiny_model: Callable) -> None:
    write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder, split=11)
    first, second, third = sorted(tmp_path.iterdir())
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(ModelFolderError, match=r"model-00002-of-00003\.gguf: this part of the model is missing; there are 3"):
        open_gguf(first)
    second.write_bytes(third.read_bytes())
    with pytest.raises(ModelFolderError, match=r"model-00002-of-00003\.gguf: it is not part 2 of 3"):
        open_gguf(first)
    second.write_bytes(kept)
    with pytest.raises(ModelFolderError, match="one of 3 parts, which are named"):
        open_gguf(first.rename(tmp_path / "other.gguf"))
