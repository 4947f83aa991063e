"""The service over HTTP, for several workers on one machine and for programs in other languages."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.routing import BaseRoute

from .app import create_app
from .engine import DYNAMIC_DELAY, Engine
from .location import database_at, default_path

__all__ = ["DEFAULT_PORT", "DEFAULT_RATE", "Listening", "key_path", "local_key", "serve"]

DEFAULT_PORT = 6767
"""The port of Supermemory's self-hosted server."""

DEFAULT_RATE = 1000.0
"""Requests per second of one peer: more than the service can answer on two cores, so that it only stops floods."""

_GRACE = 5


@dataclass(frozen=True)
class Listening:
    """What a person needs to know to use the server."""

    url: str
    """Goes into `base_url`. A loopback address where the server listens on all interfaces."""
    everywhere: bool
    """It listens on all interfaces, so that other machines reach it by this one's name or address."""
    hosts: tuple[str, ...] | None
    """The names that clients may call it by; None for any."""
    database: str
    """The database file, or the address of the PostgreSQL database without its password."""
    api_key: str | None
    """Show it to the person who started the server, and nowhere else. None when no key is asked for."""
    key_file: Path | None
    """Where the key is kept; None when it was given, or none is asked for."""


def key_path(path: Path) -> Path:
    """Where the key of the service on this database file is kept: beside it."""
    return path.with_name(path.name + ".key")


def local_key(path: Path) -> str:
    """The key kept beside the database file, made at the first call. Readable for its owner alone."""
    file = key_path(path)
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(f"sm_local_{secrets.token_urlsafe(32)}\n")
        try:
            # A link appears whole or not at all, and whoever is first wins.
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return file.read_text().strip()


def serve(
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    path: str | Path | None = None,
    api_key: str | None = None,
    *,
    dynamic_delay: float = DYNAMIC_DELAY,
    require_key: bool = True,
    allow_hosts: Sequence[str] = (),
    rate: float | None = DEFAULT_RATE,
    announce: Callable[[Listening], None] | None = None,
    extra_routes: Callable[[Engine], Sequence[BaseRoute]] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. Blocks.

    A key is asked for unless that is switched off: the one given, else one that is made once and kept beside the
    database file (with PostgreSQL, where that file would be: servers that share a database are best given one). The
    connection is not encrypted: keep to the loopback address, or put a proxy with TLS in front.

    Args:
        host: Address to listen on.
        port: 0 takes a free one.
        path: The database file, or the address of a PostgreSQL database; see `location.locate`.
        api_key: What clients must send.
        dynamic_delay: Seconds of quiet before a `dynamic` document becomes memories.
        require_key: False asks for none, which is allowed on the loopback address alone.
        allow_hosts: More names that clients may call the server by, such as the one of a proxy. On the loopback
            address its own names are always allowed and others never; on any other address naming one here turns
            the check on.
        rate: Requests per second of one peer, of which twice as many may come at once; None sets no limit.
        announce: Called once, when connections are accepted.
        extra_routes: Gives more routes to serve behind the key.

    Raises:
        StorageError: The database file cannot be used.
        OSError: The address cannot be listened on, or the key cannot be kept.
        ValueError: No key is to be asked for on an address that others can reach.
    """
    if not (require_key or _is_loopback(host)):
        raise ValueError("a server without a key has to listen on the loopback address")
    engine = Engine(path, dynamic_delay=dynamic_delay)
    beside = engine.location if isinstance(engine.location, Path) else default_path()
    key = (api_key or local_key(beside)) if require_key else None
    names = _names(host, allow_hosts)
    app = create_app(
        engine,
        api_key=key,
        extra_routes=extra_routes(engine) if extra_routes else (),
        hosts=names,
        rate=rate,
    )
    listener = _listen(host, port)
    everywhere = _is_everywhere(host)
    reached = host if not everywhere else "::1" if ":" in host else "127.0.0.1"
    shown = f"[{reached}]" if ":" in reached else reached
    listening = Listening(
        url=f"http://{shown}:{listener.getsockname()[1]}",
        everywhere=everywhere,
        hosts=None if names is None else tuple(names),
        database=database_at(engine.location).name,
        api_key=key,
        key_file=None if api_key or key is None else key_path(beside),
    )
    # No access log: paths hold custom ids and tags. No proxy headers: any client can write them, and the limits are
    # per peer.
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    asyncio.run(_run(engine, uvicorn.Server(config), listener, listening, announce))


async def _run(
    engine: Engine,
    server: uvicorn.Server,
    listener: socket.socket,
    listening: Listening,
    announce: Callable[[Listening], None] | None,
) -> None:
    # Started here already, since the server would hide why the file cannot be used. Closed by the lifespan, since
    # uvicorn ends the process with the signal it was sent as soon as `serve` is done.
    try:
        await engine.start()
        if announce is not None:
            announce(listening)
        await server.serve(sockets=[listener])
    finally:
        listener.close()
        await engine.aclose()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_everywhere(host: str) -> bool:
    """Whether this is no address of its own but all of the machine's."""
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _names(host: str, more: Sequence[str]) -> list[str] | None:
    """What the server may be called, each name once; None for anything."""
    if more or _is_loopback(host):
        # Nobody calls a server by the address that stands for all of them, but for a page that should not.
        own = [] if _is_everywhere(host) else [host]
        return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", *own, *more]))
    return None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only where the protocol is named. With it the body of each answer waits for
    # the client to acknowledge the headers, which takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener
