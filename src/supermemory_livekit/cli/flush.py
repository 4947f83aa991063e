"""`flush`: deliver what dead processes left in a spool."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.sdk_store import SDKStore, make_client
from supermemory_livekit.spool_recovery import Recovered, recover

from .text import counted

__all__ = ["run_flush"]


def run_flush(directory: Path, *, base_url: str | None) -> int:
    """Deliver, and print counts alone. Returns 0 when nothing is left, 1 when something is, 2 for wrong set-up."""
    try:
        store = SDKStore(make_client(base_url=base_url))
    except ConfigurationError as error:
        typer.echo(f"Cannot deliver: {error}", err=True)
        return 2
    result = asyncio.run(_flush(store, directory.expanduser()))
    typer.echo(f"Delivered:         {counted(result.delivered, 'turn')}")
    typer.echo(f"Not delivered:     {counted(result.left, 'turn')}")
    typer.echo(f"Without a caller:  {counted(result.unscoped, 'turn')}")
    typer.echo(f"Damaged:           {counted(result.damaged, 'record')}")
    typer.echo(f"Not read:          {counted(result.foreign, 'file')} of another format")
    return 1 if result.left or result.unscoped or result.foreign else 0


async def _flush(store: SDKStore, directory: Path) -> Recovered:
    try:
        return await recover(store, directory)
    finally:
        await store.aclose()
