"""One recall per user message, shared by every attempt at it, inside a budget.

LiveKit may run `llm_node` several times for one turn of the caller: preemptive attempts on the words so far, the real
generation, a follow-up after each tool. All of them ask here, and share a recall by the rule in `lookups.py`.

What a reply is shown comes from three places, the first that has it:

1. the mirror of the caller's memory in this process (`mirror.py`), a matter of milliseconds;
2. a search of the service begun while the caller was speaking, when what it found holds what its words lacked;
3. a search of the service for the finished words.

Every answer carries the container tag it was asked for and is dropped when another tag is bound by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from opentelemetry.trace import SpanKind

from supermemory_livekit.background import Background
from supermemory_livekit.errors import ServiceError
from supermemory_livekit.events import Outcome, Recalled, Source
from supermemory_livekit.mirror.embedding_cache import EmbeddingCache
from supermemory_livekit.mirror.mirror import Mirror
from supermemory_livekit.observability.observer import Observer
from supermemory_livekit.observability.spans import memory_span, record_content
from supermemory_livekit.params import InputParams
from supermemory_livekit.store import Hit, MemoryStore, Profile, SearchMode
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.transcript import Role

from .early import EARLY_LIMIT, ENOUGH_WORDS, Chosen, SpokenWords, choose, content, is_trivial
from .last_call import Tail, load_tail
from .lookups import Asked, Lookup, Lookups, Search, TurnSearches, merged, result_of
from .patience import Patience

__all__ = ["Recall", "Recollection"]

T = TypeVar("T")

LATE_LIMIT = 15.0
"""Seconds after which an unanswered request is given up. Longer than any budget: a late answer still serves the tool
follow-up or the next turn, and shows that the service is back."""

PROBE_INTERVALS = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between two probes of a service nobody waits for; the last one repeats."""

PROBE_LIMIT = 3.0
"""Seconds a probe waits for its answer, `recall_timeout` if that is longer. Short, since a probe that was sent while
the service hung finds out nothing about the service that is back."""

SOFT_BUDGET = 0.15
"""Seconds a reply waits for a part that has a substitute at hand: a newer profile than the one that is known, the
service's search beside what the mirror or an early search has found."""

SPARE_HITS = 10
"""Hits asked for beyond `search_limit` at most, one per turn of this call: its turns are stored under the same tag, and
left out of what is shown since the model has them before it."""

MIRROR_BUDGET = 0.5
"""Seconds a reply waits for the mirror, which answers in milliseconds unless the machine is overloaded."""

SEARCH_MODE: SearchMode = "hybrid"
"""Memories and raw call text, so that the last call is found before the service has made memories of it."""


@dataclass(frozen=True)
class Recollection:
    """What a turn may be shown."""

    profile: Profile | None = None
    hits: tuple[Hit, ...] = ()
    tail: Tail | None = None
    """The end of the last call, while the service has made no memories of it."""


