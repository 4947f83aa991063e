"""What a mirror holds: memories, facts remembered in this call, and the text of calls, as passages. Pure.

Everything here is decided by what the service listed and what the call did: which memories fit, what a newer
one replaces, and what must not come back once the caller had it forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count

from supermemory_livekit.recall.last_call import Tail, tail_of
from supermemory_livekit.retrieval import Kind, Place, norm_form, turns
from supermemory_livekit.store import MemoryPage, Profile, StoredCall, StoredMemory
from supermemory_livekit.transcript import Role, fold, is_blank

from .index import Piece

__all__ = ["Bounds", "Changes", "Contents", "Held"]

_HELD_BACK = 6
"""Turns of this call that are not searched yet: the model has them before it, the question itself among them."""

_TAIL = 200_000
"""Characters of one stored text that are looked at, from its end: hours of talk."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z\]", re.MULTILINE)


@dataclass(frozen=True)
class Bounds:
    """Most that a mirror holds of one caller."""

    memories: int = 2_000
    memory_bytes: int = 4_000_000
    """Text of memories in UTF-8."""
    calls: int = 20
    """Stored texts that are looked at, the latest: calls, and facts remembered in them."""
    passages: int = 1_000
    """Turns of earlier calls, and pieces of other stored text; this call has as many of its own."""


@dataclass(frozen=True)
class Held:
    """One passage and what is known of it."""

    text: str
    kind: Kind
    at: datetime | None = None
    """When it was said or changed, with time zone."""
    memory_id: str | None = None
    expires_at: datetime | None = None
    place: Place | None = None
    """Where it stands in the text that it is a piece of."""
    before: str = ""
    """The piece before it, which it may answer."""

    @property
    def norm(self) -> str:
        """The same for texts that are one fact."""
        return norm_form(self.text)


@dataclass(frozen=True)
class Changes:
    """What an index has to do to follow the contents."""

    add: tuple[Piece, ...] = ()
    discard: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Remembered:
    text: str
    receipt: str | None
    at: datetime


