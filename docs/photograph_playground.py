"""Screenshots of the playground in headless Chromium, as the README shows them: docs/playground-*.png.

    pip install -e ".[server,test,bench]" && apt-get install chromium-headless-shell fonts-inter fonts-jetbrains-mono
    python docs/photograph_playground.py [FOLDER]

Nothing in them is arranged: each is a request to the embedded model. Figures of time are those of the machine it runs on.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from maskwright import LLM
from maskwright.server.app import create_app

CHROMIUM = "/usr/bin/chromium-headless-shell"
WIDE = {"width": 1360, "height": 820}
PHONE = {"width": 390, "height": 844}


def run(page: Any) -> None:
    page.locator("#run").click()
    page.locator("#state", has_text="complete").wait_for()


def person(page: Any) -> None:
    run(page)  # once more, so that the constraint is known and caches are warm, as they are on a server
    run(page)


def order(page: Any) -> None:
    page.locator("#example").select_option(index=1)
    person(page)


def mistake(page: Any) -> None:
    page.locator("#example").select_option(label="A schema with a mistake")
    page.locator("#run").click()
    page.locator("#error").wait_for()


SHOTS: tuple[tuple[str, str, dict[str, int], Callable[[Any], None], str | None], ...] = (
    ("light", "light", WIDE, person, None),
    ("dark", "dark", WIDE, person, None),
    ("order", "dark", WIDE, order, None),
    ("phone", "light", PHONE, person, None),
    ("error", "light", WIDE, mistake, None),
)


def main(folder: Path) -> None:
    server = uvicorn.Server(uvicorn.Config(create_app(LLM()), log_level="warning"))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for name, scheme, size, action, part in SHOTS:
                page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2, reduced_motion="reduce")
                page.set_default_timeout(120_000)  # milliseconds
                page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}")
                page.locator("#server", has_text="tokens").wait_for()
                action(page)
                page.mouse.move(1, 1)
                target = page.locator(part) if part else page
                path = folder / f"playground-{name}.png"
                target.screenshot(path=path)
                few = Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the size
                few.save(path, optimize=True)
                page.close()
            browser.close()
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
