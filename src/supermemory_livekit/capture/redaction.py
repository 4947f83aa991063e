"""Texts through the developer's redactor, once each: what is said, what is looked for, what the tools are given.

A text on which the redactor fails, or takes too long, goes nowhere: nothing is ever used as it was for want of an
answer. docs/decisions/0019-consent.md
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, cast

from supermemory_livekit.background import Background
from supermemory_livekit.params import Redactor
from supermemory_livekit.telemetry import Stats, logger

from .threads import DaemonThreads

__all__ = ["REDACTION_LIMIT", "Redaction"]

REDACTION_LIMIT = 5.0
"""Seconds that the redactor has for one text. A reply waits for it no longer than for recall."""

_KEPT = 8
"""Texts whose answer is kept: a turn is looked up, and then stored."""

_THREADS = 4
"""Texts that a sync redactor has at once. One that hangs keeps its thread for good."""


@dataclass(frozen=True)
class _Failure:
    """In place of an answer, the kind of what the redactor raised."""

    kind: str


class Redaction:
    """The redactor of one call; without one every text passes as it is. Belongs to the event loop of the call.

    Args:
        redactor: `str` in, `str` or None out; sync or async. A sync one runs in a worker thread, so that the call's
            audio does not wait for it.
        stats: `redactions_failed` counts the texts on which it failed.
    """

    def __init__(self, redactor: Redactor | None, stats: Stats, *, limit: float = REDACTION_LIMIT) -> None:
        self._redactor = redactor
        self._stats = stats
        self._limit = limit
        self._answers: OrderedDict[str, asyncio.Task[str | None]] = OrderedDict()
        self._background = Background()
        self._threads = DaemonThreads(_THREADS, name="supermemory-redact")
        self._said = False

    @property
    def wanted(self) -> bool:
        """Whether there is a redactor."""
        return self._redactor is not None

    async def redacted(self, text: str) -> str | None:
        """The text as it may be used; None when it may not. Never raises; who waits may give up, and ask again."""
        if self._redactor is None or not text.strip():
            return text
        answer = self._answers.get(text)
        if answer is None or answer.cancelled():
            answer = self._background.start(self._ask(self._redactor, text), "Redacting")
            self._answers[text] = answer
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        # Not awaited itself: an attempt at a reply that is cancelled must not cancel what the turn waits for.
        await asyncio.wait({answer})
        return None if answer.cancelled() else answer.result()

    async def aclose(self) -> None:
        """Give up what still runs. Safe to call twice."""
        await self._background.aclose()
        self._answers.clear()

    async def _ask(self, redactor: Redactor, text: str) -> str | None:
        # A task of its own, so that a cancellation which the redactor raises is not taken for one of ours.
        call = self._background.start(self._call(redactor, text), "Redacting a text")
        try:
            await asyncio.wait({call}, timeout=self._limit)
        finally:
            call.cancel()
        failure: str | None = None
        if not call.done():
            failure = asyncio.TimeoutError.__name__
        elif call.cancelled():
            failure = asyncio.CancelledError.__name__
        else:
            outcome = call.result()
            if isinstance(outcome, _Failure):
                failure = outcome.kind
            elif outcome is not None and not isinstance(outcome, str):
                failure = TypeError.__name__
            else:
                return outcome if outcome is not None and outcome.strip() else None
        self._failed(failure)
        return None

    def _failed(self, kind: str) -> None:
        self._stats.redactions_failed += 1
        if not self._said:
            self._said = True
            # The kind alone: the error's own text may quote what was said.
            logger.error("redact fails: %s; such texts are not stored or searched", kind)

    async def _call(self, redactor: Redactor, text: str) -> object:
        try:
            if inspect.iscoroutinefunction(redactor):
                return await cast("Any", redactor)(text)
            # Not asyncio's own threads: a redactor that hangs would take them from the rest, an erasure for example.
            answer = await self._threads.run(lambda: _contained(redactor, text))
            # An object with an async `__call__`, a partial, or a lambda around an async function.
            return await answer if inspect.isawaitable(answer) else answer
        except (asyncio.CancelledError, KeyboardInterrupt):
            # The first is told apart in `_ask`; the second is a person at the keyboard, since this runs on the loop.
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code: SystemExit would end the loop, and the call
            return _Failure(type(error).__name__)


def _contained(redactor: Redactor, text: str) -> object:
    """What a redactor answers in a thread, where nobody is at the keyboard: whatever it raises is its own failure."""
    try:
        return redactor(text)
    except BaseException as error:  # noqa: BLE001 - see above
        return _Failure(type(error).__name__)
