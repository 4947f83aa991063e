"""Faults on the wire, under the real SDK."""

from __future__ import annotations

import asyncio
import fnmatch
import json
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeAlias

import httpx

from .script import Fail, Hang, UnexpectedCall, Work

__all__ = ["FaultyTransport", "Reset", "Respond", "WireRequest", "WireStep"]


@dataclass(frozen=True)
class Respond:
    """Answer with this status and body, whatever the service would say.

    `body` is sent as JSON, or as it is when it is `bytes`. With `committed`, the service gets the request
    all the same.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    after: float = 0.0
    committed: bool = False


@dataclass(frozen=True)
class Reset:
    """Break the connection; with `committed`, after the service has done what was asked.

    `connected=False` is a connection that was never made.
    """

    committed: bool = False
    connected: bool = True


WireStep: TypeAlias = "Fail | Hang | Reset | Respond | Work"
"""What happens to one request. `Work(after)` passes it on and delays the answer."""


@dataclass
class WireRequest:
    """One request that reached a `FaultyTransport`."""

    method: str
    url: str
    """The whole address, with the host: a test can see that nobody else was asked."""
    path: str
    headers: dict[str, str]
    body: Any
    """Parsed JSON; None when there is no body or it is no JSON."""
    at: float
    """Loop time in seconds."""
    status: int | None = None
    """Status of the answer; None when there was none."""


class FaultyTransport(httpx.AsyncBaseTransport):
    """Stands between an HTTP client and `inner`, and does to requests what it is told.

    A route is a method and a path, `*` standing for anything: `"POST /v4/search"`, `"* /v3/documents/*"`.
    `script` gives steps for the next requests of a route, `always` a step for every later one. Requests
    without a step go to `inner`; without an `inner` they are faults, raised again by `verify()`. Waiting
    ends at the client's read timeout, on the loop's clock. The first matching route counts.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self.requests: list[WireRequest] = []
        self.closed = 0
        self._inner = inner
        self._scripts: dict[str, deque[WireStep]] = defaultdict(deque)
        self._rules: dict[str, WireStep] = {}
        self._faults: list[str] = []

    def script(self, route: str, *steps: WireStep) -> FaultyTransport:
        """Add steps for the next requests of `route`, one each. Returns the transport, for chaining."""
        self._scripts[route].extend(steps)
        return self

    def always(self, route: str, step: WireStep | None) -> FaultyTransport:
        """What requests of `route` meet once its script is used up; None is the working service again."""
        if step is None:
            self._rules.pop(route, None)
        else:
            self._rules[route] = step
        return self

    def sent(self, route: str) -> list[WireRequest]:
        """The requests of one route so far."""
        return [r for r in self.requests if fnmatch.fnmatchcase(f"{r.method} {r.path}", route)]

    def verify(self) -> None:
        """Raise `UnexpectedCall` when a request was not expected or a scripted step was not used."""
        unused = [
            f"{len(steps)} scripted step(s) of {route!r} were not used"
            for route, steps in self._scripts.items()
            if steps
        ]
        if self._faults or unused:
            raise UnexpectedCall("; ".join([*self._faults, *unused]))

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await super().__aexit__(kind, error, trace)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        seen = await self._record(request)
        response = await self._play(request, self._next(seen))
        seen.status = response.status_code
        return response

    async def aclose(self) -> None:
        self.closed += 1
        if self._inner is not None:
            await self._inner.aclose()

    async def _play(self, request: httpx.Request, step: WireStep) -> httpx.Response:
        deadline: float | None = request.extensions.get("timeout", {}).get("read")
        if isinstance(step, Work):
            response = await self._pass_on(request)
            await self._wait(request, step.after, deadline)
            return response
        if step.committed:
            passed = await self._pass_on(request)
            await passed.aread()
            await passed.aclose()
        if isinstance(step, Hang):
            await self._wait(request, None, None if step.deaf else deadline)
        if isinstance(step, Reset):
            if step.connected:
                raise httpx.ReadError("connection reset", request=request)
            raise httpx.ConnectError("connection refused", request=request)
        assert isinstance(step, (Fail, Respond))
        await self._wait(request, step.after, deadline)
        if isinstance(step, Fail):
            raise step.error
        if isinstance(step.body, bytes):
            return httpx.Response(step.status, headers=step.headers, content=step.body, request=request)
        return httpx.Response(step.status, headers=step.headers, json=step.body, request=request)

    async def _wait(self, request: httpx.Request, seconds: float | None, deadline: float | None) -> None:
        """Wait `seconds`, for ever if None, but not past the deadline."""
        if seconds is None and deadline is None:
            await asyncio.get_running_loop().create_future()
        if deadline is not None and (seconds is None or seconds >= deadline):
            await asyncio.sleep(deadline)
            raise httpx.ReadTimeout("no answer within the read timeout", request=request)
        await asyncio.sleep(seconds or 0.0)

    async def _pass_on(self, request: httpx.Request) -> httpx.Response:
        if self._inner is None:
            fault = f"{request.method} {request.url.path} was not expected"
            self._faults.append(fault)
            raise UnexpectedCall(fault)
        return await self._inner.handle_async_request(request)

    async def _record(self, request: httpx.Request) -> WireRequest:
        content = await request.aread()
        try:
            body = json.loads(content) if content else None
        except ValueError:
            body = None
        seen = WireRequest(
            method=request.method,
            url=str(request.url),
            path=request.url.path,
            headers=dict(request.headers),
            body=body,
            at=asyncio.get_running_loop().time(),
        )
        self.requests.append(seen)
        return seen

    def _next(self, seen: WireRequest) -> WireStep:
        name = f"{seen.method} {seen.path}"
        for route, steps in self._scripts.items():
            if steps and fnmatch.fnmatchcase(name, route):
                return steps.popleft()
        for route, step in self._rules.items():
            if fnmatch.fnmatchcase(name, route):
                return step
        return Work()
