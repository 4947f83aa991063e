"""The end of a call: one flush inside one budget, whether the session closes, the job shuts down or both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

from livekit.agents import AgentSession, JobContext

from supermemory_livekit.background import Background
from supermemory_livekit.capture.capture import Capture
from supermemory_livekit.capture.intake import Intake
from supermemory_livekit.observability.observer import Observer
from supermemory_livekit.recall.recall import Recall
from supermemory_livekit.sdk.sharing import Lease
from supermemory_livekit.telemetry import describe, logger

from .line import agent_of

__all__ = ["FINAL_BUDGET", "Ending"]

FINAL_BUDGET = 8.0
"""Seconds that `close`, the job's shutdown callback and `aclose()` may take together. A worker that shuts down kills
a job after `shutdown_process_timeout`, 10 s by default."""

CLOSING_SHARE = 1.5
"""Seconds of the final budget kept for closing connections, and the embedded service with its pending work."""

CLOSE_EVENT_WAIT = 2.5
"""Seconds the shutdown callback waits for the `close` event of a session that still runs. LiveKit gives the last words
2 s to become a transcript."""


REDACTION_WAIT = 2.0
"""Seconds of the final budget that a redactor may take for the last words."""


class Ending:
    """Ends the call's memory. Nothing here raises, except `CancelledError`."""

    def __init__(
        self,
        *,
        intake: Intake,
        capture: Capture,
        recall: Recall,
        store: Lease,
        background: Background,
        observer: Observer,
        erasing: Callable[[float], Awaitable[None]],
    ) -> None:
        """`erasing` waits for erasures that are under way, at most so many seconds."""
        self._erasing = erasing
        self._intake = intake
        self._observer = observer
        self._capture = capture
        self._recall = recall
        self._store = store
        self._background = background
        self._spent = 0.0
        """Seconds of the final budget that are gone."""
        self._closed: dict[int, tuple[AgentSession[Any], asyncio.Event]] = {}
        """The attached sessions by `id`, each with an event that its `close` sets."""
        self._jobs: list[JobContext] = []

    def watch_session(self, session: AgentSession[Any]) -> None:
        """Flush when this session closes."""
        _, closed = self._closed.setdefault(id(session), (session, asyncio.Event()))

        def on_close(_: Any) -> None:
            try:
                closed.set()
                self._background.start(self.flush(), "Storing what was left of the call")
            except Exception as error:  # noqa: BLE001 - the emitter re-raises a TypeError into the session
                logger.error("The end of the session was not noticed: %s", describe(error))

        session.on("close", on_close)

    def watch_job(self, job: JobContext) -> bool:
        """Flush when this job shuts down: a task that only `close` started would be cancelled with the job.

        Returns False when the job is watched already.
        """
        if any(job is known for known in self._jobs):
            return False
        self._jobs.append(job)

        # A plain function: LiveKit reads `callback.__code__`, which bound methods of 1.6 and partials lack.
        async def store_the_rest_of_the_call() -> None:
            try:
                await self._sessions_closed()
                await self.aclose()
            except asyncio.CancelledError:
                # Another callback raised: LiveKit cancels what is left, and waits for the end of what it cancelled.
                await self.flush()
                raise

        job.add_shutdown_callback(store_the_rest_of_the_call)
        return True

    def call_goes_on(self) -> None:
        """Something was said: the end is still to come, with its whole budget."""
        self._spent = 0.0

    async def flush(self) -> None:
        """Store what is left, within what is left of the budget."""
        with self._on_budget():
            await self._intake.settled(min(REDACTION_WAIT, self._left()))
        with self._on_budget():
            await self._capture.flush(self._left())

    async def aclose(self) -> None:
        """Store what is left and close everything. Safe to call twice."""
        await self.flush()
        await self._recall.aclose()
        await self._intake.aclose()
        with self._on_budget():
            await self._erasing(self._left())
            await self._capture.aclose(0.0)
            await asyncio.gather(self._close_store(), self._observer.aclose(CLOSING_SHARE))
        await self._background.aclose()

    async def _close_store(self) -> None:
        try:
            await asyncio.wait_for(self._store.aclose(), CLOSING_SHARE + self._left())
        except Exception as error:  # noqa: BLE001 - the call is over, nobody can act on this
            logger.warning("Closing the memory client failed: %s", describe(error))

    async def _sessions_closed(self) -> None:
        """Wait a moment for sessions that close beside the shutdown callback: they still commit the last words."""
        with self._on_budget():
            waits = [
                asyncio.ensure_future(closed.wait())
                for session, closed in self._closed.values()
                if agent_of(session) is not None
            ]
            if not waits:
                return
            try:
                await asyncio.wait(waits, timeout=min(CLOSE_EVENT_WAIT, self._left()))
            finally:
                for wait in waits:
                    wait.cancel()

    def _left(self) -> float:
        return max(0.0, FINAL_BUDGET - CLOSING_SHARE - self._spent)

    @contextmanager
    def _on_budget(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            yield
        finally:
            self._spent += loop.time() - started
