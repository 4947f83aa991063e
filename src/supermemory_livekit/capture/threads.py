"""Foreign code that blocks, off the event loop, in threads for which no end of a loop or of the process waits.

`asyncio.to_thread` shares a few threads with everything else in the process, and the process does not end before they
do. A function that hangs would take them one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

__all__ = ["DaemonThreads"]

T = TypeVar("T")


class DaemonThreads:
    """At most `limit` calls at once, each in a thread of its own. Belongs to one event loop.

    Who waits may give up; the thread goes on, and counts until the call returns.
    """

    def __init__(self, limit: int, *, name: str) -> None:
        self._free = asyncio.Semaphore(limit)
        self._name = name

    async def run(self, call: Callable[[], T]) -> T:
        """What `call` returns, or raises, whatever that is."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Callable[[], T]] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                answer = context.run(call)
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                self._tell(loop, outcome, _raising(error))
            else:
                self._tell(loop, outcome, lambda: answer)

        try:
            threading.Thread(target=work, name=self._name, daemon=True).start()
        except RuntimeError:  # no thread can be started
            self._free.release()
            raise
        return (await outcome)()

    def _tell(
        self,
        loop: asyncio.AbstractEventLoop,
        outcome: asyncio.Future[Callable[[], T]],
        answer: Callable[[], T],
    ) -> None:
        def done() -> None:
            self._free.release()
            if not outcome.done():
                outcome.set_result(answer)

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(done)


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def call() -> NoReturn:
        raise error

    return call
