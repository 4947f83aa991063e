"""The bound caller's memory, held in this process, so that recall is a search of a few milliseconds.

A mirror belongs to one container tag. It loads in the background: the profile, the memories page by page with
those changed last first, and the text of the latest calls, those first that the service has not turned into
memories yet. What is remembered, forgotten or said in this call shows in it at once. Later it is refreshed, also in
the background: nothing here is on the way of a reply but `search`.

It lives in memory only, is dropped by `close`, and drops what arrives after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from supermemory_livekit.background import Background
from supermemory_livekit.errors import (
    AccessDenied,
    APIMismatch,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
)
from supermemory_livekit.recall.last_call import Tail
from supermemory_livekit.retrieval import Embedder, Ranked, load_embedder
from supermemory_livekit.store import Hit, MemoryPage, MemoryStore, Profile
from supermemory_livekit.telemetry import OutageLog, describe, logger
from supermemory_livekit.transcript import Role

from .contents import Bounds, Contents, Held
from .index import MirrorIndex, VectorCache

__all__ = ["Bounds", "Mirror"]

T = TypeVar("T")

TIMEOUT = 15.0
"""Seconds a request may take. Nobody waits for it."""

RETRY_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts to load; the last one repeats."""

REFRESH_INTERVAL = 20.0
"""Least seconds between the beginnings of two refreshes."""

CALLS_INTERVAL = 300.0
"""Least seconds between two requests for the text of calls, which is long. Once loaded it hardly changes: what is
said in this call is known, and what became memories meanwhile is listed with them."""

FIRST_PAGE = 200
"""Memories of the first request: few enough to be here before the caller has said a sentence."""

PAGE = 500
"""Memories of each further request. The API gives up to 1,100, but reading so many at once takes the event loop longer
than a frame of audio lasts."""

NEWS_PAGE = 50
"""Memories of a refresh; when all of them are new, the whole list is read again."""

LISTED_PER_HELD = 5
"""How many times the bound is read in search of static memories."""

_QUERY_CHARS = 4_000
_SPARE = 20
"""Hits asked for besides, since some may be duplicates or gone."""

