"""A mirror over the scripted store, with a model so small that tests can read it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.mirror.mirror import Mirror
from supermemory_livekit.store import StoredMemory
from supermemory_livekit.testing import ScriptedStore

__all__ = ["NOW", "TAG", "WordModel", "facts", "found", "opened", "settled", "until"]

TAG = "caller-7"
NOW = datetime(2026, 11, 29, 17, 0, tzinfo=timezone.utc)


class WordModel:
    """Texts with common words, or words that mean the same, are near each other."""

    model_id = "words-1"
    dimensions = 64
    synonyms = {"dwelling": "home", "hound": "dog"}  # noqa: RUF012

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded.extend(texts)
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", " ").split():
                row[zlib.crc32(self.synonyms.get(word, word).encode()) % self.dimensions] += 1
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(cosines, 0, 1).astype(np.float32)


def facts(*texts: str, static: bool = False, first: int = 0) -> list[StoredMemory]:
    """Memories, newest first."""
    return [
        StoredMemory(f"m{first + n}", text, static=static, updated_at=NOW - timedelta(hours=first + n))
        for n, text in enumerate(texts)
    ]


@asynccontextmanager
async def opened(store: ScriptedStore, tag: str = TAG, **options: Any) -> AsyncGenerator[Mirror]:
    """A mirror that has been started, by words alone unless `load_embedder` is given."""
    settings: dict[str, Any] = {"load_embedder": lambda: None, "now": lambda: NOW, **options}
    mirror = Mirror(store, tag, **settings)
    mirror.start()
    try:
        yield mirror
    finally:
        await mirror.aclose()


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Let the loop run until the condition holds, a bounded time."""

    async def wait() -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), seconds)


async def settled(store: ScriptedStore, operation: Any, times: int) -> None:
    """Wait until this operation has ended so often."""
    await until(lambda: sum(call.ended is not None for call in store.called(operation)) >= times, 1_000)


async def found(mirror: Mirror, query: str, *, limit: int = 5, threshold: float = 0.1) -> list[str]:
    hits = await asyncio.wait_for(mirror.search(query, limit=limit, threshold=threshold), 10)
    return [hit.text for hit in hits]
