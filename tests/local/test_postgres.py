"""What is PostgreSQL's own: addresses, other people's schemas, lost connections, and what its errors may not say.

All else it does as the SQLite file does, and is held to it by the tests with `DATABASES`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from supermemory_livekit.local.database import StorageError, StorageUnavailable
from supermemory_livekit.local.location import database_at, locate
from supermemory_livekit.local.records import NewMemory
from supermemory_livekit.local.storage import Storage

from .support import Service, execute

psycopg = pytest.importorskip("psycopg", reason="the driver is in the extra [postgres]")
conninfo = pytest.importorskip("psycopg.conninfo")

DATABASES = ("postgresql",)


def server_of(location: str) -> str:
    """The address without our schema."""
    return location.partition("schema=")[0].rstrip("?&")


def test_an_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Issue, storage: SUPERMEMORY_LOCAL_DATABASE names a PostgreSQL database, or a file."""
    monkeypatch.setenv("SUPERMEMORY_LOCAL_DATABASE", "postgresql://host/name")
    assert locate(None) == "postgresql://host/name"
    assert locate(tmp_path) == tmp_path
    monkeypatch.setenv("SUPERMEMORY_LOCAL_DATABASE", str(tmp_path / "mine.db"))
    assert locate(None) == tmp_path / "mine.db"


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("postgresql://ana:secret@db.example:6432/app", "PostgreSQL db.example:6432/app, schema supermemory"),
        ("postgres://db.example/app?schema=voice&sslmode=require", "PostgreSQL db.example/app, schema voice"),
        ("postgresql:///app?schema=voice", "PostgreSQL localhost/app, schema voice"),
    ],
)
def test_a_database_is_named_without_its_password(address: str, named: str) -> None:
    """Issue, storage: no credentials in what is printed."""
    assert database_at(address).name == named


@pytest.mark.parametrize(
    "address", ["postgresql://ana:secret@[half", "postgresql://ana:secret@host/x?nonsense=1"]
)
def test_an_address_that_cannot_be_read_is_refused_without_quoting_it(address: str) -> None:
    """Issue, storage: a clear message, and no password in it."""
    with pytest.raises(StorageError, match="cannot be read") as caught:
        database_at(address)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_server_that_is_not_there_is_said_so_without_the_password() -> None:
    """Issue, storage: a clear message, and no password in it."""
    with pytest.raises(StorageError, match="cannot be opened") as caught:
        database_at("postgresql://ana:secret@127.0.0.1:1/app").open()
    assert "secret" not in str(caught.value)


def test_a_schema_of_somebody_else_is_refused_and_left_alone(location: str) -> None:
    """Issue, storage: a foreign database is refused with a clear message."""
    schema = location.partition("schema=")[2]
    with psycopg.connect(server_of(location), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.documents (theirs text)")
        with pytest.raises(StorageError, match="another program"):
            database_at(location).open()
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname=%s", (schema,)).fetchall()
    assert rows == [("documents",)]


def test_a_schema_of_a_newer_version_is_refused(location: str) -> None:
    """Issue, storage: a newer format is refused with a clear message."""
    execute(location, "UPDATE supermemory_format SET version=99")
    with pytest.raises(StorageError, match="newer version"):
        database_at(location).open()


@pytest.fixture
def humble(postgres: str) -> Iterator[tuple[str, Any]]:
    """A database without pgvector: its address for a user who may create nothing, and a connection that may."""
    name = f"humble_{secrets.token_hex(8)}"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"CREATE ROLE {name} LOGIN")
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            parts = {**conninfo.conninfo_to_dict(postgres), "dbname": name}
            address = "postgresql:///?" + urlencode({**parts, "user": name}, quote_via=quote)
            with psycopg.connect(conninfo.make_conninfo(**parts), autocommit=True) as connection:
                yield address, connection
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
            server.execute(f"DROP ROLE {name}")


def test_who_may_not_create_the_extension_or_the_schema_is_told_what_to_have_run(
    humble: tuple[str, Any],
) -> None:
    """Decision 0011: an administrator creates once what the user may not; the message says what."""
    address, administrator = humble
    with pytest.raises(StorageError, match=r"may not create the extension.* CREATE EXTENSION vector in"):
        database_at(address).open()
    administrator.execute("CREATE EXTENSION vector")
    with pytest.raises(StorageError, match=r"may not create a schema.* CREATE SCHEMA supermemory AUTHORIZ"):
        database_at(address).open()
    administrator.execute(f"CREATE SCHEMA supermemory AUTHORIZATION {administrator.info.dbname}")
    database = database_at(address)
    database.open()
    with Storage(database).write("ana") as writer:
        writer.add_memory(NewMemory("Likes tea.", True, 0))
    database.close()


