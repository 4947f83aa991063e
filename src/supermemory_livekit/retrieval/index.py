"""An index of one caller's passages: full text and meaning, blended into one similarity."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .conversation import FEATURES, Conversations, Place
from .embedding import calibrated
from .excerpts import Excerpt, excerpts
from .fulltext import FullText

__all__ = ["Index", "Kind", "Passage", "Ranked"]

Kind = Literal["memory", "chunk"]
"""A fact, or raw text of a call."""

_KINDS: tuple[Kind, ...] = ("memory", "chunk")
_EMPTY = -1

# similarity = 1 - (1 - trust in meaning * meaning) * (1 - trust in words * words ** power), per kind:
# either is enough, and together they are stronger. Facts are asked for in other words than they are
# stored in, so that a word or two in common says little about a fact, but everything that was asked for
# says a lot. Call text is found by its words, and its meaning is blurred by all that is said besides.
# A turn whose place in its conversation is known is judged by `Conversations.similarity` instead.
_MEANING_TRUST = (1.0, 0.5)
_WORDS_TRUST = (0.8, 0.8)
_WORDS_POWER = (2.0, 1.0)
# An old passage loses at most this share: enough to settle a tie, not to lift noise. Similarities of turns lie
# closer together, and what was said long ago is asked for as often.
_AGEING = 0.03
_AGEING_OF_TURNS = 0.005
_AGEING_DAYS = 60.0
_READ_PER_HIT = 16  # passages of the ranking that are read first for each hit asked for

_COVERED, _SPEAKER, _TIME, _DATE = (FEATURES.index(name) for name in ("covered", "speaker", "time", "date"))


@dataclass(frozen=True, eq=False)
class Passage:
    """One text to be found."""

    key: str
    text: str
    kind: Kind
    at: datetime | None = None
    """When it was said; without a time zone it is taken as UTC."""
    vector: NDArray[np.float32] | None = None
    """One row of `Embedder.embed`; None for full text alone."""
    place: Place | None = None
    """Where it stands in the text it is a piece of, so that neighbouring turns are known and found as one."""


@dataclass(frozen=True)
class Ranked:
    """One hit."""

    key: str
    similarity: float
    """From 0 (nothing in common) to 1. Clearly relevant from about 0.5, unrelated near or below 0.1."""
    keys: tuple[str, ...]
    """All passages of the hit in reading order: `key` alone, or neighbouring turns with `key` among them."""


class Index:
    """Passages by key. Safe for any number of threads: one lock is held for the length of a call."""

    def __init__(self, similarity: Callable[[NDArray[np.float32]], NDArray[np.float32]] = calibrated) -> None:
        """`similarity` maps cosines to 0..1: `Embedder.similarity` of the model that made the vectors."""
        self._similarity = similarity
        self._lock = threading.Lock()
        self._slots: dict[str, int] = {}
        self._keys: list[str] = []
        self._free: list[int] = []
        self._kinds = np.full(0, _EMPTY, dtype=np.int8)
        self._times = np.zeros(0, dtype=np.float64)
        self._orders = np.zeros(0, dtype=np.int64)
        self._vectors: NDArray[np.float32] | None = None
        self._has_vector = np.zeros(0, dtype=np.bool_)
        self._fulltext = FullText()
        self._conversations = Conversations()
        self._order = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, passages: Iterable[Passage]) -> None:
        """Add passages; one whose key is known takes the place of the old one.

        `ValueError` when a vector differs in length from the first: they are not of one model.
        """
        with self._lock:
            for passage in passages:
                self._check(passage.vector)
                self._discard(passage.key)
                self._put(passage)

    def set_vector(self, key: str, vector: NDArray[np.float32]) -> None:
        """Give a passage its vector after it was added; a key that is gone meanwhile is left out.

        `ValueError` when the vector differs in length from the first.
        """
        with self._lock:
            slot = self._slots.get(key)
            if slot is not None:
                self._check(vector)
                self._put_vector(slot, vector)

    def discard(self, key: str) -> None:
        """Remove the passage with this key, if there is one."""
        with self._lock:
            self._discard(key)

    def search(
        self,
        query: str,
        *,
        query_vector: NDArray[np.float32] | None = None,
        limit: int,
        threshold: float,
        kinds: Collection[Kind] = _KINDS,
        now: datetime | None = None,
    ) -> list[Ranked]:
        """At most `limit` hits with `similarity >= threshold` and above 0, best first, newest of equals
        first. Neighbouring turns that are found make one hit, as similar as the best of them.

        Without `query_vector` full text decides alone; a blank query finds nothing. Age counts from
        `now`, else from the newest passage.
        """
        with self._lock:
            if limit <= 0 or not self._slots or not query.strip():
                return []
            scores = self._similarities(query, query_vector) * self._ageing(now)
            wanted = np.isin(self._kinds, [_KINDS.index(kind) for kind in set(kinds)])
            found = np.flatnonzero(wanted & (scores > 0) & (scores >= threshold))
            return [
                Ranked(
                    self._keys[hit.best],
                    float(scores[hit.best]),
                    tuple(self._keys[slot] for slot in hit.slots),
                )
                for hit in self._excerpts(found, scores, limit)
            ]

    def explain(
        self,
        query: str,
        keys: Collection[str],
        *,
        query_vector: NDArray[np.float32] | None = None,
        now: datetime | None = None,
    ) -> dict[str, dict[str, float]]:
        """What the similarities of a `search` with the same arguments are made of, for those of `keys` that are here.

        By name, each from 0 to 1: `words`, how much of the query the passage says; `meaning`, how near they are, left
        out where the passage or the query has no vector; `age`, the share of its similarity that its age leaves it.
        A turn of a conversation also has `context`, how much is said by it and the turns around it; `speaker`, 0 when
        the query asks for somebody else; and `time`, 0 when the query asks when and it does not say, or names a date
        on which it was not said.
        """
        with self._lock:
            slots = {key: self._slots[key] for key in keys if key in self._slots}
            if not slots:
                return {}
            meaning, ageing = self._meaning(query_vector), self._ageing(now)
            coverage = self._fulltext.coverage(query)
            of_turns = self._conversations.features(query, self._fulltext, self._known(meaning))
            parts: dict[str, dict[str, float]] = {}
            for key, slot in slots.items():
                part = {"words": float(coverage[slot])}
                if self._conversations.is_turn[slot]:
                    part["context"] = min(1.0, float(of_turns[_COVERED][slot]))
                    # Counted from 0 down where they speak against it.
                    part["speaker"] = 1 + float(of_turns[_SPEAKER][slot])
                    part["time"] = 1 + float(min(of_turns[_TIME][slot], of_turns[_DATE][slot]))
                if meaning is not None and self._has_vector[slot]:
                    part["meaning"] = float(meaning[slot])
                parts[key] = {**part, "age": float(ageing[slot])}
            return parts

    def _check(self, vector: NDArray[np.float32] | None) -> None:
        if vector is not None and self._vectors is not None and vector.size != self._vectors.shape[1]:
            raise ValueError(f"vector of {vector.size} numbers in an index of {self._vectors.shape[1]}")

    def _meaning(self, query_vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        if query_vector is None or self._vectors is None:
            return None
        # Not `@`: BLAS would share so small a product among threads that then wait for each other on a busy
        # machine (12 ms instead of 0.3 ms were seen).
        cosines = np.einsum("ij,j->i", self._vectors, np.ravel(query_vector))
        return np.where(self._has_vector, self._similarity(cosines), 0).astype(np.float32)

    def _similarities(self, query: str, query_vector: NDArray[np.float32] | None) -> NDArray[np.float32]:
        meaning = self._meaning(query_vector)
        scores = self._blend(self._fulltext.coverage(query), meaning)
        if self._conversations:
            of_turns = self._conversations.similarity(query, self._fulltext, self._known(meaning))
            scores = np.where(self._conversations.is_turn[:-1], of_turns, scores)
        return scores

    def _known(self, meaning: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """NaN for what has no vector."""
        return None if meaning is None else np.where(self._has_vector, meaning, np.float32(np.nan))

    def _excerpts(self, found: NDArray[np.intp], scores: NDArray[np.float32], limit: int) -> list[Excerpt]:
        # Few of many are read: the best are sorted first, the others only where those make too few hits.
        some = limit * _READ_PER_HIT
        if len(found) > some:
            best = found[np.argpartition(-scores[found], some)[:some]]
            hits = excerpts(self._ranked(best, scores), self._conversations, limit)
            if len(hits) == limit:
                return hits
        return excerpts(self._ranked(found, scores), self._conversations, limit)

    def _ranked(self, found: NDArray[np.intp], scores: NDArray[np.float32]) -> list[int]:
        ranked: list[int] = found[np.lexsort((-self._orders[found], -scores[found]))].tolist()
        return ranked

    def _blend(
        self, coverage: NDArray[np.float32], meaning: NDArray[np.float32] | None
    ) -> NDArray[np.float32]:
        if meaning is None:
            return coverage
        words = self._of_kind(_WORDS_TRUST) * coverage ** self._of_kind(_WORDS_POWER)
        blend = 1 - (1 - self._of_kind(_MEANING_TRUST) * meaning) * (1 - words)
        return np.where(self._has_vector, blend, coverage).astype(np.float32)

    def _of_kind(self, values: tuple[float, float]) -> NDArray[np.float32]:
        return np.array(values, dtype=np.float32)[self._kinds]

    def _ageing(self, now: datetime | None) -> NDArray[np.float32]:
        newest = _seconds(now) if now is not None else float(np.max(self._times))
        if newest == -np.inf:
            return np.ones(len(self._times), dtype=np.float32)
        days = np.maximum(newest - self._times, 0) / 86_400
        most = np.where(self._conversations.is_turn[:-1], _AGEING_OF_TURNS, _AGEING)
        left: NDArray[np.float32] = (1 - most * (1 - np.exp(-days / _AGEING_DAYS))).astype(np.float32)
        return left

    def _put(self, passage: Passage) -> None:
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self._slots[passage.key] = slot
        self._keys[slot] = passage.key
        self._kinds[slot] = _KINDS.index(passage.kind)
        self._times[slot] = -np.inf if passage.at is None else _seconds(passage.at)
        self._order += 1
        self._orders[slot] = self._order
        self._fulltext.put(slot, passage.text)
        if passage.place is not None:
            self._conversations.put(slot, passage.text, passage.place)
        if passage.vector is not None:
            self._put_vector(slot, passage.vector)

    def _put_vector(self, slot: int, vector: NDArray[np.float32]) -> None:
        if self._vectors is None:
            self._vectors = np.zeros((len(self._keys), vector.size), dtype=np.float32)
        self._vectors[slot] = np.ravel(vector)
        self._has_vector[slot] = True

    def _discard(self, key: str) -> None:
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self._fulltext.clear(slot)
        self._conversations.clear(slot)
        self._kinds[slot] = _EMPTY
        self._times[slot] = -np.inf
        self._has_vector[slot] = False
        self._free.append(slot)

    def _grow(self) -> None:
        before = len(self._keys)
        after = max(64, before * 2)
        extra = after - before
        self._keys.extend([""] * extra)
        self._kinds = np.concatenate([self._kinds, np.full(extra, _EMPTY, dtype=np.int8)])
        self._times = np.concatenate([self._times, np.full(extra, -np.inf)])
        self._orders = np.concatenate([self._orders, np.zeros(extra, dtype=np.int64)])
        self._has_vector = np.concatenate([self._has_vector, np.zeros(extra, dtype=np.bool_)])
        if self._vectors is not None:
            self._vectors = np.concatenate(
                [self._vectors, np.zeros((extra, self._vectors.shape[1]), dtype=np.float32)]
            )
        self._fulltext.grow(after)
        self._conversations.grow(after)
        self._free.extend(range(after - 1, before - 1, -1))


def _seconds(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
