"""A PostgreSQL database with pgvector, for several servers that keep the same callers.

Readers have snapshots (`REPEATABLE READ`). Writers under one tag come one after another, since each begins
by writing the tag's row; writers under different tags do not wait for each other. Connections come from a
small pool, are tried before they are used, and give up on what takes too long.

Everything lies in a schema of its own, `supermemory` unless the address says `?schema=NAME`, so that the
database may be shared with the rest of an application.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlencode

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool
from typing_extensions import LiteralString

from .database import StorageError, StorageUnavailable, Values
from .postgres_formats import MIGRATIONS

__all__ = ["PostgresDatabase"]

_SCHEMA = "supermemory"

_CONNECTIONS = 8
"""Most connections of one process: more than the engine has threads."""
_CONNECT_TIMEOUT = 5
"""Seconds a transaction waits for a connection, and a connection for the server."""
_SETTINGS = {
    "statement_timeout": "15s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "60s",
    "application_name": "supermemory-livekit",
}
_MIGRATION_PATIENCE = "60s"
"""How long a server that starts waits for another that is just bringing the schema up to date."""

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

_Rows = psycopg.Connection[DictRow]


class _Connection:
    """`database.Connection` on one connection of the pool."""

    def __init__(self, connection: _Rows) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Values | None = None) -> Sequence[DictRow]:
        cursor = self._connection.execute(_translated(statement), _adapted(values or {}), binary=True)
        return cursor.fetchall() if cursor.description is not None else ()

    def execute_many(self, statement: str, values: Sequence[Values]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(statement), [_adapted(row) for row in values])

    def vector(self, stored: Any) -> NDArray[np.float32]:
        return cast(NDArray[np.float32], stored.to_numpy().astype(np.float32))


class PostgresDatabase:
    """`database.Database` on a PostgreSQL server."""

    def __init__(self, address: str) -> None:
        """`address`: `postgresql://[user[:password]@]host[:port]/name[?schema=NAME&…]`, else as libpq reads it.

        Does no I/O. Raises `StorageError` when it cannot be read.
        """
        self._address, self.schema = _without_schema(address)
        try:
            parts = conninfo_to_dict(self._address)
        except psycopg.Error:
            # Without the reason: it quotes the address, which may hold a password.
            raise StorageError("The PostgreSQL address cannot be read") from None
        host = parts.get("host") or "localhost"
        port = f":{parts['port']}" if parts.get("port") else ""
        self._name = f"PostgreSQL {host}{port}/{parts.get('dbname') or ''}, schema {self.schema}"
        self._lock_name = f"supermemory-livekit:{self.schema}"
        self._search_path = ""
        self._pool: ConnectionPool[_Rows] | None = None

    @property
    def name(self) -> str:
        return self._name

    def open(self) -> None:
        try:
            with _Rows.connect(
                self._address, connect_timeout=_CONNECT_TIMEOUT, row_factory=dict_row
            ) as connection:
                self._prepare(connection)
        except psycopg.OperationalError as error:
            # Nothing of a caller has been sent yet, and libpq's reasons hold no password.
            reason = str(error).partition("\n")[0]
            raise StorageError(f"The PostgreSQL database cannot be opened: {reason}") from None
        except psycopg.Error as error:
            raise StorageError(f"The PostgreSQL database cannot be used ({_kind(error)})") from None
        self._pool = ConnectionPool(
            self._address,
            connection_class=_Rows,
            kwargs={
                "autocommit": True,  # transactions are begun by hand, since reading and writing differ
                "row_factory": dict_row,
                "connect_timeout": _CONNECT_TIMEOUT,
            },
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_CONNECT_TIMEOUT,
            configure=self._configure,
            check=ConnectionPool[_Rows].check_connection,
            open=True,
        )

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    @contextmanager
    def read(self) -> Generator[_Connection]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Generator[_Connection]:
        with self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") as connection:
            if not durable:
                connection.execute("SET LOCAL synchronous_commit=off")
            yield connection

    @contextmanager
    def write_alone(self, *, durable: bool = True) -> Generator[_Connection]:
        with self.write(durable=durable) as connection:
            connection.execute(_LOCK, {"name": self._lock_name})
            yield connection

    @contextmanager
    def _transaction(self, begin: LiteralString) -> Generator[_Connection]:
        if self._pool is None or self._pool.closed:
            raise StorageError("The PostgreSQL database is closed")
        try:
            # The pool commits what ends well, and takes back or drops a connection on which something failed.
            with self._pool.connection() as connection:
                connection.execute(begin)
                yield _Connection(connection)
        except psycopg.Error as error:
            # Not chained: the server's messages quote values.
            raise StorageUnavailable(f"The PostgreSQL database cannot be used now ({_kind(error)})") from None

    def _configure(self, connection: _Rows) -> None:
        for setting, value in {**_SETTINGS, "search_path": self._search_path}.items():
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        register_vector(connection)

    def _prepare(self, connection: _Rows) -> None:
        """In one transaction, one server at a time."""
        connection.execute("SELECT set_config('lock_timeout', %s, true)", (_MIGRATION_PATIENCE,))
        connection.execute(_translated(_LOCK), {"name": self._lock_name})
        # Before our schema is on the search path, so that the extension outlives it.
        extension = _vector_schema(connection)
        schema = sql.Identifier(self.schema)
        self._search_path = sql.SQL(", ").join([schema, sql.Identifier(extension)]).as_string(connection)
        exists = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname=%s", (self.schema,)).fetchone()
        if exists is None:
            try:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
            except psycopg.errors.InsufficientPrivilege:
                raise StorageError(
                    f"This PostgreSQL user may not create a schema: have an administrator run CREATE SCHEMA"
                    f" {self.schema} AUTHORIZATION, followed by the name of this user, in the database"
                ) from None
        connection.execute("SELECT set_config('search_path', %s, true)", (self._search_path,))
        version = self._format(connection)
        for statements in MIGRATIONS[version:]:
            connection.execute(statements.encode())
        if version < len(MIGRATIONS):
            connection.execute("UPDATE supermemory_format SET version=%s", (len(MIGRATIONS),))

    def _format(self, connection: _Rows) -> int:
        """The format's number: 0 for a schema that is empty. Raises `StorageError` for what is not ours or newer."""
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname=%s", (self.schema,))
        tables = {row["tablename"] for row in rows}
        if not tables:
            connection.execute("CREATE TABLE supermemory_format (version bigint NOT NULL)")
            connection.execute("INSERT INTO supermemory_format VALUES (0)")
            return 0
        if "supermemory_format" not in tables:
            raise StorageError(
                "The PostgreSQL schema belongs to another program; name another with ?schema=NAME"
            )
        row = connection.execute("SELECT version FROM supermemory_format").fetchone()
        version = int(row["version"]) if row is not None else 0
        if version > len(MIGRATIONS):
            raise StorageError(
                f"The PostgreSQL schema was written by a newer version (its format is {version}, this one"
                f" knows {len(MIGRATIONS)})"
            )
        return version


