"""The ranks that follow this process, as it sees them: started, told what to do, watched, ended.

A rank that ends unasked, that gives no sign of life for `rank_seconds`, or that lives, is waited for as long and does not get on,
takes the others with it: a model is of no use without a share of it. Whoever waits for that rank, this process too, waits no longer
when all connections are closed, and what is asked of the team from then on raises RankLost.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from ..config import EngineConfig
from ..errors import ConfigError, RankLost
from ..models.architecture import ModelInfo
from ..sharding.peers import Peers
from ..sharding.progress import Standing, is_sign, standing_of
from ..sharding.ranks import Rank
from .messages import Answer, Begin, Failed, Measure, Order, Room, Start, send
from .patience import Patience

_SCRIPT = Path(__file__).parents[1] / "follower_process.py"
_SIGNS = 8  # of life, in the time after which a rank without one is lost
GRACE_SECONDS = 3.0  # for a rank to end by itself
CAUSE_SECONDS = 1.0  # to learn that a rank has ended, when what this one computes with it fails


class Follower:
    """One process that follows, and the connection to it, by whose end both sides know of the other's."""

    def __init__(self, rank: Rank, seconds: float) -> None:
        """seconds: without a sign of life, after which `hear` waits no longer."""
        self.rank, self.seconds = rank, seconds
        self.on_standing: Callable[[Standing], object] = lambda _: None  # is told by signs of life how far it is
        self.answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()  # None: it has ended
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(_SCRIPT), str(theirs.fileno()), str(seconds / _SIGNS)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what this process prints is its own
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                process_group=0,  # a terminal's Ctrl-C is for this process
            )
        self._connection = Connection(os.dup(self._socket.fileno()))

    def tell(self, order: Order) -> None:
        """Raises OSError when it has ended."""
        send(self._connection, order)

    def hear(self) -> Answer | None:
        """Its next answer; None when it has ended. Raises TimeoutError when it gives no sign of life, as where it was stopped."""
        try:
            while self._has_spoken():
                said = self._connection.recv_bytes()
                if not is_sign(said):
                    answer: Answer = pickle.loads(said)
                    return answer
                if (standing := standing_of(said)) is not None:
                    self.on_standing(standing)
        except (EOFError, OSError):
            return None
        except Exception as error:  # what it answers cannot be read here
            return Failed(error)
        raise TimeoutError

    def _has_spoken(self) -> bool:
        """Whether it gives a sign of life. The second look is for both having stood still, as in a container that is paused."""
        return self._connection.poll(0.75 * self.seconds) or self._connection.poll(0.25 * self.seconds)

    def let_go(self) -> None:
        """Close the connection, upon which it ends."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Wait until it has ended, and kill it if it does not."""
        try:
            self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._socket.close()

    def how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            status = self.process.wait(GRACE_SECONDS)
            return f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        return "its connection"


