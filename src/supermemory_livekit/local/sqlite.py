"""One SQLite file that several threads and processes write at once without losing an acknowledged write.

Write-ahead logging lets searches read while something is stored; `synchronous=FULL` makes an acknowledged
write survive a crash of the process or the machine; `BEGIN IMMEDIATE` makes writers queue instead of failing
half-way.

Each thread has its own connection.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .database import StorageError, StorageUnavailable, Values
from .sqlite_formats import MIGRATIONS

__all__ = ["SQLiteDatabase"]

_APPLICATION_ID = 0x534D4C4B
"""Written into the file's header, so that somebody else's SQLite file is recognised and left alone."""

_BUSY_TIMEOUT = 5.0
"""Seconds a writer waits for the writers of other processes."""

_MEMBERSHIP = re.compile(r"=\s*ANY\((:\w+)\)")


class _Connection:
    """`database.Connection` on one SQLite connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Values | None = None) -> Sequence[sqlite3.Row]:
        return self._connection.execute(_translated(statement), _adapted(values or {})).fetchall()

    def execute_many(self, statement: str, values: Sequence[Values]) -> None:
        self._connection.executemany(_translated(statement), map(_adapted, values))

    def vector(self, stored: Any) -> NDArray[np.float32]:
        return np.frombuffer(stored, dtype=np.float16).astype(np.float32)


class SQLiteDatabase:
    """`database.Database` on one file."""

    def __init__(self, path: Path) -> None:
        """Does no I/O."""
        self.path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        # SQLite lets a second writer sleep and try again. Within a process a lock hands over at once.
        self._writing = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False

    @property
    def name(self) -> str:
        return str(self.path)

    def open(self) -> None:
        try:
            _make_private_file(self.path)
        except OSError as error:
            raise StorageError(
                f"The memory file cannot be opened: {error.strerror or type(error).__name__}"
            ) from error
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise StorageError(f"The memory file is damaged or is no SQLite file ({_kind(error)})") from error
        except StorageError:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._closed = True
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    @contextmanager
    def read(self) -> Generator[_Connection]:
        with _available(), self._reading() as connection:
            yield _Connection(connection)

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[_Connection]:
        with _available(), self._transaction(durable=durable) as connection:
            yield _Connection(connection)

    # A file has one writer at a time anyway.
    write_alone = write

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        connection = self._connection()
        with self._writing:
            # NORMAL leaves the last commits to the system's cache; the next FULL one takes them to the disk too.
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or self._closed:
            with self._lock:
                if self._closed:
                    raise StorageError("The memory file is closed")
                # Closed by whichever thread closes the engine, hence check_same_thread=False.
                connection = sqlite3.connect(
                    self.path, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
                )
                self._connections.append(connection)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys=ON")
            # What a caller asked to delete must not stay readable in free pages of the file.
            connection.execute("PRAGMA secure_delete=ON")
            self._local.connection = connection
        return connection

    def _prepare(self) -> None:
        # In one snapshot: another process may be creating the file just now.
        with self._reading() as snapshot:
            _format_of(snapshot)
        _use_write_ahead_log(self._connection())
        # Header and tables change in one transaction: a process killed here leaves the format it found.
        with self._transaction() as transaction:
            version = _format_of(transaction)
            for statements in MIGRATIONS[version:]:
                for statement in statements.split(";\n"):
                    transaction.execute(statement)
            transaction.execute(f"PRAGMA application_id={_APPLICATION_ID}")
            transaction.execute(f"PRAGMA user_version={len(MIGRATIONS)}")


@contextmanager
def _available() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageUnavailable(f"The memory file cannot be used now ({_kind(error)})") from error


@lru_cache(maxsize=512)
def _translated(statement: str) -> str:
    return _MEMBERSHIP.sub(r"IN (SELECT value FROM json_each(\1))", statement)


def _adapted(values: Values) -> dict[str, object]:
    return {name: _adapted_value(value) for name, value in values.items()}


def _adapted_value(value: object) -> object:
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, np.ndarray):
        return value.astype(np.float16).tobytes()
    return value


def _format_of(connection: sqlite3.Connection) -> int:
    """The format's number: 0 for an empty file. Raises `StorageError` for what is not ours or newer."""
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != _APPLICATION_ID:
        raise StorageError("The memory file belongs to another program")
    if version > len(MIGRATIONS):
        raise StorageError(
            f"The memory file was written by a newer version (its format is {version}, this one knows"
            f" {len(MIGRATIONS)})"
        )
    return version


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # Switching needs the file alone for a moment and does not wait for others, who may be doing it just now.
    deadline = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            mode = str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    if mode.lower() != "wal":
        raise StorageError("The memory file lies on a file system that cannot share it (no write-ahead log)")


def _make_private_file(path: Path) -> None:
    """Create the file for its owner alone; SQLite gives the files beside it the same mode."""
    missing: list[Path] = []
    parent = path.parent
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _kind(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
