"""Memory for LiveKit voice agents, kept in Supermemory: a caller who rings back is remembered."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__
from .errors import (
    AccessDenied,
    APIMismatch,
    CallerErased,
    ConfigurationError,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
    SupermemoryLiveKitError,
)
from .events import Degraded, Recalled, Restored, Stored
from .params import InputParams

if TYPE_CHECKING:
    from .agent import SupermemoryAgent
    from .erasure.erasure import Erasure
    from .memory import SupermemoryLiveKit

__all__ = [
    "APIMismatch",
    "AccessDenied",
    "CallerErased",
    "ConfigurationError",
    "Conflict",
    "Degraded",
    "Erasure",
    "InputParams",
    "NotFound",
    "PaymentRequired",
    "RateLimited",
    "Recalled",
    "RequestRejected",
    "Restored",
    "ServiceError",
    "ServiceTimeout",
    "ServiceUnavailable",
    "Stored",
    "SupermemoryAgent",
    "SupermemoryLiveKit",
    "SupermemoryLiveKitError",
    "__version__",
]

_LATE = {"Erasure": ".erasure.erasure", "SupermemoryAgent": ".agent", "SupermemoryLiveKit": ".memory"}
"""Imported when they are asked for: LiveKit takes seconds to import, and the commands do without it."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LATE[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
