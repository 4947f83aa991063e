"""Processes of a test that take orders and report, one JSON object a line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["Program", "Report"]

REPOSITORY = Path(__file__).resolve().parents[2]

Report = dict[str, Any]
"""What a program says. `event` names what happened."""


class Program:
    """A Python module that runs as a process of its own, with all it starts. Every wait is bounded."""

    patience = 40.0
    """Seconds."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self._name = name
        self._process = process
        self._reports: list[Report] = []
        self._reading = asyncio.Lock()

    @classmethod
    async def start(
        cls,
        module: str,
        *arguments: str,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str],
        log: Path,
    ) -> Program:
        """Start `python -m module`, in the network of `prefix`; what it writes to stderr goes to `log`."""
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *[*prefix, sys.executable, "-m", module, *arguments],
                cwd=REPOSITORY,
                env={
                    **environment,
                    "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
                },
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        return cls(module, process)

    async def order(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()

    async def reports(self, event: str, *, if_: Callable[[Report], bool] = lambda _: True) -> Report:
        """The next report of this event, and of this kind, that was not handed out yet."""
        return await asyncio.wait_for(self._next(event, if_), self.patience)

    async def _next(self, event: str, wanted: Callable[[Report], bool]) -> Report:
        while True:
            # Several may wait, each for reports of its own; one of them reads for all.
            async with self._reading:
                for report in self._reports:
                    if report["event"] == event and wanted(report):
                        self._reports.remove(report)
                        return report
                assert self._process.stdout is not None
                line = await self._process.stdout.readline()
                assert line, f"{self._name} ended before {event!r}"
                self._reports.append(json.loads(line))

    async def finish(self) -> None:
        """No more orders; wait until it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), self.patience)

    async def kill(self) -> None:
        """End it and everything it started without a word. Safe when it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.wait_for(self._process.wait(), 10)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        await asyncio.wait_for(self._process.stdout.read(), 10)
