"""Stands between the workers and the service, a process of its own, and does to requests what `faults` draws.

    python -m bench.soak.proxy PORT SERVICE_URL SEED SHARE LOG

Every request becomes one line of JSON in the log. On SIGTERM it takes no more requests, and ends when those that are
to be carried out late are.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from .faults import TOO_LATE, Fault, Faults
from .truth import tokens_in

_PASSED_ON = ("authorization", "content-type", "accept")
_GARBAGE = (b'\xff\x00{"id": "d', b"<html>Bad gateway</html>", b"null", b'{"unforeseen": [1, {"x": null}]}')
_LOOKS_FOR_CLIENT = 0.05
_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Passes requests on, faults permitting."""

    def __init__(self, service: str, faults: Faults, seed: int, log: Path) -> None:
        self._service = service
        self._faults = faults
        self._garbage = random.Random(f"{seed} garbage")
        self._log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._late: set[asyncio.Task[None]] = set()
        self._number = 0

    async def run(self, port: int) -> None:
        """Serve until SIGTERM."""
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        self._client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=60), connector=aiohttp.TCPConnector(limit=0)
        )
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        print("ready", flush=True)
        await stopping.wait()
        await runner.cleanup()
        while self._late:
            await asyncio.wait(self._late)
        await self._client.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fault = self._faults.draw()
        self._number += 1
        seen: dict[str, Any] = {
            "number": self._number,
            "route": f"{request.method} {request.path}",
            "fault": fault.kind,
            "tokens": tokens_in(body),
            "began": time.monotonic(),
        }
        try:
            return await self._play(request, body, fault, seen)
        finally:
            seen["ended"] = time.monotonic()
            self._note(seen)

    async def _play(
        self, request: web.Request, body: bytes, fault: Fault, seen: dict[str, Any]
    ) -> web.StreamResponse:
        answer: web.Response | None = None
        if fault.late is not None:
            await self._hold(request, fault.delay)
            work = self._pass_on_late(request, body, fault.late, time.monotonic(), dict(seen))
            task = asyncio.ensure_future(work)
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        elif fault.commits:
            await asyncio.sleep(fault.delay)
            # A client that has gone since makes this a late commit.
            if _is_there(request) or time.monotonic() < seen["began"] + TOO_LATE:
                answer = await self._pass_on(request, body, seen)
            if answer is None:
                return self._reset(request)
        if fault.end == "hang":
            await self._hold(request, math.inf)
        if fault.end in ("hang", "reset"):
            return self._reset(request)
        if fault.end == "garbage":
            return web.Response(body=self._garbage.choice(_GARBAGE), content_type="application/json")
        if fault.end == "status":
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            return web.json_response({"error": "made to fail"}, status=fault.status, headers=headers)
        assert answer is not None
        seen["answered"] = _is_there(request)
        return answer

    async def _hold(self, request: web.Request, seconds: float) -> None:
        """Keep the client waiting, until it goes."""
        until = time.monotonic() + seconds
        while _is_there(request) and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(_LOOKS_FOR_CLIENT, left))

    async def _pass_on(self, request: web.Request, body: bytes, seen: dict[str, Any]) -> web.Response | None:
        """The service's answer; None when it breaks the connection, or takes none."""
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        try:
            async with self._client.request(
                request.method, self._service + request.path_qs, data=body, headers=headers
            ) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            seen["service"] = type(error).__name__
            return None
        seen["service"], seen["passed"] = answer.status, time.monotonic()
        kind = answer.headers.get("Content-Type", "application/json")
        return web.Response(status=answer.status, body=content, headers={"Content-Type": kind})

    async def _pass_on_late(
        self, request: web.Request, body: bytes, late: float, broke: float, seen: dict[str, Any]
    ) -> None:
        await asyncio.sleep(late)
        if time.monotonic() > broke + TOO_LATE:
            return
        await self._pass_on(request, body, seen)
        self._note({**seen, "late": time.monotonic() - broke, "ended": time.monotonic()})

    def _reset(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            connection: socket.socket | None = request.transport.get_extra_info("socket")
            if connection is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            request.transport.abort()
        return web.Response(status=500)  # goes nowhere

    def _note(self, seen: dict[str, Any]) -> None:
        os.write(self._log, json.dumps(seen).encode() + b"\n")


def _is_there(request: web.Request) -> bool:
    return request.transport is not None and not request.transport.is_closing()


if __name__ == "__main__":
    port, service, seed, share, log = sys.argv[1:]
    proxy = Proxy(service, Faults(int(seed), float(share)), int(seed), Path(log))
    asyncio.run(proxy.run(int(port)))
