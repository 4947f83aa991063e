"""Which of the turns found make one hit: a readable stretch of a conversation, and nothing twice.

Going down the ranking, a turn next to one that is found already joins it. The first hits hold exactly what was
found; further down, where it is less certain which turn was meant, a hit also bridges a turn in between, and then
begins with the turns around.
"""

from __future__ import annotations

from collections.abc import Iterable

from .conversation import Conversations
from .windows import LONGEST

__all__ = ["Excerpt", "excerpts"]

_MOST_TURNS = 6
_EXACT = 3
"""So many hits bridge nothing."""
_NARROW = 7
"""So many hits hold nothing around what was found: more than a reply has room for."""
_AROUND = 2
"""Turns on either side of the hits after those."""


class Excerpt:
    """Neighbouring slots, or a slot of a passage that is no turn."""

    def __init__(self, best: int, rank: int) -> None:
        self.best = best
        """The slot that was found first, and so says most about the query."""
        self.slots = [best]
        """In reading order."""
        self._rank = rank

    def joined(self, slot: int, conversations: Conversations) -> list[int] | None:
        """The slots it would have with `slot` at one end; None when that is too far away, or too much."""
        first, last = self.slots[0], self.slots[-1]
        before, after = int(conversations.previous[first]), int(conversations.following[last])
        bridged = self._rank >= _EXACT
        if slot == before:
            slots = [slot, *self.slots]
        elif slot == after:
            slots = [*self.slots, slot]
        elif bridged and before >= 0 and slot == conversations.previous[before]:
            slots = [slot, before, *self.slots]
        elif bridged and after >= 0 and slot == conversations.following[after]:
            slots = [*self.slots, after, slot]
        else:
            return None
        length = conversations.place(slots[-1]).stop - conversations.place(slots[0]).start
        return slots if len(slots) <= _MOST_TURNS and length <= LONGEST else None


def excerpts(ranked: Iterable[int], conversations: Conversations, limit: int) -> list[Excerpt]:
    """The first `limit` hits of a ranking of slots, best first; it is read until there would be one more."""
    found: list[Excerpt] = []
    owners: dict[int, Excerpt] = {}
    for slot in ranked:
        if slot in owners:
            continue
        if not conversations.is_turn[slot] or not _join(slot, owners, conversations):
            if len(found) == limit:
                break
            hit = Excerpt(slot, len(found))
            owners[slot] = hit
            if len(found) >= _NARROW and conversations.is_turn[slot]:
                _widen(hit, owners, conversations)
            found.append(hit)
    return found


def _widen(hit: Excerpt, owners: dict[int, Excerpt], conversations: Conversations) -> None:
    """Give a hit what stands around it, as far as no other has it."""
    for _ in range(_AROUND):
        for end, towards in ((0, conversations.previous), (-1, conversations.following)):
            neighbour = int(towards[hit.slots[end]])
            slots = hit.joined(neighbour, conversations) if neighbour >= 0 else None
            if slots is not None and neighbour not in owners:
                hit.slots = slots
                owners[neighbour] = hit


def _join(slot: int, owners: dict[int, Excerpt], conversations: Conversations) -> bool:
    """Give the turn to a hit beside it, the nearest first."""
    before, after = int(conversations.previous[slot]), int(conversations.following[slot])
    around = (before, after, int(conversations.previous[before]), int(conversations.following[after]))
    for neighbour in around:
        excerpt = owners.get(neighbour)
        slots = excerpt.joined(slot, conversations) if excerpt is not None else None
        # What would be bridged may be in another hit; nothing is returned twice.
        if excerpt is None or slots is None or any(owners.get(one, excerpt) is not excerpt for one in slots):
            continue
        excerpt.slots = slots
        owners.update(dict.fromkeys(slots, excerpt))
        return True
    return False
