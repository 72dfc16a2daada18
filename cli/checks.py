"""The checks of `maskwright doctor`. Each looks at one thing, loads what it needs for that itself, and never raises."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from ..errors import MaskwrightError, UsageError
from ..foundation import compile_cache
from ..foundation.diagnosis import Finding, Verdict
from .show import waiting

LOOP_ENTRIES = 20  # entry points of compiled loops, at least; each has an index file in the cache
NAMED = "mend what the message names"
BROKEN = f"{NAMED}, or install anew: pip install --force-reinstall maskwright"
SLOW_SECONDS = 60.0  # for the embedded model to load and answer, with all loops compiled


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to work: a model, and a server at an address."""

    model: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Check:
    """A function that looks at one thing, under the name of its line."""

    name: str
    look: Callable[[Subject], Iterator[tuple[Verdict, str, str]]]

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """What it finds, in the order in which it finds it; an error is a finding too."""
        try:
            for verdict, found, advice in self.look(subject):
                yield Finding(self.name, verdict, found, advice)
        except MaskwrightError as error:  # what was asked for is wrong, not what is installed
            yield Finding(self.name, Verdict.FAIL, " ".join(str(error).split()), NAMED)
        except Exception as error:  # a broken installation raises anything
            text = " ".join(f"{type(error).__name__}: {error}".split())
            yield Finding(self.name, Verdict.FAIL, text, BROKEN)


def _python(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
    found = f"{version('maskwright')} on Python {platform.python_version()}, {platform.system()} {platform.machine()}, {sys.prefix}"
    yield Verdict.OK, found, ""


def _packages(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
    from packaging.requirements import Requirement

    needed = [Requirement(line) for line in requires("maskwright") or ()]
    missing = [str(one) for one in needed if _is_wanted(one.marker, "") and not _is_met(one)]
    if missing:
        yield Verdict.FAIL, f"missing or of another version: {', '.join(missing)}", "pip install --upgrade maskwright"
    else:
        yield Verdict.OK, "all that it needs is installed", ""
    lacking = [str(one.name) for one in needed if _is_wanted(one.marker, "server") and not _is_met(one)]
    if lacking:
        yield (
            Verdict.WARN,
            f"the server lacks {', '.join(lacking)}",
            'for maskwright serve: pip install "maskwright[server]"',
        )


def _is_wanted(marker: object, extra: str) -> bool:
    return marker is None or bool(marker.evaluate({"extra": extra}))  # type: ignore[attr-defined]  # of packaging


def _is_met(requirement: object) -> bool:
    with suppress(PackageNotFoundError):
        found = version(requirement.name)  # type: ignore[attr-defined]  # of packaging
        return bool(requirement.specifier.contains(found, prereleases=True))  # type: ignore[attr-defined]
    return False


def _device(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
    import torch

    kind = f"CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs"
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        yield Verdict.OK, f"PyTorch {torch.__version__} ({kind}), {card.name} with {card.total_memory >> 30} GiB", ""
        yield _triton()
        return
    has_card = Path("/dev/nvidia0").exists()
    found = f"PyTorch {torch.__version__} ({kind}), models run on the CPU"
    if has_card and torch.version.cuda:
        yield (
            Verdict.WARN,
            f"{found}, though there is an NVIDIA card",
            "its driver is too old for this PyTorch: see nvidia-smi",
        )
    elif has_card:
        advice = "install PyTorch with CUDA: pip install --force-reinstall torch"
        yield Verdict.WARN, f"{found}, though there is an NVIDIA card", advice
    else:
        yield Verdict.OK, found, ""


def _triton() -> tuple[Verdict, str, str]:
    try:
        import triton
    except ImportError as error:
        return Verdict.WARN, f"no Triton ({error}): the card computes without our kernels", "pip install triton"
    return Verdict.OK, f"Triton {triton.__version__}", ""


def _threads(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
    import torch

    from ..engine.device.threads import usable_cores

    usable, used = usable_cores(), torch.get_num_threads()
    found = f"{used} threads of PyTorch on {usable:g} usable cores of {os.cpu_count()}"
    yield judge_threads(found, used, usable)


def judge_threads(found: str, used: int, usable: float) -> tuple[Verdict, str, str]:
    """Threads that share a core wait for each other in every operation."""
    if used > max(usable, 1):
        advice = f"more threads than cores wait for each other: --threads {max(int(usable), 1)}, or OMP_NUM_THREADS"
        return Verdict.WARN, found, advice
    return Verdict.OK, found, ""


def _cache(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
    from ..constraints.numba_support.jit import LOOPS

    if LOOPS.is_compiled:
        yield Verdict.OK, f"loops are machine code, for {LOOPS.level}", ""
        return
    folder = compile_cache.folder_in_use()
    is_writable = compile_cache.is_writable(folder / "__pycache__" if folder.name == "constraints" else folder)
    yield judge_cache(folder, is_writable, sum(1 for _ in folder.rglob("*.nbi")))


def judge_cache(folder: Path, is_writable: bool, num_kept: int) -> tuple[Verdict, str, str]:
    """Compiled loops that cannot be kept are compiled again by every process."""
    found = f"{num_kept} compiled loops in {folder}"
    if not is_writable and num_kept < LOOP_ENTRIES:
        advice = f"every start compiles for 1 to 3 minutes: set {compile_cache.VARIABLE} to a folder that this user may write to"
        return Verdict.FAIL, f"{found}, which is not writable", advice
    if num_kept < LOOP_ENTRIES:
        return Verdict.WARN, found, "the first use compiles for 1 to 3 minutes, once for this machine"
    return Verdict.OK, found + ("" if is_writable else " (read-only)"), ""


def _native(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
    from ..constraints.grammar import store

    yield judge_native(str(store.__file__))


def judge_native(file: str) -> tuple[Verdict, str, str]:
    """Whether the modules that lower schemas are machine code, by the file of one of them."""
    if file.endswith(".py"):
        advice = (
            "schemas compile in 1.6 times the time: with a C compiler, pip install again (in a clone: pip install -e .)"
        )
        return Verdict.WARN, "modules that lower schemas run as Python", advice
    return Verdict.OK, "modules that lower schemas are machine code", ""


def _model(subject: Subject) -> Iterator[tuple[Verdict, str, str]]:
    from ..constraints import warm_up
    from ..llm import LLM
    from ..sampling import SamplingParams

    with waiting() as say:
        warm_up(report=say)
    begun = time.perf_counter()
    llm = LLM(subject.model)
    (output,) = llm.generate("on or off?", choice=["on", "off"], sampling=SamplingParams(temperature=0.0))
    seconds, answer = time.perf_counter() - begun, output.parsed
    found = f"{subject.model} loads on {llm.config.device} and answers {answer!r} in {seconds:.1f} s"
    if subject.model == "embedded" and seconds > SLOW_SECONDS:
        yield Verdict.WARN, found, "that is slow for a small model: other programs use the cores, or the disk"
    else:
        yield Verdict.OK, found, ""


def _port(subject: Subject) -> Iterator[tuple[Verdict, str, str]]:
    from ..server.listening import bound_socket

    try:
        bound_socket(subject.host, subject.port).close()
    except UsageError as error:
        yield Verdict.WARN, str(error), "maskwright serve --port 0 takes a free one"
    else:
        yield Verdict.OK, f"{subject.port} of {subject.host} is free for maskwright serve", ""


CHECKS = (
    Check("maskwright", _python),
    Check("packages", _packages),
    Check("device", _device),
    Check("threads", _threads),
    Check("cache", _cache),
    Check("native", _native),
    Check("model", _model),
    Check("port", _port),
)