class Team:
    """Rank 0's hold on the ranks that follow it. One thread at a time gives orders."""

    def __init__(self, config: EngineConfig, spec: ModelInfo) -> None:
        """Starts them, and has them load their shares, which is what they answer first. `config` is resolved."""
        size = config.tensor_parallel
        self._seconds, self._patience = config.rank_seconds, Patience(_SIGNS)
        self.peers = Peers(Rank(0, size))
        self.peers.progress.settle(is_settling=False)  # while it waits, what other threads of this process do is no progress
        self.lost: str | None = None  # why nothing more can be asked of the ranks
        self._loss, self._lock = threading.Event(), threading.Lock()
        self._meeting = Path(tempfile.mkdtemp(prefix="maskwright-ranks-"))
        self.followers: list[Follower] = []
        self._finish = weakref.finalize(self, _end_all, self.followers, self._meeting)
        for number in range(1, size):
            follower = Follower(Rank(number, size), config.rank_seconds)
            self.followers.append(follower)
            threading.Thread(target=_listen, args=(follower, weakref.ref(self)), daemon=True).start()
            self._tell(follower, Start(follower.rank, config, spec))

    # ---- orders

    def tell(self, order: Order | Callable[[Rank], Order]) -> None:
        """Have all ranks do something, each what the function gives for it."""
        for follower in self.followers:
            self._tell(follower, order(follower.rank) if callable(order) else order)

    def answers(self) -> Sequence[Answer]:
        """What each rank answers to its last order. Raises what one of them raised; RankLost when one has ended."""
        found = list[Answer]()
        for follower in self.followers:
            with self.peers.progress.waiting():
                answer = follower.answers.get()
            if isinstance(answer, Failed) and isinstance(answer.error, ConfigError):
                raise answer.error
            if answer is None or isinstance(answer, Failed):
                self._loss.wait(CAUSE_SECONDS)
                raise RankLost(self.lost or f"rank {follower.rank.number} has ended")
            found.append(answer)
        return found

    def num_blocks(self) -> int:
        """For how many blocks of the cache all ranks have room."""
        self.tell(Measure())
        return min(answer.num_blocks for answer in self.answers() if isinstance(answer, Room))

    def begin(self, num_blocks: int, num_host_blocks: int, device: torch.device) -> None:
        """Have all ranks make their caches, and meet them."""
        meeting = self._meeting / "meeting"
        self.tell(Begin(num_blocks, num_host_blocks, meeting))
        self.answers()
        with self.together():
            self.peers.connect(meeting, device, self._seconds)
        self.answers()

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block in which this rank computes with the others: where it fails here, they wait for nothing, so all end.

        Raises RankLost, in place of any other exception, and when a rank has ended.
        """
        if self.lost is not None:
            raise RankLost(self.lost)
        try:
            yield
        except Exception as error:
            self._loss.wait(CAUSE_SECONDS)
            self.lose(f"rank 0 failed: {type(error).__name__}: {error}")
            raise RankLost(self.lost) from error
        except BaseException:
            self.lose("a step was interrupted")
            raise
        if self.lost is not None:
            raise RankLost(self.lost)

    # ---- the end

    def heed(self, number: int, standing: Standing) -> None:
        """How far a rank is. Whoever keeps rank 0 waiting and does not get on is lost."""
        lost = self._patience.hear(number, standing, self.peers.progress.standing)
        if lost is not None:
            self.lose(f"rank {lost} lives, and has kept the others waiting for {self._seconds:g} s (rank_seconds)")

    def lose(self, reason: str) -> None:
        """Nothing more can be asked of the ranks: end all of them, so that nobody waits for another. The first reason counts."""
        with self._lock:
            if self.lost is not None:
                return
            self.lost = f"{reason}; all ranks have ended: load the model again"
        for follower in self.followers:
            follower.process.kill()
        self.peers.leave()
        self._loss.set()

    def close(self) -> None:
        """End all ranks."""
        with self._lock:
            self.lost = self.lost or "the engine was closed; load the model again"
        self._finish()

    def _tell(self, follower: Follower, order: Order) -> None:
        if self.lost is not None:
            raise RankLost(self.lost)
        try:
            follower.tell(order)
        except OSError as error:
            self._loss.wait(CAUSE_SECONDS)
            raise RankLost(self.lost or f"rank {follower.rank.number} has ended") from error


def _listen(follower: Follower, team: weakref.ref[Team]) -> None:
    """Hand a rank's answers on; when it ends, the team is lost, unless nobody has it any more."""

    def lose(reason: str) -> None:
        if (found := team()) is not None:
            found.lose(f"rank {follower.rank.number} {reason}")

    def heed(standing: Standing) -> None:
        if (found := team()) is not None:
            found.heed(follower.rank.number, standing)

    follower.on_standing = heed
    while True:
        try:
            answer = follower.hear()
        except TimeoutError:  # then all are ended, and this one is heard to end, if it can be
            lose(f"has given no sign of life for {follower.seconds:g} s (rank_seconds)")
            follower.answers.put(None)
            continue
        if answer is None:
            break
        if isinstance(answer, Failed):
            lose(f"failed: {type(answer.error).__name__}: {answer.error}")
        follower.answers.put(answer)
    lose(f"ended {follower.how_it_ended()}")
    follower.answers.put(None)


def _end_all(followers: Sequence[Follower], meeting: Path) -> None:
    for follower in followers:
        follower.let_go()
    for follower in followers:
        follower.end()
    shutil.rmtree(meeting, ignore_errors=True)


@contextmanager
def team_of(config: EngineConfig, spec: ModelInfo) -> Iterator[Team | None]:
    """The team of an engine that is being loaded, None for one device; it ends when loading fails."""
    if config.tensor_parallel == 1:
        yield None
        return
    team = Team(config, spec)
    try:
        yield team
    except BaseException:
        team.close()
        raise
