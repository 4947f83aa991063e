"""An event loop whose time jumps: a test that waits ten seconds takes none.

While the clock is virtual, the loop does not sleep. When nothing is ready it moves its time to the next
timer. It does not jump while a job of `run_in_executor` (and so of `asyncio.to_thread`) runs: such a job
takes real time, and the clock stands still until it is done. `time.time`, `time.monotonic` and
`time.perf_counter` follow the loop, since LiveKit measures silence and playout with them.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast, get_args
from unittest import mock

from livekit.agents import llm
from pydantic import BaseModel

__all__ = ["ControlledTime", "VirtualClock", "virtual_time"]

_STALLED_AFTER = 20.0
"""Real seconds without event, timer or running job after which a test is told that it waits for nothing."""

_IO_GRACE = 0.005
"""Real seconds that open connections get to deliver before time jumps past them."""


class VirtualClock:
    """The time of one loop. Real until `start` is called."""

    def __init__(self) -> None:
        self._real = time.monotonic
        self._ahead = 0.0
        self._stopped_at: float | None = None
        self._holds = 0

    def now(self) -> float:
        """Seconds; only differences mean something."""
        return self._real() if self._stopped_at is None else self._stopped_at + self._ahead

    @property
    def virtual(self) -> bool:
        """Whether time jumps."""
        return self._stopped_at is not None

    @property
    def elapsed(self) -> float:
        """Virtual seconds since `start`."""
        return self._ahead

    def start(self) -> None:
        """Let time jump from now on; `elapsed` is 0 again."""
        self._stopped_at, self._ahead = self._real(), 0.0

    def stop(self) -> None:
        """Go back to real time."""
        self._stopped_at = None

    def jump(self, seconds: float) -> None:
        """Move time ahead. Timers that are due by then run next."""
        self._ahead += seconds

    @property
    def held(self) -> bool:
        """Whether a `hold` block is open."""
        return self._holds > 0

    @contextmanager
    def hold(self) -> Generator[None]:
        """Let time stand still, for what happens in threads or processes that the loop knows nothing of."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1


class _JumpingSelector(selectors.BaseSelector):
    """Does what a selector does, except that it moves the clock instead of waiting for a timer."""

    def __init__(self, inner: selectors.BaseSelector, clock: VirtualClock, busy: Callable[[], bool]) -> None:
        self.inner = inner
        self._clock = clock
        self._busy = busy

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._clock.virtual or (timeout is not None and timeout <= 0):
            return self.inner.select(timeout)
        # the loop's own wake-up pipe is always registered; anything else is a connection
        connected = len(self.inner.get_map()) > 1
        if ready := self.inner.select(_IO_GRACE if connected else 0):
            return ready
        if self._busy():
            return self.inner.select(0.05)
        if timeout is None:
            ready = self.inner.select(_STALLED_AFTER)
            if not ready and not self._busy():
                raise RuntimeError("virtual clock: the loop waits, and nothing is left that could wake it")
            return ready
        self._clock.jump(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.inner.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self.inner.get_map()

    def close(self) -> None:
        self.inner.close()


@dataclass(eq=False)
class _Job:
    """A job in a thread."""

    started: bool = False
    ended: bool = False
    seen: bool = False
    """The loop knows its result. Until then time must not jump, although the thread may be done."""

    @property
    def running(self) -> bool:
        # a job whose future was cancelled runs on in its thread, unless no thread had taken it yet
        return not self.seen or (self.started and not self.ended)


class ControlledTime:
    """A clock for one event loop, which may be running already: `clock` is real until it is started.

    Jobs in threads count from here on, whether or not the clock is started by then. Python's own clocks stay as
    they are.

    Raises:
        RuntimeError: The loop waits with something else than a selector, as uvloop and the default loop of
            Windows do, or its time is under control already.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # There is no public way to exchange the selector of a loop that somebody else made. The name is as old
        # as asyncio.
        selector = getattr(loop, "_selector", None)
        if not isinstance(selector, selectors.BaseSelector):
            raise RuntimeError(f"virtual time needs asyncio.SelectorEventLoop, not {type(loop).__name__}")
        if isinstance(selector, _JumpingSelector):
            raise RuntimeError("the time of this event loop is virtual already")
        self.clock = VirtualClock()
        self._loop = cast("Any", loop)
        self._selector = selector
        self._run_in_executor = loop.run_in_executor
        self._jobs: set[_Job] = set()
        self._loop._selector = _JumpingSelector(selector, self.clock, self._is_busy)
        self._loop.time = self.clock.now
        self._loop.run_in_executor = self._counted

    def release(self) -> None:
        """Give the loop its own time again."""
        self._loop._selector = self._selector
        del self._loop.time, self._loop.run_in_executor

    def _counted(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """`run_in_executor`, and a note that time must not jump while `func` runs."""
        job = _Job()
        self._jobs.add(job)

        def run() -> Any:
            job.started = True
            try:
                return func(*args)
            finally:
                job.ended = True

        future = self._run_in_executor(executor, run)
        future.add_done_callback(lambda _: setattr(job, "seen", True))
        return future

    def _is_busy(self) -> bool:
        self._jobs = {job for job in self._jobs if job.running}
        return bool(self._jobs) or self.clock.held


@contextmanager
def virtual_time() -> Generator[VirtualClock]:
    """Let the time of the running loop, and Python's clocks with it, jump until the end of the block.

    ```python
    with virtual_time() as clock:
        await asyncio.sleep(3600)  # takes no time
        assert clock.elapsed >= 3600
    ```

    Enter it before anything else starts. It works wherever asyncio's own selector loop runs; for pytest-asyncio
    the fixture `supermemory_clock` enters it. Whatever runs in another event loop keeps real time.

    Raises:
        RuntimeError: No event loop runs, or its time cannot be made virtual (see `ControlledTime`).
    """
    loop = asyncio.get_running_loop()
    _let_chat_items_follow_time()
    controlled = ControlledTime(loop)
    clock = controlled.clock
    clock.start()
    try:
        with ExitStack() as patched:
            for name in ("time", "monotonic", "perf_counter"):
                patched.enter_context(
                    mock.patch.object(time, name, _following(clock, loop, getattr(time, name)))
                )
            yield clock
    finally:
        clock.stop()
        controlled.release()


def _following(
    clock: VirtualClock, loop: asyncio.AbstractEventLoop, real: Callable[[], float]
) -> Callable[[], float]:
    """One of Python's clocks, running on from now as `clock` does."""
    start = real()

    def now() -> float:
        # Another loop that saw this time stand still would wait for its timers for ever. Threads without a loop
        # work for ours.
        running = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
        return start + clock.elapsed if running is None or running is loop else real()

    return now


@functools.cache
def _let_chat_items_follow_time() -> None:
    """Make new chat items ask `time.time` when they are created.

    LiveKit's models keep the function object, which no test can turn. Items without a given time would carry
    real time between items that carry virtual time, and the order of a conversation goes by these times. Nothing
    else changes, so it is not taken back.
    """
    items: tuple[type[BaseModel], ...] = get_args(get_args(llm.ChatItem)[0])
    for model in items:
        model.model_fields["created_at"].default_factory = lambda: time.time()
        model.model_rebuild(force=True)
