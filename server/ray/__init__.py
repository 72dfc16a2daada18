"""Replicas on Ray Serve, with the extra `ray`: `maskwright serve --ray`, or `serve run maskwright.server.ray:app` with a file.

Imported only when it is used. What it does is in `server/cluster/`; here is what Ray must be told.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """`app`, which only the process needs that deploys."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .application import app

    return app
