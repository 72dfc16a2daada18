"""The adapters of an engine by name: which there are, and which of them requests may ask for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ...foundation.option_names import unknown_name
from ..errors import AdapterError, AdapterInUse, RequestError
from ..models.architecture import ModelInfo
from .adapter import Adapter
from .loaded import LoadedAdapter
from .reading import read_adapter
from .slots import AdapterSlots

_NAME = re.compile(r"[^\x00-\x20\x7f]{1,256}")


class AdapterRegistry:
    """What is loaded. Not thread-safe, but for `read`: the thread that steps the engine calls all methods, between steps."""

    def __init__(self, spec: ModelInfo, slots: AdapterSlots, max_rank: int) -> None:
        self.slots, self.max_rank = slots, max_rank
        self._spec = spec
        self._loaded: dict[str, LoadedAdapter] = {}
        self._leaving: set[str] = set()

    @property
    def loaded(self) -> Mapping[str, LoadedAdapter]:
        """By name, in the order of loading."""
        return MappingProxyType(dict(self._loaded))

    def read(self, path: str | os.PathLike[str]) -> Adapter:
        """The adapter in a folder of peft or a GGUF file, checked against the model. Raises AdapterError."""
        return read_adapter(path, self._spec, self.max_rank)

    def load(self, name: str, adapter: Adapter) -> LoadedAdapter:
        """Let requests ask for an adapter by a name. Raises AdapterError where the name is taken or there is no room."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise AdapterError(f"an adapter's name is a str of 1 to 256 characters without spaces, not {name!r:.80}")
        if name in self._loaded:
            raise AdapterError(f'an adapter "{name}" is loaded; unload it first, or take another name')
        return self._load(name, adapter)

    def replace(self, name: str, adapter: Adapter, users: Iterable[LoadedAdapter | None]) -> LoadedAdapter:
        """Have a name stand for another adapter, without a moment in which it stands for none. Raises as `unload` does."""
        self.slots.free(self._unused(name, users).slot)
        try:
            return self._load(name, adapter)
        except AdapterError:  # no memory for it, where the old one is no more either
            self._forget(name)
            raise

    def unload(self, name: str, users: Iterable[LoadedAdapter | None]) -> None:
        """Forget an adapter. users: those of all unfinished requests. Raises AdapterInUse, and AdapterError for an unknown name."""
        self.slots.free(self._unused(name, users).slot)
        self._forget(name)

    def retire(self, name: str, *, is_leaving: bool) -> None:
        """Refuse new requests for an adapter that is to be unloaded, or take them again. Raises AdapterError."""
        self._named(name)
        (self._leaving.add if is_leaving else self._leaving.discard)(name)

    def find(self, name: str) -> LoadedAdapter:
        """The adapter that a request asks for. Raises RequestError."""
        if name not in self._loaded:
            raise RequestError(self._unknown(name)).about("adapter")
        if name in self._leaving:
            raise RequestError(f'adapter "{name}" is being unloaded').about("adapter")
        return self._loaded[name]

    def _load(self, name: str, adapter: Adapter) -> LoadedAdapter:
        slot = self.slots.load(adapter)
        loaded = LoadedAdapter(name, adapter.path, adapter.rank, adapter.num_parameters, adapter.fingerprint, slot)
        self._loaded[name] = loaded
        return loaded

    def _forget(self, name: str) -> None:
        del self._loaded[name]
        self._leaving.discard(name)

    def _unused(self, name: str, users: Iterable[LoadedAdapter | None]) -> LoadedAdapter:
        loaded = self._named(name)
        num_users = sum(user is loaded for user in users)
        if num_users:
            raise AdapterInUse(name, num_users)
        return loaded

    def _named(self, name: str) -> LoadedAdapter:
        if name not in self._loaded:
            raise AdapterError(self._unknown(name))
        return self._loaded[name]

    def _unknown(self, name: str) -> str:
        return unknown_name("adapter", name, self._loaded) if self._loaded else f'unknown adapter "{name}"; none is loaded'
