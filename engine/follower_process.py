"""The script of a process that follows rank 0. It gives signs of life from the beginning: importing the rest takes seconds.

Run by its path, as nothing of the package is imported then: `follower_process.py SOCKET SECONDS`, a file descriptor and the time
between two signs. A sign is an empty message, until there is more to tell (`sharding/progress.py`).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection


class Pulse:
    """What the next sign of life says."""

    sign: Callable[[], bytes] = bytes


def give_signs(connection: Connection, turn: threading.Lock, seconds: float, pulse: Pulse) -> None:
    """For ever, or until rank 0 has ended, and then this process does."""
    try:
        while True:
            with turn:
                connection.send_bytes(pulse.sign())
            time.sleep(seconds)
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    to_first, speaking, beating = Connection(int(sys.argv[1])), threading.Lock(), Pulse()
    threading.Thread(target=give_signs, args=(to_first, speaking, float(sys.argv[2]), beating), daemon=True).start()
    from maskwright.engine.follower import main

    main(to_first, speaking, beating)
