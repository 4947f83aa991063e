"""What happens in a call's memory, for one's own code: `memory.on("recalled" | "stored" | "degraded" | "restored")`.

Nothing that a listener does comes back to the call. A coroutine function runs as a task of the call's event loop, any
other callable on a thread of its own, so that one that blocks holds up nobody. Each listener gets its events one after
another, in order; one that raises is logged by the kind of the error; what a listener that hangs does not take is
dropped. No event holds a word of the caller, a container tag or a key.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, overload

from .errors import ConfigurationError
from .telemetry import logger

__all__ = [
    "Degraded",
    "EventName",
    "EventSource",
    "Events",
    "Outcome",
    "Part",
    "Recalled",
    "Restored",
    "Source",
    "Stored",
]

MOST_WAITING = 1_000
"""Events that wait for a listener which does not take them; later ones are dropped."""

Outcome = Literal["found", "empty", "late", "failed", "skipped"]
"""How a recall ended: with hits (in mode "profile": with a profile), without any, not within `recall_timeout`, with an
error, or not waited for because the service owes earlier answers."""

Source = Literal["mirror", "early", "service", "late"]
"""Where hits came from: the mirror in this process, a search begun while the caller spoke, a search for the finished
words, or one for the turn before that came too late for it."""

Part = Literal["profile", "search", "mirror", "capture", "search_memories", "remember", "forget"]
"""What can fail for a while: loading the profile, searching, loading ahead, storing the call, and each tool."""


@dataclass(frozen=True)
class Recalled:
    """A user message was recalled for. Once a message, however many attempts share it; attempts that LiveKit discards
    have messages of their own."""

    message_id: str
    """Id of LiveKit's chat message."""
    outcome: Outcome
    hits: int
    """Search results at hand, before those are left out that the model has before it anyway."""
    sources: tuple[Source, ...]
    """Where the hits came from; empty without hits."""
    duration_s: float
    """Seconds since the recall of this message began, perhaps for an attempt before this one."""
    waited_s: float
    """Seconds that this reply waited for it."""


@dataclass(frozen=True)
class Stored:
    """The service has acknowledged turns of the call."""

    document_id: str
    """Custom id of the call's document."""
    turns: int
    duration_s: float | None
    """Seconds of the write; None when reading the document back showed that an earlier write had succeeded."""


@dataclass(frozen=True)
class Degraded:
    """A part of the memory has begun to fail: the call goes on without it. Once an outage and reason, as in the log."""

    what: Part
    reason: str
    """Name of the exception's class, for example "ServiceTimeout"."""
    since: datetime
    """When the outage began; in UTC."""


@dataclass(frozen=True)
class Restored:
    """A part that was degraded works again."""

    what: Part
    since: datetime
    """When the outage began that has ended; in UTC."""


Event: TypeAlias = "Recalled | Stored | Degraded | Restored"
EventName = Literal["recalled", "stored", "degraded", "restored"]

_Listener: TypeAlias = Callable[[Any], object]
_Recalled = TypeVar("_Recalled", bound=Callable[[Recalled], object])
_Stored = TypeVar("_Stored", bound=Callable[[Stored], object])
_Degraded = TypeVar("_Degraded", bound=Callable[[Degraded], object])
_Restored = TypeVar("_Restored", bound=Callable[[Restored], object])


class Events:
    """The listeners of one call."""

    def __init__(self) -> None:
        self._queues: dict[EventName, list[_Queue]] = {name: [] for name in get_args(EventName)}

    def add(self, name: EventName, listener: _Listener) -> None:
        """Tell `listener` of these events from now on. Adding it again changes nothing.

        Raises:
            ConfigurationError: There is no such event, or the listener cannot be called.
        """
        if not callable(listener):
            raise ConfigurationError(f"on takes a callable, not {type(listener).__name__}")
        queues = self._named(name)
        if not any(queue.listener == listener for queue in queues):
            queues.append(_queue(name, listener))

    def remove(self, name: EventName, listener: _Listener) -> None:
        """Tell `listener` no more; what waits for it is dropped. Nothing happens when it was not told.

        Raises:
            ConfigurationError: There is no such event.
        """
        queues = self._named(name)
        for queue in [queue for queue in queues if queue.listener == listener]:
            queue.drop()
            queues.remove(queue)

    def emit(self, name: EventName, event: Event) -> None:
        """Tell the listeners, beside the call. Returns at once and never raises. Needs a running loop."""
        for queue in self._queues[name]:
            queue.put(event)

    async def aclose(self, timeout: float) -> None:
        """Let the listeners take what waits, for at most so many seconds. What they have not taken then is dropped."""
        every = [queue for queues in self._queues.values() for queue in queues]
        drained = [ended for queue in every if (ended := queue.drained()) is not None]
        try:
            if drained:
                await asyncio.wait(drained, timeout=timeout)
        finally:
            for queue in every:
                queue.drop()

    def _named(self, name: EventName) -> list[_Queue]:
        if name not in self._queues:
            known = ", ".join(f'"{known}"' for known in self._queues)
            raise ConfigurationError(f"there is no such event; there are {known}")
        return self._queues[name]


