"""Turning stored text into vectors and memories, in the background.

One thread with an event loop of its own, so that neither a model that computes nor one that is asked over
the network ever delays a request. It takes jobs from the queue in the file, its own process's or those a
dead one left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Collection

from supermemory_livekit.retrieval import in_context

from .database import StorageError
from .dreaming import apply, changes_of, known_of
from .encoder import Encoder
from .extraction import (
    Changes,
    Extractor,
    FallbackExtractor,
    extractor_from_env,
)
from .jobs import Job, JobQueue, LeaseLost
from .storage import Storage
from .texts import now_ms

__all__ = ["Ingest"]

logger = logging.getLogger("supermemory_livekit.local")

_AT_ONCE = 4
"""Jobs under way at a time: an extractor may spend most of its time waiting for a model."""
_BATCH = 32
_REST = 0.02
"""Seconds between two documents that are cut anew, so that requests come in between."""


class Ingest:
    """The worker. `start`, then `wake` whenever there may be work, then `stop`. Thread-safe."""

    def __init__(
        self,
        storage: Storage,
        queue: JobQueue,
        encoder: Encoder,
        extractor: Extractor | None,
        *,
        poll: float,
        heartbeat: float,
    ) -> None:
        """`extractor`: None for the one that the environment names. `poll`: seconds between looks at the queue
        for what others left. `heartbeat`: seconds between renewals of leases.
        """
        self._storage = storage
        self._queue = queue
        self._encoder = encoder
        self._given = extractor
        self._poll = poll
        self._heartbeat = heartbeat
        self._thread = threading.Thread(target=self._main, name="supermemory-ingest", daemon=True)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: asyncio.Event | None = None
        self._calls = 0
        self._stopping = False
        self._quiet = threading.Event()
        self._failing = False

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Look at the queue now."""
        with self._lock:
            self._calls += 1
            self._quiet.clear()
            if self._loop is not None and self._woken is not None:
                self._loop.call_soon_threadsafe(self._woken.set)

    def wait_until_quiet(self, timeout: float) -> bool:
        """Wait (at most so many seconds) until nothing is due and nothing is being done. Blocks."""
        return self._quiet.wait(timeout)

    def stop(self, timeout: float) -> bool:
        """Give back what is being done, and end. Blocks. False when the thread did not end in time."""
        with self._lock:
            self._stopping = True
            if self._loop is not None and self._woken is not None:
                self._loop.call_soon_threadsafe(self._woken.set)
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _main(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._run(loop))
        except Exception as error:  # noqa: BLE001 - the last line of defence of a thread nobody awaits
            logger.error("the ingest worker ended: %s", type(error).__name__)
        finally:
            with self._lock:
                self._loop = None
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        woken = asyncio.Event()
        with self._lock:
            self._loop, self._woken = loop, woken
        # Made here: it may load a model, and its connections belong to this loop.
        extractor = self._given or extractor_from_env(embedder=self._encoder.background)
        self._load_model()
        running: dict[asyncio.Task[None], int] = {}
        heartbeat = asyncio.ensure_future(self._renew())
        try:
            while not self._stopping:
                woken.clear()
                with self._lock:
                    calls = self._calls
                job, readable = self._claim(running.values()) if len(running) < _AT_ONCE else (None, True)
                if job is not None:
                    task = asyncio.ensure_future(self._do(job, extractor))
                    running[task] = job.seq
                    task.add_done_callback(lambda _: woken.set())
                    await asyncio.sleep(0)
                else:
                    if readable and not running:
                        self._mark_quiet(calls)
                    await _either(woken, self._pause())
                for task in [task for task in running if task.done()]:
                    del running[task]
                    task.result()
        finally:
            heartbeat.cancel()
            for task in running:
                task.cancel()
            await asyncio.gather(heartbeat, *running, return_exceptions=True)
            if self._given is None and isinstance(extractor, FallbackExtractor):
                await extractor.aclose()

    def _load_model(self) -> None:
        try:
            embedder = self._encoder.load()
            if embedder is not None:
                for tag in self._storage.outdated_tags(embedder.model_id):
                    with self._storage.write(tag, durable=False) as writer:
                        writer.enqueue("embed", now_ms())
        except Exception as error:  # noqa: BLE001 - without a model full text still works
            logger.error(
                "the embedding model cannot be used: %s; searching by words alone", type(error).__name__
            )

    def _claim(self, under_way: Collection[int]) -> tuple[Job | None, bool]:
        """A job, if there is one, and whether the queue could be read."""
        try:
            return self._queue.claim(under_way), True
        except StorageError as error:
            logger.debug("the queue cannot be read now: %s", type(error).__name__)
            return None, False

    def _pause(self) -> float:
        try:
            due = self._queue.next_due()
        except StorageError:
            return self._poll
        if due is None:
            return self._poll
        return min(self._poll, max(0.01, (due - now_ms()) / 1000))

    def _mark_quiet(self, calls: int) -> None:
        with self._lock:
            if calls == self._calls:
                self._quiet.set()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat)
            try:
                self._queue.renew()
            except StorageError as error:
                logger.debug("leases cannot be renewed now: %s", type(error).__name__)

    async def _do(self, job: Job, extractor: Extractor) -> None:
        try:
            if job.kind == "embed":
                await self._embed(job)
            elif job.kind == "dream":
                await self._dream(job, extractor)
            else:
                await self._cut(job)
        except LeaseLost:
            return
        except asyncio.CancelledError:
            self._give_back(job)
            raise
        except Exception as error:  # noqa: BLE001 - tried again later, whatever it was
            # Type only: a foreign message may quote the call.
            level = logging.DEBUG if self._failing else logging.WARNING
            logger.log(level, "%s failed: %s; it will be tried again", job.kind, type(error).__name__)
            self._failing = True
            self._give_back(job, failed=True)
        else:
            self._failing = False

    def _give_back(self, job: Job, *, failed: bool = False) -> None:
        try:
            if failed:
                self._queue.fail(job)
            else:
                self._queue.release(job)
        except StorageError as error:
            logger.debug("a job keeps its lease until that runs out: %s", type(error).__name__)

    async def _embed(self, job: Job) -> None:
        """Give everything under the tag a vector, a batch at a time, so that searches find it soon."""
        embedder = self._encoder.background()
        while embedder is not None:
            with self._storage.read(job.tag) as container:
                batch = container.unembedded(embedder.model_id, _BATCH)
            if not batch:
                break
            vectors = embedder.embed([in_context(text, before) for _, _, text, before in batch])
            # Not durable, here and below: vectors that are lost are computed again.
            with self._storage.write(job.tag, durable=False) as writer:
                self._queue.check(writer, job)
                writer.set_vectors(list(zip(batch, vectors, strict=True)), embedder.model_id)
                if len(batch) < _BATCH:
                    self._queue.finish(writer, job)
                    return
            await asyncio.sleep(0)
        with self._storage.write(job.tag, durable=False) as writer:
            self._queue.finish(writer, job)

    async def _cut(self, job: Job) -> None:
        """Cut the tag's calls, which an older version has stored, into pieces as it is done today.

        Not durable: what is lost is done again. Searches meanwhile find the pieces of either kind.
        """
        done = 0
        while True:
            with self._storage.read(job.tag) as container:
                found = container.documents_in_lines(done, 1)
            with self._storage.write(job.tag, durable=False) as writer:
                self._queue.check(writer, job)
                document = writer.document_by_seq(found[0].seq) if found else None
                if document is not None:
                    writer.recut(document)
                    writer.enqueue("embed", now_ms())
                if not found:
                    self._queue.finish(writer, job)
                    return
            done = found[0].seq
            await asyncio.sleep(_REST)

    async def _dream(self, job: Job, extractor: Extractor) -> None:
        """Make memories of what has been added to a document since the last time."""
        with self._storage.read(job.tag) as container:
            document = container.document_by_seq(job.document_seq)
            known = known_of(container)
        changes = Changes() if document is None else await changes_of(document, known, extractor)
        with self._storage.write(job.tag) as writer:
            self._queue.check(writer, job)
            now = writer.document_by_seq(job.document_seq)
            # Replaced meanwhile: the old content's facts are nobody's any more, and the job is due again.
            if document is not None and now is not None and now.epoch == document.epoch:
                apply(writer, document, changes)
                writer.set_dreamed(document, len(document.content))
                writer.enqueue("embed", now_ms())
            self._queue.finish(writer, job)


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, at most so many seconds."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
