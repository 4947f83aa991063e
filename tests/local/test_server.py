"""The service over real HTTP, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from supermemory import AsyncSupermemory, AuthenticationError, Supermemory

from supermemory_livekit.local import StorageError, server
from supermemory_livekit.local.server import key_path, local_key, serve

from .support import call

SERVER = """
import json, sys
from supermemory_livekit.local.server import serve

def announce(listening):
    print(json.dumps({"url": listening.url, "key": listening.api_key}), flush=True)

serve(port=0, path=sys.argv[1], api_key=sys.argv[2] or None, announce=announce)
"""


@contextmanager
def serving(path: Path, key: str = "") -> Generator[dict[str, Any]]:
    command = [sys.executable, "-c", SERVER, str(path), key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            yield {**json.loads(line), "process": process}
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


async def test_the_official_sdk_talks_to_it_over_http(tmp_path: Path) -> None:
    """Specification, self-hosting: `base_url="http://localhost:6767"`. API reference 5.1: DELETE with a body."""
    with serving(tmp_path / "memory.db") as server:
        async with AsyncSupermemory(api_key=server["key"], base_url=server["url"], max_retries=0) as sdk:
            added = await sdk.add(
                content=call("C: I sail."), container_tag="ana", custom_id="room: 1/ä", dreaming="dynamic"
            )
            assert (await sdk.documents.get("room: 1/ä")).id == added.id
            found = await sdk.search.memories(
                q="sail", container_tag="ana", search_mode="hybrid", threshold=0.1
            )
            assert found.results[0].chunk is not None
            created = await sdk.post(
                "/v4/memories",
                body={"containerTag": "ana", "memories": [{"content": "Likes tea"}]},
                cast_to=httpx.Response,
            )
            assert created.status_code == 201
            assert (await sdk.memories.forget(container_tag="ana", content="likes tea")).forgotten
            await sdk.documents.delete_bulk(container_tags=["ana"])
        async with AsyncSupermemory(api_key="wrong", base_url=server["url"], max_retries=0) as sdk:
            with pytest.raises(AuthenticationError):
                await sdk.profile(container_tag="ana")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_no_answer_waits_for_the_client_to_acknowledge_its_headers(host: str) -> None:
    """Design 4: with Nagle's algorithm the body of every answer would come 40 ms after its headers."""
    delays: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted: socket.socket = writer.get_extra_info("socket")
        delays.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    try:
        listener = server._listen(host, 0)  # pyright: ignore[reportPrivateUsage]
    except OSError:
        pytest.skip(f"{host} cannot be listened on here")
    async with await asyncio.start_server(connected, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        assert await delays
        writer.close()


def test_the_key_is_made_once_and_stays(tmp_path: Path) -> None:
    """Brief of the embedded service: the key is generated when absent, kept beside the database, stable."""
    made = local_key(tmp_path / "memory.db")
    assert made.startswith("sm_local_")
    assert stat.S_IMODE(key_path(tmp_path / "memory.db").stat().st_mode) == 0o600
    with serving(tmp_path / "memory.db") as server:
        assert server["key"] == made
    assert local_key(tmp_path / "memory.db") == made
    assert [file.name for file in tmp_path.iterdir() if ".key" in file.name] == ["memory.db.key"]


def test_a_key_that_is_given_is_not_kept(tmp_path: Path) -> None:
    """The key of the environment or the command line stays where it came from."""
    with serving(tmp_path / "memory.db", key="given") as server:
        assert server["key"] == "given"
        refused = httpx.post(server["url"] + "/v4/profile", json={"containerTag": "ana"})
        assert refused.status_code == 401
    assert not key_path(tmp_path / "memory.db").exists()


def test_what_was_acknowledged_survives_kill_9_of_the_server(tmp_path: Path) -> None:
    """Brief of the embedded service: kill -9 loses nothing acknowledged, and the work goes on afterwards."""
    with (
        serving(tmp_path / "memory.db") as server,
        Supermemory(api_key=server["key"], base_url=server["url"], max_retries=0) as sdk,
    ):
        added = sdk.add(content="Likes tea", container_tag="ana", dreaming="instant")
        server["process"].kill()
        server["process"].wait(20)
    with (
        serving(tmp_path / "memory.db") as server,
        Supermemory(api_key=server["key"], base_url=server["url"], max_retries=0) as sdk,
    ):
        assert sdk.documents.get(added.id).content == "Likes tea"
        found = sdk.search.memories(q="tea", container_tag="ana", search_mode="hybrid", threshold=0.1)
        assert found.results


def test_it_ends_cleanly_on_sigterm_without_a_word_of_a_caller(tmp_path: Path) -> None:
    """Case P2: nothing a caller said, no tag and no key on the server's output."""
    with serving(tmp_path / "memory.db") as server:
        with Supermemory(api_key=server["key"], base_url=server["url"], max_retries=0) as sdk:
            sdk.add(content="mysecretwords", container_tag="secrettag", custom_id="secretid")
            sdk.profile(container_tag="secrettag")
        httpx.get(server["url"] + "/v3/documents/secretid")
        server["process"].send_signal(signal.SIGTERM)
        output, errors = server["process"].communicate(timeout=20)
    for said in ("mysecretwords", "secrettag", "secretid", server["key"]):
        assert said not in output + errors
    assert "Traceback" not in errors
    assert not (tmp_path / "memory.db-wal").exists(), "the file was not closed"


def test_a_file_that_is_not_ours_stops_the_server_with_the_reason(tmp_path: Path) -> None:
    """Brief of the embedded service: refused with a clear error."""
    (tmp_path / "memory.db").write_text("hello" * 500)
    with pytest.raises(StorageError, match="no SQLite file"):
        serve(port=0, path=tmp_path / "memory.db")


def test_an_address_in_use_is_said_so(tmp_path: Path) -> None:
    """An OSError, which the command line can put into words."""
    with serving(tmp_path / "memory.db") as server, pytest.raises(OSError):  # noqa: PT011 - number differs by system
        serve(port=httpx.URL(server["url"]).port or 0, path=tmp_path / "memory.db")
