"""Which releases of an engine an adapter was tested with. Others are refused: what fits by chance constrains by chance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import metadata

from ..errors import MaskwrightError

ANY_VERSION = "MASKWRIGHT_ANY_ENGINE_VERSION"  # environment: "1" lets every release pass


class UnsupportedEngine(MaskwrightError, RuntimeError):
    """An engine of a release that the adapter was not tested with. `engine`, `version`; `tested` are the releases it was."""

    def __init__(self, engine: str, version: str, tested: Sequence[str]) -> None:
        self.engine, self.version, self.tested = engine, version, tuple(tested)
        super().__init__(
            f"{engine} {version} is not among the releases that maskwright was tested with ({', '.join(tested)}); "
            f"install one of them, or set {ANY_VERSION}=1 to try it all the same"
        )


def check_version(engine: str, distributions: Sequence[str], tested: Sequence[str]) -> str:
    """The installed version of an engine. tested: beginnings of versions, such as "0.33".

    distributions: names under which the engine is published, of which the first one installed counts. Raises `UnsupportedEngine`.
    """
    version = next((found for name in distributions if (found := _version(name)) is not None), "of an unknown version")
    is_tested = any(version == prefix or version.startswith(f"{prefix}.") for prefix in tested)
    if not is_tested and os.environ.get(ANY_VERSION) != "1":
        raise UnsupportedEngine(engine, version, tested)
    return version


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
