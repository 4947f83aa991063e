"""Real LiveKit workers for tests: started, talked to and ended, whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from supermemory_livekit.sdk.store import SDKStore, make_client
from tests.jobs.worker import Call

__all__ = ["Report", "Worker", "spoken", "stored", "worker"]

REPOSITORY = Path(__file__).resolve().parents[2]

Report = dict[str, Any]
"""What `tests.jobs.worker` says: `event`, `room`, `pid`, and `replies` with the event "said"."""


class Worker:
    """One worker process with the processes it started. Every wait ends after `patience` real seconds."""

    patience = 40.0

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._reports: list[Report] = []

    async def takes(self, *calls: Call) -> None:
        assert self._process.stdin is not None
        for call in calls:
            self._process.stdin.write(json.dumps(asdict(call)).encode() + b"\n")
        await self._process.stdin.drain()

    async def reports(self, event: str, room: str) -> Report:
        """The next report of this event in this room that was not handed out yet."""
        return await asyncio.wait_for(self._next(event, room), self.patience)

    async def call(self, call: Call) -> Report:
        """One call from beginning to end; returns what was said in it."""
        await self.takes(call)
        said = await self.reports("said", call.room)
        await self.reports("ended", call.room)
        return said

    async def terminated(self) -> None:
        """Send SIGTERM, as an orchestrator does, and wait until the worker has gone."""
        self._process.terminate()
        await self._gone()

    async def finished(self) -> None:
        """Take no more calls, and wait until the worker has gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._gone()

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    async def _gone(self) -> None:
        await asyncio.wait_for(self._process.wait(), self.patience)

    async def _next(self, event: str, room: str) -> Report:
        while True:
            for report in self._reports:
                if (report["event"], report["room"]) == (event, room):
                    self._reports.remove(report)
                    return report
            assert self._process.stdout is not None
            line = await self._process.stdout.readline()
            assert line, f"the worker ended before {event!r} in {room!r}:\n{self.log}"
            self._reports.append(json.loads(line))


@asynccontextmanager
async def worker(folder: Path, *, executor: str = "process") -> AsyncGenerator[Worker]:
    """A worker whose calls keep their memory in the embedded service, in `folder`.

    Everything it started has ended when the block is left.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LIVEKIT_", "OPENAI_"))},
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
        "SUPERMEMORY_API_KEY": "unused",
        "SUPERMEMORY_BASE_URL": "local",
        "SUPERMEMORY_LOCAL_PATH": str(database(folder)),
    }
    log = folder / "worker.log"
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "tests.jobs.worker", executor],
            cwd=REPOSITORY,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield Worker(process, log)
    finally:
        # The worker leads a process group of its own; job processes and the fork server are in it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), 10)
        if process.stdin is not None:
            process.stdin.close()
        # Let the pipes see that the other end has gone.
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.read(), 10)


def database(folder: Path) -> Path:
    return folder / "memory.db"


async def stored(folder: Path, tag: str, room: str) -> list[str]:
    """The lines of the call's document, without their time stamps; empty when there is no such document."""
    store = SDKStore(make_client(base_url=f"local:{database(folder)}"))
    try:
        text = await store.read(tag, f"lk-{room}", service_id=None, timeout=10) or ""
    finally:
        await store.aclose()
    return [line.partition("] ")[2] for line in text.splitlines()]


def spoken(says: Sequence[str], replies: Sequence[str]) -> list[str]:
    """What a document must hold after these exchanges."""
    exchanges = zip(says, replies, strict=True)
    return [line for said, reply in exchanges for line in (f"Caller: {said}", f"Agent: {reply}")]
