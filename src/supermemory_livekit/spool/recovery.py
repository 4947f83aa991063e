"""Delivers what dead processes left in a spool, under the tag and the document it was spoken under, and in order.

Who writes to a document holds its lock, delivers what is left of it, and then writes. So nothing that is said later,
in whichever process, overtakes what a killed one had not delivered.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from supermemory_livekit.capture.writer import (
    LATE_COMMIT,
    WRITE_TIMEOUT,
    CallWrites,
    DocumentWriter,
    hinted_pause,
    needs_a_person,
)
from supermemory_livekit.errors import CallerErased
from supermemory_livekit.scope import Scope
from supermemory_livekit.store import Dreaming, MemoryStore
from supermemory_livekit.telemetry import Stats, logger
from supermemory_livekit.transcript import Turn, whole_turns

from .directory import SpoolDirectory, document_key, key_of
from .document_lock import DocumentLock
from .file import SpoolFile, take_over
from .records import Left, read_records
from .spool import Spool

__all__ = ["DocumentClaim", "Recovered", "recover"]

DOCUMENT_BUDGET = 30.0
"""Seconds for one document. What is not delivered then stays for the next process."""

SETTLED_AFTER = WRITE_TIMEOUT + LATE_COMMIT
"""Seconds after a request began until nothing can come of it any more, although nobody knows when its process died."""

AT_ONCE = 16
"""Documents that are delivered at the same time."""

_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 2.0
"""Seconds between attempts."""


@dataclass
class Recovered:
    """Counts of turns, and of files that are not ours to read."""

    delivered: int = 0
    left: int = 0
    refused: int = 0
    """The service will never take these; their words stay in the spool for a week."""
    unscoped: int = 0
    damaged: int = 0
    foreign: int = 0


class _LeftFile:
    """A file of a dead process, and the writers of what it holds."""

    def __init__(
        self,
        store: MemoryStore,
        directory: SpoolDirectory,
        file: SpoolFile,
        left: Left,
        *,
        dreaming: Dreaming,
        write_timeout: float,
    ) -> None:
        self._spool = Spool.of_file(directory, file, left.scopes)
        self.turns = left.turns
        self.delivered = 0
        self.refused = 0
        call = CallWrites(
            store,
            Stats(),
            dreaming=dreaming,
            timeout=write_timeout,
            jitter=random.random,
            written=self._written,
            refused=self._refused,
            spool=self._spool,
        )
        # A clock that was set meanwhile must not make this wait for ever.
        ago = max(0.0, time.time() - left.sent_at.timestamp()) if left.sent_at else 0.0
        sure_at = asyncio.get_running_loop().time() + SETTLED_AFTER - min(ago, SETTLED_AFTER)
        self.writers: list[DocumentWriter] = []
        for scope in left.scopes:
            writer = DocumentWriter(scope, call)
            writer.restore(left.sent.get(scope, []), left.waiting.get(scope, []), sure_at=sure_at)
            self.writers.append(writer)

    @property
    def only_refused(self) -> bool:
        """Whether the service takes nothing of what is left, and refuses it one by one."""
        return all(writer.only_refused or writer.done for writer in self.writers)

    async def attempt(self) -> Exception | None:
        """Deliver until something fails. Returns the first failure."""
        failures = [await self._attempt(writer) for writer in self.writers]
        return next((error for error in failures if error is not None), None)

    async def _attempt(self, writer: DocumentWriter) -> Exception | None:
        error = await writer.attempt()
        if not isinstance(error, CallerErased):
            return error
        # Erased since the file was read: nobody delivers it any more.
        dropped = writer.drop_all()
        self.turns -= whole_turns(dropped)
        self._spool.dropped(writer.scope, dropped)
        return None

    def give_up_refused(self) -> None:
        for writer in self.writers:
            writer.give_up_refused()

    def close(self) -> None:
        self._spool.close()

    def _written(self, scope: Scope, pieces: Sequence[Turn]) -> None:
        self.delivered += sum(piece.part == piece.parts for piece in pieces)
        self._spool.acked(scope, pieces)

    def _refused(self, scope: Scope, pieces: Sequence[Turn]) -> None:
        self.refused += sum(piece.part == piece.parts for piece in pieces)
        self._spool.refused(scope, pieces)


class _Leftovers:
    """The files that dead processes left of one document, those with the oldest words first."""

    def __init__(
        self,
        store: MemoryStore,
        directory: SpoolDirectory,
        taken: Sequence[tuple[SpoolFile, Left]],
        *,
        dreaming: Dreaming,
        write_timeout: float,
    ) -> None:
        in_order = sorted(
            taken, key=lambda one: [min(turn.at for turn in one[1].pieces)] if one[1].pieces else []
        )
        self.files = [
            _LeftFile(store, directory, file, left, dreaming=dreaming, write_timeout=write_timeout)
            for file, left in in_order
        ]
        self._open = list(self.files)
        self.last: datetime | None = None
        """Stamp of the last line that the document holds, as far as the files' writers know."""

    async def deliver(self) -> None:
        """Raise the first failure, and go on from there when called again. What is only refused blocks nothing."""
        for file in list(self._open):
            before = file.delivered
            error = await file.attempt()
            if file.delivered > before:
                self._give_up_refused(before=file)
            known = [*(writer.last for writer in file.writers), self.last]
            self.last = max((stamp for stamp in known if stamp is not None), default=None)
            if error is None:
                file.close()
                self._open.remove(file)
            elif not file.only_refused:
                raise error

    async def deliver_patiently(self) -> None:
        """Try again what fails, for as long as the caller waits; give up what only a person can mend."""
        pause = _FIRST_PAUSE
        while (error := await self._failure()) is not None and not needs_a_person(error):
            await asyncio.sleep(max(pause, hinted_pause(error) or 0.0))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _failure(self) -> Exception | None:
        try:
            await self.deliver()
        except Exception as error:  # noqa: BLE001 - whatever it is, the words stay in the spool
            return error
        return None

    def confirm(self) -> None:
        """The service has accepted something that comes after all of this."""
        self._give_up_refused(before=None)

    def give_up_requests(self) -> None:
        for file in self._open:
            for writer in file.writers:
                writer.give_up_requests()

    def close(self) -> None:
        for file in self._open:
            file.close()
        self._open = []

    def _give_up_refused(self, *, before: _LeftFile | None) -> None:
        for file in list(self._open):
            if file is before:
                return
            file.give_up_refused()
            file.close()
            self._open.remove(file)


