"""The end of the caller's last call, as long as the service has made no memories of it.

A caller who rings back a minute later is in the middle of something, and neither their profile nor a memory tells of it
yet. The text of the call does: the service keeps it from the first write on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from supermemory_livekit.errors import ServiceError
from supermemory_livekit.store import Hit, MemoryStore, StoredCall

__all__ = ["MAX_CHARS", "MAX_TURNS", "Tail", "load_tail", "tail_of"]

MAX_TURNS = 12
MAX_CHARS = 1_500
"""Most of a call's end that is shown: about 400 tokens."""

RECENT = timedelta(days=1)
"""How old turns may be that a search has found: it does not tell whether there are memories of them."""

_LOOKED_AT = 5
"""Stored texts among which the last call is; each remembered fact is one too."""

_SEARCHED = 10
_QUERY = "what was said in the last call"

_LINE = re.compile(
    r"^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z\] ((?:Caller|Agent)(?: \([^)\n]*\))?: .+)$", re.MULTILINE
)


@dataclass(frozen=True)
class Tail:
    """The last turns of a call."""

    lines: tuple[str, ...]
    """In the order in which they were said: `Caller: …`, `Agent: …`."""
    at: datetime
    """When the last of them was said, UTC."""


def tail_of(calls: Iterable[StoredCall], *, document_id: str | None, since: datetime) -> Tail | None:
    """The end of the latest of these calls; None when memories were made of it.

    `document_id` is the custom id of this very call, of which only what was said before `since` counts: its part before
    a reconnect.
    """
    latest: tuple[datetime, list[tuple[datetime, str]]] | None = None
    for call in calls:
        before = since if call.custom_id is not None and call.custom_id == document_id else None
        turns = _turns(call.text, before)
        if turns and (latest is None or turns[-1][0] > latest[0]):
            latest = (turns[-1][0], [] if call.processed else turns)
    return _bounded(latest[1]) if latest is not None else None


async def load_tail(
    store: MemoryStore, tag: str, *, document_id: str | None, since: datetime, timeout: float
) -> Tail | None:
    """Ask the service for it: by the list of texts or, where that is refused, by a hybrid search.

    None when there is none, and when the service fails. `timeout`: seconds for each request.
    """
    try:
        calls = await store.latest_calls(tag, limit=_LOOKED_AT, timeout=timeout)
    except (NotImplementedError, ServiceError):
        pass
    else:
        return tail_of(calls, document_id=document_id, since=since)
    try:
        hits = await store.search(tag, _QUERY, limit=_SEARCHED, threshold=0.0, mode="hybrid", timeout=timeout)
    except ServiceError:
        return None
    return _tail_among(hits, since)


def _tail_among(hits: Sequence[Hit], since: datetime) -> Tail | None:
    found = {turn for hit in hits if hit.memory_id is None for turn in _turns(hit.text, since)}
    return _bounded(sorted(turn for turn in found if since - turn[0] <= RECENT))


def _turns(text: str, before: datetime | None) -> list[tuple[datetime, str]]:
    turns = [
        (datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc), match[2])
        for match in _LINE.finditer(text)
    ]
    return [turn for turn in turns if before is None or turn[0] < before]


def _bounded(turns: Sequence[tuple[datetime, str]]) -> Tail | None:
    kept: list[str] = []
    room = MAX_CHARS
    for _, line in reversed(turns[-MAX_TURNS:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if not turns:
        return None
    if not kept:
        # One turn longer than all the room: its end is what the next call goes on from.
        kept = ["… " + turns[-1][1][-(MAX_CHARS - 2) :]]
    return Tail(tuple(reversed(kept)), turns[-1][0])
