"""What is said in a call, on its way to the memory: kept under the scope it was spoken in, written in order.

`Capture` takes turns and never makes the call wait; `writer.DocumentWriter` brings those of one document to
the service. Everything that was spoken is stored, a lone greeting included: that somebody rang and was silent
tells something too, and a rule with exceptions could lose words.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timezone
from typing import Any

from supermemory_livekit.observability.observer import Observer
from supermemory_livekit.params import InputParams
from supermemory_livekit.scope import Scope
from supermemory_livekit.spool.recovery import DocumentClaim, recover
from supermemory_livekit.spool.spool import Spool
from supermemory_livekit.store import MemoryStore
from supermemory_livekit.telemetry import Stats, logger
from supermemory_livekit.transcript import Role, Turn, fold, is_blank, split_turn, to_stamp_time, whole_turns

from .writer import WRITE_TIMEOUT, CallWrites, DocumentWriter

__all__ = ["MAX_BUFFERED_CHARS", "MAX_BUFFERED_TURNS", "Capture"]

MAX_BUFFERED_TURNS = 10_000
MAX_BUFFERED_CHARS = 2_000_000
"""Most that one call keeps while the service takes nothing: hours of talk without a pause."""

GIVE_UP_AFTER = 3.0
"""Seconds of a flush after which requests in flight are given up: a lost connection must not use up the time that is
left to wait out a late commit, to find out what is stored, and to send the rest over another one."""

_STOPPING = 1.0
"""Seconds that a client which swallows cancellation may hold up the end of the call."""


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Capture:
    """The turns of one call, from the conversation to the store.

    Belongs to the event loop of its call; not for other threads. Nothing raises into the call.

    Args:
        store: Where turns go.
        params: `capture="never"` makes this object ignore everything.
        stats: Counters that this object keeps: turns and writes. `turns_captured` is the sum of
            `turns_written`, `turns_unwritten` and what this object adds to `turns_dropped`.
        observer: Told what becomes of turns and writes.
        clean: Takes recalled memory out of what was said, before anything else happens to it. A turn on which
            it fails is dropped, since it may hold such text.
        write_timeout: Seconds per request.
        max_buffered_turns, max_buffered_chars: When the turns that wait exceed either, the oldest go.
        now: The time of turns that come without one.
        jitter: Numbers from 0 to 1 that spread retries of many workers.
    """

    def __init__(
        self,
        store: MemoryStore,
        params: InputParams,
        stats: Stats,
        *,
        observer: Observer | None = None,
        clean: Callable[[str], str] = str,
        write_timeout: float = WRITE_TIMEOUT,
        max_buffered_turns: int = MAX_BUFFERED_TURNS,
        max_buffered_chars: int = MAX_BUFFERED_CHARS,
        now: Callable[[], datetime] = _utc_now,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._enabled = params.capture != "never"
        self._stats = stats
        self._observer = observer or Observer(stats)
        self._clean = clean
        self._now = now
        self._max_turns = max_buffered_turns
        self._max_chars = max_buffered_chars
        self._store = store
        self._write_timeout = write_timeout
        directory = params.spool_dir if self._enabled else None
        self._spool = Spool(directory, stats) if directory is not None else None
        self._recovery: asyncio.Task[Any] | None = None
        self._writes = CallWrites(
            store,
            stats,
            dreaming=params.capture_dreaming,
            timeout=write_timeout,
            jitter=jitter,
            written=self._release,
            refused=self._refused,
            spool=self._spool,
            observer=self._observer,
        )
        self._writers: dict[tuple[str, str], DocumentWriter] = {}
        self._claims: dict[tuple[str, str], DocumentClaim] = {}
        self._held: list[Turn] = []
        self._erased: set[str] = set()
        """Container tags of which this call stores nothing any more."""
        self._bound = False
        self._closed = False
        self._order = 0
        self._turns = 0
        self._chars = 0
        self._flushes = 0

    @property
    def unwritten(self) -> int:
        """Turns taken and not acknowledged by the service yet."""
        return self._turns

    def moments(self) -> set[datetime]:
        """When the turns were said that the service has not acknowledged."""
        pieces = [*self._held, *(piece for writer in self._writers.values() for piece in writer.pieces)]
        return {piece.at for piece in pieces}

    def record(
        self,
        role: Role,
        text: str,
        *,
        at: datetime | None = None,
        scope: Scope | None,
        interrupted: bool = False,
    ) -> int | None:
        """Take one turn, said at `at` under `scope`. Returns at once and never raises.

        Without a scope it waits for the first `bound`; when there was one already, it belongs to nobody known
        and is dropped. Blank turns are ignored. The answer is the turn's place, for `withdraw`; None when it was not
        taken.
        """
        if not self._enabled:
            return None
        try:
            text = fold(self._clean(text))
            if is_blank(text):
                return None
            turn = Turn(role, text, to_stamp_time(at, self._now()), self._order, interrupted)
            pieces = split_turn(turn)
        except Exception as error:  # noqa: BLE001 - an event handler must not hurt the call
            self._count_lost(1)
            self._writes.say_once(
                logging.ERROR, "A turn could not be taken for storing: %s", type(error).__name__
            )
            return None
        if self._closed:
            self._count_lost(1)
            self._writes.say_once(
                logging.WARNING, "Something was said after the memory was closed: not stored"
            )
            return None
        if scope is not None and scope.container_tag in self._erased:
            self._count_lost(1)
            return None
        if scope is None and self._bound:
            self._count_lost(1)
            self._writes.say_once(
                logging.WARNING, "Something was said by a speaker without a scope: not stored"
            )
            return None
        self._order += 1
        self._stats.turns_captured += 1
        self._turns += 1
        self._chars += len(text)
        if self._spool is not None:
            self._spool.turns(pieces, scope)
        if scope is None:
            self._held.extend(pieces)
        else:
            self._writer(scope).add(pieces)
        self._trim()
        self._count_unwritten()
        return turn.order

    def withdraw(self, orders: Collection[int]) -> int:
        """Drop those of these turns of which nothing was sent yet. Returns how many that were."""
        dropped = 0
        for writer in self._writers.values():
            dropped += self._drop_for_good(writer.scope, writer.withdraw(orders))
        held = [turn for turn in self._held if turn.order in orders]
        self._held = [turn for turn in self._held if turn.order not in orders]
        return dropped + self._drop_for_good(None, held)

    def discard(self) -> int:
        """Drop everything that the service has not acknowledged; a request under way is given up.

        Returns how many turns that were. The service may have taken those of such a request.
        """
        dropped = 0
        for writer in self._writers.values():
            dropped += self._drop_for_good(writer.scope, writer.discard())
        return dropped + self.discard_unbound()

    def discard_unbound(self) -> int:
        """Drop what was said before anybody was bound. Returns how many turns that were."""
        held, self._held = self._held, []
        return self._drop_for_good(None, held)

    def _drop_for_good(self, scope: Scope | None, pieces: Sequence[Turn]) -> int:
        """Not stored by this process, nor by the next one that finds them in the spool."""
        if not pieces:
            return 0
        if self._spool is not None:
            self._spool.dropped(scope, pieces)
        self._drop(pieces)
        return whole_turns(pieces)

    def bound(self, scope: Scope) -> None:
        """A caller was bound. The first one gets the turns that were said before."""
        self._bound = True
        self._recover()
        if self._held:
            if self._spool is not None:
                self._spool.bound(self._held, scope)
            self._writer(scope).add(self._held)
            self._held = []

    def wake(self) -> None:
        """Write what waits now, in the background. A document whose last write failed keeps its pause.

        What is said after this waits for the next wake, however long the writes take: it may yet be withdrawn.
        """
        if self._closed:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # no loop runs, so no call does; what waits is written by the next wake or flush
            return
        self._recover()
        for writer in self._writers.values():
            writer.wake()

    def _recover(self) -> None:
        """Deliver, beside the call and once, what dead processes left in the spool."""
        if self._spool is None or self._recovery is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # bound before the loop runs; the first wake comes back here
            return
        work = recover(
            self._store,
            self._spool.directory.path,
            dreaming=self._writes.dreaming,
            write_timeout=self._write_timeout,
        )
        self._recovery = loop.create_task(work, name="supermemory-recovery")
        self._recovery.add_done_callback(_ended)

    async def flush(self, timeout: float) -> int:
        """Write everything that waits, pauses or not, and try again what fails, for `timeout` seconds in all.

        Returns how many turns are still unwritten; they stay in the buffer. Flushes that run at the same time
        share their work. With `timeout` 0 nothing is started. A cancelled flush leaves the writers at work.
        """
        if timeout <= 0 or self._closed:
            return self._turns
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        self._flushes += 1
        self._writes.hurry_until = max(self._writes.hurry_until, deadline)
        giving_up = loop.call_later(GIVE_UP_AFTER, self._give_up_requests)
        try:
            for writer in self._writers.values():
                writer.end_pause()
            while (left := deadline - loop.time()) > 0 and not self._closed:
                # A loop, because turns, and callers, may be added while the writes run.
                tasks = [task for writer in self._writers.values() if (task := writer.wake()) is not None]
                if not tasks:
                    break
                await asyncio.wait(tasks, timeout=left)
        finally:
            giving_up.cancel()
            self._flushes -= 1
            if self._flushes == 0:
                self._writes.hurry_until = 0.0
        return self._turns

    def _give_up_requests(self) -> None:
        for writer in self._writers.values():
            writer.give_up_requests()

    async def aclose(self, timeout: float) -> None:
        """Flush, then stop. Says once in the log how much could not be stored. Safe to call twice.

        When it is cancelled nothing is closed or lost, and it can be called again.
        """
        await self.flush(timeout)
        if self._closed:
            return
        self._closed = True
        running = {task for writer in self._writers.values() for task in writer.stop()}
        if self._recovery is not None and not self._recovery.done():
            self._recovery.cancel()
            running.add(self._recovery)
        if self._held:
            lost = whole_turns(self._held)
            logger.warning("The call ended without a caller bound: %d turns are not stored", lost)
            self._drop(self._held)
            self._held = []
        if self._turns:
            logger.warning("The call ended with %d turns that the memory service did not take", self._turns)
        if running:
            await asyncio.wait(running, timeout=_STOPPING)
        if self._spool is not None:
            self._spool.close()
        # Last: who may write next has to find what is left in the spool.
        for claim in self._claims.values():
            claim.close()

    async def erase(self, tag: str) -> int:
        """Drop what was said under this container tag and is not stored, and take nothing more of it.

        Returns how many turns that were. No write of the tag may be under way: see `write_gate`.
        """
        self._erased.add(tag)
        mine = {key: writer for key, writer in self._writers.items() if key[0] == tag}
        running = {task for writer in mine.values() for task in writer.stop()}
        if self._recovery is not None and not self._recovery.done():
            # It may have taken over a file of this caller. It begins anew with the next turn.
            self._recovery.cancel()
            running.add(self._recovery)
            self._recovery = None
        if running:
            await asyncio.wait(running, timeout=_STOPPING)
        dropped = [piece for writer in mine.values() for piece in writer.drop_all()]
        for key in mine:
            self._writers.pop(key, None)
            if (claim := self._claims.pop(key, None)) is not None:
                claim.close()
        self._drop(dropped)
        if self._spool is not None:
            self._spool.erase(tag)
        return whole_turns(dropped)

    def _writer(self, scope: Scope) -> DocumentWriter:
        key = (scope.container_tag, scope.document_id)
        if key not in self._writers:
            self._writers[key] = DocumentWriter(scope, self._writes, self._claim(scope))
        return self._writers[key]

    def _claim(self, scope: Scope) -> DocumentClaim | None:
        if self._spool is None:
            return None
        claim = DocumentClaim(
            self._store,
            self._spool,
            scope,
            dreaming=self._writes.dreaming,
            write_timeout=self._write_timeout,
        )
        self._claims[scope.container_tag, scope.document_id] = claim
        return claim

    def _trim(self) -> None:
        """Keep the buffer bounded. What is being sent cannot be taken back, so it is not among what goes."""
        while self._turns > self._max_turns or self._chars > self._max_chars:
            waiting = [writer for writer in self._writers.values() if writer.oldest is not None]
            oldest = min(waiting, key=lambda writer: writer.oldest or self._now(), default=None)
            if self._held and (oldest is None or oldest.oldest is None or self._held[0].at <= oldest.oldest):
                order = self._held[0].order
                self._drop([turn for turn in self._held if turn.order == order])
                self._held = [turn for turn in self._held if turn.order != order]
            elif oldest is not None:
                self._drop(oldest.drop_oldest())
            else:
                return
            self._writes.say_once(
                logging.WARNING,
                "More was said than can wait for the memory service: the oldest turns are dropped",
            )

    def _drop(self, pieces: Sequence[Turn]) -> None:
        self._stats.turns_dropped += whole_turns(pieces)
        self._forget(pieces)

    def _release(self, scope: Scope, pieces: Sequence[Turn]) -> None:
        """The service acknowledged these."""
        self._stats.turns_written += whole_turns(pieces)
        if self._spool is not None:
            self._spool.acked(scope, pieces)
        self._forget(pieces)

    def _refused(self, scope: Scope, pieces: Sequence[Turn]) -> None:
        """The service will never take these."""
        if self._spool is not None:
            self._spool.refused(scope, pieces)
        self._drop(pieces)

    def _forget(self, pieces: Sequence[Turn]) -> None:
        self._turns -= whole_turns(pieces)
        self._chars -= sum(len(piece.text) for piece in pieces)
        self._count_unwritten()

    def _count_unwritten(self) -> None:
        self._stats.turns_unwritten = self._turns
        self._observer.turns_changed()

    def _count_lost(self, turns: int) -> None:
        self._stats.turns_captured += turns
        self._stats.turns_dropped += turns
        self._observer.turns_changed()


def _ended(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("Delivering what was left in the spool failed: %s", type(error).__name__)
