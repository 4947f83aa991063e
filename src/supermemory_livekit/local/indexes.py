"""Search indexes in memory, one per tag, brought up to date from the file whenever the tag has changed.

The file's version counter tells whether they are current, so it does not matter which process made the
change.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Embedder, Index, Kind, Passage, Ranked

from .container import Container
from .texts import from_ms, now_ms

__all__ = ["Indexes", "Query"]

_MAX_TAGS = 1_000
_MAX_PASSAGES = 120_000
"""Over all tags: about 250 MB of vectors. To build an index anew costs a caller's next search some 15 ms."""


class Query:
    """A question, with its vector if there is a model."""

    def __init__(self, text: str, encoded: tuple[Embedder, NDArray[np.float32]] | None) -> None:
        self.text = text
        self.embedder: Embedder | None = encoded[0] if encoded else None
        self.vector: NDArray[np.float32] | None = encoded[1] if encoded else None


class _Entry:
    def __init__(self, embedder: Embedder | None) -> None:
        self.lock = threading.Lock()
        self.model_id = embedder.model_id if embedder is not None else None
        self.index = Index(embedder.similarity) if embedder is not None else Index()
        self.version = 0
        self.keys: set[str] = set()
        self.expiries: list[tuple[int, str]] = []
        self.expires: dict[str, int] = {}

    def bring_up_to(self, container: Container) -> None:
        self._drop_expired()
        if container.version > self.version:
            for row in container.passages(since=self.version):
                key = _key(row.kind, row.id)
                vector = row.vector if row.vector_model == self.model_id else None
                self.index.add([Passage(key, row.text, row.kind, from_ms(row.at), vector, row.place)])
                self.keys.add(key)
                self.expires.pop(key, None)
                if row.forget_after is not None:
                    self.expires[key] = row.forget_after
                    heapq.heappush(self.expiries, (row.forget_after, key))
            # Most changes only add. What went is looked for when there is more here than in the file.
            if len(self.keys) != container.passage_count():
                current = {_key(row["kind"], row["id"]) for row in container.passage_ids()}
                for key in self.keys - current:
                    self._discard(key)
            self.version = container.version

    def _drop_expired(self) -> None:
        now = now_ms()
        while self.expiries and self.expiries[0][0] <= now:
            at, key = heapq.heappop(self.expiries)
            if self.expires.get(key) == at:
                self._discard(key)

    def _discard(self, key: str) -> None:
        self.index.discard(key)
        self.keys.discard(key)
        self.expires.pop(key, None)


class Indexes:
    """The most recently used indexes. Thread-safe; blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, _Entry] = OrderedDict()

    def search(
        self,
        container: Container,
        query: Query,
        *,
        kinds: Collection[Kind],
        limit: int | None,
        threshold: float,
    ) -> list[Ranked]:
        """Ids with their similarity, best first; `limit` None for all that reach the threshold.

        An id may be gone from the file meanwhile: the caller reads the rows and leaves out what is not there.
        """
        if not container.tag_id:
            return []
        entry = self._entry(container.tag_id, query.embedder)
        with entry.lock:
            entry.bring_up_to(container)
            ranked = entry.index.search(
                query.text,
                query_vector=query.vector,
                limit=len(entry.keys) if limit is None else limit,
                threshold=threshold,
                kinds=kinds,
                now=from_ms(now_ms()),
            )
        self._shrink()
        return ranked

    def explain(
        self, container: Container, query: Query, keys: Collection[str]
    ) -> dict[str, dict[str, float]]:
        """What similarities are made of, see `Index.explain`; for those of `keys` that can be found."""
        if not container.tag_id:
            return {}
        entry = self._entry(container.tag_id, query.embedder)
        with entry.lock:
            entry.bring_up_to(container)
            return entry.index.explain(query.text, keys, query_vector=query.vector, now=from_ms(now_ms()))

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def _entry(self, tag_id: int, embedder: Embedder | None) -> _Entry:
        with self._lock:
            entry = self._entries.get(tag_id)
            if entry is None or entry.model_id != (embedder.model_id if embedder is not None else None):
                entry = self._entries[tag_id] = _Entry(embedder)
            self._entries.move_to_end(tag_id)
            return entry

    def _shrink(self) -> None:
        with self._lock:
            while len(self._entries) > 1 and (
                len(self._entries) > _MAX_TAGS
                or sum(len(entry.keys) for entry in self._entries.values()) > _MAX_PASSAGES
            ):
                self._entries.popitem(last=False)


def _key(kind: str, row_id: str) -> str:
    return f"{kind}:{row_id}"
