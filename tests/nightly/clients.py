"""Client libraries against a started server, each in an environment of its own: `make clients`, every night.

    python tests/nightly/clients.py [NAME ...] [--into build/clients] [--url ADDRESS]

`libraries.toml` pins what is installed into build/clients/NAME; an environment that has these pins is kept. A script for each library
tries typed output, tools in a loop, streaming and an error, and says a line of each. Without --url, `maskwright serve` is started
with the embedded model. A library that cannot be installed is skipped, and said so; anything that fails makes the run fail.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
INSTALL_SECONDS, SCRIPT_SECONDS, START_SECONDS = 900, 300, 300
CHECKS = ("typed output", "tools in a loop", "streaming", "error")  # columns; what a library has beside them is told below the table
SIGNS = {"ok": "ok", "failed": "FAILED"}


@dataclass(frozen=True)
class Library:
    """A client library: what its environment holds, and the script that tries it."""

    name: str
    script: str
    packages: tuple[str, ...]

    @property
    def is_javascript(self) -> bool:
        return self.script.endswith(".mjs")


@dataclass
class Tried:
    """What came of a library: its checks by name, each with how it went and why."""

    library: Library
    checks: dict[str, tuple[str, str]] = field(default_factory=dict)
    skipped: str = ""  # why, if it was
    seconds: float = 0.0

    @property
    def is_wrong(self) -> bool:
        return not self.skipped and (not self.checks or any(how != "ok" for how, _ in self.checks.values()))


def libraries() -> list[Library]:
    read = tomllib.loads((HERE / "libraries.toml").read_text(encoding="utf-8"))
    return [Library(name, told["script"], tuple(told["packages"])) for name, told in read.items()]


def install(library: Library, folder: Path) -> str:
    """Makes the environment of a library; what went wrong, if anything did."""
    mark, wanted = folder / "installed.json", json.dumps([sys.version_info[:2], library.packages])
    if mark.exists() and mark.read_text() == wanted:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if library.is_javascript:
        if shutil.which("npm") is None:
            return "needs Node with npm"
        (folder / "package.json").write_text('{"private": true}')
        steps = [["npm", "install", "--no-audit", "--no-fund", "--save-exact", *library.packages]]
    else:
        python = str(folder / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        steps = [[sys.executable, "-m", "venv", str(folder)], [*pip, *library.packages]]
    for step in steps:
        try:
            ended = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"not installed within {INSTALL_SECONDS} s"
        if ended.returncode:
            return f"cannot be installed: {(ended.stderr.strip() or ended.stdout.strip()).splitlines()[-1][:300]}"
    mark.write_text(wanted)
    return ""


def attempt(library: Library, folder: Path, url: str) -> Tried:
    """Runs the script of a library in its environment."""
    tried, begun = Tried(library), time.perf_counter()
    tried.skipped = install(library, folder)
    if not tried.skipped:
        script = str(HERE / library.script)
        command = ["node", script] if library.is_javascript else [str(folder / "bin" / "python"), script]
        environment = {**os.environ, "MASKWRIGHT_URL": url, "MODULES": str(folder)}
        try:
            ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=SCRIPT_SECONDS, check=False)
            output, code = ended.stdout + ended.stderr, ended.returncode
        except subprocess.TimeoutExpired as error:
            output, code = f"{error.stdout!r}", f"still running after {SCRIPT_SECONDS} s"
        tried.checks = {name: (how, why) for how, name, why in re.findall(r"^(ok|failed)\t(.*)\t(.*)$", output, re.MULTILINE)}
        if (code and not tried.is_wrong) or not tried.checks:  # it ended before its checks did
            tried.checks["script"] = ("failed", f"ended with {code}: {output[-1000:]}")
    tried.seconds = time.perf_counter() - begun
    return tried


def table(all_tried: list[Tried]) -> str:
    """The results, as Markdown."""
    lines = [f"| library | {' | '.join(CHECKS)} | s |", f"|:--|{':--|' * len(CHECKS)}--:|"]
    for tried in all_tried:
        cells = [SIGNS[tried.checks[name][0]] if name in tried.checks else "skipped" if tried.skipped else "-" for name in CHECKS]
        lines.append(f"| {' '.join(tried.library.packages)} | {' | '.join(cells)} | {tried.seconds:.0f} |")
    for tried in all_tried:
        if tried.skipped:
            lines.append(f"\nskipped {tried.library.name}: {tried.skipped}")
        lines += [f"\nFAILED {tried.library.name}, {name}: {why}" for name, (how, why) in tried.checks.items() if how != "ok"]
    others = [f"{tried.library.name}: {name}" for tried in all_tried for name, (how, _) in tried.checks.items() if name not in CHECKS and how == "ok"]
    return "\n".join([*lines, *(["\nalso ok: " + "; ".join(others)] if others else [])])


@contextlib.contextmanager
def serving(log: Path) -> Iterator[str]:
    """`maskwright serve` with the embedded model, and its address."""
    command = [sys.executable, "-c", "from maskwright.cli import main; main()", "serve", "--port", "0"]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not (found := re.search(r"running on (http://\S+)", log.read_text())):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the server did not start:\n{log.read_text()[-2000:]}")
                time.sleep(0.1)
            yield found[1]
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {library.name: library for library in libraries()}
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all of them, or some of {', '.join(known)}")
    parser.add_argument("--into", type=Path, default=Path("build/clients"))
    parser.add_argument("--url", help="a server with the embedded model that is running already")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"there is no library {', '.join(sorted(unknown))}")
    into = options.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    all_tried = []
    with contextlib.nullcontext(options.url) if options.url else serving(into / "server.log") as url:
        for name in options.names or known:
            tried = attempt(known[name], into / name, url)
            all_tried.append(tried)
            print(f"{name}: {tried.skipped or ', '.join(f'{check} {how}' for check, (how, _) in tried.checks.items())}", flush=True)
    told = table(all_tried)
    (into / "results.md").write_text(told + "\n")
    print(f"\n{told}")
    sys.exit(any(tried.is_wrong for tried in all_tried))


if __name__ == "__main__":
    main()
