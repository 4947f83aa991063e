"""Erasing the caller of a live call: everything on its way is stopped first, then the service is emptied.

After it nothing of this call is stored or recalled under that container tag, whatever is still said: who asks to be
erased does not expect the rest of the conversation to be kept. That holds for all tags of this person: those they were
bound under before, and those they get later in the call. The caller's next call begins anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from supermemory_livekit.background import Background
from supermemory_livekit.capture.capture import Capture
from supermemory_livekit.capture.writer import WRITE_TIMEOUT
from supermemory_livekit.observability.spans import memory_span
from supermemory_livekit.recall.recall import Recall
from supermemory_livekit.session.tools import MemoryTools
from supermemory_livekit.telemetry import logger

from .erasure import Erasure, erase_everywhere, leave_word
from .write_gate import WriteGate, shut_others

__all__ = ["CallErasure"]

_GRACE = 1.0
"""Seconds a write may be late with its own deadline."""

_HIDING = 5.0
"""Seconds that a realtime model gets to take away what it was shown."""


class CallErasure:
    """Which callers were erased during this call, and how it is done.

    Args:
        gate: Through which every part of the call writes.
        bound: The container tag that is bound now.
        spool_dir: Where turns are kept on disk.
        hide: Takes what a realtime model was shown away from it. May raise, and hang.
    """

    def __init__(
        self,
        *,
        gate: WriteGate,
        capture: Capture,
        recall: Recall,
        tools: MemoryTools,
        background: Background,
        bound: Callable[[], str | None],
        spool_dir: str | Path | None,
        hide: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._gate = gate
        self._capture = capture
        self._recall = recall
        self._tools = tools
        self._background = background
        self._bound = bound
        self._spool_dir = spool_dir
        self._hide = hide
        self._running: set[asyncio.Task[Erasure]] = set()

    def covers(self, tag: str) -> bool:
        """Whether this caller was erased during this call, here or elsewhere on this machine."""
        return self._gate.is_shut(tag)

    async def erase(self, tags: Collection[str], timeout: float) -> Erasure:
        """Erase the caller who has these tags, and read back; `timeout` seconds for the service.

        Raises no `ServiceError`. Goes on when the task that asked for it is cancelled: a caller who hangs up wants to
        be erased all the same.
        """
        work = self._background.start(self._erase(sorted(tags), timeout), "Erasing a caller")
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        return await asyncio.shield(work)

    def rebound(self, tags: Collection[str]) -> None:
        """Who is bound now has these tags. Who was erased under one of them in this call is stored under none."""
        erased = {tag for tag in tags if self._gate.is_shut(tag)}
        if not erased:
            return
        for tag in set(tags) - erased:
            self._gate.shut(tag)
            self._stop_soon(tag)

    async def finish(self, timeout: float) -> None:
        """Wait for erasures that are under way, at most so many seconds."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=timeout)
            if late:
                logger.error("The call ended before its caller was erased for certain: erase them again")

    async def _erase(self, tags: Collection[str], timeout: float) -> Erasure:
        with memory_span("delete_memory", "erase"):
            for tag in tags:
                self._gate.shut(tag)
            hiding = self._hide_from(tags)
            parts = await asyncio.gather(*(self._erase_one(tag, timeout) for tag in tags))
            await hiding
        return Erasure.of_parts(parts)

    async def _erase_one(self, tag: str, timeout: float) -> Erasure:
        # What is said in calls that begin from here on is told from what was said before.
        at = time.time()
        others_unclear = shut_others(tag, self._gate)
        word, (dropped, clear) = await asyncio.gather(
            asyncio.to_thread(leave_word, self._spool_dir, tag, at), self._stop(tag)
        )
        done = await erase_everywhere(
            self._gate,
            tag,
            spool_dir=self._spool_dir,
            timeout=timeout,
            unclear=others_unclear or not clear,
            word=word,
        )
        return replace(done, turns=done.turns + dropped)

    def noticed(self, tag: str) -> None:
        """The caller was erased elsewhere while the call is on the line."""
        logger.warning("The caller was erased elsewhere: nothing of this call is stored or recalled any more")
        self._stop_soon(tag)

    def _stop_soon(self, tag: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # bound before the loop runs: nothing was said or recalled yet
            return
        self._background.start(self._stop(tag), "Dropping what was said by an erased caller")
        self._hide_from([tag])

    async def _stop(self, tag: str) -> tuple[int, bool]:
        """Drop what the call holds. Returns how many turns, and whether each write ended with an answer."""
        self._gate.shut(tag)
        if self._bound() == tag:
            self._recall.unbind()
        self._tools.erased(tag)
        clear = await self._gate.writes_ended(tag, WRITE_TIMEOUT + _GRACE)
        dropped = await self._capture.erase(tag)
        return dropped, clear

    def _hide_from(self, tags: Collection[str]) -> asyncio.Task[None]:
        """Take away what the model was shown. Beside everything else: a model that fails must not keep it from being
        done."""
        return self._background.start(self._hide_bounded(tags), "Taking memory away from the realtime model")

    async def _hide_bounded(self, tags: Collection[str]) -> None:
        if self._bound() not in tags:
            return
        hiding = self._background.start(self._hide(), "Taking memory away from the realtime model")
        # Not `wait_for`, which raises what the model raises, and waits for one that swallows cancellation.
        await asyncio.wait([hiding], timeout=_HIDING)
        if not hiding.done():
            hiding.cancel()
            logger.warning(
                "The realtime model did not take the erased caller's memory out of its context in time"
            )
