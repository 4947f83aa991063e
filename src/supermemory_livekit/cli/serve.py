"""`serve`: the embedded memory service over HTTP, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import typer

from supermemory_livekit.local.database import StorageError
from supermemory_livekit.local.inspector import inspector_routes
from supermemory_livekit.local.location import default_path, locate
from supermemory_livekit.local.server import DEFAULT_RATE, Listening, key_path, serve

__all__ = ["run_serve"]


def run_serve(
    *,
    host: str,
    port: int,
    database: str | Path | None,
    api_key: str | None,
    dynamic_delay: float,
    inspector: bool,
    require_key: bool = True,
    allow_hosts: Sequence[str] = (),
    rate: float = DEFAULT_RATE,
) -> int:
    """Serve until told to stop. Returns the exit code: 0 after Ctrl-C or SIGTERM, 1 when it cannot start."""
    location = locate(database)
    key_is_new = not key_path(location if isinstance(location, Path) else default_path()).exists()
    # The server hands a signal on once it is done with it; what it ends with then is no failure.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, _end)
    try:
        serve(
            host,
            port,
            location,
            api_key,
            dynamic_delay=dynamic_delay,
            require_key=require_key,
            allow_hosts=allow_hosts,
            rate=rate or None,
            announce=lambda listening: _announce(listening, key_is_new=key_is_new, inspector=inspector),
            extra_routes=inspector_routes if inspector else None,
        )
    except (StorageError, ValueError) as error:
        typer.echo(f"Cannot serve: {error}", err=True)
        return 1
    except OSError as error:
        reason = error.strerror or type(error).__name__
        typer.echo(
            f"Cannot serve: {host} port {port}: {reason}. Name another with --host and --port.", err=True
        )
        return 1
    return 0


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _announce(listening: Listening, *, key_is_new: bool, inspector: bool) -> None:
    shown = "<the key you gave>"
    typer.echo(f"Memory service:  {listening.url}")
    if listening.everywhere:
        typer.echo(
            "                 listens on all interfaces: others reach it by this machine's name or address"
        )
    if listening.hosts is None:
        typer.echo("Host names:      any; with --allow-host NAME only localhost and those you name")
    else:
        typer.echo(f"Host names:      {', '.join(listening.hosts)}; --allow-host NAME adds one")
    if inspector:
        asks = "" if listening.api_key is None else "; it asks for the key"
        typer.echo(f"Inspector:       {listening.url}/ in a browser{asks}")
    typer.echo(f"Database:        {listening.database}")
    if listening.api_key is None:
        shown = "any"
        typer.echo("Key:             none is asked for; every program on this machine can read and change it")
    elif listening.key_file is None:
        typer.echo("Key:             the one you gave")
    elif key_is_new:
        shown = listening.api_key
        typer.echo(f"Key:             {listening.api_key}")
        typer.echo(f"                 made just now and kept in {listening.key_file}; not shown again")
    else:
        shown = f'"$(cat {shlex.quote(str(listening.key_file))})"'
        typer.echo(f"Key:             kept in {listening.key_file}")
    typer.echo("")
    typer.echo("For workers on this machine:" if listening.everywhere else "For workers:")
    typer.echo(f"  export SUPERMEMORY_BASE_URL={listening.url}")
    typer.echo(f"  export SUPERMEMORY_API_KEY={shown}")
    typer.echo("")
    typer.echo("Ctrl-C stops it.")
