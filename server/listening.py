"""The socket that a server listens on, taken before anything slow begins, so that a wrong or busy port is told at once."""

from __future__ import annotations

import errno
import socket

from ..errors import UsageError


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket bound to an address; nobody is let in before it listens. Raises UsageError saying what to do instead."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host}: there is no such address ({error})") from None
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # a restart need not wait for old connections to fade
        taken.bind(address)
    except OSError as error:
        taken.close()
        raise UsageError(_refusal(host, port, error)) from None
    taken.set_inheritable(True)
    return taken


def url_of(listening: socket.socket, scheme: str = "http") -> str:
    """How a client reaches a bound socket."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"--port {port}: another program listens on port {port} of {host}; choose another port, or 0 for a free one"
        )
    if error.errno == errno.EACCES:
        return f"--port {port}: this user may not listen on port {port}; choose one of 1024 or more"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: this machine does not have that address; 127.0.0.1 is for itself, 0.0.0.0 for everybody"
    return f"--host {host} --port {port}: {error.strerror or error}"