class EventSource:
    """What one can listen to."""

    _events: Events

    @overload
    def on(self, name: Literal["recalled"], callback: _Recalled) -> _Recalled: ...
    @overload
    def on(self, name: Literal["stored"], callback: _Stored) -> _Stored: ...
    @overload
    def on(self, name: Literal["degraded"], callback: _Degraded) -> _Degraded: ...
    @overload
    def on(self, name: Literal["restored"], callback: _Restored) -> _Restored: ...
    @overload
    def on(self, name: Literal["recalled"]) -> Callable[[_Recalled], _Recalled]: ...
    @overload
    def on(self, name: Literal["stored"]) -> Callable[[_Stored], _Stored]: ...
    @overload
    def on(self, name: Literal["degraded"]) -> Callable[[_Degraded], _Degraded]: ...
    @overload
    def on(self, name: Literal["restored"]) -> Callable[[_Restored], _Restored]: ...
    def on(self, name: EventName, callback: _Listener | None = None) -> _Listener:
        """Call `callback` with a `Recalled`, `Stored`, `Degraded` or `Restored` when that happens.

        Without a callback it is a decorator. A coroutine function runs on the call's event loop; any other callable
        runs on a thread of its own, where one may block but not touch the session. Neither can hurt the call, unless
        a coroutine blocks the loop. `aclose` gives listeners a moment to take what is left.

        Returns:
            The callback, or the decorator.

        Raises:
            ConfigurationError: There is no such event, or the callback cannot be called.
        """
        if callback is not None:
            self._events.add(name, callback)
            return callback

        def listen(callback: _Listener) -> _Listener:
            self._events.add(name, callback)
            return callback

        return listen

    def off(self, name: EventName, callback: Callable[..., object]) -> None:
        """Call `callback` no more. Nothing happens when it was not called.

        Raises:
            ConfigurationError: There is no such event.
        """
        self._events.remove(name, callback)


class _Queue(ABC):
    """Events on their way to one listener."""

    def __init__(self, name: str, listener: _Listener) -> None:
        self.listener = listener
        self._name = name
        self._waiting: deque[Event] = deque()
        self._said: set[str] = set()

    @abstractmethod
    def put(self, event: Event) -> None:
        """Hand over an event; returns at once."""

    @abstractmethod
    def drained(self) -> asyncio.Future[None] | None:
        """Done when nothing waits any more; None when nothing does."""

    @abstractmethod
    def drop(self) -> None:
        """Hand over nothing more."""

    def _take_in(self, event: Event) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(event)
        else:
            self._say_once('A listener to "%s" takes no more events: they are dropped', self._name)

    def _failed(self, error: BaseException) -> None:
        self._say_once('A listener to "%s" failed with %s', self._name, type(error).__name__)

    def _say_once(self, message: str, *args: object) -> None:
        if message not in self._said:
            self._said.add(message)
            logger.error(message, *args)


class _LoopQueue(_Queue):
    """For a coroutine function. Used on its event loop only."""

    def __init__(self, name: str, listener: _Listener) -> None:
        super().__init__(name, listener)
        self._task: asyncio.Task[None] | None = None

    def put(self, event: Event) -> None:
        self._take_in(event)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._work(), name=f"supermemory: {self._name}"
            )

    async def _work(self) -> None:
        while self._waiting:
            await self._tell(self._waiting.popleft())

    async def _tell(self, event: Event) -> None:
        _told.set(self)
        try:
            await cast("Coroutine[Any, Any, object]", self.listener(event))
        except Exception as error:  # noqa: BLE001 - a fault of a listener is none of the call
            self._failed(error)

    def drained(self) -> asyncio.Future[None] | None:
        if self._task is None or self._task.done() or _told.get() is self:
            return None
        return self._task

    def drop(self) -> None:
        self._waiting.clear()
        if self._task is not None and _told.get() is not self:
            self._task.cancel()


_told: ContextVar[_LoopQueue | None] = ContextVar("supermemory_listener", default=None)
"""Whose listener this code runs for, also in tasks that it started: who ends the call must not wait for themselves."""


class _ThreadQueue(_Queue):
    """For any other callable. A thread lives while something waits, and does not keep the process from ending."""

    def __init__(self, name: str, listener: _Listener) -> None:
        super().__init__(name, listener)
        self._lock = threading.Lock()
        self._drained: Future[None] | None = None
        """Done when the thread ends; None while there is none."""

    def put(self, event: Event) -> None:
        with self._lock:
            self._take_in(event)
            if self._drained is not None:
                return
            self._drained = Future()
            thread = threading.Thread(target=self._work, name=f"supermemory-{self._name}", daemon=True)
        thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    drained, self._drained = self._drained, None
                    break
                event = self._waiting.popleft()
            try:
                answer = self.listener(event)
                if inspect.iscoroutine(answer):
                    answer.close()
                    raise TypeError("a plain function returned a coroutine")
            except BaseException as error:  # noqa: BLE001 - `sys.exit()` too ends neither thread nor call
                self._failed(error)
        if drained is not None:
            drained.set_result(None)

    def drained(self) -> asyncio.Future[None] | None:
        with self._lock:
            drained = self._drained
        return asyncio.wrap_future(drained) if drained is not None else None

    def drop(self) -> None:
        with self._lock:
            self._waiting.clear()


def _queue(name: str, listener: _Listener) -> _Queue:
    called = getattr(listener, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
    on_loop = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(called)
    return _LoopQueue(name, listener) if on_loop else _ThreadQueue(name, listener)
