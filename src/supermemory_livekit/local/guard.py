"""What a request must get past before the service looks at it: where it comes from, how often, and the key.

- The `Host` has to be one the server is meant to be called by. A name that somebody made resolve to this machine (DNS
  rebinding) is none of them.
- A browser says which site a request comes from (`Origin`, `Sec-Fetch-Site`). Another site than this server's own is
  refused, and no answer carries a CORS header. Programs send neither header and are not concerned.
- Each peer has a bucket of requests that fills up again; wrong keys are taken from a much smaller one.
- The key is compared in constant time.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import cast

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .endpoint import json_response

__all__ = ["Guard", "TokenBuckets"]

_WRONG_KEYS_PER_SECOND = 1.0
_WRONG_KEYS_AT_ONCE = 20
_MOST_PEERS = 4096
"""Buckets that are kept. The peer not heard of for longest is forgotten, which gives it a full bucket."""

_OTHER_NAME = (
    "This server is not called by the name in the Host header. If it should be, start it with"
    " --allow-host NAME (allow_hosts in Python)"
)
"""Without the name that was sent: no answer repeats what a client sent."""

_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""On every answer that says nothing else: it may hold what a caller said."""


class TokenBuckets:
    """One bucket per peer, which holds `burst` tokens at most and gains `rate` per second."""

    def __init__(self, rate: float, burst: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, peer: str) -> float:
        """Take a token. 0, or without one the seconds until there is one."""
        now = self._now()
        tokens, at = self._buckets.pop(peer, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._rate)
        allowed = tokens >= 1
        self._buckets[peer] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MOST_PEERS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._rate


class Guard:
    """Around the app. `None` for `api_key`, `hosts` or `rate` leaves that check out."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        api_key: str | None,
        open_paths: Collection[str] = (),
        hosts: Collection[str] | None = None,
        rate: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_paths` need no key. `hosts`: names without a port. `rate`: requests per second and peer; twice as
        many may come at once.
        """
        self._app = app
        self._expected = None if api_key is None else f"bearer {api_key}".encode()
        self._open_paths = frozenset(open_paths)
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._requests = None if rate is None else TokenBuckets(rate, max(1.0, 2 * rate), now=now)
        self._wrong_keys = TokenBuckets(_WRONG_KEYS_PER_SECOND, _WRONG_KEYS_AT_ONCE, now=now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
            return
        status, error, details, wait = refusal
        answer = json_response(status, {"error": error, "details": details})
        if wait:
            answer.headers["retry-after"] = str(max(1, math.ceil(wait)))
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str, str, float] | None:
        """Status, error, details and seconds to wait; None for a request that may pass."""
        host = _only(scope, b"host")
        if self._hosts is not None and _name(host) not in self._hosts:
            return 403, "Forbidden", _OTHER_NAME, 0
        if _from_another_site(scope, host):
            return 403, "Forbidden", "Pages of other sites cannot use this service", 0
        peer = str(scope["client"][0]) if scope.get("client") else ""
        if not (scope["path"] in self._open_paths or self._has_key(scope)):
            # A request without a key guesses none: a page asks like that whether one is needed.
            guesses = any(name.lower() == b"authorization" for name, _ in scope["headers"])
            wait = self._wrong_keys.take(peer) if guesses else self._take_request(peer)
            if wait:
                return 429, "Too many requests", "Too many requests without the right key", wait
            return (
                401,
                "Unauthorized",
                "Either userId or orgId not found. Are you using the right API key?",
                0,
            )
        wait = self._take_request(peer)
        return (429, "Too many requests", "Wait as long as Retry-After says", wait) if wait else None

    def _take_request(self, peer: str) -> float:
        return self._requests.take(peer) if self._requests is not None else 0

    def _has_key(self, scope: Scope) -> bool:
        if self._expected is None:
            return True
        scheme, _, key = (_only(scope, b"authorization") or b"").strip().partition(b" ")
        # Compared in constant time, so that an answer's delay tells nothing about the key.
        return secrets.compare_digest(scheme.lower() + b" " + key.strip(), self._expected)


def _only(scope: Scope, name: bytes) -> bytes | None:
    """The value of a header that may stand there once; None when it is absent or there twice."""
    headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
    found = [value for key, value in headers if key.lower() == name]
    return found[0] if len(found) == 1 else None


def _name(host: bytes | None) -> str:
    """Of `name:port` or `[address]:port`."""
    text = (host or b"").decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if ":" in text else text


def _from_another_site(scope: Scope, host: bytes | None) -> bool:
    headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
    names = {key.lower() for key, _ in headers}
    if b"origin" in names:
        origin = _only(scope, b"origin") or b"null"
        scheme, separator, authority = origin.lower().partition(b"://")
        if not separator or scheme not in (b"http", b"https") or authority != (host or b"").lower():
            return True
    site = _only(scope, b"sec-fetch-site") if b"sec-fetch-site" in names else b"none"
    # A link on another site may lead here: the browser then shows what needs no key, and its page cannot read it.
    followed = (
        scope["method"] == "GET"
        and _only(scope, b"sec-fetch-mode") == b"navigate"
        and _only(scope, b"sec-fetch-dest") == b"document"
    )
    return site not in (b"none", b"same-origin") and not followed