_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"


def _vector_schema(connection: _Rows) -> str:
    """Where the extension pgvector is, which is created if need be. Raises `StorageError` when it cannot be."""
    where = """SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid=extnamespace
        WHERE extname='vector'"""
    row = connection.execute(where).fetchone()
    if row is None:
        if not connection.execute("SELECT 1 FROM pg_available_extensions WHERE name='vector'").fetchall():
            raise StorageError(
                "The PostgreSQL server lacks the extension pgvector: install it there"
                " (Debian has it as postgresql-NN-pgvector, NN being the server's version), then start this again"
            )
        try:
            connection.execute("CREATE EXTENSION vector")
        except psycopg.errors.InsufficientPrivilege:
            raise StorageError(
                "This PostgreSQL user may not create the extension pgvector: have an administrator run"
                " CREATE EXTENSION vector in the database, once"
            ) from None
        row = connection.execute(where).fetchone()
    assert row is not None
    return str(row["nspname"])


def _without_schema(address: str) -> tuple[str, str]:
    """The address as libpq takes it, and the schema it names besides."""
    base, _, query = address.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    schemas = [value for name, value in given if name == "schema" and value]
    # As libpq reads it: a blank is written %20, never +.
    rest = urlencode([pair for pair in given if pair[0] != "schema"], quote_via=quote)
    return f"{base}?{rest}" if rest else base, schemas[-1] if schemas else _SCHEMA


@lru_cache(maxsize=512)
def _translated(statement: str) -> bytes:
    return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%")).encode()


def _adapted(values: Values) -> Mapping[str, object]:
    return {name: _adapted_value(value) for name, value in values.items()}


def _adapted_value(value: object) -> object:
    if isinstance(value, str):
        # The one character that PostgreSQL cannot store.
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, list):
        return [_adapted_value(item) for item in cast("list[object]", value)]
    return value


def _kind(error: psycopg.Error) -> str:
    return error.sqlstate or type(error).__name__
