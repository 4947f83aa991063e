"""Where the service keeps its rows: a path of a SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path

from .database import Database, StorageError
from .sqlite import SQLiteDatabase

__all__ = ["Location", "database_at", "default_path", "is_postgres", "locate"]

Location = Path | str
"""A path is a SQLite file; a string is a `postgresql://` address."""

_SCHEMES = ("postgresql://", "postgres://")


def default_path() -> Path:
    """`$SUPERMEMORY_LOCAL_PATH`, else `memory.db` in the user's data directory."""
    named = os.environ.get("SUPERMEMORY_LOCAL_PATH", "").strip()
    if named:
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME", "").strip()
    return (Path(data) if data else Path.home() / ".local" / "share") / "supermemory-livekit" / "memory.db"


def is_postgres(text: str) -> bool:
    """Whether this is the address of a PostgreSQL database rather than a path."""
    return text.startswith(_SCHEMES)


def locate(given: str | Path | None) -> Location:
    """What was given, or else `$SUPERMEMORY_LOCAL_DATABASE` (a path or an address), or `default_path()`."""
    if given is None:
        given = os.environ.get("SUPERMEMORY_LOCAL_DATABASE", "").strip() or default_path()
    if isinstance(given, str) and is_postgres(given):
        return given
    return Path(given).expanduser()


def database_at(location: Location) -> Database:
    """The database there. Does no I/O.

    Raises `StorageError` when it is a PostgreSQL database and the extra `[postgres]` is not installed.
    """
    if isinstance(location, Path):
        return SQLiteDatabase(location)
    try:
        # Imported here: its driver is an optional extra.
        from .postgres import PostgresDatabase
    except ImportError as error:
        raise StorageError(
            f"PostgreSQL needs its driver ({error.name} is missing): pip install"
            ' "supermemory-livekit[local,postgres]"'
        ) from None
    return PostgresDatabase(location)
