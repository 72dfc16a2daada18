"""Plugins: functions without arguments that register things of one's own (`extending.py`), each called once in a process.

They are found by their names (`LLM(plugins=["my_module:register"])`, `--plugin my_module:register`, `--plugin file.py`), or by
the entry points `maskwright.plugins` of installed packages. `MASKWRIGHT_PLUGINS` names which of these are loaded ("a,b", or ""
for none); unset: all.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from .errors import UsageError

GROUP, VARIABLE = "maskwright.plugins", "MASKWRIGHT_PLUGINS"
Plugin: TypeAlias = str | Callable[[], object]
_loaded: dict[object, object] = {}  # a name, or what tells a function, and the plugin, in their order


def load_plugins(plugins: Iterable[Plugin], option: str = "plugins=") -> None:
    """Call plugins that were not called before. Raises UsageError that names the one which cannot be loaded, or raises."""
    if isinstance(plugins, str) or not isinstance(plugins, Iterable):
        raise UsageError(f"{option} is a list of functions and names, not {plugins!r:.80}")
    for plugin in plugins:
        if not isinstance(plugin, str) and not callable(plugin):
            raise UsageError(f'{option} {plugin!r:.80} is neither a function nor a name such as "my_module:register"')
        key = plugin if isinstance(plugin, str) else id(plugin)
        if key in _loaded:
            continue
        _call(_named(plugin, option) if isinstance(plugin, str) else plugin, f"{option} {plugin!s:.80}")
        _loaded[key] = plugin


def loaded_names() -> tuple[str, ...]:
    """The plugins that were given by name, for processes that begin anew."""
    return tuple(key for key in _loaded if isinstance(key, str))


def load_installed() -> None:
    """Call the plugins of installed packages. Raises UsageError that names the one which cannot be loaded, or raises."""
    found = _installed()
    wanted = os.environ.get(VARIABLE)
    names = list(found) if wanted is None else [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in found:
            raise UsageError(f'{VARIABLE}: no installed package has a plugin "{name}"; there are {", ".join(found) or "none"}')
        point = found[name]
        if (GROUP, name) in _loaded:
            continue
        told = f'the plugin "{name}" ({point.value}), which {VARIABLE} can leave out,'
        try:
            plugin = point.load()
        except Exception as error:
            raise UsageError(f"{told} cannot be imported: {type(error).__name__}: {error}") from error
        _call(plugin, told)
        _loaded[GROUP, name] = plugin


def named_object(name: str, option: str) -> Any:
    """What `module:Name` or `file.py:Name` stands for. Raises UsageError that names the option."""
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise UsageError(f"{option} {name}: what is meant is written MODULE:NAME or FILE.py:NAME")
    module = load_module(module_name, option, name)
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UsageError(f'{option} {name}: {module_name} has no "{attribute}"') from None


def load_module(module_name: str, option: str, name: str) -> ModuleType:
    """A module by its name, or a file. Raises UsageError that names the option."""
    try:
        if module_name.endswith(".py"):
            return _load_file(Path(module_name))
        if "" not in sys.path:  # a console script does not look into the current folder by itself
            sys.path.insert(0, "")
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f'{option} {name}: there is no module "{error.name}"') from None
    except FileNotFoundError:
        raise UsageError(f"{option} {name}: there is no such file") from None
    except Exception as error:  # whatever the user's own code raises
        raise UsageError(f"{option} {name}: loading it failed: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "a name that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and Pydantic look their module up
    spec.loader.exec_module(module)
    return module


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _named(name: str, option: str) -> Callable[[], object]:
    """The function of a name; of a module without one, what is done by importing it."""
    if ":" in name:
        plugin: Callable[[], object] = named_object(name, option)
        return plugin
    load_module(name, option, name)
    return lambda: None


def _call(plugin: Any, told: str) -> None:
    if not callable(plugin):
        raise UsageError(f"{told} is no function, but {plugin!r:.80}")
    try:
        plugin()
    except Exception as error:
        raise UsageError(f"{told} raised {type(error).__name__}: {error}") from error
