"""The embedded memory service without its HTTP face: one file, its threads, and what can be asked of it.

Requests never block the event loop they come from. Reads run on a few reader threads, each on its own
snapshot of the file; writes run one after another on a writer thread; embedding and extraction run on the
ingest thread. A request that is cancelled leaves a write either undone or done whole: the thread finishes
the transaction it has begun.

An engine belongs to no event loop and may be used from several.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from supermemory_livekit.retrieval import Embedder, load_embedder

from .database import Database, StorageError
from .documents import Documents
from .encoder import Encoder
from .extraction import Extractor
from .finding import Finder
from .indexes import Indexes
from .ingest import Ingest
from .jobs import JobQueue
from .location import database_at, locate
from .memories import Memories
from .recalls import RecentSearches
from .storage import Storage
from .traffic import Traffic

__all__ = ["DYNAMIC_DELAY", "Engine", "Operations"]

logger = logging.getLogger("supermemory_livekit.local")

DYNAMIC_DELAY = 60.0
"""Seconds of quiet after which a document stored as `dynamic` becomes memories."""

_LEASE = 30.0
_POLL = 5.0
_READERS = 3
_STOP_TIMEOUT = 5.0

T = TypeVar("T")


@dataclass(frozen=True)
class Operations:
    """What can be asked of the service. Everything blocks and is thread-safe."""

    documents: Documents
    memories: Memories
    finder: Finder
    storage: Storage


class Engine:
    """`start` is called by the first request if nobody called it; `aclose` ends everything."""

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        dynamic_delay: float = DYNAMIC_DELAY,
        extractor: Extractor | None = None,
        load: Callable[[], Embedder | None] = load_embedder,
        lease: float = _LEASE,
        poll: float = _POLL,
        drain: float = 3.0,
    ) -> None:
        """Does no I/O.

        Args:
            path: The database file or the address of a PostgreSQL database, see `location.locate`.
            dynamic_delay: Seconds of quiet before a `dynamic` document becomes memories.
            extractor: What turns calls into memories; chosen from the environment when absent.
            load: Gives the embedding model, or None for full text alone.
            lease: Seconds after which the work of a process that died is taken over.
            poll: Seconds between looks at the queue for work that other processes left.
            drain: Most seconds that closing waits for work that is due.
        """
        self.location = locate(path)
        """A path is a SQLite file, a string the address of a PostgreSQL database, which may hold a password."""
        self.recent = RecentSearches()
        """What clients searched last; nothing is kept until somebody wants to look."""
        self._dynamic_delay = dynamic_delay
        self._extractor = extractor
        self._load = load
        self._lease = lease
        self._poll = poll
        self._drain = drain
        self._traffic = Traffic()
        self._lock = threading.Lock()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="supermemory-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="supermemory-write")
        self._database: Database | None = None
        self._ingest: Ingest | None = None
        self._operations: Operations | None = None
        self._closed = False

    async def start(self) -> None:
        """Open the file and begin with the work that waits in it.

        Raises `StorageError`. Safe to call again, also after it failed.
        """
        await asyncio.get_running_loop().run_in_executor(self._writer, self._started)

    async def read(self, ask: Callable[[Operations], T]) -> T:
        """Run something that only reads, off the event loop."""
        return await self._on(self._readers, ask)

    async def write(self, ask: Callable[[Operations], T]) -> T:
        """Run something that writes, off the event loop, after the writes asked for before it."""
        return await self._on(self._writer, ask)

    async def settled(self, timeout: float) -> bool:
        """Wait until no work is due or being done; False when that took longer than `timeout` seconds."""
        ingest = self._ingest
        if ingest is None:
            return True
        ingest.wake()
        return await asyncio.get_running_loop().run_in_executor(None, ingest.wait_until_quiet, timeout)

    async def aclose(self) -> None:
        """Give due work a few seconds, then stop. What is left waits in the file. Safe to call twice."""
        if self._closed:
            return
        if self._ingest is not None:
            await self.settled(self._drain)
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    async def _on(self, pool: ThreadPoolExecutor, ask: Callable[[Operations], T]) -> T:
        if self._closed:
            raise StorageError("The memory service is closed")
        with self._traffic.request():
            return await asyncio.get_running_loop().run_in_executor(pool, lambda: ask(self._started()))

    def _started(self) -> Operations:
        with self._lock:
            if self._operations is None:
                if self._closed:
                    raise StorageError("The memory service is closed")
                self._operations = self._start()
            return self._operations

    def _start(self) -> Operations:
        database = database_at(self.location)
        database.open()
        storage = Storage(database)
        encoder = Encoder(self._load, traffic=self._traffic)
        finder = Finder(storage, Indexes(), encoder, self.recent)
        owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
        queue = JobQueue(database, owner=owner, lease=self._lease)
        ingest = Ingest(
            storage,
            queue,
            encoder,
            self._extractor,
            poll=self._poll,
            heartbeat=self._lease / 4,
        )
        ingest.start()
        self._database, self._ingest = database, ingest
        return Operations(
            documents=Documents(storage, dynamic_delay=self._dynamic_delay, wake=ingest.wake),
            memories=Memories(storage, finder, ingest.wake),
            finder=finder,
            storage=storage,
        )

    def _stop(self) -> None:
        with self._lock:
            self._readers.shutdown(wait=True, cancel_futures=True)
            self._writer.shutdown(wait=True, cancel_futures=True)
            ended = self._ingest is None or self._ingest.stop(_STOP_TIMEOUT)
            if self._database is not None and ended:
                self._database.close()
            elif not ended:
                logger.warning(
                    "the ingest worker is still busy; its work is left to whoever opens the file next"
                )
