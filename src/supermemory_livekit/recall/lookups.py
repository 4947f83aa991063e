"""The recalls of a call by user message, and the searches that one turn may cost the service.

LiveKit may run `llm_node` several times for one turn of the caller. The identity rule:

- the same message id is the same turn (an adopted preemptive message keeps its id, also when its text is rewritten);
- the same words under another id are the same turn only while no message with these words has been committed, since a
  discarded attempt is never committed and the same words in a later turn deserve a new recall.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from supermemory_livekit.events import Source
from supermemory_livekit.store import Hit, Profile

from .early import Chosen, content

__all__ = ["MOST_SEARCHES", "Asked", "Lookup", "Lookups", "Search", "TurnSearches", "merged", "result_of"]

T = TypeVar("T")

Search: TypeAlias = "asyncio.Task[tuple[Hit, ...] | None]"

MOST_SEARCHES = 4
"""Searches of the service for one turn of the caller. A message costs two at most: one for unfinished words, one for
its own. A turn in several segments has a message, discarded but for the last, after each; what the later ones lack
then is chosen from what the first ones found."""

KEPT = 8
"""Recalls kept. A turn needs one, its discarded attempts up to three more."""

SAME_TURN = 0.5
"""Share of the content of searched words that a message has to hold, or they were said in another turn: one that an
agent's hook discarded is never committed. Less than all, since a recogniser mends what it heard."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A search for words of the turn that is being spoken."""

    words: str
    search: Search

    @property
    def may_serve(self) -> bool:
        """Whether it is still to be answered, or was answered; a failed one is worth another."""
        return not self.search.done() or result_of(self.search) is not None


class TurnSearches:
    """What the service was asked for the turn that is being spoken."""

    def __init__(self) -> None:
        self._asked: list[Asked] = []

    def __bool__(self) -> bool:
        return bool(self._asked)

    @property
    def spent(self) -> bool:
        """No further search is due to this turn."""
        return len(self._asked) >= MOST_SEARCHES

    def add(self, words: str, search: Search) -> None:
        self._asked.append(Asked(words, search))

    def clear(self) -> None:
        """The next turn begins."""
        self._asked.clear()

    def nearest(self, text: str) -> Asked | None:
        """The search that can still serve and whose words hold most of what `text` says, the later one among equals."""
        said = content(text)
        self._asked = [
            one
            for one in self._asked
            if len(said & content(one.words)) >= SAME_TURN * len(content(one.words))
        ]
        able = [one for one in reversed(self._asked) if one.may_serve]
        return max(able, key=lambda one: len(said & content(one.words)), default=None)


@dataclass(eq=False)
class Lookup:
    """The recall of one user message."""

    tag: str
    text: str
    started: float
    """On the clock of the event loop."""
    ids: set[str]
    """Ids of the attempts that share it."""
    mirrored: Search | None = None
    search: Search | None = None
    """The service's search for these words."""
    early: asyncio.Task[Chosen | None] | None = None
    """What these words choose from what the service found for unfinished ones."""
    profile: asyncio.Task[Profile | None] | None = None
    soft: bool = True
    """Whether to wait a moment for parts that have a substitute: not while the service owes other answers."""
    committed: bool = False
    waited_out: bool = False
    """The budget has passed once; nobody waits for this lookup again."""
    served: bool = False
    """Its hits have been shown."""
    told: bool = False
    """Whoever watches the call knows how it ended."""

    def has_hits(self) -> bool:
        """Whether there is something to show without the service's answer to these words."""
        return bool(result_of(self.mirrored)) or self.early_tells()

    def early_tells(self) -> bool:
        """Whether what was found for unfinished words can stand for the rest."""
        chosen = result_of(self.early)
        return chosen is not None and chosen.telling and bool(chosen.hits)

    def pending(self) -> bool:
        return any(task is not None and not task.done() for task in (self.search, self.early, self.profile))

    def failed(self) -> bool:
        """Whether a part has ended without an answer."""
        parts = (self.mirrored, self.search, self.early, self.profile)
        return any(part is not None and part.done() and result_of(part) is None for part in parts)

    def answers(self) -> dict[Source, tuple[Hit, ...]]:
        """What was found, by each part that has an answer, the nearest part first."""
        chosen = result_of(self.early)
        service = result_of(self.search)
        found: dict[Source, tuple[Hit, ...] | None] = {
            "mirror": result_of(self.mirrored),
            "service": service,
            "early": chosen.hits if service is None and chosen is not None else None,
        }
        return {source: hits for source, hits in found.items() if hits is not None}


class Lookups:
    """The latest recalls of the bound caller."""

    def __init__(self) -> None:
        self._kept: list[Lookup] = []

    def find(self, message_id: str, text: str) -> Lookup | None:
        """The recall that this message shares, by the identity rule."""
        for lookup in reversed(self._kept):
            if message_id in lookup.ids:
                return lookup
        for lookup in reversed(self._kept):
            if lookup.text == text and not lookup.committed:
                lookup.ids.add(message_id)
                return lookup
        return None

    def add(self, lookup: Lookup) -> None:
        self._kept.append(lookup)
        del self._kept[:-KEPT]

    def committed(self, message_id: str) -> None:
        for lookup in self._kept:
            if message_id in lookup.ids:
                lookup.committed = True

    def clear(self) -> None:
        self._kept.clear()

    def owed(self) -> bool:
        """Whether the service owes the answer to a search of an earlier turn."""
        return any(
            lookup.committed and lookup.search is not None and not lookup.search.done()
            for lookup in self._kept
        )

    def late_hits(self, tag: str | None, besides: Lookup | None) -> tuple[Hit, ...]:
        """What came too late for the turn before: it bears on this one more often than nothing does."""
        for earlier in reversed(self._kept):
            if earlier is not besides and earlier.committed and earlier.tag == tag:
                late = None if earlier.served else result_of(earlier.search)
                return late or ()
        return ()


def merged(answers: Sequence[tuple[Hit, ...]], limit: int) -> tuple[Hit, ...]:
    """The best of several answers, each memory and each text once."""
    if len(answers) == 1:
        return answers[0]
    best = sorted((hit for hits in answers for hit in hits), key=lambda hit: -hit.similarity)
    seen: set[str] = set()
    kept: list[Hit] = []
    for hit in best:
        names = {hit.text, hit.memory_id or hit.text}
        if not names & seen:
            kept.append(hit)
        seen |= names
    return tuple(kept[:limit])


def result_of(task: asyncio.Task[T | None] | None) -> T | None:
    """The answer of a task that has one; None while it runs, and after it failed."""
    if task is None or not task.done() or task.cancelled():
        return None
    return None if task.exception() is not None else task.result()