class Contents:
    """Passages by key, and the rules. `changes` tells what has changed since it was asked last."""

    def __init__(self, bounds: Bounds, *, document_id: str | None, since: datetime) -> None:
        """`document_id`: custom id of this call's document, whose lines from `since` on are known already."""
        self._bounds = bounds
        self._document_id = document_id
        self._since = since
        self._passages: dict[str, Held] = {}
        self._owners: dict[tuple[str, str], tuple[str, ...]] = {}
        """Keys of the passages of one memory, remembered fact, stored text, or turn of this call."""
        self._keys = count()
        self._added: dict[str, Piece] = {}
        self._discarded: list[str] = []
        self._memories: dict[str, StoredMemory] = {}
        self._remembered: dict[str, _Remembered] = {}
        self._forgotten_ids: set[str] = set()
        self._forgotten_norms: set[str] = set()
        self._profile: Profile | None = None
        self.tail: Tail | None = None
        """The end of the last call, while there are no memories of it."""
        self._turns: list[tuple[datetime, str]] = []
        self._heard: list[tuple[datetime, tuple[str, str]]] = []
        """When the turns of this call that are held were said, and their owners."""
        self._heard_chars = 0
        self.memories_fit = True
        """All memories that were listed are held."""
        self._dropped = False
        self.calls_fit = True
        """The text of all calls that are not turned into memories yet is held."""

    def __len__(self) -> int:
        return len(self._passages)

    def get(self, key: str) -> Held | None:
        """The passage with this key, if it is still to be shown."""
        return self._passages.get(key)

    def changes(self) -> Changes:
        # The newest last, as an index prefers them among equals.
        added = sorted(self._added.values(), key=lambda passage: passage.at or _LONG_AGO)
        made = Changes(tuple(added), tuple(self._discarded))
        self._added = {}
        self._discarded = []
        return made

    # -- what the service says -----------------------------------------------------------------------------------

    def knows(self, memory: StoredMemory) -> bool:
        """Whether this memory is held as it is listed."""
        return self._memories.get(memory.id) == memory

    def take(self, page: MemoryPage) -> None:
        """Follow one page of the list: add and replace, drop what is gone, keep the newest and the static ones."""
        for identifier in (*page.gone, *page.replaced):
            self._memories.pop(identifier, None)
        for memory in page.entries:
            if self._is_forgotten(memory):
                continue
            self._memories[memory.id] = memory
            self._supersede(memory)
        self._choose()

    def begin(self) -> None:
        """A whole list begins."""
        self._dropped = False

    def keep_only(self, identifiers: set[str]) -> None:
        """A whole list has ended: drop the memories that it did not show."""
        self._memories = {one: memory for one, memory in self._memories.items() if one in identifiers}
        self._choose()
        self.memories_fit = not self._dropped

    def take_calls(self, calls: Sequence[StoredCall]) -> None:
        """Hold the text of these calls, those first that are not turned into memories yet, and of no others."""
        # Of what was forgotten in this call nothing is shown again, and a call's end may hold it.
        forgot = self._forgotten_ids or self._forgotten_norms
        self.tail = None if forgot else tail_of(calls, document_id=self._document_id, since=self._since)
        room = self._bounds.passages
        self.calls_fit = True
        kept: set[tuple[str, str]] = set()
        for call in sorted(calls, key=lambda one: one.processed):
            pieces = self._pieces(call)
            if len(pieces) > room or len(call.text) > _TAIL:
                self.calls_fit = self.calls_fit and call.processed
                # The end of a long call bears on the next one more than its beginning.
                pieces = pieces[max(0, len(pieces) - room) :]
            room -= len(pieces)
            owner = ("call", call.id)
            kept.add(owner)
            self._put(owner, pieces)
        if calls and len(calls) >= self._bounds.calls and not any(call.processed for call in calls):
            self.calls_fit = False
        for owner in [one for one in self._owners if one[0] == "call" and one not in kept]:
            self._put(owner, ())

    @property
    def has_calls(self) -> bool:
        """Some text of calls is held that the service keeps."""
        return any(owner[0] == "call" for owner in self._owners)

    def take_profile(self, profile: Profile) -> None:
        self._profile = profile

    @property
    def profile(self) -> Profile | None:
        """The loaded profile without what was forgotten since, with what was remembered since. None before it is
        loaded."""
        if self._profile is None:
            return None
        static = self._shown(self._profile.static)
        dynamic = self._shown(self._profile.dynamic)
        there = {norm_form(line) for line in (*static, *dynamic)}
        new = tuple(one.text for norm, one in reversed(list(self._remembered.items())) if norm not in there)
        return Profile(static=static, dynamic=(*new, *dynamic))

    # -- what the call does --------------------------------------------------------------------------------------

    def remembered(self, text: str, receipt: str | None, at: datetime) -> None:
        """A fact was stored: hold it until the list shows the memory that was made of it.

        Also when such a memory is held already: the next list may show that it is long gone.
        """
        norm = norm_form(text)
        self._forgotten_norms.discard(norm)
        self._remembered[norm] = _Remembered(text, receipt, at)
        self._put(("fact", norm), [Held(text, "memory", at)])

    def forgotten(self, *, memory_id: str | None, text: str | None) -> None:
        """A fact is forgotten, for as long as this mirror lives, unless it is remembered again."""
        self.tail = None
        norms = {norm_form(text)} if text else set[str]()
        if memory_id:
            self._forgotten_ids.add(memory_id)
            memory = self._memories.get(memory_id)
            if memory is not None:
                norms.add(norm_form(memory.text))
        self._forgotten_norms |= norms
        for norm in norms:
            self._remembered.pop(norm, None)
            self._put(("fact", norm), ())
        self._memories = {
            one: memory for one, memory in self._memories.items() if not self._is_forgotten(memory)
        }
        self._choose()
        for owner in [one for one in self._owners if one[0] == "call"]:
            pieces = [self._passages[key] for key in self._owners[owner]]
            self._put(owner, [piece for piece in pieces if piece.norm not in norms])

    def heard(self, role: Role, text: str, at: datetime) -> None:
        """A turn of this call. It is held once the model has it no longer right before it."""
        text = fold(text)
        if is_blank(text):
            return
        stamp = at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._turns.append((at, f"[{stamp}] {role.capitalize()}: {text}"))
        while len(self._turns) > _HELD_BACK:
            moment, line = self._turns.pop(0)
            owner = ("heard", str(next(self._keys)))
            self._put(owner, _cut(line, moment, document="heard", begins=self._heard_chars))
            self._heard_chars += len(line) + 1
            self._heard.append((moment, owner))
        while sum(len(self._owners[owner]) for _, owner in self._heard) > self._bounds.passages:
            self._put(self._heard.pop(0)[1], ())

    def unheard(self, moments: Collection[datetime]) -> None:
        """Turns of this call, said at these moments, that are to be shown no more."""
        self._turns = [turn for turn in self._turns if turn[0] not in moments]
        for _, owner in [one for one in self._heard if one[0] in moments]:
            self._put(owner, ())
        self._heard = [one for one in self._heard if one[0] not in moments]

    # -- passages ------------------------------------------------------------------------------------------------

    def _is_forgotten(self, memory: StoredMemory) -> bool:
        if memory.id in self._forgotten_ids:
            return True
        return bool(self._forgotten_norms) and norm_form(memory.text) in self._forgotten_norms

    def _supersede(self, memory: StoredMemory) -> None:
        if not self._remembered:
            return
        norm = norm_form(memory.text)
        made = [
            known
            for known, fact in self._remembered.items()
            if known == norm or (fact.receipt is not None and fact.receipt in memory.documents)
        ]
        for known in made:
            del self._remembered[known]
            self._put(("fact", known), ())

    def _choose(self) -> None:
        """Keep what fits: static ones first, and of each kind what changed last."""
        ranked = sorted(self._memories.values(), key=_age)
        ranked.sort(key=lambda memory: not memory.static)
        room = self._bounds.memory_bytes
        chosen: dict[str, StoredMemory] = {}
        for memory in ranked[: self._bounds.memories]:
            room -= len(memory.text.encode("utf-8", "surrogatepass"))
            if room < 0:
                break
            chosen[memory.id] = memory
        if len(chosen) < len(self._memories):
            self._dropped = True
            self.memories_fit = False
        self._memories = chosen
        for owner in [one for one in self._owners if one[0] == "memory" and one[1] not in chosen]:
            self._put(owner, ())
        for memory in chosen.values():
            at = memory.said_at or memory.updated_at
            held = Held(memory.text, "memory", at, memory.id, memory.expires_at)
            self._put(("memory", memory.id), (held,))

    def _pieces(self, call: StoredCall) -> Sequence[Held]:
        if call.custom_id is None and call.processed:
            # A remembered fact: its memory is in the list, unless it was forgotten.
            return ()
        text = call.text
        if call.custom_id is not None and call.custom_id == self._document_id:
            text = _before(text, self._since)
        if len(text) > _TAIL:
            text = text[text.find("\n", len(text) - _TAIL) + 1 :][-_TAIL:]
        kind: Kind = "chunk" if call.custom_id is not None or _STAMP.match(text) else "memory"
        pieces = _cut(text, call.updated_at, kind, document=call.id)
        if not self._forgotten_norms:
            return pieces
        return [piece for piece in pieces if piece.norm not in self._forgotten_norms]

    def _put(self, owner: tuple[str, str], passages: Iterable[Held]) -> None:
        """Give `owner` these passages in place of those that it has."""
        new = tuple(passages)
        keys = self._owners.get(owner, ())
        if tuple(self._passages[key] for key in keys) == new:
            return
        for key in keys:
            del self._passages[key]
            if self._added.pop(key, None) is None:
                self._discarded.append(key)
        self._owners.pop(owner, None)
        if new:
            # A key is never used twice, so that a vector which comes late is not given to another text.
            named = {f"{next(self._keys)}": passage for passage in new}
            self._owners[owner] = tuple(named)
            self._passages |= named
            self._added |= {
                key: Piece(held.text, held.kind, held.at, held.place, held.before, key)
                for key, held in named.items()
            }

    def _shown(self, lines: Iterable[str]) -> tuple[str, ...]:
        if not self._forgotten_norms:
            return tuple(lines)
        return tuple(line for line in lines if norm_form(line) not in self._forgotten_norms)


def _age(memory: StoredMemory) -> float:
    """Greater for what changed earlier."""
    return -memory.updated_at.timestamp() if memory.updated_at is not None else 0.0


def _cut(
    text: str, at: datetime | None, kind: Kind = "chunk", *, document: str, begins: int = 0
) -> list[Held]:
    """Pieces of a stored text, or of the part of one that begins at this character."""
    pieces: list[Held] = []
    before = ""
    for start, stop in turns(text):
        piece = text[start:stop].strip()
        place = Place(document, begins + start, begins + stop)
        pieces.append(Held(piece, kind, _said_at(piece) or at, place=place, before=before))
        before = piece
    return pieces


def _said_at(text: str) -> datetime | None:
    match = _STAMP.search(text)
    return _moment(match[1]) if match is not None else None


def _before(text: str, since: datetime) -> str:
    """The text up to the first line that was said at `since` or later."""
    for match in _STAMP.finditer(text):
        moment = _moment(match[1])
        if moment is not None and moment >= since:
            return text[: match.start()]
    return text


def _moment(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
