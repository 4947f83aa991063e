"""Brings the turns of one document to the service: in order, one request at a time, each turn once.

A write that certainly failed puts its turns back. One that may have been stored although nobody said so (no
answer, a broken connection, a cancellation) keeps its exact lines, and before they go out again the document
is read to see which of them it holds. docs/decisions/0005-exactly-once.md has the reasons.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import insort
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, Protocol, TypeVar

from supermemory_livekit.errors import (
    AccessDenied,
    APIMismatch,
    Conflict,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.observability.observer import Observer
from supermemory_livekit.observability.spans import memory_span
from supermemory_livekit.scope import Scope
from supermemory_livekit.spool.spool import Spool
from supermemory_livekit.store import Dreaming, MemoryStore
from supermemory_livekit.telemetry import Stats, logger
from supermemory_livekit.transcript import Line, Turn, marks_in, next_chunk, whole_turns

__all__ = ["WRITE_TIMEOUT", "CallWrites", "Claim", "DocumentWriter", "hinted_pause", "needs_a_person"]

WRITE_TIMEOUT = 10.0
"""Seconds until a write is given up and tried again. Source: specification."""

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds between attempts while the service is down, jitter included."""

FIRST_REFUSED_PAUSE = 30.0
LONGEST_REFUSED_PAUSE = 300.0
"""Seconds between attempts, before jitter, when only a person can mend it: no balance, or no access."""

LONGEST_HINT = 60.0
"""Most seconds that `Retry-After` can make a write wait."""

FIRST_HURRIED_PAUSE = 0.25
LONGEST_HURRIED_PAUSE = 2.0
"""Seconds between attempts while a flush waits."""

LATE_COMMIT = 2.0
"""Seconds after the unclear end of a write until a read that does not show a line is believed.

A service that has taken a request in carries it out although its client has gone: it was queued, or a proxy held it.
Two seconds are several times what a write takes, and few enough for a flush to give up, wait, and send again.
"""

DOUBTFUL_READS = 3
"""How often a read must be refused, or find no document, until it is believed. An outage is neither.

Source: public reports of a 404 for a document that was added a moment before.
"""

REFUSALS = 3
"""How often in a row the service must refuse a text as such until the lines in it are tried apart."""

MOST_SUSPECTS = 8
"""Lines that are refused one after another until it is the service, and not a line, that is taken to be at fault."""

_REFUSES_TEXT = (400, 413, 422)
"""Statuses that blame what was sent."""

_UNREADABLE = (
    "Stored documents cannot be read: a write with an unclear end is sent again and may be stored twice"
)

T = TypeVar("T")


class Claim(Protocol):
    """Decides which writer of a document, among several processes, may write to it now."""

    async def take(self) -> datetime | None:
        """Wait until it is this writer's turn, and deliver what dead processes left of the document.

        Returns the stamp of the last line that this delivered. Raises what the service raises.
        """
        ...

    def confirm(self) -> None:
        """The service has accepted something of this document."""
        ...

    def leave(self) -> None:
        """Let others write."""
        ...

    def give_up_requests(self) -> None:
        """End what waits for an answer now."""
        ...


