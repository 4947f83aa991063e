"""Doubles for the tests of the embedded service: an extractor that is told what to find, and a very small model."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from supermemory import AsyncSupermemory

from supermemory_livekit.local import Engine
from supermemory_livekit.local.database import Row
from supermemory_livekit.local.extraction import Changes, Fact, Known, Line
from supermemory_livekit.local.location import database_at


@dataclass
class Service:
    """One opened service: its engine, a plain HTTP client and the SDK, both on it."""

    engine: Engine
    http: httpx.AsyncClient
    sdk: AsyncSupermemory

    async def settled(self) -> None:
        """Everything that is due is done."""
        assert await self.engine.settled(10), "work is still under way"

    async def profile(self, tag: str) -> list[str]:
        """All lines of the profile."""
        answer = await self.sdk.profile(container_tag=tag)
        return [*(answer.profile.static or ()), *(answer.profile.dynamic or ())]

    async def found(self, tag: str, q: str, **options: object) -> list[str]:
        """Texts of the hits."""
        body = {"containerTag": tag, "q": q, "threshold": 0.0, "searchMode": "hybrid", **options}
        answer = await self.http.post("/v4/search", json=body)
        assert answer.status_code == 200, answer.text
        return [hit.get("memory") or hit["chunk"] for hit in answer.json()["results"]]


INSPECTOR_KEY = "the-key"

OTHER_THREADS_USE_RANDOM = pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"
)
"""For property tests on PostgreSQL: the pool's threads do so, which hypothesis takes for the test's doing."""


class Inspected:
    """A service with the inspector in front, and a client that has the key."""

    def __init__(self, service: Service, http: httpx.AsyncClient) -> None:
        self.service = service
        self.http = http

    async def ask(self, name: str, **body: object) -> Any:
        answer = await self.http.post(f"/inspector/api/{name}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def api(self, method: str, path: str, **body: object) -> Any:
        answer = await self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def stored(self, content: str, **options: object) -> str:
        """Store a text, wait until it is processed, and give its id."""
        body = {"containerTag": "ana", "content": content, "dreaming": "instant", **options}
        added = await self.api("POST", "/v3/documents", **body)
        await self.service.settled()
        return str(added["id"])


def execute(location: Path | str, statement: str, **values: object) -> list[Row]:
    """Run a statement on a database that services have open, as if another process had done it."""
    database = database_at(location)
    database.open()
    try:
        with database.write() as connection:
            return list(connection.execute(statement, values))
    finally:
        database.close()


def drop_schema(address: str, schema: str) -> None:
    """Remove what a test has left in PostgreSQL."""
    import psycopg  # not there on every machine

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")  # type: ignore[arg-type]


def call(*turns: str, minute: int = 0) -> str:
    """A transcript: turns begin with "C:" or "A:"."""
    lines: list[str] = []
    for second, turn in enumerate(turns):
        who = "Caller" if turn.startswith("C:") else "Agent"
        lines.append(f"[2026-11-01T10:{minute:02}:{second:02}.000Z] {who}: {turn[2:].strip()}")
    return "\n".join(lines)


class KeepEverything:
    """Every caller's turn becomes one memory."""

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: datetime, before: Sequence[Line] = ()
    ) -> Changes:
        return Changes(
            add=tuple(Fact(line.text, False, line.at or at) for line in lines if line.role == "caller")
        )


@dataclass
class Scripted:
    """Gives prepared changes, one per piece of a call; keeps what it was shown. Fails when it has none left."""

    changes: list[Changes | Exception]
    shown: list[tuple[list[str], list[str], list[str]]] = field(
        default_factory=list[tuple[list[str], list[str], list[str]]]
    )
    """New lines, known texts, lines before."""
    known: list[Known] = field(default_factory=list[Known])

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: datetime, before: Sequence[Line] = ()
    ) -> Changes:
        self.known = list(known)
        self.shown.append(
            ([line.text for line in lines], [one.text for one in known], [line.text for line in before])
        )
        result = self.changes.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


class Held:
    """An extractor that waits until it is let go, like a slow model."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.inside = 0
        self.most_inside = 0

    async def extract(
        self, lines: Sequence[Line], known: Sequence[Known], *, at: datetime, before: Sequence[Line] = ()
    ) -> Changes:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.entered.set()
        try:
            await asyncio.to_thread(self.let_go.wait, 30)
        finally:
            self.inside -= 1
        return await KeepEverything().extract(lines, known, at=at)

    async def until_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, 10), "nobody asked the extractor"


class _WordModel:
    """Texts with common words, or words listed as synonyms, are near each other."""

    dimensions = 256
    synonyms = {"dwelling": "home", "canine": "dog"}  # noqa: RUF012

    def __init__(self, model_id: str) -> None:
        self.model_id = model_id
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts.extend(texts)
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", " ").split():
                row[zlib.crc32(self.synonyms.get(word, word).encode()) % self.dimensions] += 1
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows

    def similarity(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(cosines, 0, 1).astype(np.float32)


def word_model(model_id: str = "words-1") -> _WordModel:
    return _WordModel(model_id)
