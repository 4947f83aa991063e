"""The memory service of the reply benchmark: the embedded one in a process of its own, behind seeded delays."""

from __future__ import annotations

import asyncio
import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from supermemory import AsyncSupermemory

__all__ = ["Delays", "Network", "Service", "service"]

_SERVER = """
import json, sys
from supermemory_livekit.local.server import serve
serve(port=0, path=sys.argv[1], announce=lambda at: print(json.dumps([at.url, at.api_key]), flush=True))
"""


@dataclass(frozen=True)
class Delays:
    """A lognormal distribution by its median and 95th percentile, in seconds."""

    median: float = 0.85
    p95: float = 2.1

    def draw(self, made: random.Random) -> float:
        return self.median * math.exp(made.gauss(0.0, math.log(self.p95 / self.median) / 1.6449))


class Network(httpx.AsyncBaseTransport):
    """The way to the service: each request waits, then is answered; or it hangs until its client gives up."""

    def __init__(self, delays: Delays, seed: str) -> None:
        self.hangs = False
        self.requests: Counter[str] = Counter()
        """By method and path."""
        self._delays = delays
        self._made = random.Random(seed)
        self._inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=20, keepalive_expiry=60.0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests[f"{request.method} {request.url.path}"] += 1
        patience: float = request.extensions.get("timeout", {}).get("read") or 60.0
        delay = math.inf if self.hangs else self._delays.draw(self._made)
        await asyncio.sleep(min(delay, patience))
        if delay >= patience or self.hangs:
            raise httpx.ReadTimeout("no answer", request=request)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True)
class Service:
    """Where it listens."""

    url: str
    key: str

    def client(self, transport: httpx.AsyncBaseTransport | None = None) -> AsyncSupermemory:
        """Straight to the service without a transport."""
        http = httpx.AsyncClient(transport=transport or httpx.AsyncHTTPTransport(), timeout=15.0)
        return AsyncSupermemory(api_key=self.key, base_url=self.url, http_client=http, max_retries=0)

    async def fill(self, tag: str, memories: tuple[str, ...]) -> None:
        client = self.client()
        for start in range(0, len(memories), 100):
            entries = [{"content": text, "isStatic": False} for text in memories[start : start + 100]]
            body = {"containerTag": tag, "memories": entries}
            await client.post("/v4/memories", body=body, cast_to=object)
        await client.close()

    async def settled(self, tag: str) -> None:
        """Wait until the service has embedded what it was given, as it does before it answers this search."""
        client = self.client()
        for question in ("anything", "something else"):
            await client.search.memories(q=question, container_tag=tag, timeout=60)
        await client.close()


@contextmanager
def service(folder: Path) -> Generator[Service]:
    """The embedded service on an empty database in this folder."""
    command = [sys.executable, "-c", _SERVER, str(folder / "memory.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Service(*json.loads(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(30)