class Recall:
    """Recalls for the bound caller. Everything runs on the event loop that calls it."""

    def __init__(
        self, store: MemoryStore, params: InputParams, stats: Stats, observer: Observer | None = None
    ) -> None:
        self._observer = observer = observer or Observer(stats)
        self._store = store
        self._params = params
        self._stats = stats
        self._tag: str | None = None
        self._document_id: str | None = None
        self._mirror: Mirror | None = None
        self._spoken = SpokenWords()
        self._asked = TurnSearches()
        self._ahead: Asked | None = None
        """The mirror's search for the words so far."""
        self._bound_at = datetime.now(timezone.utc)
        self._own_turns = 0
        """Turns of this call that a search of the bound caller may find."""
        self._forgets = 0
        self._without_tail: set[str] = set()
        """Callers who had something forgotten in this call: the end of an earlier one may hold it."""
        self._tail: Tail | None = None
        """Where there is no mirror that has it."""
        self._freshest: Profile | None = None
        self._fetches = 0
        """Profile requests so far. An answer is used only if no later request was answered before it."""
        self._freshest_fetch = 0
        self._fetch: asyncio.Task[Profile | None] | None = None
        """The profile request of the current turn: started when the caller began to speak, or by the recall."""
        self._lookups = Lookups()
        self._probe: asyncio.Task[None] | None = None
        self._background = Background()
        consequence = "replies go on without it"
        self._profile_patience = Patience(
            "profile", "Loading the caller's profile", consequence=consequence, observer=observer
        )
        self._search_patience = Patience(
            "search", "Searching the caller's memory", consequence=consequence, observer=observer
        )

    @property
    def _wants_profile(self) -> bool:
        return self._params.mode in ("profile", "full")

    @property
    def _wants_search(self) -> bool:
        return self._params.mode in ("query", "full")

    @property
    def _hits_wanted(self) -> int:
        return self._params.search_limit + min(self._own_turns, SPARE_HITS)

    # -- what happens in the call ------------------------------------------------------------------------------

    def bind(self, tag: str, document_id: str | None = None) -> None:
        """The caller with this tag is on the line. Nothing of an earlier one survives."""
        self._document_id = document_id
        if tag == self._tag:
            return
        self.unbind()
        self._tag = tag
        self._bound_at = datetime.now(timezone.utc)

    def unbind(self) -> None:
        """Nobody is on the line whose memory may be shown. What is still to come for the last caller is dropped."""
        self._tag = None
        self._own_turns = 0
        self._freshest = None
        self._fetch = None
        self._probe = None
        self._tail = None
        self._asked.clear()
        self._ahead = None
        self._spoken.committed()
        self._lookups.clear()
        self._background.cancel()
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    def caller_speaks(self) -> None:
        """The caller began to speak: refresh what is known while they do, so that no reply waits for it."""
        if self._tag is None:
            return
        if (mirror := self._load_ahead(self._tag)) is not None:
            mirror.refresh()
        if self._profile_here() or not self._wants_profile or not self._profile_patience.waits:
            return
        if self._fetch is None or self._fetch.done():
            self._fetch = self._start_fetch(self._tag)

    def caller_says(self, transcript: str, *, final: bool) -> None:
        """Words of the caller, interim or final. Search for them at once when there is no mirror to do it later."""
        words = self._spoken.hears(transcript, final=final)
        if not final and self._wants_search:
            self._search_ahead(words)
        if self._tag is None or not self._wants_search or self._asked or self._all_here():
            return
        if self._search_patience.waits and len(content(words)) >= ENOUGH_WORDS:
            search = self._search(self._tag, words, limit=EARLY_LIMIT, threshold=0.0)
            self._asked.add(words, self._background.start(search, "Early recall"))

    def committed(self, message_id: str) -> None:
        """The user message with this id is part of the conversation now."""
        self._lookups.committed(message_id)
        self._fetch = None
        self._asked.clear()
        self._ahead = None
        self._spoken.committed()

    def heard(self, role: Role, text: str, at: datetime) -> None:
        """A turn of this call, without recalled text in it."""
        self._own_turns += 1
        if self._tag is not None and (mirror := self._load_ahead(self._tag)) is not None:
            mirror.heard(role, text, at)

    def unheard(self, moments: Collection[datetime]) -> None:
        """Turns of this call, said at these moments a moment ago, are not to be recalled."""
        if self._mirror is not None:
            self._mirror.unheard(moments)

    def remembered(self, text: str, receipt: str | None) -> None:
        """A tool stored a fact: the profile loaded before is out of date."""
        self._ahead = None
        if self._mirror is not None:
            self._mirror.remembered(text, receipt)
        self.changed()

    def changed(self) -> None:
        """A tool may have changed the caller's memory."""
        if self._tag is not None and self._wants_profile:
            self._fetch = None
            self._start_fetch(self._tag)

    def forgot(self, memory_id: str | None = None, text: str | None = None) -> None:
        """A tool made the service forget something: nothing recalled before is shown again, also not as a fall-back.

        The tool follow-up of this turn recalls anew.
        """
        if self._mirror is not None:
            self._mirror.forgotten(memory_id=memory_id, text=text)
        self._freshest = None
        # The text of a call may hold it.
        self._tail = None
        self._forgets += 1
        if self._tag is not None:
            self._without_tail.add(self._tag)
        self._freshest_fetch = self._fetches
        self._lookups.clear()
        self._asked.clear()
        self._ahead = None
        self.changed()

    # -- what a reply asks for ---------------------------------------------------------------------------------

    async def preload(self) -> Recollection:
        """The profile of the bound caller and the end of their last call within `recall_timeout`, kept for later turns.

        In mode "query" no profile is shown; it is asked for all the same, to open the connection before the first
        turn needs it. The mirror loads beside it and is waited for within the same time, so that a service which
        hangs from then on adds nothing to any reply.
        """
        tag = self._tag
        if tag is None:
            return Recollection()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._params.recall_timeout
        mirror = self._load_ahead(tag)
        fetch = self._start_fetch(tag)
        tail = self._start_tail(tag) if mirror is None else None
        if await self._wait({fetch}, self._params.recall_timeout, self._profile_patience):
            # The same service would make the first turn wait as long again.
            self._search_patience.overdue(self._params.recall_timeout)
        answered = result_of(fetch) is not None
        if mirror is not None and answered:
            await mirror.wait_until_ready(max(0.0, deadline - loop.time()))
            if not mirror.ready and not mirror.unavailable and tag == self._tag:
                # Perhaps the list is long, perhaps the service has begun to hang: a probe finds out, not the caller.
                self._profile_patience.doubt()
                self._search_patience.doubt()
                self._start_probe(tag)
            await mirror.wait_until_calls_asked(max(0.0, deadline - loop.time()))
            if mirror.calls_unavailable and tag == self._tag:
                tail = self._start_tail(tag)
        if tail is not None and answered:
            await self._wait({tail}, deadline - loop.time(), None)
        return self._known() if tag == self._tag else Recollection()

    async def for_greeting(self) -> Recollection:
        """What to show when the caller has said nothing that could be looked up."""
        if self._wants_profile and self._known_profile() is None and self._profile_patience.waits:
            await self.preload()
        return self._known()

    async def for_message(
        self,
        message_id: str,
        text: str,
        *,
        asked_at: float | None = None,
        shown: Callable[[Sequence[Hit]], Sequence[Hit]] = lambda hits: hits,
    ) -> Recollection:
        """What to show for this message of the caller. Waits until `recall_timeout` at most; never raises.

        `asked_at`: loop time from which that counts, when some of it has been waited already. `shown`: leaves out the
        hits that the model has before it already.
        """
        if self._tag is None:
            return Recollection()
        loop = asyncio.get_running_loop()
        began = loop.time() if asked_at is None else asked_at
        if is_trivial(text):
            return replace(await self.for_greeting(), hits=self._lookups.late_hits(self._tag, None))
        lookup = self._lookups.find(message_id, text) or self._begin(self._tag, message_id, text, asked_at)
        # Mostly no request is made, so this is no call to another system.
        with memory_span("search_memory", "recall", SpanKind.INTERNAL) as current:
            await self._wait_for(lookup)
            if lookup.tag != self._tag:
                return Recollection()
            found, sources = self._hits(lookup)
            hits = tuple(shown(found)[: self._params.search_limit])
            sources = sources if hits else ()
            outcome = self._outcome(lookup, hits)
            current.set_attribute("supermemory.recall.outcome", outcome)
            current.set_attribute("supermemory.recall.hits", len(hits))
            current.set_attribute("supermemory.recall.sources", sources)
            record_content(current, text, hits)
        if not lookup.told:
            lookup.told = True
            now = loop.time()
            self._observer.recalled(
                Recalled(message_id, outcome, len(hits), sources, now - lookup.started, now - began)
            )
        return replace(self._known(), hits=hits)

    async def aclose(self) -> None:
        """Stop what still runs. Safe to call twice."""
        self._lookups.clear()
        self._asked.clear()
        self._ahead = None
        if self._mirror is not None:
            await self._mirror.aclose()
        await self._background.aclose()

    # -- what is here already ----------------------------------------------------------------------------------

    def _load_ahead(self, tag: str) -> Mirror | None:
        """The mirror of this caller, which begins to load when it is asked for first. Needs a running loop."""
        if self._mirror is None and self._params.mirror and self._wants_search:
            self._mirror = Mirror(
                self._store,
                tag,
                document_id=self._document_id,
                cache=EmbeddingCache.from_env(),
                outage=self._observer.outage_log("mirror", "Loading the caller's memory ahead"),
            )
            self._mirror.start()
        return self._mirror

    def _all_here(self) -> bool:
        """Whether the service's search would find nothing that the mirror does not."""
        return self._mirror is not None and self._mirror.complete and self._mirror.semantic

    def _profile_here(self) -> bool:
        return self._mirror is not None and self._mirror.ready and self._mirror.profile is not None

    def _known(self) -> Recollection:
        """What is known without asking for anything."""
        tail = (self._mirror.tail if self._mirror is not None else None) or self._tail
        if not self._wants_profile or self._tag in self._without_tail:
            tail = None
        return Recollection(profile=self._known_profile(), tail=tail)

    def _known_profile(self) -> Profile | None:
        if not self._wants_profile:
            return None
        if self._mirror is not None and self._mirror.profile is not None:
            return self._mirror.profile
        return self._freshest

    # -- one lookup --------------------------------------------------------------------------------------------

    def _begin(self, tag: str, message_id: str, text: str, asked_at: float | None) -> Lookup:
        self._stats.recalls += 1
        started = asyncio.get_running_loop().time() if asked_at is None else asked_at
        lookup = Lookup(tag=tag, text=text, started=started, ids={message_id})
        self._load_ahead(tag)
        if self._wants_search:
            self._begin_search(lookup)
        if self._wants_profile and not self._profile_here():
            self._begin_profile(lookup)
        self._lookups.add(lookup)
        return lookup

    def _begin_search(self, lookup: Lookup) -> None:
        mirror = self._mirror
        if mirror is not None and mirror.ready:
            ahead = self._ahead
            if ahead is not None and ahead.words == " ".join(lookup.text.split()) and ahead.may_serve:
                lookup.mirrored = ahead.search
            else:
                lookup.mirrored = self._start_search_here(mirror, lookup.text)
            if self._all_here():
                # The service's search is not asked any more in this call, so nothing would end an outage of it.
                self._search_patience.answered()
                return
        asked = self._asked.nearest(lookup.text)
        if asked is not None:
            lookup.early = self._background.start(self._chosen(asked, lookup.text), "Early recall")
            if content(lookup.text) <= content(asked.words):
                return
        lookup.soft = not self._lookups.owed()
        if self._search_patience.waits or lookup.soft:
            self._search_service(lookup)

    def _begin_profile(self, lookup: Lookup) -> None:
        if self._profile_patience.waits:
            self._fetch = self._fetch or self._start_fetch(lookup.tag)
            lookup.profile = self._fetch
        else:
            # The probe for an earlier caller ended with the call's binding to this one.
            self._start_probe(lookup.tag)

    async def _wait_for(self, lookup: Lookup) -> None:
        if lookup.mirrored is not None:
            await asyncio.wait({lookup.mirrored}, timeout=MIRROR_BUDGET)
        if lookup.waited_out:
            return
        if lookup.early is not None and self._search_patience.waits and not self._mirror_ready():
            await self._wait_for_early(lookup)
            if lookup.early.done() and result_of(lookup.early) is None and lookup.search is None:
                self._search_service(lookup)
        needed: set[asyncio.Task[Any]] = set()
        useful: set[asyncio.Task[Any]] = set()
        if lookup.early is not None and lookup.search is None and self._search_patience.waits:
            (useful if lookup.has_hits() or self._mirror_ready() else needed).add(lookup.early)
        if lookup.search is not None and self._search_patience.waits and not lookup.early_tells():
            (useful if lookup.has_hits() or self._mirror_ready() else needed).add(lookup.search)
        if lookup.profile is not None and self._profile_patience.waits:
            (needed if self._known_profile() is None else useful).add(lookup.profile)
        if not needed and not useful and lookup.pending():
            self._stats.recalls_skipped += 1
        elapsed = asyncio.get_running_loop().time() - lookup.started
        late = await self._wait(needed, self._params.recall_timeout - elapsed, None)
        if late and not lookup.waited_out:
            self._too_late(lookup, late)
        if useful and lookup.soft:
            elapsed = asyncio.get_running_loop().time() - lookup.started
            await self._wait(useful, SOFT_BUDGET - elapsed, None)

    async def _wait_for_early(self, lookup: Lookup) -> None:
        """Wait until unfinished words have found what can stand for the rest, or the finished ones are answered."""
        loop = asyncio.get_running_loop()
        pending: set[asyncio.Task[Any]] = {task for task in (lookup.early, lookup.search) if task is not None}
        while pending and not lookup.early_tells() and result_of(lookup.search) is None:
            left = self._params.recall_timeout - (loop.time() - lookup.started)
            done, pending = await asyncio.wait(
                pending, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return

    def _too_late(self, lookup: Lookup, late: set[asyncio.Task[Any]]) -> None:
        lookup.waited_out = True
        self._stats.recalls_late += 1
        if lookup.search in late or lookup.early in late:
            self._search_patience.overdue(self._params.recall_timeout)
        if lookup.profile in late:
            self._profile_patience.overdue(self._params.recall_timeout)
        self._start_probe(lookup.tag)

    def _mirror_ready(self) -> bool:
        return self._mirror is not None and self._mirror.ready and self._mirror.semantic

    def _hits(self, lookup: Lookup) -> tuple[tuple[Hit, ...], tuple[Source, ...]]:
        """What to show, and where it comes from."""
        answers = lookup.answers()
        if answers:
            lookup.served = True
            hits = merged(list(answers.values()), self._hits_wanted)
            return hits, tuple(source for source, found in answers.items() if found)
        late = self._lookups.late_hits(self._tag, lookup)
        return late, ("late",) if late else ()

    def _outcome(self, lookup: Lookup, hits: Sequence[Hit]) -> Outcome:
        if lookup.waited_out:
            return "late"
        if hits:
            return "found"
        profile = self._known_profile()
        if not self._wants_search and profile is not None:
            return "found" if profile.static or profile.dynamic else "empty"
        if lookup.answers():
            return "empty"
        return "failed" if lookup.failed() else "skipped"

    # -- requests ----------------------------------------------------------------------------------------------

    async def _wait(
        self, tasks: set[asyncio.Task[Any]], seconds: float, patience: Patience | None
    ) -> set[asyncio.Task[Any]]:
        """Wait for the tasks; the ones that are late are returned and run on.

        `asyncio.wait` leaves the tasks alone when the waiting reply is cancelled: another attempt may need them.
        """
        pending = {task for task in tasks if not task.done()}
        if pending:
            _, pending = await asyncio.wait(pending, timeout=max(0.0, seconds))
        if pending and patience is not None:
            patience.overdue(self._params.recall_timeout)
            if self._tag is not None:
                self._start_probe(self._tag)
        return pending

    def _search_service(self, lookup: Lookup) -> None:
        """Ask the service for these words, unless their turn has had its searches."""
        if self._asked.spent:
            return
        params = self._params
        search = self._search(
            lookup.tag, lookup.text, limit=self._hits_wanted, threshold=params.search_threshold
        )
        lookup.search = self._background.start(search, "Recall")
        self._asked.add(lookup.text, lookup.search)

    def _search_ahead(self, words: str) -> None:
        """Search the mirror for the words so far, one search at a time.

        If they are the last ones, their hits are here when the reply asks for them. If not, the model has just been
        used: weights that nobody has touched for a moment are out of the processor's cache, and a search took 50 ms
        instead of 5 then (decision 9).
        """
        mirror = self._mirror
        if mirror is None or not mirror.ready or is_trivial(words):
            return
        if self._ahead is None or self._ahead.search.done():
            self._ahead = Asked(" ".join(words.split()), self._start_search_here(mirror, words))

    def _start_search_here(self, mirror: Mirror, text: str) -> Search:
        return self._background.start(self._search_here(mirror, text), "Searching the mirror")

    async def _search_here(self, mirror: Mirror, text: str) -> tuple[Hit, ...]:
        params = self._params
        return tuple(await mirror.search(text, limit=self._hits_wanted, threshold=params.search_threshold))

    async def _chosen(self, asked: Asked, text: str) -> Chosen | None:
        await asyncio.wait({asked.search})
        hits = result_of(asked.search)
        if hits is None:
            return None
        params = self._params
        return await asyncio.to_thread(
            choose, hits, asked.words, text, limit=self._hits_wanted, threshold=params.search_threshold
        )

    def _start_tail(self, tag: str) -> asyncio.Task[None]:
        return self._background.start(self._load_tail(tag), "Loading the end of the last call")

    async def _load_tail(self, tag: str) -> None:
        forgets = self._forgets
        tail = await load_tail(
            self._store, tag, document_id=self._document_id, since=self._bound_at, timeout=self._late_limit
        )
        if self._tag == tag and self._forgets == forgets:
            self._tail = tail

    def _start_fetch(self, tag: str) -> asyncio.Task[Profile | None]:
        return self._background.start(self._load_profile(tag, self._late_limit), "Loading the profile")

    async def _load_profile(self, tag: str, timeout: float) -> Profile | None:
        self._fetches += 1
        fetch = self._fetches
        patience = self._profile_patience
        profile = await self._ask(self._store.profile(tag, timeout=timeout), patience)
        if profile is None:
            if self._tag == tag:
                self._start_probe(tag)
            return None
        self._search_patience.service_is_back()
        if self._tag == tag and fetch > self._freshest_fetch:
            self._freshest = profile
            self._freshest_fetch = fetch
        return profile

    async def _search(self, tag: str, text: str, *, limit: int, threshold: float) -> tuple[Hit, ...] | None:
        asked = self._store.search(
            tag, text, limit=limit, threshold=threshold, mode=SEARCH_MODE, timeout=self._late_limit
        )
        hits = await self._ask(asked, self._search_patience)
        if hits is None:
            return None
        self._profile_patience.service_is_back()
        return tuple(hits)

    @property
    def _late_limit(self) -> float:
        return max(LATE_LIMIT, self._params.recall_timeout)

    async def _ask(self, request: Coroutine[Any, Any, T], patience: Patience) -> T | None:
        try:
            answer = await request
        except ServiceError as error:
            patience.failed(error)
        except Exception as error:  # noqa: BLE001 - a fault of the store must not cost the reply
            patience.failed(ServiceError(type(error).__name__))
        else:
            patience.answered()
            return answer
        self._stats.recalls_failed += 1
        return None

    def _start_probe(self, tag: str) -> None:
        everything_answers = self._profile_patience.waits and self._search_patience.waits
        if not everything_answers and (self._probe is None or self._probe.done()):
            self._probe = self._background.start(self._probe_until_back(tag), "Probing the service")

    async def _probe_until_back(self, tag: str) -> None:
        """Ask for the profile now and then until the service answers, so that the next turn waits again."""
        limit = max(PROBE_LIMIT, self._params.recall_timeout)
        tries = 0
        while self._tag == tag:
            await asyncio.sleep(PROBE_INTERVALS[min(tries, len(PROBE_INTERVALS) - 1)])
            tries += 1
            if await self._load_profile(tag, limit) is not None:
                return
