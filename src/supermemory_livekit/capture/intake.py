"""Turns on their way to the buffer: through the redactor, in the order in which they were said.

Before this nothing keeps them, and after it nobody knows them as they were.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from supermemory_livekit.background import Background
from supermemory_livekit.scope import Scope
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.transcript import Role

from .redaction import Redaction

__all__ = ["Intake", "Said"]


@dataclass(eq=False)
class Said:
    """One turn, and what has become of it."""

    role: Role
    text: str
    """Without recalled notes in it."""
    at: datetime
    scope: Scope | None
    """Under which it was said; None before the first bind."""
    interrupted: bool = False
    order: int | None = None
    """Its place in the buffer, once it is there."""
    withdrawn: bool = False


class Intake:
    """The turns of one call that are not in the buffer yet. Belongs to the event loop of the call.

    Args:
        deliver: Called with each turn that may be kept, its text redacted.
        passed: Called with each turn when it is through, kept or not.
        stats: `turns_withheld` counts those that the redactor dropped.
    """

    def __init__(
        self,
        redaction: Redaction,
        stats: Stats,
        *,
        deliver: Callable[[Said], None],
        passed: Callable[[Said], None],
    ) -> None:
        self._redaction = redaction
        self._stats = stats
        self._deliver = deliver
        self._passed = passed
        self._queue: deque[Said] = deque()
        self._background = Background()
        self._work: asyncio.Task[None] | None = None

    def take(self, said: Said) -> None:
        """Take one turn. Without a redactor it is delivered before this returns."""
        if not self._redaction.wanted:
            self._deliver(said)
            self._passed(said)
            return
        self._queue.append(said)
        if self._work is None or self._work.done():
            self._work = self._background.start(self._redact_all(), "Redacting what was said")

    def bound(self, scope: Scope) -> None:
        """The first caller was bound: what was said before is theirs."""
        for said in self._queue:
            said.scope = said.scope or scope

    def withdraw(self, turns: Iterable[Said]) -> int:
        """Let these go nowhere, as far as they are not through. Returns how many that were."""
        mine = [said for said in turns if said in self._queue and not said.withdrawn]
        for said in mine:
            said.withdrawn = True
        self._stats.turns_withheld += len(mine)
        return len(mine)

    def discard(self) -> int:
        """Let nothing that waits go anywhere. Returns how many turns that were."""
        return self.withdraw(list(self._queue))

    async def settled(self, timeout: float) -> None:
        """Wait until everything taken so far is through, or until `timeout` seconds are over."""
        if self._work is not None and not self._work.done() and timeout > 0:
            await asyncio.wait({self._work}, timeout=timeout)

    async def aclose(self) -> None:
        """Give up what waits; it is counted as withheld. Safe to call twice."""
        self.discard()
        self._queue.clear()
        await self._background.aclose()
        await self._redaction.aclose()

    async def _redact_all(self) -> None:
        while self._queue:
            said = self._queue[0]
            text = await self._redaction.redacted(said.text)
            self._queue.popleft()
            if not said.withdrawn:
                if text is None:
                    self._stats.turns_withheld += 1
                else:
                    said.text = text
                    self._deliver(said)
            self._passed(said)
