"""Erases one caller from the service, the spool and this machine's cache, and proves it by reading back.

One request deletes all that is under the container tag; where the key may not do that, documents and memories are
deleted one by one. Then documents, memories, profile and search are asked for until none has shown anything for a
while: a service may still have been making memories when the request came. docs/decisions/0017-erasure.md has the
reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from supermemory_livekit.errors import (
    AccessDenied,
    APIMismatch,
    Conflict,
    NotFound,
    PaymentRequired,
    ServiceError,
)
from supermemory_livekit.mirror.embedding_cache import EmbeddingCache
from supermemory_livekit.spool.spool import erase_spooled
from supermemory_livekit.store import MemoryPage, MemoryStore
from supermemory_livekit.telemetry import describe

from .marks import ErasureMarks

__all__ = ["ERASE_TIMEOUT", "Erasure", "erase_caller", "erase_everywhere"]

ERASE_TIMEOUT = 60.0
"""Seconds until what is still found is reported instead of deleted again."""

QUIET = 2.0
"""Seconds for which nothing may be found. Twice what a commit that comes late takes, see `writer.LATE_COMMIT`."""

QUIET_AFTER_WORK = 10.0
"""The same where the service had work to do, or a write ended without an answer."""

_SPOOL_LOOKS = 1.0
"""Seconds between looks for the files of live processes, which drop what they hold once they see the mark."""

_PAUSE = 1.0
"""Seconds between two looks."""

_REQUEST = 15.0
"""Seconds of one request."""

_DOCUMENTS = 100
_MEMORIES = 500
_PAGES = 1_000
"""Pages of a list that are read at most: a service that does not turn the page would be read for ever."""

_AT_ONCE = 8
"""Memories that are forgotten at the same time."""

_TRIES_FOR_MARKS = 2
"""Further requests to delete the tag when only marks of what was forgotten are left: some services keep them."""

_QUESTIONS = ("what is known about the caller", "what was said in the last call")
"""Broad, since what is looked for is unknown, and without words of anybody: a question may be logged."""


@dataclass(frozen=True)
class Erasure:
    """What an erasure did, and what it found when it read back. Holds counts and no word of the caller."""

    documents: int = 0
    """Stored texts that are gone: calls and remembered facts."""
    memories: int = 0
    """Memories that are gone."""
    turns: int = 0
    """Turns that were on their way to the service, in this call or in the spool, and are not stored any more."""
    left_documents: int = 0
    """Stored texts that were still listed at the end."""
    left_memories: int = 0
    """Memories that were still listed at the end, as true."""
    left_marks: int = 0
    """Memories that are listed as forgotten: the service keeps them so that they do not come back."""
    shown: tuple[str, ...] = ()
    """Which of `profile` and `search` still showed something."""
    unread: tuple[str, ...] = ()
    """What could not be read back: of `documents`, `memories`, `profile`, `search`, `spool`."""
    problems: tuple[str, ...] = ()
    """What went wrong last, by kind."""

    @property
    def clean(self) -> bool:
        """Nothing is left, and all of it was read back."""
        return not (self.left_documents or self.left_memories or self.left_marks or self.shown or self.unread)


@dataclass
class _Found:
    """One look at everything that is known of a caller."""

    documents: list[str] = field(default_factory=lambda: list[str]())
    memories: list[str] = field(default_factory=lambda: list[str]())
    marks: int = 0
    shown: tuple[str, ...] = ()
    working: bool = False
    """The service is making memories of something."""
    unread: dict[str, Exception] = field(default_factory=lambda: dict[str, Exception]())

    @property
    def something(self) -> bool:
        return bool(self.documents or self.memories or self.shown)

    @property
    def may_pass(self) -> bool:
        """Something was not answered that may be answered the next time."""
        return any(not _lasts(error) for error in self.unread.values())


async def erase_caller(
    store: MemoryStore, tag: str, *, timeout: float = ERASE_TIMEOUT, unclear: bool = False
) -> Erasure:
    """Delete everything under `tag`, and read back until nothing has been found for a while.

    `unclear` says that a write to this tag ended without an answer a moment ago. Never raises a `ServiceError`:
    what went wrong stands in the result.
    """
    return await _Eraser(store, tag, timeout, QUIET_AFTER_WORK if unclear else QUIET).run()


async def erase_everywhere(
    store: MemoryStore, tag: str, *, spool_dir: str | Path | None, timeout: float, unclear: bool = False
) -> Erasure:
    """Erase a caller from the spool, from this machine's embedding cache, and from the service, and read back."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    directory = Path(spool_dir) if spool_dir is not None else None
    unmarked = await asyncio.to_thread(_mark_and_clear, directory, tag)
    spooled, waiting, problem = await _erase_spooled(directory, tag)
    done = await erase_caller(store, tag, timeout=timeout, unclear=unclear)
    while waiting and not problem and loop.time() < deadline:
        await asyncio.sleep(_SPOOL_LOOKS)
        more, waiting, problem = await _erase_spooled(directory, tag)
        spooled += more
    if waiting:
        problem = (
            f"{waiting} turns are in the file of a live process, which drops them before it writes again"
        )
    problems = [f"{where}: {what}" for where, what in (("mark", unmarked), ("spool", problem)) if what]
    return replace(
        done,
        turns=done.turns + spooled,
        unread=(*done.unread, *(["spool"] if problem else [])),
        problems=(*done.problems, *problems),
    )