class CallWrites:
    """What the documents of one call share.

    Args:
        written: Called with the turns that the service acknowledged.
        refused: Called with turns that the service will never take.
        spool: Where what is sent is noted down first.
        jitter: Numbers from 0 to 1.
        observer: Told how writes end.
    """

    def __init__(
        self,
        store: MemoryStore,
        stats: Stats,
        *,
        dreaming: Dreaming,
        timeout: float,
        jitter: Callable[[], float],
        written: Callable[[Scope, Sequence[Turn]], None],
        refused: Callable[[Scope, Sequence[Turn]], None],
        spool: Spool | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.observer = observer = observer or Observer(stats)
        self.store = store
        self.stats = stats
        self.dreaming: Dreaming = dreaming
        self.timeout = timeout
        self.jitter = jitter
        self.written = written
        self.refused = refused
        self.spool = spool
        self.hurry_until = 0.0
        """Loop time until which a flush waits for the writes; 0 when none does."""
        self._outage = observer.outage_log("capture", "Storing the call")
        self._refusal = observer.outage_log("capture", "Storing the call")
        self._failing: set[DocumentWriter] = set()
        self._said: set[str] = set()

    def failed(self, writer: DocumentWriter, error: Exception) -> None:
        self._failing.add(writer)
        log = self._refusal if needs_a_person(error) else self._outage
        log.failed(error, "what was said is kept and written later")

    def worked(self, writer: DocumentWriter) -> None:
        """An outage is over when no document of the call fails any more."""
        self._failing.discard(writer)
        if not self._failing:
            self._outage.worked()
            self._refusal.worked()

    def say_once(self, level: int, message: str, *args: object) -> None:
        if message not in self._said:
            self._said.add(message)
            logger.log(level, message, *args)

    def use_dynamic(self) -> None:
        if self.dreaming != "dynamic":
            self.dreaming = "dynamic"
            logger.warning(
                "No balance for instant processing (402): the call is processed on the default schedule"
            )


def needs_a_person(error: Exception) -> bool:
    return isinstance(error, (AccessDenied, APIMismatch, PaymentRequired))


class DocumentWriter:
    """The turns of one document that the service has not acknowledged, and the task that writes them."""

    def __init__(self, scope: Scope, call: CallWrites, claim: Claim | None = None) -> None:
        self._scope = scope
        self._call = call
        self._claim = claim
        self._waiting: list[Turn] = []
        self._sent: list[Line] = []
        """Lines that the service was given and has not acknowledged. They keep their stamps."""
        self._due: tuple[datetime, int] | None = None
        """When the last turn was said, and its `order`, that is to be written without another wake. What is said later
        may yet be withdrawn; what was said before and is reported later goes along."""
        self._last: datetime | None = None
        self._begun: int | None = None
        """`order` of a turn that is partly written: nothing may come between its pieces."""
        self._receipt: str | None = None
        self._sure_at = 0.0
        """Loop time from which a line that a read does not show is certainly not stored."""
        self._refusals = 0
        """Refusals of a text since the last one that was accepted whole."""
        self._most: int | None = None
        """Most lines of a request while the one that is refused is looked for."""
        self._refused_alone = 0
        """How many pieces were refused alone, and nothing accepted, in the last attempt."""
        self._suspects: list[Turn] = []
        """Pieces that were refused alone. They are given up when the service takes something that comes after."""
        self._failures = 0
        self._hurried_failures = 0
        self._owed = False
        """Whether a flush began and no attempt has begun since: even without hope it gets one."""
        self._doubtful_reads = 0
        self._unreadable = False
        self._resumed = False
        """Whether the document may hold lines that this process did not write, and its last stamp is to be read."""
        self._task: asyncio.Task[None] | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._requests: set[asyncio.Task[Any]] = set()

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def oldest(self) -> datetime | None:
        """When the first turn that can still be dropped was said."""
        return self._waiting[0].at if self._waiting else None

    @property
    def pieces(self) -> list[Turn]:
        """All that the service has not acknowledged."""
        return [*(line.turn for line in self._sent), *self._suspects, *self._waiting]

    def add(self, pieces: Sequence[Turn]) -> None:
        """Queue the turns by when they were said: a caller's transcript may come after the reply to it."""
        for piece in pieces:
            insort(self._waiting, piece, key=self._place)

    @property
    def last(self) -> datetime | None:
        """Stamp of the last line that the document is known to hold."""
        return self._last

    @property
    def done(self) -> bool:
        """Whether nothing is left to write."""
        return not (self._sent or self._waiting or self._suspects)

    @property
    def only_refused(self) -> bool:
        """Whether nothing is left but pieces that were refused one by one."""
        return self._most == 1 and not self._sent and 0 < len(self._waiting) <= self._refused_alone

    def restore(self, sent: Sequence[Line], waiting: Sequence[Turn], *, sure_at: float) -> None:
        """Go on where a process ended that had given `sent` to the service; the document is read first.

        `sure_at` is the loop time from which what it does not show is believed missing.
        """
        self._sent = list(sent)
        self._sure_at = sure_at
        self._resumed = True
        self.add(waiting)
        self._cover()

    def drop_oldest(self) -> list[Turn]:
        """Give up the first waiting turn, with all its pieces."""
        order = self._waiting[0].order
        dropped = [turn for turn in self._waiting if turn.order == order]
        del self._waiting[: len(dropped)]
        return dropped

    def withdraw(self, orders: Collection[int]) -> list[Turn]:
        """Give up those of these turns of which nothing was sent yet."""
        dropped = [turn for turn in self._waiting if turn.order in orders and turn.order != self._begun]
        self._waiting = [turn for turn in self._waiting if turn not in dropped]
        return dropped

    def drop_all(self) -> list[Turn]:
        """Give up everything, also what was sent and not acknowledged. The writer must have been stopped."""
        dropped = self.pieces
        self._sent, self._suspects, self._waiting = [], [], []
        return dropped

    def discard(self) -> list[Turn]:
        """Give up everything at once, a request under way too. What is added from now on is written as ever."""
        self.stop()
        # Else what comes next would wait for a task that is about to end.
        self._task = None
        return self.drop_all()

    def wake(self) -> asyncio.Task[None] | None:
        """Write what waits now, and not what comes later. See `start`."""
        self._cover()
        return self.start()

    def _cover(self) -> None:
        """What is here is to be written."""
        known = [(turn.at, turn.order) for turn in self.pieces] + ([self._due] if self._due else [])
        self._due = max(known, default=None)

    def _due_now(self) -> list[Turn]:
        """What is to be written, in order."""
        due = self._due
        if due is None:
            return []
        return list(takewhile(lambda turn: (turn.at, turn.order) <= due, self._waiting))

    def end_pause(self) -> None:
        """Make the next attempt possible at once, and a must."""
        self._owed = True
        self._hurried_failures = 0
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def start(self) -> asyncio.Task[None] | None:
        """The task that writes what is due; None when there is nothing to do or the writer pauses."""
        if self._task is not None and not self._task.done():
            return self._task
        if self._suspects and not (self._due_now() or self._sent):  # what came after them was dropped
            self._return_suspects()
        if self._pause is not None or not (self._due_now() or self._sent):
            return None
        self._task = asyncio.get_running_loop().create_task(self._drain(), name="supermemory-capture")
        return self._task

    def stop(self) -> set[asyncio.Task[Any]]:
        """Cancel everything that runs and return it, to be waited for."""
        self.end_pause()
        running = {task for task in (self._task, *self._requests) if task is not None and not task.done()}
        for task in running:
            task.cancel()
        return running

    def give_up_requests(self) -> None:
        """End what waits for an answer now; its end is unclear, and is settled like any other."""
        for request in self._requests:
            request.cancel()
        if self._claim is not None:
            self._claim.give_up_requests()

    def give_up_refused(self) -> None:
        """Give up what is `only_refused`: the service has taken something else of this document since."""
        self._suspects, self._waiting = self._waiting, []
        self._give_up_suspects()

    async def attempt(self) -> Exception | None:
        """Write what is due in the task of the caller, until the first failure, which is returned."""
        while self._sent or self._due_now():
            if (error := await self._try_step()) is not None:
                return error
        return None

    async def _drain(self) -> None:
        while True:
            error = await self.attempt()
            if error is None:
                if self._claim is not None:
                    self._claim.leave()
                return
            self._call.failed(self, error)
            hurried = self._hurried_pause(error)
            if hurried is None:
                self._pause = asyncio.get_running_loop().call_later(self._next_pause(error), self._resume)
                return
            await asyncio.sleep(hurried)

    def _resume(self) -> None:
        self._pause = None
        self.start()

    async def _try_step(self) -> Exception | None:
        try:
            await self._step()
        except Exception as error:  # noqa: BLE001 - whatever it is, this write failed and the next may not
            return error
        return None

    async def _step(self) -> None:
        """Send one chunk, or what an earlier attempt may have left unsent."""
        self._owed = False
        if self._claim is not None and (last := await self._claim.take()) is not None:
            self._last = max(last, self._last) if self._last else last
        again = bool(self._sent)
        if again or self._resumed:
            await self._settle()
            self._resumed = False
        if again:
            if not self._sent:
                return
        else:
            self._take()
        # What was read before says nothing about what this request leaves behind.
        self._doubtful_reads = 0
        if self._call.spool is not None:
            self._call.spool.sending(self._scope, self._sent)
            await self._call.spool.synced(self._scope)
        clear = False
        began = asyncio.get_running_loop().time()
        try:
            receipt = await self._send(self._sent)
            clear = True
        except ServiceError as error:
            clear = not _may_be_stored(error)
            if clear and _refuses_text(error):
                if self._try_fewer():
                    return
            elif clear and not again:
                self._put_back()
            raise
        finally:
            if not clear:
                self._sure_at = asyncio.get_running_loop().time() + LATE_COMMIT
        self._receipt = receipt or self._receipt
        self._accepted()
        self._acknowledge(self._sent, asyncio.get_running_loop().time() - began)

    def _take(self) -> None:
        # From here on the lines count as sent, whatever interrupts the request, cancellation included.
        self._sent = next_chunk(self._due_now()[: self._most], after=self._last)
        del self._waiting[: len(self._sent)]
        last = self._sent[-1].turn
        self._begun = last.order if last.part < last.parts else None

    def _put_back(self) -> None:
        turns = [line.turn for line in self._sent]
        self._sent = []
        self._begun = turns[0].order if turns[0].part > 1 else None
        self._waiting = sorted([*turns, *self._waiting], key=self._place)

    def _try_fewer(self) -> bool:
        """A text was refused as it is: whatever else happens to the others, one bad line must not block them.

        Returns whether to go on at once. A line that is refused alone steps aside, and is given up when the service
        takes a later one; while it takes none, the fault may lie elsewhere, and all of them wait as before.
        """
        lines = len(self._sent)
        self._refusals += 1
        self._refused_alone = 0
        if self._refusals < REFUSALS:
            self._put_back()
            return False
        self._most = max(1, lines // 2)
        if lines > 1:
            self._put_back()
            return True
        self._suspects.append(self._sent.pop().turn)
        if self._due_now() and len(self._suspects) < MOST_SUSPECTS:
            return True
        self._refused_alone = len(self._suspects)
        self._return_suspects()
        return False

    def _return_suspects(self) -> None:
        self._waiting = [*self._suspects, *self._waiting]
        self._suspects = []
        self._begun = self._waiting[0].order if self._waiting[0].part > 1 else None

    def _give_up_suspects(self) -> None:
        if self._suspects:
            self._call.say_once(
                logging.ERROR,
                "The memory service refuses some of what was said for good: it is dropped, the rest is stored",
            )
            self._call.refused(self._scope, self._suspects)
            self._suspects = []

    def _accepted(self) -> None:
        if self._claim is not None:
            self._claim.confirm()
        self._give_up_suspects()
        if self._most is not None:
            self._most *= 2
        if self._most is None or self._most >= len(self._waiting):
            self._most, self._refusals = None, 0

    def _place(self, turn: Turn) -> tuple[bool, datetime, int, int]:
        return turn.order != self._begun, turn.at, turn.order, turn.part

    def _acknowledge(self, lines: Sequence[Line], seconds: float | None = None) -> None:
        self._last = max([line.stamp for line in lines] + ([self._last] if self._last else []))
        done = {line.stamp for line in lines}
        self._sent = [line for line in self._sent if line.stamp not in done]
        self._failures = self._hurried_failures = 0
        turns = [line.turn for line in lines]
        self._call.written(self._scope, turns)
        self._call.observer.stored(self._scope.document_id, whole_turns(turns), seconds)
        self._call.worked(self)

    async def _send(self, lines: Sequence[Line]) -> str | None:
        dreaming = self._call.dreaming
        try:
            return await self._append(lines, dreaming)
        except PaymentRequired:
            if dreaming == "dynamic":
                raise
            self._call.use_dynamic()
            return await self._append(lines, "dynamic")

    async def _append(self, lines: Sequence[Line], dreaming: Dreaming) -> str | None:
        call, scope = self._call, self._scope
        began = asyncio.get_running_loop().time()
        failure: BaseException | None = None
        try:
            with memory_span("create_memory", "capture"):
                receipt = await self._bounded(
                    "append",
                    lambda: call.store.append(
                        scope.container_tag,
                        scope.document_id,
                        "\n".join(line.text for line in lines),
                        dreaming=dreaming,
                        at=lines[0].stamp,
                        timeout=call.timeout,
                    ),
                )
        except BaseException as error:
            failure = error
            raise
        finally:
            if failure is None:
                call.stats.writes += 1
            else:
                call.stats.writes_failed += 1
            call.observer.wrote(asyncio.get_running_loop().time() - began, failure)
        return receipt

    async def _settle(self) -> None:
        """Acknowledge those of the sent lines that the document holds; the others stay, to be sent again.

        A line that is missing is looked for once more when a late commit is over. Raises when what is stored cannot
        be found out now. When it can never be found out, all lines are sent again: one that is stored twice can be
        told by its stamp, a lost one cannot be brought back.
        """
        if self._unreadable:
            return
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            stored, refusal = await self._stored_marks()
            if self._unreadable:
                return
            if stored is not None:
                self._note_stored(stored)
            if not self._sent:
                return
            if stored is None:
                self._doubtful_reads += 1
            if began < self._sure_at:
                await asyncio.sleep(self._sure_at - loop.time())
                continue
            if stored is None and self._doubtful_reads < DOUBTFUL_READS:
                found = "nothing" if refusal is None else type(refusal).__name__
                raise ServiceUnavailable(f"reading back what was stored found {found}")
            if refusal is not None:
                self._call.say_once(logging.WARNING, _UNREADABLE)
            return

    async def _stored_marks(self) -> tuple[set[tuple[str, str]] | None, Exception | None]:
        """The marks of the lines that the document holds; None, and perhaps why, when it is not shown."""
        try:
            document = await self._read()
        except NotImplementedError:
            self._unreadable = True
            self._call.say_once(logging.WARNING, _UNREADABLE)
            return None, None
        except (ServiceTimeout, ServiceUnavailable, RateLimited):
            raise
        except (Conflict, PaymentRequired) as error:
            # Says something of this moment, and nothing of whether reading is allowed: waited out like an outage.
            raise ServiceUnavailable(f"reading back what was stored found {type(error).__name__}") from error
        except Exception as error:  # noqa: BLE001 - refused, or an answer that nobody foresaw
            return None, error
        return (None if document is None else marks_in(document)), None

    def _note_stored(self, stored: set[tuple[str, str]]) -> None:
        if self._resumed and stored:
            last = datetime.fromisoformat(max(stamp for stamp, _ in stored).replace("Z", "+00:00"))
            self._last = max(last, self._last) if self._last else last
        if found := [line for line in self._sent if line.mark in stored]:
            self._acknowledge(found)

    async def _read(self) -> str | None:
        call, scope = self._call, self._scope
        return await self._bounded(
            "read",
            lambda: call.store.read(
                scope.container_tag, scope.document_id, service_id=self._receipt, timeout=call.timeout
            ),
        )

    async def _bounded(self, what: str, request: Callable[[], Awaitable[T]]) -> T:
        """The answer to a request, within the deadline even when the store does not keep its own.

        Not `asyncio.wait_for`: that waits for a client which swallows cancellation.
        """
        task: asyncio.Task[T] = asyncio.ensure_future(_as_coroutine(request))
        self._requests.add(task)
        task.add_done_callback(self._request_ended)
        try:
            await asyncio.wait([task], timeout=self._call.timeout)
        finally:
            if not task.done():
                task.cancel()
        if not task.done():
            raise ServiceTimeout(f"{what} got no answer in time", uncertain=True)
        if task.cancelled():  # given up, or by the client itself; nobody cancelled this call
            raise ServiceUnavailable(f"{what} was given up before an answer", uncertain=True)
        return task.result()

    def _request_ended(self, task: asyncio.Task[Any]) -> None:
        self._requests.discard(task)
        if not task.cancelled():
            task.exception()  # read, or asyncio complains about a request that was given up

    def _hurried_pause(self, error: Exception) -> float | None:
        """Seconds until the next attempt of a flush; None when it has to do without another."""
        left = self._call.hurry_until - asyncio.get_running_loop().time()
        if left <= 0:
            return None
        if needs_a_person(error):
            return 0.0 if self._owed else None
        pause = min(FIRST_HURRIED_PAUSE * 2.0 ** min(self._hurried_failures, 10), LONGEST_HURRIED_PAUSE)
        self._hurried_failures += 1
        pause = max(pause, min(hinted_pause(error) or 0.0, left / 2))
        return pause if pause < left else None

    def _next_pause(self, error: Exception) -> float:
        """Seconds until the next attempt in the background."""
        growth = 2.0 ** min(self._failures, 10)
        self._failures += 1
        jitter = 1 + self._call.jitter() / 2
        if needs_a_person(error):
            return min(FIRST_REFUSED_PAUSE * growth, LONGEST_REFUSED_PAUSE) * jitter
        hint = hinted_pause(error)
        if hint is not None:
            return max(hint, FIRST_PAUSE) * jitter
        return min(FIRST_PAUSE * growth, LONGEST_PAUSE / 1.5) * jitter


async def _as_coroutine(request: Callable[[], Awaitable[T]]) -> T:
    return await request()


def _may_be_stored(error: ServiceError) -> bool:
    return error.uncertain or isinstance(error, ServiceTimeout)


def _refuses_text(error: ServiceError) -> bool:
    return isinstance(error, RequestRejected) and error.status in _REFUSES_TEXT


def hinted_pause(error: Exception) -> float | None:
    """Seconds that the service asks to wait, within bounds."""
    hint = error.retry_after if isinstance(error, RateLimited) else None
    return min(hint, LONGEST_HINT) if hint is not None and hint >= 0 else None
