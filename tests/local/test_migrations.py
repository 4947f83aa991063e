"""A file of an older version: brought up to date whole, or left as it is."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from supermemory_livekit.local.database import StorageError
from supermemory_livekit.local.sqlite import SQLiteDatabase

from .support import Service, execute

FORMAT_1 = (Path(__file__).parents[1] / "data" / "memory-format-1.sql").read_text()


def old_file(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(FORMAT_1)
    connection.close()
    return path


def format_of(path: Path) -> tuple[int, set[str]]:
    """Its number, and the names of its indexes."""
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='index'")}
    connection.close()
    return version, names


async def test_a_file_of_the_first_format_is_brought_up_to_date_with_all_it_holds(
    serve: Callable[..., Service], tmp_path: Path
) -> None:
    """Issue, storage: schema migrations, tested with an old file."""
    path = old_file(tmp_path / "memory.db")
    service = serve(path=path)
    await service.settled()
    assert await service.profile("ana") == [
        "[2026-11-02] Lives in Graz.",
        "[2026-11-01] Is called Ana.",
        "[2026-11-01] Sails.",
    ]
    assert await service.found("ana", "sail")
    assert (await service.sdk.documents.get("lk-room-1")).status == "done"
    await service.sdk.add(content="Likes tea.", container_tag="ana", dreaming="instant")
    await service.settled()
    assert any("Likes tea." in line for line in await service.profile("ana"))
    version, indexes = format_of(path)
    assert version > 1
    assert "memories_by_model" in indexes


def test_a_new_file_and_an_old_one_that_was_brought_up_to_date_have_the_same_schema(tmp_path: Path) -> None:
    """Issue, storage: an old file is as good as a new one afterwards."""
    schemas = []
    for path in (old_file(tmp_path / "old.db"), tmp_path / "new.db"):
        database = SQLiteDatabase(path)
        database.open()
        database.close()
        rows = execute(
            path, "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        schemas.append([(row["type"], row["name"], row["sql"]) for row in rows])
    assert schemas[0] == schemas[1]


def test_a_migration_that_fails_leaves_the_old_format(tmp_path: Path) -> None:
    """Issue, storage: a migration happens whole or not at all; the older version can still open the file."""
    path = old_file(tmp_path / "memory.db")
    with sqlite3.connect(path) as connection:  # in the way of the second statement
        connection.execute("CREATE INDEX memories_by_model ON memories (id)")
    connection.close()
    with pytest.raises(StorageError):
        SQLiteDatabase(path).open()
    version, indexes = format_of(path)
    assert version == 1
    assert "chunks_by_model" not in indexes


def test_several_processes_may_meet_an_old_file_at_the_same_moment(tmp_path: Path) -> None:
    """Issue, storage: LiveKit starts several processes at once after an update."""
    for attempt in range(10):
        path = old_file(tmp_path / f"{attempt}.db")
        databases = [SQLiteDatabase(path) for _ in range(4)]
        start = threading.Barrier(len(databases))

        def opened(database: SQLiteDatabase, start: threading.Barrier = start) -> None:
            start.wait(10)
            database.open()

        with ThreadPoolExecutor(len(databases)) as pool:
            for done in [pool.submit(opened, database) for database in databases]:
                done.result(30)
        for database in databases:
            database.close()
        assert format_of(path)[0] > 1
