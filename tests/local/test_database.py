"""The file: private, shared, refused when it is not ours, and whole after kill -9."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from supermemory_livekit.local import default_path
from supermemory_livekit.local.database import Database, StorageError
from supermemory_livekit.local.location import database_at
from supermemory_livekit.local.records import NewMemory
from supermemory_livekit.local.sqlite import SQLiteDatabase
from supermemory_livekit.local.storage import Storage

from .support import Service, call, execute

DATABASES = ("sqlite", "postgresql")

WRITER = """
import asyncio, sys
from supermemory import AsyncSupermemory
from supermemory_livekit.local import Engine, open_local

async def main(path, name):
    http = open_local(engine=Engine(path, load=lambda: None, drain=0))
    sdk = AsyncSupermemory(api_key="none", base_url="http://local", http_client=http, max_retries=0)
    for number in range(int(sys.argv[3])):
        await sdk.add(
            content=f"[2026-11-01T10:00:00.000Z] Caller: {name} {number}",
            container_tag="ana", custom_id=f"lk-{number % 3}", dreaming="instant",
        )
        print(number, flush=True)
    await sdk.close()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def writer(location: Path | str, name: str, writes: int) -> subprocess.Popen[str]:
    """A process that stores call text and prints the number of each write that was acknowledged."""
    command = [sys.executable, "-c", WRITER, str(location), name, str(writes)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def stored(service: Service) -> list[str]:
    documents = [await service.sdk.documents.get(f"lk-{number}") for number in range(3)]
    return [line.split("Caller: ")[1] for one in documents for line in (one.content or "").split("\n")]


async def test_kill_9_in_the_middle_of_writing_loses_no_acknowledged_write(
    serve: Callable[..., Service], location: Path | str
) -> None:
    """Brief of the embedded service: kill -9 at any time loses nothing acknowledged."""
    if isinstance(location, Path):
        location.parent.mkdir()
    acknowledged: list[str] = []
    for attempt in range(2):
        with writer(location, f"run{attempt}", 100_000) as process:
            assert process.stdout is not None
            for _ in range(30 + 7 * attempt):
                acknowledged.append(f"run{attempt} {process.stdout.readline().strip()}")
            process.send_signal(signal.SIGKILL)
            acknowledged += [
                f"run{attempt} {number.strip()}" for number in process.stdout if number.endswith("\n")
            ]
            assert process.stderr is not None
    if isinstance(location, Path):
        with sqlite3.connect(location) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()

    service = serve(lease=30)
    kept = await stored(service)
    assert len(set(kept)) == len(kept)
    assert set(acknowledged) <= set(kept)
    assert len(acknowledged) > 60
    chunks = "\n".join(await service.found("ana", "run0", limit=100, searchMode="documents"))
    assert "run0 0" in chunks


async def test_two_processes_write_and_read_one_database(
    serve: Callable[..., Service], location: Path | str
) -> None:
    """Brief of the embedded service: several processes on one file, since LiveKit runs each job in its own."""
    service = serve()
    with writer(location, "one", 30) as one, writer(location, "two", 30) as two:
        for process in (one, two):
            output, errors = await asyncio.to_thread(process.communicate, timeout=50)
            assert process.returncode == 0, errors
            assert len(output.split()) == 30
    kept = await stored(service)
    assert sorted(kept) == sorted(f"{name} {number}" for name in ("one", "two") for number in range(30))


async def test_a_request_that_the_storage_fails_is_answered_503_and_says_nothing_of_it(
    serve: Callable[..., Service],
) -> None:
    """Issue, storage: errors of both drivers are one family, answered 503."""
    service = serve()
    await service.sdk.add(content="Likes tea.", container_tag="ana")
    execute(service.engine.location, "DROP TABLE jobs")
    body = {"content": "Likes cake.", "containerTag": "ana"}
    answer = await service.http.post("/v3/documents", json=body)
    assert answer.status_code == 503
    assert "cake" not in answer.text
    assert len(execute(service.engine.location, "SELECT seq FROM documents")) == 1


async def test_what_one_engine_stores_another_finds_at_once(serve: Callable[..., Service]) -> None:
    """Brief of the embedded service: a version counter in the file keeps cached indexes right across processes."""
    one, two = serve(), serve()
    await one.sdk.add(content=call("C: I sail."), container_tag="ana", custom_id="c")
    assert len(await two.found("ana", "sail")) == 1
    await two.sdk.add(content=call("C: I also cook.", minute=1), container_tag="ana", custom_id="c")
    assert len(await one.found("ana", "cook")) == 1
    await one.sdk.documents.delete("c")
    assert await two.found("ana", "sail") == []


def test_the_file_and_new_directories_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Brief of the embedded service: file 0600, parent directories 0700."""
    path = tmp_path / "data" / "memory.db"
    database = SQLiteDatabase(path)
    database.open()
    with database.write() as connection:
        connection.execute("INSERT INTO tags (tag, created_at, updated_at) VALUES ('ana', 0, 0)")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
    database.close()


def nonsense(path: Path) -> None:
    path.write_bytes(b"hello, world" * 100)


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def newer(path: Path) -> None:
    database = SQLiteDatabase(path)
    database.open()
    database.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()


def damaged(path: Path) -> None:
    database = SQLiteDatabase(path)
    database.open()
    database.close()
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4000)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (nonsense, "no SQLite file"),
        (foreign, "another program"),
        (newer, "newer version"),
        (damaged, "damaged"),
        (Path.mkdir, "cannot be opened"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    """Brief of the embedded service: a foreign, damaged or newer file is refused with a clear error."""
    path = tmp_path / "memory.db"
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StorageError, match=reason):
        SQLiteDatabase(path).open()
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_transaction_that_fails_leaves_nothing(location: Path | str) -> None:
    """Brief of the embedded service: all of a write or none of it."""
    database = database_at(location)
    database.open()
    with pytest.raises(RuntimeError), database.write() as connection:  # noqa: PT012
        connection.execute("INSERT INTO tags (tag, created_at, updated_at) VALUES ('ana', 0, 0)")
        raise RuntimeError
    with database.read() as connection:
        assert connection.execute("SELECT * FROM tags") == []
    database.close()
    with pytest.raises(StorageError, match="closed"), database.read():
        pass


def test_a_read_is_of_one_moment_and_waits_for_no_write(location: Path | str) -> None:
    """Brief of the embedded service: readers have snapshots; searching never waits for what is being stored."""
    database = database_at(location)
    database.open()
    storage = Storage(database)
    with storage.write("ana") as writer:
        writer.add_memory(NewMemory("Sails.", True, 0))

    def store(text: str) -> None:
        with storage.write("ana") as writer:
            writer.add_memory(NewMemory(text, True, 0))

    def held() -> int:
        with storage.read("ana") as container:
            return len(container.live_memories())

    with ThreadPoolExecutor(1) as other:
        with storage.read("ana") as before:
            assert len(before.live_memories()) == 1
            other.submit(store, "Cooks.").result(30)
            assert len(before.live_memories()) == 1
        with storage.write("ana") as writer:
            writer.add_memory(NewMemory("Sings.", True, 0))
            assert other.submit(held).result(30) == 2
        assert other.submit(held).result(30) == 3
    database.close()


def test_writers_under_one_tag_come_one_after_another(location: Path | str) -> None:
    """Brief of the embedded service: a version counter per tag, which no two writes share."""
    databases = [database_at(location) for _ in range(3)]
    for database in databases:
        database.open()

    def store(database: Database) -> list[tuple[int, bool]]:
        done: list[tuple[int, bool]] = []
        for _ in range(8):
            with Storage(database).write("ana") as writer:
                known = bool(writer.same_memories("sails"))
                writer.add_memory(NewMemory("Sails.", True, 0))
                done.append((writer.version, known))
        return done

    with ThreadPoolExecutor(len(databases)) as pool:
        done = sorted(
            one for job in [pool.submit(store, database) for database in databases] for one in job.result(30)
        )
    assert [version for version, _ in done] == list(range(1, 25))
    assert [known for _, known in done] == [False, *[True] * 23]
    for database in databases:
        database.close()


def test_the_path_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Brief of the embedded service: SUPERMEMORY_LOCAL_PATH, else XDG_DATA_HOME, else ~/.local/share."""
    monkeypatch.setenv("SUPERMEMORY_LOCAL_PATH", str(tmp_path / "mine.db"))
    assert default_path() == tmp_path / "mine.db"
    monkeypatch.setenv("SUPERMEMORY_LOCAL_PATH", " ")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "supermemory-livekit" / "memory.db"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local/share/supermemory-livekit/memory.db"


def test_many_can_create_one_database_at_the_same_moment(location: Path | str) -> None:
    """Brief of the embedded service: several processes on one file, from its first moment on."""
    several = (
        [location.with_name(f"{number}.db") for number in range(25)] if isinstance(location, Path) else None
    )
    for place in several or [location]:
        databases = [database_at(place) for _ in range(4)]
        start = threading.Barrier(len(databases))

        def opened(database: Database, start: threading.Barrier = start) -> None:
            start.wait(10)
            database.open()

        with ThreadPoolExecutor(len(databases)) as pool:
            for done in [pool.submit(opened, database) for database in databases]:
                done.result(30)
        for database in databases:
            database.close()
