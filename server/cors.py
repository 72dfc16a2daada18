"""What pages of other sites may do."""

from __future__ import annotations

from typing import Any

from .settings import ServerSettings


def cors_options(settings: ServerSettings) -> dict[str, Any]:
    """What `CORSMiddleware` is to be told."""
    return {
        "allow_origins": settings.allowed_origins,
        "allow_methods": ("GET", "POST", "DELETE"),
        "allow_headers": settings.allowed_headers,
        "allow_credentials": settings.allow_credentials,
        "expose_headers": ("X-Request-Id", "Request-Id", "Retry-After"),
    }
