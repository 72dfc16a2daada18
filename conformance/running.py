"""A backend's answers to all cases. It works in processes of their own: one that dies or hangs has answered one case wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from ..errors import UsageError
from .cases import Case, load
from .checks import CHECKS, NotOffered, Wrong
from .protocol import Backend
from .vocabularies import vocabulary

BACKENDS = ("maskwright", "xgrammar", "llguidance", "outlines")
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
SECONDS = 30.0  # of processor time for a case
_MOST_TEXT = 300  # characters of what was wrong
_READY = "ready\n"  # the first line of a process


@dataclass(frozen=True)
class Answer:
    """What became of a case: `verdict` is one of right, refused, wrong; `why` says it of the last two."""

    suite: str
    id: str
    verdict: str
    why: str = ""


def find_backend(name: str) -> Backend:
    """A backend by its name, or as "module:Class". Raises UsageError."""
    module, _, attribute = name.partition(":") if ":" in name else (f"{__package__}.backends.{name}", "", "ConformanceBackend")
    if ":" not in name and name not in BACKENDS:
        raise UsageError(f"--backend {name}: {', '.join(BACKENDS)}, or MODULE:CLASS")
    try:
        backend: Backend = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--backend {name}: {error}") from None
    return backend


def answer(backend: Backend, suite: str, case: Case) -> Answer:
    """What a backend makes of a case, in this process."""
    tokens = vocabulary(case.vocabulary)
    is_compiling = False

    def make() -> Any:
        nonlocal is_compiling
        is_compiling = True
        made = backend.compile(case.kind, case.source, tokens)
        is_compiling = False
        return made

    try:
        CHECKS[case.check](case, make)
    except Wrong as error:
        return Answer(suite, case.id, WRONG, str(error)[:_MOST_TEXT])
    except NotOffered as error:
        return Answer(suite, case.id, REFUSED, str(error)[:_MOST_TEXT])
    except Exception as error:  # whatever a backend raises
        text = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_TEXT]
        if is_compiling:
            return Answer(suite, case.id, REFUSED, text)
        return Answer(suite, case.id, WRONG, f"fails while it is used: {text}")
    return Answer(suite, case.id, RIGHT)


def run(
    name: str, suites: Sequence[str], seconds: float = SECONDS, report: Callable[[int], None] = lambda done: None
) -> list[Answer]:
    """The answers of a backend, by name, to the cases of some suites.

    seconds: of processor time for a case. report: told after each case how many answers there are by now.
    """
    find_backend(name)  # what is missing is said before anything starts
    wanted = [(suite, case.id) for suite in suites for case in load(suite)]
    answers: list[Answer] = []
    while len(answers) < len(wanted):
        with _started(name, suites, len(answers), seconds) as process:
            assert process.stdout
            if process.stdout.readline() != _READY:
                raise UsageError(f"--backend {name}: it cannot be made in a process of its own, exit status {process.wait()}")
            for line in process.stdout:
                answers.append(Answer(**json.loads(line)))
                report(len(answers))
            code = process.wait()
        if len(answers) < len(wanted):
            what = "takes too long" if code in (-signal.SIGPROF, -signal.SIGALRM) else f"ends its process, exit status {code}"
            answers.append(Answer(*wanted[len(answers)], WRONG, what))
            report(len(answers))
    return answers


def _started(name: str, suites: Sequence[str], skip: int, seconds: float) -> subprocess.Popen[str]:
    """A process that writes an answer a line, beginning with the case behind the first `skip`."""
    command = [sys.executable, "-m", f"{__package__}.running", name, str(skip), str(seconds), *suites]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _work(name: str, skip: int, seconds: float, suites: Sequence[str]) -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    backend = find_backend(name)
    out.write(_READY)
    out.flush()
    for suite, case in [(each, case) for each in suites for case in load(each)][skip:]:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # no handler: the process ends, whatever it is in
        signal.setitimer(signal.ITIMER_REAL, 10 * seconds)  # for one that waits
        found = answer(backend, suite, case)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        out.write(json.dumps(asdict(found)) + "\n")
        out.flush()


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
