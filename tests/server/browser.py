"""A Chromium for tests of the playground, where there is one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser. Skips when there is none: MASKWRIGHT_CHROMIUM says where it is, if not on the path."""
    api = pytest.importorskip("playwright.sync_api", reason='needs playwright (pip install "maskwright[browser]")')
    path = os.environ.get("MASKWRIGHT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("needs Chromium (on Debian: apt-get install chromium-headless-shell)")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])  # as root, as in containers, it has none
        yield browser
        browser.close()