class DocumentClaim:
    """The right of one live call to write to one document: see `writer.Claim`."""

    def __init__(
        self, store: MemoryStore, spool: Spool, scope: Scope, *, dreaming: Dreaming, write_timeout: float
    ) -> None:
        self._store = store
        self._spool = spool
        self._key = document_key(scope)
        self._dreaming: Dreaming = dreaming
        self._write_timeout = write_timeout
        self._lock = DocumentLock(spool.directory.path, self._key)
        self._leftovers: _Leftovers | None = None

    async def take(self) -> datetime | None:
        if self._leftovers is None:
            try:
                await self._lock.acquire()
                paths = [
                    path for path in self._spool.directory.files(self._key) if not self._spool.owns(path)
                ]
            except OSError:  # a disk that gives no lock: that the words are stored matters more
                paths = []
            self._leftovers = _Leftovers(
                self._store,
                self._spool.directory,
                await _taken_over(paths) if paths else [],
                dreaming=self._dreaming,
                write_timeout=self._write_timeout,
            )
        await self._leftovers.deliver()
        return self._leftovers.last

    def confirm(self) -> None:
        if self._leftovers is not None:
            self._leftovers.confirm()

    def leave(self) -> None:
        self.close()

    def give_up_requests(self) -> None:
        if self._leftovers is not None:
            self._leftovers.give_up_requests()

    def close(self) -> None:
        """Let others write, and go on with what is left."""
        if self._leftovers is not None:
            self._leftovers.close()
            self._leftovers = None
        self._lock.release()


