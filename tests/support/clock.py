"""An event loop whose time jumps: a test that waits ten seconds takes none.

While the clock is virtual, the loop does not sleep. When nothing is ready it moves its time to the next
timer. It does not jump while a job of `run_in_executor` (and so of `asyncio.to_thread`) runs: such a job
takes real time, and the clock stands still until it is done. `time.time`, `time.monotonic` and
`time.perf_counter` follow the loop, since LiveKit measures silence and playout with them.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from livekit.agents import llm
from pydantic import BaseModel

__all__ = ["VirtualClock", "VirtualLoop", "let_chat_items_follow_time", "virtual_time"]

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
        return self._stopped_at is not None

    @property
    def elapsed(self) -> float:
        """Virtual seconds since `start`."""
        return self._ahead

    def start(self) -> None:
        self._stopped_at, self._ahead = self._real(), 0.0

    def stop(self) -> None:
        self._stopped_at = None

    def jump(self, seconds: float) -> None:
        self._ahead += seconds

    @property
    def held(self) -> bool:
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

    def __init__(self, clock: VirtualClock, busy: Callable[[], bool]) -> None:
        self._inner = selectors.DefaultSelector()
        self._clock = clock
        self._busy = busy

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._clock.virtual or (timeout is not None and timeout <= 0):
            return self._inner.select(timeout)
        # the loop's own wake-up pipe is always registered; anything else is a connection
        connected = len(self._inner.get_map()) > 1
        if ready := self._inner.select(_IO_GRACE if connected else 0):
            return ready
        if self._busy():
            return self._inner.select(0.05)
        if timeout is None:
            ready = self._inner.select(_STALLED_AFTER)
            if not ready and not self._busy():
                raise RuntimeError("virtual clock: the loop waits, and nothing is left that could wake it")
            return ready
        self._clock.jump(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


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


class VirtualLoop(asyncio.SelectorEventLoop):
    """A normal event loop until its `clock` is started."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._jobs: set[_Job] = set()
        super().__init__(_JumpingSelector(self.clock, self._is_busy))

    def time(self) -> float:
        return self.clock.now()

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        job = _Job()
        self._jobs.add(job)

        def run() -> Any:
            job.started = True
            try:
                return func(*args)
            finally:
                job.ended = True

        future = super().run_in_executor(executor, run)
        future.add_done_callback(lambda _: setattr(job, "seen", True))
        return future

    def _is_busy(self) -> bool:
        self._jobs = {job for job in self._jobs if job.running}
        return bool(self._jobs) or self.clock.held


@contextmanager
def virtual_time(loop: VirtualLoop, patch: pytest.MonkeyPatch) -> Generator[VirtualClock]:
    """Let the clock of `loop`, and Python's clocks with it, jump until the end of the block."""
    clock = loop.clock
    wall, monotonic, counter = time.time(), time.monotonic(), time.perf_counter()
    clock.start()
    with patch.context() as patched:
        patched.setattr(time, "time", lambda: wall + clock.elapsed)
        patched.setattr(time, "monotonic", lambda: monotonic + clock.elapsed)
        patched.setattr(time, "perf_counter", lambda: counter + clock.elapsed)
        try:
            yield clock
        finally:
            clock.stop()


def let_chat_items_follow_time() -> None:
    """Make new chat items ask `time.time` when they are created.

    LiveKit's models keep the function object, which no test can turn. Items without a given time would carry
    real time between items that carry virtual time, and the order of a conversation goes by these times.
    """
    items: tuple[type[BaseModel], ...] = get_args(get_args(llm.ChatItem)[0])
    for model in items:
        model.model_fields["created_at"].default_factory = lambda: time.time()
        model.model_rebuild(force=True)
