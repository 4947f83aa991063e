"""One recall per user message, shared by every attempt at it, inside a budget.

LiveKit may run `llm_node` several times for one turn of the caller: preemptive attempts on the words so far, the real
generation, a follow-up after each tool. All of them ask here; the service is asked once. The identity rule:

- the same message id is the same turn (an adopted preemptive message keeps its id, also when its text is rewritten);
- the same words under another id are the same turn only while no message with these words has been committed, since a
  discarded attempt is never committed and the same words in a later turn deserve a new recall.

Every answer carries the container tag it was asked for and is dropped when another tag is bound by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .background import Background
from .errors import AccessDenied, PaymentRequired, ServiceError, ServiceTimeout
from .params import InputParams
from .store import Hit, MemoryStore, Profile, SearchMode
from .telemetry import OutageLog, Stats, span

__all__ = ["Recall", "Recollection"]

T = TypeVar("T")

LATE_LIMIT = 15.0
"""Seconds after which an unanswered request is given up. Longer than any budget: a late answer still serves the tool
follow-up or the next turn, and shows that the service is back."""

FAILURES_UNTIL_STOP = 3
"""Errors in a row after which a turn no longer waits. A request that outlives its budget stops the waiting at once."""

PROBE_INTERVALS = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between two probes of a service nobody waits for; the last one repeats."""

PROBE_LIMIT = 3.0
"""Seconds a probe waits for its answer, `recall_timeout` if that is longer. Short, since a probe that was sent while
the service hung finds out nothing about the service that is back."""

KEPT_LOOKUPS = 8
"""Recalls kept by message id. A turn needs one, its discarded attempts up to three more."""

SEARCH_MODE: SearchMode = "hybrid"
"""Memories and raw call text, so that the last call is found before the service has made memories of it."""


@dataclass(frozen=True)
class Recollection:
    """What a turn may be shown."""

    profile: Profile | None = None
    hits: tuple[Hit, ...] = ()


class _Patience:
    """Whether a reply should wait for one kind of request.

    A service that owes an answer beyond the budget, or that refuses, is asked in the background until it answers:
    only then does a reply wait for it again.
    """

    def __init__(self, what: str, *, consequence: str) -> None:
        self._outage = OutageLog(what)
        self._consequence = consequence
        self._failures = 0
        self._revived = False
        """Another kind of request has made replies wait for this one, which has not answered since."""
        self.stopped_by: ServiceError | None = None

    @property
    def waits(self) -> bool:
        return self.stopped_by is None

    def answered(self) -> None:
        self._failures = 0
        self._revived = False
        self.stopped_by = None
        self._outage.worked()

    def failed(self, error: ServiceError) -> None:
        self._failures += 1
        refused = isinstance(error, (AccessDenied, PaymentRequired, ServiceTimeout))
        if refused or self._failures >= FAILURES_UNTIL_STOP:
            self.stopped_by = error
        self._outage.failed(error, self._consequence)

    def overdue(self, budget: float) -> None:
        self.failed(ServiceTimeout(f"no answer within recall_timeout ({budget:g} s)"))

    def service_is_back(self) -> None:
        """Another kind of request was answered: wait again, unless this one was refused as such.

        Once, until this kind answers: where it alone is down, every turn would wait for it again.
        """
        if self.waits or self._revived or isinstance(self.stopped_by, (AccessDenied, PaymentRequired)):
            return
        self._revived = True
        self._failures = 0
        self.stopped_by = None


@dataclass(eq=False)
class _Lookup:
    """The recall of one user message."""

    tag: str
    text: str
    deadline: float
    """On the clock of the event loop."""
    ids: set[str]
    """Ids of the attempts that share it."""
    search: asyncio.Task[tuple[Hit, ...] | None] | None = None
    profile: asyncio.Task[Profile | None] | None = None
    committed: bool = False
    waited_out: bool = False
    """The budget has passed once; nobody waits for this lookup again."""
    served: bool = field(default=False)
    """Its hits have been shown."""

    def pending(self) -> set[asyncio.Task[Any]]:
        return {task for task in (self.search, self.profile) if task is not None and not task.done()}


