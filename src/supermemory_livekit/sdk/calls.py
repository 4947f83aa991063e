"""One call of a client: its method found and checked once, its deadline kept, its failures told as ours."""

from __future__ import annotations

import asyncio
import email.utils
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

import anyio
import httpx

from supermemory_livekit.errors import (
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
)

from .fields import UnreadableAnswer

__all__ = ["Method", "NotOffered", "answered", "parameters_of", "status_of"]

_T = TypeVar("_T")

_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_TIMEOUTS = (
    TimeoutError,
    asyncio.TimeoutError,
    httpx.TimeoutException,
)  # two kinds of one before Python 3.11
_BY_STATUS: Mapping[int, type[ServiceError]] = {
    401: AccessDenied,
    402: PaymentRequired,
    403: AccessDenied,
    404: NotFound,
    408: ServiceTimeout,
    409: Conflict,
}


class NotOffered(NotImplementedError):
    """The client has no method for this."""


class Method:
    """One async method of the client, found and checked once, called with the optional arguments it knows."""

    def __init__(self, client: object, path: str, *required: str) -> None:
        method: object = client
        for name in path.split("."):
            method = getattr(method, name, None)
        if not callable(method):
            raise ConfigurationError(
                f"client has no method {path}: pass AsyncSupermemory of supermemory>=3.48,<6, or an object"
                " with the async methods of 3.x: add, profile, search.memories and memories.forget"
            )
        self._call = cast("Callable[..., Awaitable[object]]", method)
        self._names = parameters_of(self._call)
        unknown = [name for name in required if not self.accepts(name)]
        if unknown:
            raise ConfigurationError(
                f"client.{path} takes no {unknown[0]}: this package speaks to supermemory>=3.48,<6"
            )

    @classmethod
    def optional(cls, client: object, path: str, *required: str) -> Method | None:
        """The method, or None when the client does without it."""
        try:
            return cls(client, path, *required)
        except ConfigurationError:
            return None

    def accepts(self, name: str) -> bool:
        return self._names is None or name in self._names

    async def __call__(self, *, timeout: float, metadata: object = None, **arguments: object) -> object:
        """`timeout` in seconds and `metadata` go along when the method takes them; older clients do not."""
        if self.accepts("timeout"):
            arguments["timeout"] = timeout
        if metadata is not None and self.accepts("metadata"):
            arguments["metadata"] = metadata
        return await self._call(**arguments)


def parameters_of(method: Callable[..., Any]) -> frozenset[str] | None:
    """The names a method can be called with; None for any."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


async def answered(
    operation: str, call: Callable[[], Awaitable[_T]], *, timeout: float, write: bool = False
) -> _T:
    """The result, within `timeout` seconds in total. Every failure is a `ServiceError`, but for `NotOffered`."""
    try:
        # Not asyncio.wait_for: before Python 3.12 it can swallow a cancellation that arrives with the answer.
        with anyio.fail_after(timeout):
            return await call()
    except NotOffered:
        raise
    except Exception as error:  # noqa: BLE001 - any client may stand behind this
        # The cause is cut off because its text may quote the request or the answer.
        raise _translated(operation, error, write=write) from None


def _translated(operation: str, error: Exception, *, write: bool) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    status = status_of(error)
    if status is not None and not 200 <= status < 300:
        return _from_status(operation, error, status, write=write)
    cause = error if isinstance(error, httpx.HTTPError) else error.__cause__
    uncertain = write and not isinstance(cause, _NEVER_SENT)
    if isinstance(error, _TIMEOUTS) or isinstance(cause, _TIMEOUTS):
        return ServiceTimeout(f"{operation} got no answer in time", uncertain=uncertain)
    if isinstance(cause, httpx.TransportError):
        what = "found no connection to" if isinstance(cause, _NEVER_SENT) else "lost its connection to"
        return ServiceUnavailable(f"{operation} {what} the service", uncertain=uncertain)
    if status is not None or isinstance(error, (UnreadableAnswer, ValueError)):
        return ServiceUnavailable(
            f"{operation} got an answer that cannot be read", status=status, uncertain=write
        )
    return ServiceUnavailable(f"{operation} failed with {type(error).__name__}", uncertain=uncertain)


def _from_status(operation: str, error: Exception, status: int, *, write: bool) -> ServiceError:
    message = f"{operation} answered {status}"
    if status == 429:
        return RateLimited(message, retry_after=_retry_after(error))
    if kind := _BY_STATUS.get(status):
        return kind(message, status=status)
    if 400 <= status < 500:
        return RequestRejected(message, status=status)
    return ServiceUnavailable(message, status=status, uncertain=write and status >= 500)


def status_of(error: Exception) -> int | None:
    """The HTTP status an exception carries, in the way of the SDK or in that of httpx."""
    for source in (error, getattr(error, "response", None)):
        status = getattr(source, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _retry_after(error: Exception) -> float | None:
    """Seconds from now, from a Retry-After header in either of its forms; None without a usable one."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = cast("Mapping[str, object]", headers).get("retry-after") if isinstance(headers, Mapping) else None
    if not isinstance(value, str):
        return None
    try:
        seconds = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        if date is None:
            return None
        seconds = email.utils.mktime_tz(date) - time.time()
    return max(0.0, seconds) if math.isfinite(seconds) else None
