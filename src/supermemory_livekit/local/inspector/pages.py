"""The static files, and the headers that keep other sites away from them and from the data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from supermemory_livekit.local.app import OpenRoute

__all__ = ["PRIVATE_HEADERS", "page_routes"]

PRIVATE_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""With every answer: nothing is kept, embedded, sniffed, framed or named to another site."""

_PAGE_HEADERS = {
    **PRIVATE_HEADERS,
    # Scripts and styles from here alone, none of them inline; the page talks to nobody else, and no text can become
    # markup: where the browser knows trusted types, an assignment to innerHTML and its like fails.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Accept",
}

_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class _PageRoute(OpenRoute):
    """For browsers alone: a program that asks the same path is told by the service that it is well."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or "text/html" not in Request(scope).headers.get("accept", ""):
            return Match.NONE, {}
        return super().matches(scope)


def page_routes() -> Sequence[BaseRoute]:
    """A route per file, so that no path a client makes up is ever looked up on the disk. They need no key."""
    routes: list[BaseRoute] = []
    for file in files(__name__.rpartition(".")[0]).joinpath("static").iterdir():
        kind = file.name.rpartition(".")[2]
        if kind not in _MEDIA_TYPES:
            continue
        content = file.read_bytes()
        if file.name == "index.html":
            routes.append(_PageRoute("/", _answer(content, kind), methods=["GET"]))
        else:
            routes.append(OpenRoute(f"/inspector/{file.name}", _answer(content, kind), methods=["GET"]))
    return routes


def _answer(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        return Response(content, headers=_PAGE_HEADERS, media_type=_MEDIA_TYPES[kind])

    return answer
