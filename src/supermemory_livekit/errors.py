"""What can go wrong, as a tree.

SupermemoryLiveKitError
├── ConfigurationError        wrong set-up; raised to the developer at construction, bind or attach
└── ServiceError              the memory service did not do what it was asked; never raised into a call
    ├── ServiceTimeout        no answer within the deadline
    ├── ServiceUnavailable    unreachable, connection lost, 5xx, or an answer nobody can read
    ├── RateLimited           429
    ├── PaymentRequired       402
    ├── AccessDenied          401 or 403
    ├── NotFound              404
    ├── Conflict              409
    ├── APIMismatch           404 from a server that does not speak the generation of the API that the SDK does
    ├── CallerErased          not sent: the caller was erased while the call was on the line
    └── RequestRejected       any other 4xx

A `ServiceError` turns into a turn without memory, a write that is tried again, or a plain sentence to the model.
Messages name the operation and the status. They never hold a caller's words, a container tag or a key: a service
may echo the request in an error body, so no body is ever copied into a message.
"""

from __future__ import annotations

__all__ = [
    "APIMismatch",
    "AccessDenied",
    "CallerErased",
    "ConfigurationError",
    "Conflict",
    "NotFound",
    "PaymentRequired",
    "RateLimited",
    "RequestRejected",
    "ServiceError",
    "ServiceTimeout",
    "ServiceUnavailable",
    "SupermemoryLiveKitError",
]


class SupermemoryLiveKitError(Exception):
    """Base of every error of this package."""


class ConfigurationError(SupermemoryLiveKitError):
    """A parameter, key, client or scope is wrong. Raised where it is given, never during a call."""


class ServiceError(SupermemoryLiveKitError):
    """The memory service did not do what it was asked."""

    def __init__(self, message: str, *, status: int | None = None, uncertain: bool = False) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status of the answer, if there was one."""
        self.uncertain = uncertain
        """True when the request may have taken effect although no success was reported.

        A write that ended so is settled (by reading the document) before it is sent again.
        """


class ServiceTimeout(ServiceError):
    """No answer within the deadline. Whether a write took effect is unknown, also where `uncertain` was not set."""


class ServiceUnavailable(ServiceError):
    """Unreachable, the connection broke, a 5xx, or an answer that is not what the API describes."""


class RateLimited(ServiceError):
    """HTTP 429."""

    def __init__(self, message: str, *, status: int | None = 429, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after
        """Seconds the service asked to wait, if it said so."""


class PaymentRequired(ServiceError):
    """HTTP 402: the organisation has no balance for this operation."""


class AccessDenied(ServiceError):
    """HTTP 401 or 403: the key is wrong, or may not touch this container tag."""


class NotFound(ServiceError):
    """HTTP 404: no such memory, document or route."""


class APIMismatch(ServiceError):
    """HTTP 404 for every route: the server does not speak the generation of the API that the installed SDK does."""


class Conflict(ServiceError):
    """HTTP 409: for example a memory that is already forgotten, or a document still being processed."""


class RequestRejected(ServiceError):
    """Any other 4xx: the service will not accept this request as it is."""


class CallerErased(ServiceError):
    """Nothing was sent: the caller was erased since the call began, and nothing of it is stored any more."""
