"""The process of a rank that follows: loads its share of a model, and does what rank 0 tells it, until that is gone."""

from __future__ import annotations

import os
import pickle
import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Protocol

import torch

from .adapters.slots import AdapterSlots
from .attention.methods import METHODS
from .config import device_of_rank
from .loader import model_of, num_blocks_of, slots_of, threads_of
from .parallel.messages import (
    Begin,
    Done,
    Failed,
    FreeAdapter,
    LoadAdapter,
    Measure,
    Move,
    Order,
    Room,
    Sending,
    Start,
    Step,
    receive,
    send,
)
from .parallel.shares import share_of
from .sharding.peers import Peers
from .steps.runner import ModelRunner


class Voice:
    """The end of a connection on which another thread gives signs of life."""

    def __init__(self, connection: Connection, turn: threading.Lock) -> None:
        self._connection, self._turn = connection, turn

    def send_bytes(self, buf: bytes, /) -> None:
        with self._turn:
            self._connection.send_bytes(buf)


class Beating(Protocol):
    """What the next sign of life says."""

    sign: Callable[[], bytes]


def main(connection: Connection, turn: threading.Lock, pulse: Beating) -> None:
    """The connection to rank 0, whose turn it is to speak on it, and what is said in between (`follower_process.py`). When it is
    closed, by whatever end of rank 0, this process ends at once."""
    orders, voice = queue.SimpleQueue[Order](), Voice(connection, turn)

    def listen() -> None:
        try:
            while True:
                orders.put(receive(connection))
        except (EOFError, OSError):
            os._exit(0)
        except BaseException:  # whoever waits for an answer learns that none comes
            traceback.print_exc()
            os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    try:
        start = orders.get()
        assert isinstance(start, Start), "it comes first"
        peers = Peers(start.rank)
        pulse.sign = peers.progress.sign
        rank = FollowingRank(start, voice, peers)
        while True:
            rank.do(orders.get())
    except Exception as error:
        traceback.print_exc()
        send(voice, Failed(_sendable(error)))
    os._exit(1)


class FollowingRank:
    """A rank with its share of a model, and from `Begin` on with a cache."""

    _runner: ModelRunner

    def __init__(self, start: Start, connection: Sending, peers: Peers) -> None:
        self._connection, self._peers = connection, peers
        self._device = device_of_rank(start.config, start.rank.number)
        self._config = config = replace(start.config, device=str(self._device))
        self._slots = slots_of(config, start.spec)
        self._model = model_of(config, start.spec, self._slots, share_of(start.spec, self._peers, self._slots))
        threads = threads_of(config, self._model)
        if threads is not None:
            torch.set_num_threads(threads)
        send(connection, Done())

    def do(self, order: Order) -> None:
        """One thing that rank 0 asks for."""
        progress = self._peers.progress
        if isinstance(order, Step):
            token_ids = self._peers.of_first(torch.empty(order.num_tokens, dtype=torch.int64, device=self._device))
            self._runner.compute(self._runner.batch(order.packing, token_ids))
            progress.settle(is_settling=False)  # from now on its loops are compiled
        elif isinstance(order, Move):
            self._runner.move_blocks(list(order.transfers))
        elif isinstance(order, Measure):
            send(self._connection, Room(num_blocks_of(self._config, self._model)))
        elif isinstance(order, Begin):
            self._begin(order)
        elif isinstance(order, LoadAdapter):
            progress.settle(is_settling=True)
            self._loaded_slots.load(order.adapter)
            send(self._connection, Done())
        elif isinstance(order, FreeAdapter):
            self._loaded_slots.free(order.slot)
        progress.advance()

    def _begin(self, begin: Begin) -> None:
        send(self._connection, Done())  # now all are there
        self._peers.connect(begin.meeting, self._device, self._config.rank_seconds)
        cache = self._model.allocate_cache(begin.num_blocks, self._config.block_size)
        self._runner = ModelRunner(self._model, cache, METHODS[self._config.attention], begin.num_host_blocks, self._slots)
        send(self._connection, Done())

    @property
    def _loaded_slots(self) -> AdapterSlots:
        assert self._slots is not None, "rank 0 has slots too"
        return self._slots


def _sendable(error: Exception) -> Exception:
    """The error, or where that holds something of this process, its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
