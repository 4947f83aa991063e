"""An embedded memory service: Supermemory's API on a SQLite file or PostgreSQL, in this process or over HTTP.

`open_local` gives an httpx client that speaks to the service in this process; under the official SDK it
takes the place of the network. `serve` (in `server`) answers over HTTP for several workers. Needs the extra
`[local]`.
"""

from __future__ import annotations

from pathlib import Path

import httpx

from .app import create_app
from .database import StorageError
from .engine import DYNAMIC_DELAY, Engine
from .extraction import Extractor
from .location import default_path

__all__ = ["Engine", "StorageError", "create_app", "default_path", "open_local"]


class _LocalTransport(httpx.AsyncBaseTransport):
    """Requests go to the app in this process; closing the client closes the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._inner = httpx.ASGITransport(app=create_app(engine, api_key=None), raise_app_exceptions=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._engine.aclose()


def open_local(
    path: str | Path | None = None,
    *,
    dynamic_delay: float = DYNAMIC_DELAY,
    extractor: Extractor | None = None,
    engine: Engine | None = None,
) -> httpx.AsyncClient:
    """A client of the embedded service. No network is used, and no I/O happens before the first request.

    `path` is the database file (see `location.locate` when absent) or the address of a PostgreSQL database; it may be
    shared with other processes.
    `engine` takes the place of the other arguments. Close the client: that waits a few seconds at most for texts
    that are just becoming memories, and leaves the rest in the file for whoever opens it next.

    When the file cannot be used, requests answer 503 with the reason.
    """
    if engine is None:
        engine = Engine(path, dynamic_delay=dynamic_delay, extractor=extractor)
    return httpx.AsyncClient(transport=_LocalTransport(engine), base_url="http://local")
