"""What went wrong and what to do about it, for a person at a shell.

Errors of this package name operations and parameters of Python. Here the same is told in settings and commands: the
likeliest cause, and what to change. Nothing that was sent or answered is repeated.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from supermemory_livekit.errors import (
    AccessDenied,
    APIMismatch,
    ConfigurationError,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
)
from supermemory_livekit.sdk.client import Setting, SetupError
from supermemory_livekit.store import MemoryStore

__all__ = ["ADDRESS", "OLDER_SDK", "Told", "failure", "problem", "setup"]

ADDRESS = "--base-url (or SUPERMEMORY_BASE_URL)"
OLDER_SDK = 'pip install "supermemory<5"'


@dataclass(frozen=True)
class Told:
    """One thing that went wrong."""

    found: str
    """A clause without a full stop."""
    advice: str
    """Whole sentences."""


_SETTINGS: dict[Setting, Told] = {
    "service": Told(
        "neither a key nor an address is set",
        "Set SUPERMEMORY_API_KEY for Supermemory's platform, or --base-url (SUPERMEMORY_BASE_URL) for another service:"
        ' "local" is the embedded one, which needs no key.',
    ),
    "address": Told(
        "--base-url or SUPERMEMORY_BASE_URL is no address",
        'Write it as http://HOST:PORT or https://HOST, without a user or a query; or "local", or "local:PATH" for a'
        " database file.",
    ),
    "key": Told(
        "SUPERMEMORY_API_KEY holds a blank, a line break or a letter that no key has",
        "Set it again. A line break often comes along when a key is copied.",
    ),
    "platform key": Told(
        "Supermemory's platform asks for a key, and SUPERMEMORY_API_KEY is not set",
        f"Set it to a key from console.supermemory.ai, or set {ADDRESS} to a service of your own.",
    ),
    "extra": Told(
        'the embedded service ("local") is not installed here',
        'pip install "supermemory-livekit[local]", or set --base-url (SUPERMEMORY_BASE_URL) to a running service.',
    ),
}


def setup(error: ConfigurationError) -> Told:
    """Why there is no way to a service."""
    if isinstance(error, SetupError):
        return _SETTINGS[error.setting]
    return Told(str(error), "Check SUPERMEMORY_API_KEY and SUPERMEMORY_BASE_URL.")


def failure(error: BaseException, *, key: bool = True, embedded: bool = False) -> Told:
    """Why the service did not do what it was asked.

    Args:
        error: A `ServiceError`, or the `NotImplementedError` of a client that cannot do something.
        key: Whether a key is set.
        embedded: Whether the service is the one in this process.
    """
    if isinstance(error, NotImplementedError):
        return Told("the installed SDK cannot do this", 'pip install --upgrade "supermemory>=3.48,<6"')
    if not isinstance(error, ServiceError):
        return Told(f"it ended with {type(error).__name__}", "Please report this.")
    status = error.status
    if embedded and status is not None and status >= 500:
        return Told(
            f"the embedded service cannot use its database ({status})",
            "The message above says why. local:PATH or SUPERMEMORY_LOCAL_PATH names another file.",
        )
    if isinstance(error, AccessDenied):
        return _denied(status, key=key)
    if isinstance(error, APIMismatch):
        return Told(
            "the service has no v5 API, which the installed supermemory 5 speaks (404)",
            f"For a server of v3/v4: {OLDER_SDK}. Otherwise check {ADDRESS}.",
        )
    if isinstance(error, NotFound) or status in (405, 501):
        return Told(
            f"what answers has no such route ({status})",
            f"Check {ADDRESS}: it names another program, or a path that does not belong there.",
        )
    if isinstance(error, PaymentRequired):
        return Told("the organisation has no balance for this (402)", "Top up, or wait for the next period.")
    if isinstance(error, RateLimited):
        return Told("the service asks to wait (429)", "Try again in a minute.")
    if isinstance(error, RequestRejected):
        return Told(
            f"the service refuses the request ({status})",
            f"Update the service, or check {ADDRESS}: it may name another program.",
        )
    if isinstance(error, ServiceTimeout):
        return Told(
            "the service did not answer in time",
            f"Check {ADDRESS}, and whether a firewall or a proxy keeps this machine from it.",
        )
    if status is not None and 300 <= status < 400:
        return Told(
            f"what answers points to another address ({status})",
            f"Set {ADDRESS} to that address, which often is the same with https://.",
        )
    if status is not None and status >= 500:
        return Told(
            f"the service, or a proxy before it, is out of order ({status})",
            "Look at its log, and try again.",
        )
    return _no_connection(error)


def _denied(status: int | None, *, key: bool) -> Told:
    if not key:
        return Told(
            f"the service asks for a key, and none is set ({status})",
            "Set SUPERMEMORY_API_KEY. `supermemory-livekit serve` says where it keeps its own.",
        )
    return Told(
        f"the service refuses the key ({status})",
        f"Set SUPERMEMORY_API_KEY to a key of this service, or {ADDRESS} to the service of this key. A scoped key"
        " can use its own container tag alone.",
    )


def _no_connection(error: ServiceError) -> Told:
    causes = list(_causes(error))

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(socket.gaierror):
        return Told(
            "no host of this name is known here", f"Check the spelling in {ADDRESS}, and the network."
        )
    if among(ConnectionRefusedError):
        return Told(
            "nothing listens at this address",
            f"Start the service (`supermemory-livekit serve` starts one), or correct host and port in {ADDRESS}.",
        )
    if among(ssl.SSLCertVerificationError):
        return Told(
            "the certificate of the service is not trusted here",
            f"Name the host in {ADDRESS} as the certificate does, or let SSL_CERT_FILE name its authority.",
        )
    if among(ssl.SSLError):
        return Told(
            "what listens there speaks no TLS", f"Write http:// instead of https:// in {ADDRESS}, or add TLS."
        )
    if among(httpx.ProxyError):
        return Told(
            "the proxy of this machine does not let it through",
            "Check HTTPS_PROXY and HTTP_PROXY, or put the host into NO_PROXY.",
        )
    if among(httpx.TransportError):
        return Told(
            "the connection to the service fails",
            f"Check {ADDRESS} (https:// where the service has TLS), and whether a firewall keeps this machine from it.",
        )
    return Told(
        "what answers is not understood: it may be another program",
        f"Check {ADDRESS}: host and port of the service, without a path.",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it. Only their types are looked at: their texts may quote the request."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        # Several attempts at once come as a group, whose class is not the same in all versions of Python.
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def problem(told: str) -> tuple[str, str]:
    """What an `Erasure` says of one problem: what was to be done, and what came of it. No name of an operation."""
    done, _, what = told.partition(": ")
    operation, _, rest = what.partition(" ")
    if rest and hasattr(MemoryStore, operation):
        what = f"the service {rest}" if rest.startswith("answered ") else rest
    return done, what
