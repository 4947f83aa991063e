"""One call as its parts report it: turned into events for the call's own code and metrics for everybody's."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Literal

from supermemory_livekit.events import Degraded, Events, Part, Recalled, Restored, Stored
from supermemory_livekit.telemetry import OutageLog, Stats

from .metrics import instruments

__all__ = ["BreakerOf", "Observer"]

BreakerOf = Literal["profile", "search"]
"""Requests that replies stop to wait for, each on its own."""


class Observer:
    """Takes what happens in one call. Nothing here waits or raises, and what it is given holds no words of a caller.

    Args:
        stats: Counters of the call; what became of turns is read from them.
        events: Who is told. Nobody by default.
    """

    def __init__(self, stats: Stats, events: Events | None = None) -> None:
        self._stats = stats
        self._seen = replace(stats)
        self._events = events or Events()
        self._measures = instruments()
        self._open: set[BreakerOf] = set()
        self._down: dict[Part, Degraded] = {}
        self._closed = False

    # -- recall

    def recalled(self, event: Recalled) -> None:
        """A user message was recalled for."""
        source = event.sources[0] if event.sources else "none"
        self._measures.recall_duration.record(event.waited_s, {"outcome": event.outcome, "source": source})
        self._events.emit("recalled", event)

    def breaker(self, request: BreakerOf, *, is_open: bool) -> None:
        """Whether replies wait for this kind of request."""
        if self._closed or is_open == (request in self._open):
            return
        self._open.symmetric_difference_update({request})
        self._measures.breaker_open.add(1 if is_open else -1, {"request": request})

    # -- capture and tools

    def turns_changed(self) -> None:
        """The counters of turns have changed."""
        now, seen = self._stats, self._seen
        self._seen = replace(now)
        self._unwritten(now.turns_unwritten - seen.turns_unwritten)
        self._turns(now.turns_written - seen.turns_written, "written")
        self._turns(now.turns_dropped - seen.turns_dropped, "dropped")
        self._turns(now.turns_withheld - seen.turns_withheld, "withheld")

    def wrote(self, seconds: float, error: BaseException | None) -> None:
        """A request to store turns has ended, well or not."""
        self._measures.write_duration.record(seconds, _ended(error))

    def stored(self, document_id: str, turns: int, seconds: float | None) -> None:
        """The service has acknowledged turns."""
        if turns:
            self._events.emit("stored", Stored(document_id, turns, seconds))

    def tool_used(self, tool: str, seconds: float, error: BaseException | None) -> None:
        """A memory tool has answered the model, well or not."""
        self._measures.tool_duration.record(seconds, {"tool": tool, **_ended(error)})

    # -- outages

    def outage_log(self, part: Part, what: str) -> OutageLog:
        """A log of the outages of `part` that tells the listeners, too."""
        return OutageLog(
            what, began=lambda error: self._degraded(part, error), ended=lambda: self._restored(part)
        )

    def _degraded(self, part: Part, error: BaseException) -> None:
        reason = type(error).__name__
        before = self._down.get(part)
        if before is not None and before.reason == reason:
            return
        since = before.since if before is not None else datetime.now(timezone.utc)
        self._down[part] = Degraded(part, reason, since)
        self._measures.outages.add(1, {"part": part, "error.type": reason})
        self._events.emit("degraded", self._down[part])

    def _restored(self, part: Part) -> None:
        if (outage := self._down.pop(part, None)) is not None:
            self._events.emit("restored", Restored(part, outage.since))

    # -- the end

    async def aclose(self, timeout: float) -> None:
        """The call is over: nothing of it is open any more. Listeners get `timeout` seconds for what waits.

        Safe to call twice.
        """
        if not self._closed:
            self.turns_changed()
            left = self._stats.turns_unwritten
            self._turns(left, "left")
            self._unwritten(-left)
            for request in tuple(self._open):
                self.breaker(request, is_open=False)
            self._closed = True
        await self._events.aclose(timeout)

    def _unwritten(self, change: int) -> None:
        if change and not self._closed:
            self._measures.turns_unwritten.add(change)

    def _turns(self, number: int, outcome: Literal["written", "dropped", "withheld", "left"]) -> None:
        if number > 0:
            self._measures.turns.add(number, {"outcome": outcome})


def _ended(error: BaseException | None) -> dict[str, str]:
    if error is None:
        return {"outcome": "ok"}
    return {"outcome": "failed", "error.type": type(error).__name__}