class Recall:
    """Recalls for the bound caller. Everything runs on the event loop that calls it."""

    def __init__(self, store: MemoryStore, params: InputParams, stats: Stats) -> None:
        self._store = store
        self._params = params
        self._stats = stats
        self._tag: str | None = None
        self._freshest: Profile | None = None
        self._fetches = 0
        """Profile requests so far. An answer is used only if no later request was answered before it."""
        self._freshest_fetch = 0
        self._fetch: asyncio.Task[Profile | None] | None = None
        """The profile request of the current turn: started when the caller began to speak, or by the recall."""
        self._lookups: list[_Lookup] = []
        self._probe: asyncio.Task[None] | None = None
        self._background = Background()
        consequence = "replies go on without it"
        self._profile_patience = _Patience("Loading the caller's profile", consequence=consequence)
        self._search_patience = _Patience("Searching the caller's memory", consequence=consequence)

    @property
    def _wants_profile(self) -> bool:
        return self._params.mode in ("profile", "full")

    @property
    def _wants_search(self) -> bool:
        return self._params.mode in ("query", "full")

    # -- what happens in the call ------------------------------------------------------------------------------

    def bind(self, tag: str) -> None:
        """The caller with this tag is on the line. Nothing of an earlier one survives."""
        if tag == self._tag:
            return
        self._tag = tag
        self._freshest = None
        self._fetch = None
        self._probe = None
        self._lookups.clear()
        self._background.cancel()

    def caller_speaks(self) -> None:
        """The caller began to speak: refresh the profile while they do, so that no reply waits for it."""
        if self._tag is None or not self._wants_profile or not self._profile_patience.waits:
            return
        if self._fetch is None or self._fetch.done():
            self._fetch = self._start_fetch(self._tag)

    def committed(self, message_id: str) -> None:
        """The user message with this id is part of the conversation now."""
        for lookup in self._lookups:
            if message_id in lookup.ids:
                lookup.committed = True
        self._fetch = None

    def changed(self) -> None:
        """A tool changed the caller's memory: the profile loaded before is out of date."""
        if self._tag is not None and self._wants_profile:
            self._fetch = None
            self._start_fetch(self._tag)

    def forgot(self) -> None:
        """A tool made the service forget something: nothing recalled before is shown again, also not as a fall-back.

        The tool follow-up of this turn recalls anew.
        """
        self._freshest = None
        self._freshest_fetch = self._fetches
        self._lookups.clear()
        self.changed()

    # -- what a reply asks for ---------------------------------------------------------------------------------

    async def preload(self) -> Profile | None:
        """The profile of the bound caller within `recall_timeout`, kept as the fall-back of later turns.

        In mode "query" no profile is shown; it is asked for all the same, to open the connection before the first
        turn needs it.
        """
        tag = self._tag
        if tag is None:
            return None
        fetch = self._start_fetch(tag)
        await self._wait({fetch}, self._deadline(), self._profile_patience)
        return self._freshest if tag == self._tag and self._wants_profile else None

    async def for_greeting(self) -> Recollection:
        """What to show when the agent speaks although the caller has not said anything."""
        if self._wants_profile and self._freshest is None and self._profile_patience.waits:
            await self.preload()
        return Recollection(profile=self._freshest if self._wants_profile else None)

    async def for_message(self, message_id: str, text: str) -> Recollection:
        """What to show for this message of the caller. Waits until `recall_timeout` at most; never raises."""
        if self._tag is None:
            return Recollection()
        if not text.strip():
            return await self.for_greeting()
        lookup = self._find(message_id, text) or self._begin(self._tag, message_id, text)
        with span("supermemory.recall", "search_memory"):
            await self._wait_for(lookup)
        if lookup.tag != self._tag:
            return Recollection()
        return Recollection(
            profile=self._freshest if self._wants_profile else None,
            hits=self._hits(lookup),
        )

    async def aclose(self) -> None:
        """Stop what still runs. Safe to call twice."""
        self._lookups.clear()
        await self._background.aclose()

    # -- one lookup --------------------------------------------------------------------------------------------

    def _find(self, message_id: str, text: str) -> _Lookup | None:
        for lookup in reversed(self._lookups):
            if message_id in lookup.ids:
                return lookup
        for lookup in reversed(self._lookups):
            if lookup.text == text and not lookup.committed:
                lookup.ids.add(message_id)
                return lookup
        return None

    def _begin(self, tag: str, message_id: str, text: str) -> _Lookup:
        self._stats.recalls += 1
        lookup = _Lookup(tag=tag, text=text, deadline=self._deadline(), ids={message_id})
        if self._wants_search and (self._search_patience.waits or not self._search_in_flight()):
            lookup.search = self._background.start(self._search(tag, text), "Recall")
        if self._wants_profile and self._profile_patience.waits:
            self._fetch = self._fetch or self._start_fetch(tag)
            lookup.profile = self._fetch
        elif self._wants_profile:
            # The probe for an earlier caller ended with the call's binding to this one.
            self._start_probe(tag)
        self._lookups.append(lookup)
        del self._lookups[:-KEPT_LOOKUPS]
        return lookup

    async def _wait_for(self, lookup: _Lookup) -> None:
        if lookup.waited_out:
            return
        awaited: set[asyncio.Task[Any]] = set()
        if lookup.search is not None and self._search_patience.waits:
            awaited.add(lookup.search)
        if lookup.profile is not None and self._profile_patience.waits:
            awaited.add(lookup.profile)
        if not awaited and lookup.pending():
            self._stats.recalls_skipped += 1
        late = await self._wait(awaited, lookup.deadline, None)
        if late and not lookup.waited_out:
            lookup.waited_out = True
            self._stats.recalls_late += 1
            if lookup.search in late:
                self._search_patience.overdue(self._params.recall_timeout)
            if lookup.profile in late:
                self._profile_patience.overdue(self._params.recall_timeout)
            self._start_probe(lookup.tag)

    def _hits(self, lookup: _Lookup) -> tuple[Hit, ...]:
        hits = _result(lookup.search)
        if hits is not None:
            lookup.served = True
            return hits
        # An answer that came too late for the turn before bears on this one more often than nothing does.
        for earlier in reversed(self._lookups):
            if earlier is lookup or not earlier.committed or earlier.tag != lookup.tag:
                continue
            late_hits = None if earlier.served else _result(earlier.search)
            return late_hits or ()
        return ()

    # -- requests ----------------------------------------------------------------------------------------------

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._params.recall_timeout

    async def _wait(
        self, tasks: set[asyncio.Task[Any]], deadline: float, patience: _Patience | None
    ) -> set[asyncio.Task[Any]]:
        """Wait for the tasks until the deadline; the ones that are late are returned and run on.

        `asyncio.wait` leaves the tasks alone when the waiting reply is cancelled: another attempt may need them.
        """
        pending = {task for task in tasks if not task.done()}
        if pending:
            budget = deadline - asyncio.get_running_loop().time()
            _, pending = await asyncio.wait(pending, timeout=max(0.0, budget))
        if pending and patience is not None:
            patience.overdue(self._params.recall_timeout)
            if self._tag is not None:
                self._start_probe(self._tag)
        return pending

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

    async def _search(self, tag: str, text: str) -> tuple[Hit, ...] | None:
        params = self._params
        asked = self._store.search(
            tag,
            text,
            limit=params.search_limit,
            threshold=params.search_threshold,
            mode=SEARCH_MODE,
            timeout=self._late_limit,
        )
        hits = await self._ask(asked, self._search_patience)
        if hits is None:
            return None
        self._profile_patience.service_is_back()
        return tuple(hits)

    @property
    def _late_limit(self) -> float:
        return max(LATE_LIMIT, self._params.recall_timeout)

    async def _ask(self, request: Coroutine[Any, Any, T], patience: _Patience) -> T | None:
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

    def _search_in_flight(self) -> bool:
        return any(lookup.search is not None and not lookup.search.done() for lookup in self._lookups)

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


def _result(task: asyncio.Task[T | None] | None) -> T | None:
    if task is None or not task.done() or task.cancelled():
        return None
    return None if task.exception() is not None else task.result()