def test_a_server_without_pgvector_is_told_to_get_it(humble: tuple[str, Any]) -> None:
    """Decision 0011: the message says what to install. The server's list of extensions is hidden here."""
    address, administrator = humble
    administrator.execute("CREATE SCHEMA hiding")
    administrator.execute(f"GRANT USAGE ON SCHEMA hiding TO {administrator.info.dbname}")
    administrator.execute("CREATE VIEW hiding.pg_available_extensions AS SELECT '' AS name")
    administrator.execute(f"GRANT SELECT ON hiding.pg_available_extensions TO {administrator.info.dbname}")
    options = quote("-csearch_path=hiding,pg_catalog")
    with pytest.raises(StorageError, match="lacks the extension pgvector: install it"):
        database_at(f"{address}&options={options}").open()


def test_connections_that_were_lost_are_replaced(location: str, caplog: pytest.LogCaptureFixture) -> None:
    """Issue, storage: connection loss is retried, and answered 503 when it hits a transaction."""
    caplog.set_level(logging.ERROR, "psycopg.pool")
    database = database_at(location)
    database.open()
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name=%s"
    with psycopg.connect(server_of(location), autocommit=True) as other:
        with database.write() as connection:
            connection.execute("INSERT INTO tags (tag, created_at, updated_at) VALUES ('ana', 0, 0)")
        other.execute(end_all, ("supermemory-livekit",))
        with database.read() as connection:
            assert [row["tag"] for row in connection.execute("SELECT tag FROM tags")] == ["ana"]
        with pytest.raises(StorageUnavailable), database.write() as connection:  # noqa: PT012
            connection.execute("INSERT INTO tags (tag, created_at, updated_at) VALUES ('bob', 0, 0)")
            other.execute(end_all, ("supermemory-livekit",))
            connection.execute("SELECT 1 AS one")
        with database.read() as connection:
            assert [row["tag"] for row in connection.execute("SELECT tag FROM tags")] == ["ana"]
    database.close()
    with pytest.raises(StorageError, match="closed"), database.read():
        pass


def test_an_error_of_the_server_tells_nothing_that_was_stored(location: str) -> None:
    """Design 6: no words, tags or keys in exceptions. PostgreSQL's messages quote the values of a row."""
    database = database_at(location)
    database.open()
    insert = "INSERT INTO tags (tag, created_at, updated_at) VALUES (:tag, 0, 0)"
    with pytest.raises(StorageUnavailable) as caught, database.write() as connection:  # noqa: PT012
        connection.execute(insert, {"tag": "secret-tag"})
        connection.execute(insert, {"tag": "secret-tag"})
    assert "secret-tag" not in str(caught.value)
    assert caught.value.__suppress_context__
    database.close()


def test_a_character_that_postgresql_cannot_store_takes_nothing_else_away(location: str) -> None:
    """Issue, storage: nothing that SQLite keeps is refused. NUL is the one character that PostgreSQL has not."""
    database = database_at(location)
    database.open()
    storage = Storage(database)
    with storage.write("ana") as writer:
        writer.add_memory(NewMemory("Likes\0tea.", True, 0))
    with storage.read("ana") as container:
        assert [memory.text for memory in container.live_memories()] == ["Likes\N{REPLACEMENT CHARACTER}tea."]
    database.close()


def test_a_very_long_fact_is_stored_and_known_again(location: str) -> None:
    """API reference: a memory may have 10,000 characters, more than an entry of PostgreSQL's B-trees."""
    database = database_at(location)
    database.open()
    storage = Storage(database)
    text = " ".join(f"word{number}" for number in range(1_200))
    for _ in range(2):
        with storage.write("ana") as writer:
            writer.add_memory(NewMemory(text, True, 0))
    with storage.read("ana") as container:
        assert [memory.text for memory in container.live_memories()] == [text]
    database.close()


async def test_vectors_can_be_asked_for_with_pgvector(meaning: Service, location: str) -> None:
    """Issue, storage: pgvector holds the vectors, for people who query them with SQL."""
    for text in ("My dwelling is small", "I have a canine"):
        await meaning.sdk.add(content=text, container_tag="ana", dreaming="instant")
    await meaning.settled()
    rows = execute(
        location,
        """SELECT text FROM memories WHERE tag_id=(SELECT id FROM tags WHERE tag='ana') AND text<>:text
        ORDER BY vector <=> (SELECT vector FROM memories WHERE text=:text) LIMIT 1""",
        text="I have a canine",
    )
    assert [row["text"] for row in rows] == ["My dwelling is small"]
