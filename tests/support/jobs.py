"""A LiveKit job without a worker, that ends like a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from livekit.agents import AgentSession, JobContext
from livekit.agents.testing import fake_job_context

__all__ = ["Job", "job"]


@dataclass
class Job:
    """A running job. `end` does what LiveKit's job process does when the job is over."""

    context: JobContext
    before: set[asyncio.Task[Any]]
    """Tasks that are not the job's."""
    killed: bool = False
    """True when the job did not end within the time that the worker gives it."""
    errors: list[BaseException] = field(default_factory=lambda: list[BaseException]())
    """What shutdown callbacks raised."""
    left: list[str] = field(default_factory=lambda: list[str]())
    """Names of the tasks that were still running at the end, and were cancelled."""

    async def end(
        self,
        session: AgentSession[Any] | None = None,
        *,
        on_session_end: Callable[[JobContext], Awaitable[None]] | None = None,
        time_limit: float | None = 10.0,
        at_kill: Callable[[], object] | None = None,
    ) -> None:
        """Close the session, run `on_session_end`, then all shutdown callbacks at once, then cancel what is
        left.

        As in LiveKit, the first callback that raises ends the wait for the others, which are then cancelled
        with everything else that the job started. `time_limit` is the worker's `shutdown_process_timeout` in
        seconds of the loop's clock, counted from the callbacks on; None is a job that ends by itself. A job
        that takes longer is `killed`. A killed process runs no further, but tasks of a test have to be
        cancelled, and may still act on it; `at_kill` is called before that, to look at what was done in time.
        """
        if session is not None:
            await asyncio.wait_for(session.aclose(), 60)
        if on_session_end is not None:
            await asyncio.wait_for(on_session_end(self.context), 300)
        callbacks = [
            asyncio.create_task(_run(callback), name="job_shutdown_callback")
            for callback in self.context._shutdown_callbacks  # pyright: ignore[reportPrivateUsage]
        ]
        if callbacks:
            done, pending = await asyncio.wait(
                callbacks, timeout=time_limit, return_when=asyncio.FIRST_EXCEPTION
            )
            self.errors = [error for task in done if (error := task.exception()) is not None]
            self.killed = bool(pending) and not self.errors
        if self.killed and at_kill is not None:
            at_kill()
        await self._cancel_what_is_left()

    async def _cancel_what_is_left(self) -> None:
        left = [
            task
            for task in asyncio.all_tasks()
            if task not in self.before and task is not asyncio.current_task() and not task.done()
        ]
        self.left = [task.get_name() for task in left]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _run(callback: Callable[[str], Awaitable[None]]) -> None:
    await callback("")


@contextmanager
def job(**options: Any) -> Generator[Job]:
    """The current job: `get_job_context()` finds it. Options as for `fake_job_context`, `job_metadata` for
    one.

    Enter it inside the running loop: tasks that run before are not the job's, and outlive it.
    """
    with fake_job_context(**options) as context:
        try:
            yield Job(context, before=asyncio.all_tasks())
        finally:
            # a real job removes its directory when its process ends; a fake one leaves that to nobody
            context._tempdir.cleanup()  # pyright: ignore[reportPrivateUsage]
