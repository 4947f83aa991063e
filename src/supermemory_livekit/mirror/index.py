"""The search side of a mirror: an index that is filled and asked on threads of its own, never on the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.background import Background
from supermemory_livekit.retrieval import Embedder, Index, Kind, Passage, Place, Ranked, in_context
from supermemory_livekit.telemetry import describe, logger

__all__ = ["MirrorIndex", "Piece", "VectorCache"]

T = TypeVar("T")

_SLICE = 64
"""Passages added, or embedded, at once. A search waits behind one slice of additions: some 3 ms."""

_STRAGGLERS = 0.02
"""Share of the facts that may wait for their vectors while searches count as semantic."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A text to be found, as a passage of the index and as it is embedded."""

    text: str
    kind: Kind
    at: datetime | None
    place: Place | None
    before: str
    """The piece before it in the same text."""
    key: str

    def passage(self) -> Passage:
        return Passage(self.key, self.text, self.kind, self.at, place=self.place)

    def embedded(self) -> str:
        return in_context(self.text, self.before)


class VectorCache(Protocol):
    """Vectors of texts embedded before. Blocks; nothing in it raises."""

    def get(self, model_id: str, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]: ...

    def put(self, model_id: str, vectors: dict[str, NDArray[np.float32]]) -> None: ...


class MirrorIndex:
    """Full text at once, meaning as soon as the vectors are there.

    One thread adds, discards and searches in the order it is asked, so that a search sees whatever was added
    before it. Another one loads the model and embeds, as long as that takes. Belongs to one event loop.
    """

    def __init__(
        self, load_embedder: Callable[[], Embedder | None], cache: VectorCache | None = None
    ) -> None:
        self._load = load_embedder
        self._cache = cache
        self._embedder: Embedder | None = None
        self._loaded = False
        self._index = Index(self._similarity)
        self._coming: list[dict[str, Piece]] = []
        """Passages that are to be added, by key."""
        self._waiting: dict[str, Piece] = {}
        """Passages without a vector, by key."""
        self._facts: set[str] = set()
        """Keys of the passages that are no call text."""
        self._embedding: asyncio.Task[None] | None = None
        self._background = Background()
        self._closed = threading.Event()
        self._ordered = ThreadPoolExecutor(1, thread_name_prefix="supermemory-mirror")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="supermemory-embed")

    @property
    def semantic(self) -> bool:
        """Searches go by meaning too: there is a model, and nearly all facts have their vectors.

        Call text may still wait for its own: it is mostly found by its words.
        """
        if self._embedder is None:
            return False
        return sum(key in self._facts for key in self._waiting) <= len(self._facts) * _STRAGGLERS

    def start(self) -> None:
        """Load the model, in the background."""
        self._embed_what_waits()

    async def add(self, passages: Sequence[Piece]) -> None:
        """Add passages. Returns when they can be found by their words."""
        left = {passage.key: passage for passage in passages}
        self._coming.append(left)
        try:
            while left and not self._closed.is_set():
                part = [left.pop(key) for key in list(left)[:_SLICE]]
                await self._in_order(self._added(part))
        finally:
            self._coming.remove(left)
        self._embed_what_waits()

    def add_soon(self, passages: Sequence[Piece]) -> None:
        """Add a few passages; a search that is asked for later finds them."""
        if not self._closed.is_set():
            self._ordered.submit(self._added(passages))
            self._embed_what_waits()

    def discard(self, keys: Sequence[str]) -> None:
        """Remove passages. Whoever holds their texts must not show them any more meanwhile."""
        keys = [key for key in keys if not any(left.pop(key, None) for left in self._coming)]
        self._facts.difference_update(keys)
        for key in keys:
            self._waiting.pop(key, None)
        if keys and not self._closed.is_set():
            self._ordered.submit(self._discard, tuple(keys))

    async def search(self, query: str, *, limit: int, threshold: float, now: datetime) -> list[Ranked]:
        """At most `limit` hits, best first. Empty after `close`."""

        def work() -> list[Ranked]:
            embedder = self._embedder
            vector = embedder.embed([query])[0] if embedder is not None else None
            return self._index.search(query, query_vector=vector, limit=limit, threshold=threshold, now=now)

        return [] if self._closed.is_set() else await self._in_order(work)

    def close(self) -> None:
        """Drop everything; what still runs ends by itself within a slice. Safe to call twice."""
        self._closed.set()
        self._background.cancel()
        self._waiting.clear()
        self._index = Index()
        self._facts.clear()
        # What was asked is answered, from the empty index: cancelling it would look like a cancelled reply.
        self._ordered.shutdown(wait=False)
        self._slow.shutdown(wait=False, cancel_futures=True)

    async def aclose(self) -> None:
        self.close()
        await self._background.aclose()

    async def _in_order(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._ordered, work)

    def _added(self, passages: Sequence[Piece]) -> Callable[[], None]:
        index = self._index
        self._facts.update(passage.key for passage in passages if passage.kind == "memory")
        self._waiting.update({passage.key: passage for passage in passages})
        return lambda: index.add(piece.passage() for piece in passages)

    def _discard(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._index.discard(key)

    def _similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        embedder = self._embedder
        return np.zeros_like(cosines) if embedder is None else embedder.similarity(cosines)

    # -- vectors -------------------------------------------------------------------------------------------------

    def _embed_what_waits(self) -> None:
        if self._closed.is_set() or (self._loaded and (self._embedder is None or not self._waiting)):
            return
        if self._embedding is None or self._embedding.done():
            self._embedding = self._background.start(self._embed(), "Embedding the caller's memories")

    async def _embed(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._loaded:
            try:
                self._embedder = await loop.run_in_executor(self._slow, self._load)
            except Exception as error:  # noqa: BLE001 - full text still works
                logger.error("The embedding model cannot be used: %s; searching by words", describe(error))
            self._loaded = True
        embedder = self._embedder
        while embedder is not None and self._waiting and not self._closed.is_set():
            # Facts first: they answer more questions than what was said around them.
            first = sorted(self._waiting.values(), key=lambda passage: passage.kind != "memory")
            part = first[:_SLICE]
            try:
                rows = await loop.run_in_executor(self._slow, self._vectors, embedder, part)
                # The thread that adds sets them too, so that none arrives before its passage.
                await self._in_order(partial(self._set, part, rows))
            finally:
                for passage in part:
                    self._waiting.pop(passage.key, None)

    def _vectors(self, embedder: Embedder, passages: Sequence[Piece]) -> list[NDArray[np.float32] | None]:
        """One per passage. No text goes back with them: asyncio shows results in its debug log."""
        texts = [piece.embedded() for piece in passages]
        cached = self._cache.get(embedder.model_id, texts) if self._cache is not None else {}
        known = {text: vector for text, vector in cached.items() if vector.size == embedder.dimensions}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing and not self._closed.is_set():
            new = dict(zip(missing, embedder.embed(missing), strict=True))
            if self._cache is not None:
                self._cache.put(embedder.model_id, new)
            known = {**known, **new}
        return [known.get(text) for text in texts]

    def _set(self, passages: Sequence[Piece], rows: Sequence[NDArray[np.float32] | None]) -> None:
        for passage, row in zip(passages, rows, strict=True):
            if row is not None:
                self._index.set_vector(passage.key, row)