async def recover(
    store: MemoryStore,
    directory: Path,
    *,
    dreaming: Dreaming = "instant",
    write_timeout: float = WRITE_TIMEOUT,
) -> Recovered:
    """Deliver the files of dead processes; files of live ones are left alone.

    `store` is a `WriteGate`, or stands behind one: of a caller who is erased meanwhile nothing more is delivered.

    Documents are delivered beside one another, and within one the files with the oldest words come first. A document
    that a live call writes to is waited for.
    """
    spool = SpoolDirectory(directory)
    result = Recovered()
    await asyncio.to_thread(spool.sweep)
    paths = await asyncio.to_thread(spool.files)
    together: dict[str | Path, list[Path]] = {}
    for path in paths:
        together.setdefault(key_of(path) or path, []).append(path)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(key: str | Path, paths: list[Path]) -> None:
        async with gate:
            await _recover_document(store, spool, key, paths, result, dreaming, write_timeout)

    ends = await asyncio.gather(*(one(*item) for item in together.items()), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    if any(vars(result).values()):
        logger.info(
            "Left in the spool by earlier processes: %d turns delivered, %d not, %d refused for good, "
            "%d without a caller, %d records damaged, %d files unknown",
            result.delivered,
            result.left,
            result.refused,
            result.unscoped,
            result.damaged,
            result.foreign,
        )
    return result


async def _recover_document(
    store: MemoryStore,
    spool: SpoolDirectory,
    key: str | Path,
    paths: Sequence[Path],
    result: Recovered,
    dreaming: Dreaming,
    write_timeout: float,
) -> None:
    deadline = asyncio.get_running_loop().time() + DOCUMENT_BUDGET
    locks: list[DocumentLock] = []
    taken: list[tuple[SpoolFile, Left]] = []
    leftovers: _Leftovers | None = None
    try:
        if isinstance(key, str):
            keys = [key]
        else:  # the documents of a file that does not name one are known when it is read
            taken = await _taken_over(paths)
            keys = sorted({document_key(scope) for _, left in taken for scope in left.scopes})
        locks = [DocumentLock(spool.path, each) for each in keys]
        if not await _all_acquired(locks, deadline):
            lefts = [left for _, left in taken] or await asyncio.to_thread(_looked_at, paths)
            result.left += sum(left.turns for left in lefts)
            return
        if isinstance(key, str):
            taken = await _taken_over(spool.files(key))
        for _, left in taken:
            result.foreign += not left.known
            result.refused += left.refused
            result.unscoped += left.unscoped
            result.damaged += left.damaged
        leftovers = _Leftovers(store, spool, taken, dreaming=dreaming, write_timeout=write_timeout)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                rest = deadline - asyncio.get_running_loop().time()
                await asyncio.wait_for(leftovers.deliver_patiently(), rest)
        finally:
            result.delivered += sum(file.delivered for file in leftovers.files)
            result.refused += sum(file.refused for file in leftovers.files)
            result.left += sum(file.turns - file.delivered - file.refused for file in leftovers.files)
    finally:
        if leftovers is not None:
            leftovers.close()
        else:
            for file, _ in taken:
                file.close()
        for lock in locks:
            lock.release()


async def _all_acquired(locks: Sequence[DocumentLock], deadline: float) -> bool:
    loop = asyncio.get_running_loop()
    try:
        for lock in locks:
            if not await lock.acquire(deadline - loop.time()):
                return False
    except OSError:
        return False
    return True


async def _taken_over(paths: Sequence[Path]) -> list[tuple[SpoolFile, Left]]:
    """Those of the files whose processes are dead, read in a thread."""
    work = asyncio.get_running_loop().run_in_executor(None, _take_over_all, paths)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        work.add_done_callback(_let_go)
        raise


def _take_over_all(paths: Sequence[Path]) -> list[tuple[SpoolFile, Left]]:
    return [taken for path in paths if (taken := take_over(path)) is not None]


def _let_go(work: asyncio.Future[list[tuple[SpoolFile, Left]]]) -> None:
    if not work.cancelled() and work.exception() is None:
        for file, _ in work.result():
            file.close()


def _looked_at(paths: Sequence[Path]) -> list[Left]:
    """What files hold that cannot be taken over now."""
    found: list[Left] = []
    for path in paths:
        with contextlib.suppress(OSError):  # delivered and deleted meanwhile
            found.append(read_records(path.read_bytes()))
    return found
