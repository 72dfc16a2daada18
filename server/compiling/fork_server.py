"""The process from which compile processes are forked, as it has everything imported and the vocabulary read.

It is told what to do through a socket. First comes a `Start`, and READY goes out. Then come commands: FORK with the socket of a
new process, answered by its process id; END with a process id, which kills that process and is answered by its exit status. No
process is reaped before, so its id stays its own. When the socket is closed, all end.

It has one thread, as a process that forks should, and knows nothing of the server: no model, no device.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from contextlib import suppress
from math import ceil
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn

from ...constraints import (
    Choice,
    Compiler,
    ConstraintError,
    Ebnf,
    Gbnf,
    JsonSchema,
    Lark,
    Limits,
    Reasoning,
    Regex,
    Source,
    Tools,
    Vocabulary,
)
from ...constraints.front_ends.tags.answer import Answer
from ...constraints.front_ends.tags.call_or_text import CallOrText
from ...constraints.runtime.loading import Handover, handed_over
from ...plugins import load_installed, load_plugins

COMMAND = struct.Struct("!Bi")  # what to do, and with which process
ANSWER = struct.Struct("!i")
FORK, END = 1, 2
READY = 0
OUT_OF_MEMORY = 77  # exit status of a process that holds more than it may
SPARE_SECONDS = 1  # of processor time, for what does not look at the clock itself
MEMORY_CHECK_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1
_OBJECT = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "maxLength": 9}, "b": {"type": "integer", "minimum": 0, "maximum": 99}, "c": {"type": "number"},
        "d": {"enum": ["x", 1]}, "e": {"type": "string", "pattern": "^[a-z]+$"}, "f": {"type": "string", "format": "date"},
        "g": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    },
    "required": ["a"],
    "additionalProperties": False,
}  # fmt: skip
_FAMILIAR: tuple[Source, ...] = (  # of every kind: what is loaded and done at the first time is there when a process is forked
    JsonSchema({"type": "object"}),
    JsonSchema(_OBJECT),
    Regex("[a-z]{2,6}[0-9]+|x"),
    Choice(["a", "b"]),
    Gbnf('root ::= "a" part{1,3} [0-9]*\npart ::= [a-z] | "b"'),
    Ebnf('root ::= "a" part\npart ::= [a-z]+'),
    Lark('start: "a" WORD "b"?\nWORD: /[a-z]+/'),
    Tools([{"name": "f", "parameters": _OBJECT}], style="hermes", answer=JsonSchema(_OBJECT)),
    Reasoning(Answer(None), max_tokens=20, optional=True),
    CallOrText(JsonSchema(_OBJECT)),
)
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


class Start(NamedTuple):
    """What all compile processes need."""

    vocabulary: Vocabulary
    limits: Limits
    memory_bytes: int  # that one process may hold
    plugins: tuple[str, ...] = ()  # that were given by name: what sources are made of is known here too


def main(fd: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server finishes its requests first, then ends this
    with suppress(ConnectionError):
        _run(fd)


def _run(fd: int) -> None:
    control = socket.socket(fileno=fd)
    with control.makefile("rb") as pipe:
        start: Start = pickle.load(pipe)
    load_installed()
    load_plugins(start.plugins)
    compiler = Compiler(start.vocabulary, start.limits, cache_bytes=0)
    for source in _FAMILIAR:
        _compiled(compiler, source)
    gc.collect()
    gc.freeze()
    control.sendall(ANSWER.pack(READY))
    children: set[int] = set()
    try:
        while True:
            command, fds, _, _ = socket.recv_fds(control, COMMAND.size, 1)
            if not command:
                return
            kind, pid = COMMAND.unpack(command)
            control.sendall(ANSWER.pack(_fork(control, fds[0], compiler, start, children) if kind == FORK else _end(pid, children)))
    finally:
        for pid in list(children):
            _end(pid, children)


def _fork(control: socket.socket, fd: int, compiler: Compiler, start: Start, children: set[int]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            _end_with_parent()
            _serve(Connection(fd), compiler, start)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(fd)
    children.add(pid)
    return pid


def _end(pid: int, children: set[int]) -> int:
    children.remove(pid)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(connection: Connection, compiler: Compiler, start: Start) -> NoReturn:
    """Compile what is asked for, one after another."""
    threading.Thread(target=_watch_memory, args=(start.memory_bytes,), daemon=True).start()
    while True:
        try:
            data = connection.recv_bytes()
        except EOFError:
            os._exit(0)
        _limit_processor_time(start.limits.seconds)
        connection.send_bytes(_pickled(_compiled(compiler, pickle.loads(data))))


def _compiled(compiler: Compiler, source: Source) -> Handover | Exception:
    """The constraint with its first mask, or the error that it gave."""
    try:
        constraint = compiler.compile(source)
        constraint.min_tokens(constraint.start())
        constraint.mask(constraint.start())
        return handed_over(constraint)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        if not isinstance(error, ConstraintError):
            error.add_note(traceback.format_exc())
        return error


def _pickled(answer: Handover | Exception) -> bytes:
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # an error that holds something of this process
        return pickle.dumps(RuntimeError(f"{type(answer).__name__}: {answer} (cannot be sent: {error})"))


def _limit_processor_time(seconds: float) -> None:
    """Have the process ended by SIGXCPU when compiling takes longer; most of it looks at the clock itself and says where it was."""
    most, used = resource.getrlimit(resource.RLIMIT_CPU)[1], time.process_time()
    wanted = ceil(min(used + seconds, 1e9)) + SPARE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _watch_memory(most: int) -> None:
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT <= most:
        time.sleep(MEMORY_CHECK_SECONDS)
    os._exit(OUT_OF_MEMORY)

