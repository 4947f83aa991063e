"""Several servers on one database, and what is left when one of them is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from supermemory import APIConnectionError, Supermemory

DATABASES = ("sqlite", "postgresql")

pytestmark = pytest.mark.timeout(120)

SERVER = """
import sys
from supermemory_livekit.local.server import serve
serve(port=0, path=sys.argv[1], api_key="key", announce=lambda at: print(at.url, flush=True))
"""


@contextmanager
def serving(location: Path | str) -> Generator[tuple[subprocess.Popen[str], Supermemory]]:
    """A server in a process of its own, and a client of it."""
    command = [sys.executable, "-c", SERVER, str(location)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with Supermemory(api_key="key", base_url=url, max_retries=0, timeout=30) as sdk:
                yield process, sdk
        finally:
            process.kill()


def line(name: str, number: int) -> str:
    return f"[2026-11-01T10:00:00.000Z] Caller: {name} {number}"


def test_a_server_that_is_killed_takes_nothing_acknowledged_with_it_and_the_other_goes_on(
    location: Path | str,
) -> None:
    """Issue, storage: several processes on one file, several servers on one database; kill -9 loses nothing."""
    enough = threading.Event()

    def write(name: str, sdk: Supermemory, most: int) -> list[str]:
        """Additions to one document, those that were acknowledged, until there are enough or the server is gone."""
        acknowledged: list[str] = []
        for number in range(most):
            try:
                sdk.add(content=line(name, number), container_tag="ana", custom_id="lk-room")
            except APIConnectionError:
                break
            acknowledged.append(f"{name} {number}")
            if name == "victim" and number == 5:
                enough.set()
        return acknowledged

    with (
        serving(location) as (_, survivor),
        serving(location) as (process, victim),
        ThreadPoolExecutor() as pool,
    ):
        survived = pool.submit(write, "survivor", survivor, 12)
        killed = pool.submit(write, "victim", victim, 100_000)
        assert enough.wait(60)
        process.kill()
        acknowledged = [*survived.result(60), *killed.result(60)]
        content = survivor.documents.get("lk-room").content or ""
        kept = [text.split("Caller: ")[1] for text in content.split("\n")]
        assert len(set(kept)) == len(kept)
        assert set(acknowledged) <= set(kept)
        assert len(kept) - len(acknowledged) <= 1
        assert f"survivor {11}" in acknowledged
        found = survivor.search.memories(
            q="victim 3", container_tag="ana", search_mode="hybrid", threshold=0.1
        )
        assert any("victim 3" in (hit.chunk or "") for hit in found.results)