_REFUSALS = (AccessDenied, APIMismatch, PaymentRequired, NotFound, RequestRejected)


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Mirror:
    """One caller's memory. Belongs to the event loop of its call.

    Args:
        store: Where the memory is kept.
        tag: The container tag whose memory this is, for the whole life of the object.
        document_id: Custom id of this call's document: what it holds from an earlier part of the call, before a
            reconnect, is held too.
        bounds: Most that is held.
        load_embedder: Gives the model, or None for full text alone. Called in a thread.
        cache: Vectors of texts that were embedded in an earlier call.
        outage: Told when loading begins to fail, and when it works again.
        now: The time, with time zone.
    """

    def __init__(
        self,
        store: MemoryStore,
        tag: str,
        *,
        document_id: str | None = None,
        bounds: Bounds | None = None,
        load_embedder: Callable[[], Embedder | None] = load_embedder,
        cache: VectorCache | None = None,
        outage: OutageLog | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.tag = tag
        self._store = store
        self._bounds = bounds or Bounds()
        self._now = now
        self._contents = Contents(self._bounds, document_id=document_id, since=now())
        self._index = MirrorIndex(load_embedder, cache)
        self._background = Background()
        self._outage = outage or OutageLog("Loading the caller's memory ahead")
        self._work: asyncio.Task[None] | None = None
        self._started = False
        self._closed = False
        self._refused = False
        self._whole_due = True
        """The whole list is to be read, rather than what is new."""
        self._listed_all = False
        self._calls_listed = False
        self._calls_refused = ""
        """Why, once it is."""
        self._said_calls_refused = False
        self._calls_due = float("-inf")
        self._hidden = 0
        """Memories that the service counts and does not list."""
        self._listed: set[str] = set()
        """Ids of all memories that were listed, forgotten ones too."""
        self._missing = False
        """The list was answered with 404."""
        self._asked_to_wait = 0.0
        """Seconds that the service wants to be left alone."""
        self._synced_at = float("-inf")
        self._refresh_wanted = False
        self._ready = asyncio.Event()
        self._calls_asked = asyncio.Event()
        """The first request for the text of calls has ended, well or not."""

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """The newest memories can be searched."""
        return self._ready.is_set() and not self._closed

    @property
    def complete(self) -> bool:
        """All that is known of the caller is here: a search of the service would find no memory besides."""
        return (
            self.ready
            and not self._refused
            and self._listed_all
            and self._calls_listed
            and self._contents.memories_fit
            and self._contents.calls_fit
        )

    @property
    def unavailable(self) -> bool:
        """The service, the key or the client refuses to list memories: there is no mirror in this call."""
        return self._refused

    @property
    def semantic(self) -> bool:
        """Searches go by meaning too. Before, or without a model, by words alone."""
        return self._index.semantic

    @property
    def profile(self) -> Profile | None:
        """The caller's profile, with what this call has changed. None before it is loaded."""
        return self._contents.profile

    @property
    def tail(self) -> Tail | None:
        """The end of the last call, while the service has made no memories of it."""
        return self._contents.tail

    @property
    def calls_unavailable(self) -> bool:
        """The service, the key or the client refuses to list the text of calls."""
        return bool(self._calls_refused) or self._refused

    def __len__(self) -> int:
        """Passages held."""
        return len(self._contents)

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load. Needs a running loop. Calling it again does nothing."""
        if self._started or self._closed:
            return
        self._started = True
        self._index.start()
        self._work = self._background.start(self._load(), "Loading the caller's memory")

    async def wait_until_ready(self, timeout: float) -> bool:
        """Wait until memories can be searched, at most so many seconds; no longer where they cannot be listed."""
        await self._wait(self._ready, timeout)
        return self.ready

    async def wait_until_calls_asked(self, timeout: float) -> None:
        """Wait until `tail` is known, or that it cannot be, at most so many seconds."""
        await self._wait(self._calls_asked, timeout)

    async def _wait(self, event: asyncio.Event, timeout: float) -> None:
        waiter = asyncio.ensure_future(event.wait())
        ends: set[asyncio.Future[Any]] = {waiter} if self._work is None else {waiter, self._work}
        try:
            await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()

    def close(self) -> None:
        """Drop everything, and whatever is still to come. Returns at once. Safe to call twice."""
        self._closed = True
        self._background.cancel()
        self._index.close()
        self._contents = Contents(self._bounds, document_id=None, since=self._now())
        self._listed.clear()

    async def aclose(self) -> None:
        """`close`, and wait until what ran has ended."""
        self.close()
        await self._background.aclose()
        await self._index.aclose()

    # -- what a reply asks for -----------------------------------------------------------------------------------

    async def search(self, query: str, *, limit: int, threshold: float) -> list[Hit]:
        """At most `limit` hits with `similarity >= threshold`, best first, from what is here at this moment.

        Takes milliseconds, on a thread of its own. Hits of memories have an id, those of call text and of facts
        that the service is still working on have none.
        """
        if limit <= 0 or not query.strip():
            return []
        now = self._now()
        ranked = await self._index.search(
            query[:_QUERY_CHARS], limit=limit + _SPARE, threshold=threshold, now=now
        )
        found = [(held, one.similarity) for one in ranked if (held := self._held(one)) is not None]
        hits: dict[str, Hit] = {}
        for held, similarity in found:
            norm = held.norm
            if held.expires_at is not None and held.expires_at <= now:
                continue
            same = hits.setdefault(norm, Hit(held.text, similarity, held.memory_id, held.at))
            if same.memory_id is None and held.memory_id is not None:
                # The fact as it was remembered in this call, or the note of it: its memory can be forgotten by id.
                hits[norm] = replace(same, memory_id=held.memory_id)
        return list(hits.values())[:limit]

    def _held(self, ranked: Ranked) -> Held | None:
        """What is shown of a hit: a fact, or neighbouring turns as far as they are still held."""
        best = self._contents.get(ranked.key)
        if best is None or len(ranked.keys) == 1:
            return best
        pieces = (self._contents.get(key) for key in ranked.keys)
        return replace(best, text="\n".join(piece.text for piece in pieces if piece is not None))

    # -- what this call does -------------------------------------------------------------------------------------

    def remembered(self, text: str, receipt: str | None = None) -> None:
        """A fact was stored. `receipt` is the id that the store returned for it."""
        if self._closed:
            return
        self._contents.remembered(text, receipt, self._now())
        self._follow_soon()
        self.refresh()

    def forgotten(self, *, memory_id: str | None = None, text: str | None = None) -> None:
        """A fact was forgotten, by its id or its text. No refresh brings it back, also none that runs now.

        Without either, something unknown may be gone: the whole list is read again.
        """
        if self._closed:
            return
        self._contents.forgotten(memory_id=memory_id, text=text)
        if not memory_id and not text:
            self._whole_due = True
        self._follow_soon()
        self.refresh()

    def heard(self, role: Role, text: str, at: datetime | None = None) -> None:
        """A turn of this call, without recalled text in it. The last few are in the model's context and are not
        searched; the ones before are."""
        if self._closed:
            return
        self._contents.heard(role, text, at or self._now())
        self._follow_soon()

    def unheard(self, moments: Collection[datetime]) -> None:
        """Turns of this call, said at these moments a moment ago, are to be shown no more."""
        self._contents.unheard(moments)

    def refresh(self) -> None:
        """Ask the service for what is new, in the background, at most every `REFRESH_INTERVAL` seconds."""
        if self._closed or self._refused or not self._started:
            return
        self._refresh_wanted = True
        if self._work is None or self._work.done():
            self._work = self._background.start(self._refresh(), "Refreshing the caller's memory")

    # -- loading -------------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        tries = 0
        while not await self._sync():
            if self._refused:
                return
            pause = RETRY_PAUSES[min(tries, len(RETRY_PAUSES) - 1)]
            await asyncio.sleep(max(pause, self._asked_to_wait))
            tries += 1
        await self._refresh()

    async def _refresh(self) -> None:
        while self._refresh_wanted and not self._refused:
            due = self._synced_at + max(REFRESH_INTERVAL, self._asked_to_wait)
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            self._refresh_wanted = False
            await self._sync()

    async def _sync(self) -> bool:
        """Load what is new. False when some of it is to be asked for again, or when the list is refused."""
        self._synced_at = asyncio.get_running_loop().time()
        self._asked_to_wait = 0.0
        answered = await asyncio.gather(
            self._attempt(self._sync_profile),
            self._attempt(self._sync_calls, refused=self._refuse_calls),
            self._attempt(self._sync_memories, refused=self._refuse),
        )
        if self._missing and all(answered):
            self._judge_missing()
        if self._calls_refused and not self._refused:
            self._say_calls_refused()
        if self._refused or not all(answered):
            return False
        self._outage.worked()
        return True

    async def _attempt(
        self,
        part: Callable[[], Coroutine[Any, Any, None]],
        refused: Callable[[Exception], None] | None = None,
    ) -> bool:
        try:
            # Called here: a coroutine made before would be left over when this task is cancelled before it begins.
            await part()
        except _Closed:
            return False
        except Exception as error:  # noqa: BLE001 - a fault of the store must not end the call
            lasting = isinstance(error, _REFUSALS) or not isinstance(error, ServiceError)
            if lasting and refused is not None:
                refused(error)
                return True
            if isinstance(error, RateLimited):
                self._asked_to_wait = min(error.retry_after or 0.0, RETRY_PAUSES[-1])
            self._outage.failed(error, "recall asks the service before each reply meanwhile")
            # What is refused is not asked for again and again; a refresh asks once.
            return lasting
        return True

    def _still_open(self, answer: T) -> T:
        if self._closed:
            raise _Closed
        return answer

    async def _sync_profile(self) -> None:
        profile = await self._store.profile(self.tag, timeout=TIMEOUT)
        self._contents.take_profile(self._still_open(profile))

    async def _sync_calls(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._calls_refused or not self._bounds.calls or now < self._calls_due:
            return
        try:
            calls = await self._store.latest_calls(self.tag, limit=self._bounds.calls, timeout=TIMEOUT)
            self._contents.take_calls(self._still_open(calls))
        finally:
            self._calls_asked.set()
        self._calls_listed = True
        self._calls_due = now + CALLS_INTERVAL
        await self._follow()

    async def _sync_memories(self) -> None:
        self._missing = False
        try:
            if self._whole_due or not await self._list_news():
                # Set back first: what is forgotten from here on wants yet another list.
                self._whole_due = False
                try:
                    await self._list_whole()
                except BaseException:
                    self._whole_due = True
                    raise
        except NotFound:
            self._missing = True

    async def _list_news(self) -> bool:
        """Read what has changed since the last time. False when one page cannot tell."""
        page = await self._page(1, NEWS_PAGE)
        known = any(self._contents.knows(memory) for memory in page.entries)
        await self._take(page)
        return (known or not page.more) and (page.total is None or self._unlisted(page.total) == self._hidden)

    async def _list_whole(self) -> None:
        self._contents.begin()
        self._listed.clear()
        page = await self._page(1, FIRST_PAGE)
        await self._take(page)
        self._ready.set()
        most = LISTED_PER_HELD * self._bounds.memories
        number = 0
        ended = not page.more
        while not ended and len(self._listed) < most:
            number += 1
            before = len(self._listed)
            page = await self._page(number, PAGE)
            await self._take(page)
            ended = not page.more
            if number > 1 and len(self._listed) == before:
                break  # the service does not turn the page
        self._contents.keep_only(self._listed)
        await self._follow()
        self._hidden = self._unlisted(page.total) if page.total is not None else 0
        self._listed_all = ended

    async def _page(self, number: int, limit: int) -> MemoryPage:
        return self._still_open(
            await self._store.memories(self.tag, page=number, limit=limit, timeout=TIMEOUT)
        )

    async def _take(self, page: MemoryPage) -> None:
        self._listed.difference_update(page.replaced)
        self._listed.update(page.gone, (memory.id for memory in page.entries))
        self._contents.take(page)
        await self._follow()

    def _unlisted(self, total: int) -> int:
        return total - len(self._listed)

    def _judge_missing(self) -> None:
        """A service that knows nothing of a caller may answer 404, as one does that has no such route."""
        if self._contents.profile or self._contents.has_calls or not self._calls_listed:
            self._refuse(NotFound("memories answered 404", status=404))
            return
        self._listed_all = True
        self._ready.set()

    def _refuse(self, error: Exception) -> None:
        self._refused = True
        logger.log(
            logging.INFO if isinstance(error, NotImplementedError) else logging.WARNING,
            "The caller's memories cannot be listed (%s): recall asks the service before each reply",
            describe(error),
        )
        if not self._ready.is_set():
            self._index.close()

    def _refuse_calls(self, error: Exception) -> None:
        self._calls_refused = describe(error)

    def _say_calls_refused(self) -> None:
        if not self._said_calls_refused:
            self._said_calls_refused = True
            logger.info(
                "The text of earlier calls cannot be listed (%s): only the service finds what is no memory yet",
                self._calls_refused,
            )

    # -- the index follows the contents --------------------------------------------------------------------------

    async def _follow(self) -> None:
        changes = self._contents.changes()
        self._index.discard(changes.discard)
        await self._index.add(changes.add)

    def _follow_soon(self) -> None:
        changes = self._contents.changes()
        self._index.discard(changes.discard)
        self._index.add_soon(changes.add)


class _Closed(Exception):
    """The mirror was closed while an answer was on its way."""
