"""Owned background tasks: kept while they run, their failures logged by kind, cancelled at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from .telemetry import describe, logger

__all__ = ["Background"]

T = TypeVar("T")


class Background:
    """The tasks of one part of a call. Belongs to the event loop of the call."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], what: str) -> asyncio.Task[T]:
        """Run `work`; `what` names it in the log should it fail. Needs a running loop."""
        task = asyncio.get_running_loop().create_task(work, name=f"supermemory: {what}")
        self._tasks.add(task)

        def finished(task: asyncio.Task[T]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("%s failed: %s", what, describe(error))

        task.add_done_callback(finished)
        return task

    def cancel(self) -> None:
        """Ask all tasks to end, without waiting for them."""
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        """Cancel all tasks but the one that calls, and wait for their end. Safe to call twice."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
