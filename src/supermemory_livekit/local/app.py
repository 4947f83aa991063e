"""The service as an ASGI app: the v3, v4 and v5 routes of Supermemory's API over an `Engine`.

The same app is served over HTTP (`server.py`) and mounted in the process under an httpx client
(`open_local`). Every answer is JSON, errors included, and no answer or log line repeats what a client sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from . import routes, v5
from .endpoint import Ask, Endpoint, NoBody, Reply, json_response
from .engine import Engine, Operations
from .guard import Guard
from .openapi import contract

__all__ = ["ENDPOINTS", "OpenRoute", "create_app"]

_OPEN_PATHS = ("/", "/health")
"""Answered without a key: they tell that something listens here, and nothing else."""


def _contract(_: Operations, __: Ask[NoBody]) -> Reply:
    """What this service takes and gives, as an OpenAPI document."""
    return Reply(200, contract(ENDPOINTS, _OPEN_PATHS))


ENDPOINTS = (
    *routes.ENDPOINTS,
    *v5.ENDPOINTS,
    Endpoint("GET", "/openapi.json", "read", _contract, gives=dict[str, object]),
)


class OpenRoute(Route):
    """One of `extra_routes` that is answered without a key: it must hold nothing that was stored."""


def create_app(
    engine: Engine,
    *,
    api_key: str | None,
    extra_routes: Sequence[BaseRoute] = (),
    hosts: Collection[str] | None = None,
    rate: float | None = None,
) -> ASGIApp:
    """The app. The engine starts with the server's lifespan, which also closes it, or where there is none with the
    first request.

    Args:
        engine: What answers.
        api_key: What every request must carry. None asks for no key.
        extra_routes: Looked at first. They lie behind the key too, except each `OpenRoute`.
        hosts: Names the server may be called by, without a port. None allows any.
        rate: Requests per second of one peer. None sets no limit.

    Mounted inside the process it needs none of the last three, and no key.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await engine.start()
        try:
            yield
        finally:
            await engine.aclose()

    app = Starlette(
        routes=[*extra_routes, *(endpoint.route(engine) for endpoint in ENDPOINTS)],
        lifespan=lifespan,
        exception_handlers={404: _no_route, 405: _no_route},
    )
    # A path that differs by a slash is another path; a redirect would lose the body.
    app.router.redirect_slashes = False
    open_paths = [*_OPEN_PATHS, *(route.path for route in extra_routes if isinstance(route, OpenRoute))]
    return Guard(app, api_key=api_key, open_paths=open_paths, hosts=hosts, rate=rate)


async def _no_route(_request: Request, _error: Exception) -> Response:
    return json_response(404, {"error": "Not found", "details": "This service has no such route"})
