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


WRITERS = 3
"""Of each server. Each writes to a document, to which one writer of every other server writes as well."""


class Writing:
    """Additions through one server, those that were acknowledged, until there are enough or the server is gone."""

    def __init__(self, name: str, sdk: Supermemory, most: int) -> None:
        self.acknowledged: list[str] = []
        self.many = threading.Event()
        self._name, self._sdk, self._most = name, sdk, most

    def run(self, writer: int) -> None:
        for number in range(self._most):
            said = f"{self._name} {writer} {number}"
            content = f"[2026-11-01T10:00:00.000Z] Caller: {said}"
            try:
                self._sdk.add(content=content, container_tag=f"ana-{writer}", custom_id=f"lk-{writer}")
            except APIConnectionError:
                return
            self.acknowledged.append(said)
            if number == 5:
                self.many.set()


def test_servers_that_are_killed_take_nothing_acknowledged_with_them_and_the_other_goes_on(
    location: Path | str,
) -> None:
    """Issue, storage: several processes on one file, several servers on one database; kill -9 loses nothing."""
    with (
        serving(location) as (_, survivor),
        serving(location) as (first, one),
        serving(location) as (second, other),
        ThreadPoolExecutor(3 * WRITERS) as pool,
    ):
        survived, *victims = [
            Writing("survivor", survivor, 12),
            Writing("first", one, 100_000),
            Writing("second", other, 100_000),
        ]
        jobs = [
            pool.submit(writing.run, writer) for writer in range(WRITERS) for writing in (survived, *victims)
        ]
        for process, writing in zip((first, second), victims, strict=True):
            assert writing.many.wait(60)
            process.kill()
        for job in jobs:
            job.result(60)
        acknowledged = [said for writing in (survived, *victims) for said in writing.acknowledged]
        assert len(survived.acknowledged) == 12 * WRITERS
        for writer in range(WRITERS):
            content = survivor.documents.get(f"lk-{writer}").content or ""
            kept = [text.split("Caller: ")[1] for text in content.split("\n")]
            mine = {said for said in acknowledged if said.split()[1] == str(writer)}
            assert len(set(kept)) == len(kept)
            assert mine <= set(kept)
            assert len(kept) - len(mine) <= len(victims), "each victim may have stored what it told nobody"
        found = survivor.search.memories(
            q="first 0 3", container_tag="ana-0", search_mode="hybrid", threshold=0.1
        )
        assert any("first 0 3" in (hit.chunk or "") for hit in found.results)
