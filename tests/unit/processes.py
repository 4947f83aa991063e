"""Processes that share a service and a spool, and that may end at any moment: all within one test process.

A process here is an event loop that is never run again once it has ended, so that nothing of it can clean up. The
system then lets go of its file locks, as it does for a process that is killed.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.support.clock import VirtualLoop
from tests.unit.capturing import Call
from tests.unit.test_capture_exactly_once import Service, Step

from supermemory_livekit.params import InputParams
from supermemory_livekit.spool.recovery import Recovered, recover
from supermemory_livekit.store import Dreaming

__all__ = ["Process", "SharedService"]

T = TypeVar("T")


@dataclass(eq=False)
class _Request:
    """A write on its way."""

    loop: asyncio.AbstractEventLoop
    commit: Callable[[], Coroutine[Any, Any, object]]
    open: bool = True


class SharedService(Service):
    """Carries out what a dead client had sent after the client is gone, or never: `client_died` says which."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: deque[_Request] = deque()

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: Any, timeout: float
    ) -> str | None:
        async def commit() -> str | None:
            request.open = False
            return await super(Service, self).append(
                tag, custom_id, text, dreaming=dreaming, at=at, timeout=timeout
            )

        request = _Request(asyncio.get_running_loop(), commit)
        self._under_way.append(request)
        step = self.writes.popleft() if self.writes else Step()
        try:
            return await self._act(step, commit)
        finally:
            request.open = False

    def client_died(
        self, loop: asyncio.AbstractEventLoop, later: asyncio.AbstractEventLoop, late: float | None
    ) -> None:
        """What that client had under way is carried out `late` seconds of `later`'s time from now; None: never."""
        for request in self._under_way:
            if request.loop is loop and request.open and late is not None:
                later.call_later(late, lambda request=request: asyncio.ensure_future(request.commit()))
        self._under_way = deque(request for request in self._under_way if request.loop is not loop)


class Process:
    """One process with one call, whose time jumps."""

    def __init__(self, service: SharedService, directory: Path, before: Process | None = None) -> None:
        self.loop = VirtualLoop()
        self.loop.clock.start()
        self.threads = ThreadPoolExecutor(2)
        self.loop.set_default_executor(self.threads)
        self.service = service
        self.directory = directory
        self.call = Call(service, params=InputParams(spool_dir=directory))
        if before is not None:
            self.call.clock = before.call.clock

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def do(self, action: Callable[[], Any]) -> None:
        async def act() -> None:
            action()

        self.run(act())

    def passes(self, count: int) -> None:
        """Let the event loop turn so many times."""

        async def turn() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.run(turn())

    def die(self, successor: Process, late: float | None) -> None:
        """End here and now; no other process may have anything open.

        What is under way at the service is carried out `late` seconds later, or never.
        """
        self.threads.shutdown(wait=True)  # a thread cannot be killed, so what it does counts as done before
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the descriptor of the listing itself
                if entry.readlink().is_relative_to(self.directory):
                    fcntl.flock(int(entry.name), fcntl.LOCK_UN)
        self.service.client_died(self.loop, successor.loop, late)

    def recover(self) -> Recovered:
        return self.run(recover(self.service, self.directory))

    def bury(self) -> None:
        """When all is checked: end what the test process still has of it."""

        async def cancelled() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.loop.set_default_executor(ThreadPoolExecutor(1))
        self.loop.run_until_complete(cancelled())
        self.loop.run_until_complete(self.call.capture.aclose(0))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
