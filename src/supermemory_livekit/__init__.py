"""Memory for LiveKit voice agents, kept in Supermemory: a caller who rings back is remembered."""

from ._version import __version__
from .agent import SupermemoryAgent
from .errors import (
    AccessDenied,
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
from .memory import SupermemoryLiveKit
from .params import InputParams

__all__ = [
    "AccessDenied",
    "ConfigurationError",
    "Conflict",
    "InputParams",
    "NotFound",
    "PaymentRequired",
    "RateLimited",
    "RequestRejected",
    "ServiceError",
    "ServiceTimeout",
    "ServiceUnavailable",
    "SupermemoryAgent",
    "SupermemoryLiveKit",
    "SupermemoryLiveKitError",
    "__version__",
]
