"""Compile processes as the server holds them: started by the fork server, paused, gone on with and ended."""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection

from ...constraints import ConstraintLimit, Limits, Vocabulary
from ...constraints.runtime.loading import Handover
from ...plugins import loaded_names
from ..errors import ApiError
from .fork_server import ANSWER, COMMAND, END, FORK, OUT_OF_MEMORY, READY, Start

SLOW_NICENESS = 19  # the server and the quick lane have 0
HEAVY_SECONDS = 1.0  # of processor time for one source
_ENTRY = "import sys; from maskwright.server.compiling.fork_server import main; main(int(sys.argv[1]))"
_SCHEDULED = 2  # the kind of clock of a process in Linux (CPUCLOCK_SCHED); its number is made of the process id and this
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB", "NUMBA")}


class CompileProcess:
    """One process that compiles what it is asked to. `ask` and `answer` may wait, and belong into threads."""

    def __init__(self, pid: int, connection: Connection, control: socket.socket) -> None:
        """control: of the fork server that knows the process."""
        self.pid, self.control, self._connection = pid, control, connection
        self.num_asked = 0
        self.is_ended = False
        self._seconds_before = math.nan
        self._in_use = threading.Lock()  # the connection, by a thread

    @property
    def is_idle(self) -> bool:
        """Whether it still waits to be asked; else it has been killed meanwhile."""
        return not self._connection.poll()

    def ask(self, source: bytes) -> None:
        """Have a pickled source compiled."""
        self.num_asked += 1
        self._seconds_before = processor_seconds(self.pid)
        with self._in_use, suppress(OSError):  # of a process that has ended: `answer` says so
            self._connection.send_bytes(source)

    @property
    def seconds_used(self) -> float:
        """Processor time for what it was asked last. Not a number where that cannot be told, or when it has ended."""
        return processor_seconds(self.pid) - self._seconds_before

    async def answers_within(self, seconds: float) -> bool:
        """Whether an answer, or the end of the process, has come before that time is over."""
        loop, is_there = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._connection.fileno(), is_there.set)
        try:
            async with asyncio.timeout(seconds):
                await is_there.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._connection.fileno())
            os.set_blocking(self._connection.fileno(), True)  # uvloop's `add_reader` has taken that away, and `answer` waits
        return True

    def answer(self) -> Handover | Exception:
        """What became of the source. Raises EOFError when the process has ended."""
        try:
            with self._in_use:
                data = self._connection.recv_bytes()
        except OSError as error:
            raise EOFError from error
        answer: Handover | Exception = pickle.loads(data)
        return answer

    def slow_down(self) -> None:
        """From now on it gets what others leave. Where it has had much already whoever else wakes up has the processor at once, on
        Linux: a machine that is never idle would keep less from being compiled for good."""
        with suppress(OSError):  # it has ended, or a sandbox keeps the policy from being changed
            os.setpriority(os.PRIO_PROCESS, self.pid, SLOW_NICENESS)
            if self.seconds_used > HEAVY_SECONDS and sys.platform == "linux":
                os.sched_setscheduler(self.pid, os.SCHED_IDLE, os.sched_param(0))

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Let go of a process that has been killed."""
        with self._in_use:
            self._connection.close()

    def _signal(self, number: int) -> None:
        if not self.is_ended:
            with suppress(ProcessLookupError):  # ended with its fork server
                os.kill(self.pid, number)


def processor_seconds(pid: int) -> float:
    """What a process has had of processors. Not a number where that cannot be told, or when it has ended."""
    if sys.platform != "linux":
        return math.nan
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULED)
    except OSError:
        return math.nan


class ForkServer:
    """Starts compile processes for one vocabulary, and ends them. All methods may wait, and belong into threads."""

    def __init__(self, vocabulary: Vocabulary, limits: Limits, memory_bytes: int) -> None:
        self._start, self._lock = Start(vocabulary, limits, memory_bytes, loaded_names()), threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket
        self.is_closed = False

    def start(self) -> None:
        """Start it, unless it runs. Raises ApiError when that fails."""
        with self._lock:
            self._ensure()

    def fork(self) -> CompileProcess:
        """A new process. Raises ApiError when there can be none."""
        with self._lock:
            try:
                self._ensure()
                ours, theirs = socket.socketpair()
                with ours, theirs:
                    socket.send_fds(self._control, [COMMAND.pack(FORK, 0)], [theirs.fileno()])
                    return CompileProcess(self._answer(), Connection(ours.detach()), self._control)
            except OSError as error:
                self._give_up()
                raise _broken(f"there is no process to fork it from ({error})") from error

    def end(self, process: CompileProcess) -> int | None:
        """End a process, if it has not ended by itself. Its exit status; None when nobody knows it any more."""
        status = None
        with self._lock:
            if process.is_ended:
                return None
            process.is_ended = True
            if self._process is not None and process.control is self._control:
                try:
                    self._control.sendall(COMMAND.pack(END, process.pid))
                    status = self._answer()
                except OSError:
                    self._give_up()
        process.close()
        return status

    def close(self) -> None:
        """End all processes for good."""
        self.is_closed = True
        if (process := self._process) is not None:
            process.kill()  # whoever waits for an answer has it now, and lets the lock go
        with self._lock:
            self._give_up()

    def _ensure(self) -> None:
        if self.is_closed:
            raise _broken("the server is shutting down")
        if self._process is None:
            self._launch()

    def _launch(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _ENTRY, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                process_group=0,  # a terminal's Ctrl-C is for the server; a session of its own would make niceness mean nothing
            )
        self._control.sendall(pickle.dumps(self._start))
        if self._answer() != READY:
            raise OSError("it is not ready")

    def _answer(self) -> int:
        data = self._control.recv(ANSWER.size, socket.MSG_WAITALL)
        if len(data) < ANSWER.size:
            raise ConnectionResetError("it has ended")
        answer: int = ANSWER.unpack(data)[0]
        return answer

    def _give_up(self) -> None:
        """End the fork server, and its processes with it; another one is started when a process is wanted."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._control.close()


def died(status: int | None, limits: Limits, memory_bytes: int) -> Exception:
    """Why a process ended before it answered."""
    if status == OUT_OF_MEMORY:
        return ConstraintLimit("compiling it takes too much memory", limit="memory_bytes", value=memory_bytes, instead="less of it")
    if status == -signal.SIGXCPU:
        return ConstraintLimit("compiling it takes too long", limit="seconds", value=limits.seconds)
    if status is None:
        return _broken("it was ended with the process that forks")
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return _broken(f"it was ended by {name}" + (": the machine may be out of memory" if name == "SIGKILL" else ""))


def _broken(reason: str) -> ApiError:
    return ApiError(500, f"the constraint was not compiled: its compile process: {reason}; try again", code="compile_failed")