async def _erase_spooled(directory: Path | None, tag: str) -> tuple[int, int, str]:
    """Turns that are gone from the spool, turns that live processes hold, and what went wrong."""
    if directory is None:
        return 0, 0, ""
    try:
        erased, left = await asyncio.to_thread(erase_spooled, directory, tag)
    except OSError as error:
        return 0, 0, type(error).__name__
    return erased, left, ""


def _mark_and_clear(directory: Path | None, tag: str) -> str:
    """Leave word for other processes, before anything is deleted. Returns what went wrong.

    Which of the cached vectors are of this caller's texts is not written anywhere, so all of them go: it is a cache.
    """
    if (cache := EmbeddingCache.from_env()) is not None:
        cache.clear()
    try:
        ErasureMarks.of_machine(directory).set(tag)
    except OSError as error:
        return type(error).__name__
    return ""


class _Eraser:
    def __init__(self, store: MemoryStore, tag: str, timeout: float, quiet: float) -> None:
        self._store = store
        self._tag = tag
        self._deadline = asyncio.get_running_loop().time() + timeout
        self._quiet = quiet
        self._documents: set[str] = set()
        self._memories: set[str] = set()
        self._told_documents = self._told_memories = 0
        """What the service said it deleted with the tag."""
        self._tag_kept = False
        """The tag cannot be deleted: by this key, by this client, or by this service."""
        self._tries_for_marks = _TRIES_FOR_MARKS
        self._problems: dict[str, str] = {}

    async def run(self) -> Erasure:
        loop = asyncio.get_running_loop()
        found = await self._look()
        await self._delete(found)
        quiet_since: float | None = None
        while True:
            found = await self._look()
            now = loop.time()
            if found.something or found.may_pass:
                quiet_since = None
            elif quiet_since is None and not (found.marks and self._tries_for_marks > 0):
                quiet_since = now
            if (quiet_since is not None and now - quiet_since >= self._quiet) or now >= self._deadline:
                return self._result(found)
            if found.something or (found.marks and self._tries_for_marks > 0):
                self._tries_for_marks -= not found.something
                await self._delete(found)
            await asyncio.sleep(min(_PAUSE, max(0.0, self._deadline - loop.time())))

    def _result(self, found: _Found) -> Erasure:
        problems = {**self._problems, **{what: describe(error) for what, error in found.unread.items()}}
        if not (found.something or found.marks):
            # Refused at first, and done in another way.
            problems = {what: told for what, told in problems.items() if what in found.unread}
        gone_documents = self._documents.difference(found.documents)
        gone_memories = self._memories.difference(found.memories)
        return Erasure(
            documents=max(len(gone_documents), self._told_documents),
            memories=max(len(gone_memories), self._told_memories),
            left_documents=len(found.documents),
            left_memories=len(found.memories),
            left_marks=found.marks,
            shown=found.shown,
            unread=tuple(sorted(found.unread)),
            problems=tuple(f"{what}: {told}" for what, told in sorted(problems.items())),
        )

    # -- deleting ------------------------------------------------------------------------------------------------

    async def _delete(self, found: _Found) -> None:
        self._documents.update(found.documents)
        self._memories.update(found.memories)
        if found.working:
            self._quiet = QUIET_AFTER_WORK
        if not self._tag_kept and await self._delete_tag():
            return
        for first in range(0, len(found.documents), _DOCUMENTS):
            some = found.documents[first : first + _DOCUMENTS]
            await self._attempt(
                "deleting documents",
                self._store.delete_documents(self._tag, some, timeout=self._left()),
            )
        # Most have gone with their documents; what is gone already is no failure.
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._forget(memory_id, gate) for memory_id in found.memories))

    async def _delete_tag(self) -> bool:
        try:
            told = await self._store.delete_tag(self._tag, timeout=self._left())
        except NotFound:  # nothing is there, or no such route: what is listed goes one by one
            return False
        except (NotImplementedError, AccessDenied) as error:
            self._tag_kept = True
            self._tries_for_marks = 0
            self._problems["deleting the container tag"] = describe(error)
            return False
        except Exception as error:  # noqa: BLE001 - what is listed goes one by one
            self._problems["deleting the container tag"] = describe(error)
            return False
        self._told_documents += told.documents or 0
        self._told_memories += told.memories or 0
        self._problems.pop("deleting the container tag", None)
        return True

    async def _forget(self, memory_id: str, gate: asyncio.Semaphore) -> None:
        async with gate:
            await self._attempt(
                "forgetting memories",
                self._store.forget(self._tag, memory_id=memory_id, timeout=self._left()),
            )

    async def _attempt(self, what: str, request: Awaitable[object]) -> None:
        try:
            await request
        except (NotFound, Conflict):  # gone already, or still being made: the next look tells
            pass
        except Exception as error:  # noqa: BLE001 - the next look tells what is left
            self._problems[what] = describe(error)

    # -- reading back --------------------------------------------------------------------------------------------

    async def _look(self) -> _Found:
        found = _Found()
        await asyncio.gather(
            self._read(found, "documents", self._look_at_documents),
            self._read(found, "memories", self._look_at_memories),
            self._read(found, "profile", self._look_at_profile),
            self._read(found, "search", self._look_with_search),
        )
        return found

    async def _read(self, found: _Found, what: str, look: Callable[[_Found], Awaitable[None]]) -> None:
        try:
            await look(found)
        except NotFound:  # a tag that is unknown holds nothing
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, this was not read back
            found.unread[what] = error

    async def _look_at_documents(self, found: _Found) -> None:
        for number in range(1, _PAGES):
            page = await self._store.list_documents(
                self._tag, page=number, limit=_DOCUMENTS, contents=False, timeout=self._left()
            )
            new = [one for one in page.entries if one.id not in found.documents]
            found.documents += [one.id for one in new]
            found.working = found.working or any(not one.processed for one in new)
            if not page.more or not new:
                return

    async def _look_at_memories(self, found: _Found) -> None:
        marks: set[str] = set()
        try:
            for number in range(1, _PAGES):
                page: MemoryPage = await self._store.memories(
                    self._tag, page=number, limit=_MEMORIES, timeout=self._left()
                )
                new = {memory.id for memory in page.entries}.difference(found.memories)
                new_marks = set(page.gone).difference(marks)
                found.memories += new
                marks |= new_marks
                if not page.more or not (new or new_marks):
                    return
        finally:
            found.marks = len(marks)

    async def _look_at_profile(self, found: _Found) -> None:
        if await self._store.profile(self._tag, timeout=self._left()):
            found.shown = (*found.shown, "profile")

    async def _look_with_search(self, found: _Found) -> None:
        for question in _QUESTIONS:
            hits = await self._store.search(
                self._tag, question, limit=100, threshold=0.0, mode="hybrid", timeout=self._left()
            )
            if hits:
                found.shown = (*found.shown, "search")
                return

    def _left(self) -> float:
        """Seconds for a request. The last look gets some, too."""
        left = self._deadline - asyncio.get_running_loop().time()
        return min(_REQUEST, max(1.0, left))


def _lasts(error: Exception) -> bool:
    """Whether asking again is of no use."""
    lasting = (AccessDenied, APIMismatch, PaymentRequired)
    return isinstance(error, lasting) or not isinstance(error, ServiceError)
