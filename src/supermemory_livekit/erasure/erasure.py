"""Erases one caller from the service, the spool and this machine's cache, and proves it by reading back.

One request deletes all that is under the container tag; where the key may not do that, documents and memories are
deleted one by one. Then documents, memories, profile and search are asked for until none has shown anything for a
while: a service may still have been making memories when the request came. What a call has stored that began after
the erasure did is left alone. docs/decisions/0017-erasure.md has the reasons.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeVar

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
from supermemory_livekit.store import Hit, MemoryPage, MemoryStore, StoredCall, StoredMemory
from supermemory_livekit.telemetry import describe
from supermemory_livekit.transcript import fold, marks_in

from .marks import ErasureMarks

__all__ = ["ERASE_TIMEOUT", "Erasure", "Word", "erase_caller", "erase_everywhere", "leave_word"]

T = TypeVar("T")

ERASE_TIMEOUT = 60.0
"""Seconds until what is still found is reported instead of deleted again."""

QUIET = 2.0
"""Seconds for which nothing may be found. Twice what a commit that comes late takes, see `writer.LATE_COMMIT`."""

QUIET_AFTER_WORK = 10.0
"""The same where the service had work to do, or a write ended without an answer."""

_LOOKED_AGAIN = QUIET_AFTER_WORK + 5.0
"""Seconds at least to read back once more when another process held turns: it may have been writing them."""

_CLOCKS = timedelta(minutes=10)
"""How far the service's clock may be from this one. What was stored earlier is not read to see who said it when."""

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


_DATE = re.compile(r"^\[\d{4}-\d\d-\d\d\]\s*")


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
    unmarked: bool = False
    """The disk did not take the word for other processes: one that has this caller on the line may write on."""
    later: int = 0
    """Calls that began after the erasure did, and are left alone."""
    problems: tuple[str, ...] = ()
    """What went wrong last, by kind."""

    @property
    def clean(self) -> bool:
        """Nothing is left, all of it was read back, and other processes were left word."""
        return not (
            self.left_documents
            or self.left_memories
            or self.left_marks
            or self.shown
            or self.unread
            or self.unmarked
        )

    @classmethod
    def of_parts(cls, parts: Sequence[Erasure]) -> Erasure:
        """The erasures of all tags of one caller as one."""
        return cls(
            documents=sum(part.documents for part in parts),
            memories=sum(part.memories for part in parts),
            turns=sum(part.turns for part in parts),
            left_documents=sum(part.left_documents for part in parts),
            left_memories=sum(part.left_memories for part in parts),
            left_marks=sum(part.left_marks for part in parts),
            shown=_together(part.shown for part in parts),
            unread=_together(part.unread for part in parts),
            unmarked=any(part.unmarked for part in parts),
            later=sum(part.later for part in parts),
            problems=_together(part.problems for part in parts),
        )


@dataclass(frozen=True)
class Word:
    """Word that was left for other processes."""

    at: float
    """The moment of the erasure, in seconds since 1970."""
    problem: str = ""
    """What went wrong, by kind."""


@dataclass
class _Found:
    """One look at everything that is known of a caller."""

    documents: list[str] = field(default_factory=lambda: list[str]())
    memories: list[str] = field(default_factory=lambda: list[str]())
    marks: int = 0
    shown: tuple[str, ...] = ()
    working: bool = False
    """The service is making memories of something."""
    later: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    """Texts of calls that began after the erasure did, by id of the document."""
    later_memories: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    """Texts of memories that stem from those alone, by id."""
    unread: dict[str, Exception] = field(default_factory=lambda: dict[str, Exception]())

    @property
    def something(self) -> bool:
        return bool(self.documents or self.memories or self.shown)

    @property
    def may_pass(self) -> bool:
        """Something was not answered that may be answered the next time."""
        return any(not _lasts(error) for error in self.unread.values())


async def erase_caller(
    store: MemoryStore,
    tag: str,
    *,
    timeout: float = ERASE_TIMEOUT,
    unclear: bool = False,
    at: float | None = None,
) -> Erasure:
    """Delete everything under `tag`, and read back until nothing has been found for a while.

    `unclear` says that a write to this tag ended without an answer a moment ago. `at` is the moment of the erasure, in
    seconds since 1970: calls of which every word was said after it are left alone. Never raises a `ServiceError`: what
    went wrong stands in the result.
    """
    moment = None if at is None else datetime.fromtimestamp(at, timezone.utc)
    return await _Eraser(store, tag, timeout, QUIET_AFTER_WORK if unclear else QUIET, moment).run()


async def erase_everywhere(
    store: MemoryStore,
    tag: str,
    *,
    spool_dir: str | Path | None,
    timeout: float,
    unclear: bool = False,
    word: Word | None = None,
) -> Erasure:
    """Erase a caller from the spool, from this machine's embedding cache, and from the service, and read back.

    `word` is what was left before, if it was. Takes up to 15 s longer than `timeout` when another process held turns.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    directory = Path(spool_dir) if spool_dir is not None else None
    if word is None:
        word = await asyncio.to_thread(leave_word, directory, tag, time.time())
    spooled, waiting, problem = await _erase_spooled(directory, tag, word.at)
    done = await erase_caller(store, tag, timeout=timeout, unclear=unclear, at=word.at)
    held = waiting > 0
    while waiting and not problem and loop.time() < deadline:
        await asyncio.sleep(_SPOOL_LOOKS)
        more, waiting, problem = await _erase_spooled(directory, tag, word.at)
        spooled += more
    if held and not waiting:
        rest = max(deadline - loop.time(), _LOOKED_AGAIN)
        again = await erase_caller(store, tag, timeout=rest, unclear=True, at=word.at)
        done = replace(
            again, documents=done.documents + again.documents, memories=done.memories + again.memories
        )
    if waiting:
        problem = (
            f"{waiting} turns are in the file of a live process, which drops them before it writes again"
        )
    problems = [
        f"{where}: {what}"
        for where, what in (("leaving word for other processes", word.problem), ("spool", problem))
        if what
    ]
    return replace(
        done,
        turns=done.turns + spooled,
        unread=(*done.unread, *(["spool"] if problem else [])),
        unmarked=bool(word.problem),
        problems=(*done.problems, *problems),
    )


async def _erase_spooled(directory: Path | None, tag: str, at: float) -> tuple[int, int, str]:
    """Turns that are gone from the spool, turns that live processes hold, and what went wrong."""
    if directory is None:
        return 0, 0, ""
    moment = datetime.fromtimestamp(at, timezone.utc)
    try:
        erased, left = await asyncio.to_thread(erase_spooled, directory, tag, moment)
    except OSError as error:
        return 0, 0, type(error).__name__
    return erased, left, ""


def leave_word(spool_dir: str | Path | None, tag: str, at: float) -> Word:
    """Say to other processes that the caller was erased at this moment, before anything is deleted. Not for the event
    loop.

    Which of the cached vectors are of this caller's texts is not written anywhere, so all of them go: it is a cache.
    """
    if (cache := EmbeddingCache.from_env()) is not None:
        cache.clear()
    try:
        ErasureMarks.of_machine(spool_dir).set(tag, at)
    except OSError as error:
        return Word(at, type(error).__name__)
    return Word(at)


class _Eraser:
    def __init__(
        self, store: MemoryStore, tag: str, timeout: float, quiet: float, moment: datetime | None
    ) -> None:
        self._store = store
        self._tag = tag
        self._moment = moment
        """Calls that began after it are left alone."""
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
            if found.shown and not (found.documents or found.memories or found.later):
                # A call may have begun between the two halves of this look.
                found = await self._look()
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
            later=len(found.later),
            problems=tuple(f"{what}: {told}" for what, told in sorted(problems.items())),
        )

    # -- deleting ------------------------------------------------------------------------------------------------

    async def _delete(self, found: _Found) -> None:
        self._documents.update(found.documents)
        self._memories.update(found.memories)
        if found.working:
            self._quiet = QUIET_AFTER_WORK
        if not (self._tag_kept or found.later) and await self._delete_tag():
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
        # In this order: what stems from a document that is newer than the list of documents cannot be told from what is
        # left, and memories, profile and search all stem from documents.
        memories = await self._read(found, "memories", self._look_at_memories)
        await self._read(found, "documents", self._look_at_documents)
        if found.later:
            self._set_apart(found, memories or [])
        await asyncio.gather(
            self._read(found, "profile", self._look_at_profile),
            self._read(found, "search", self._look_with_search),
        )
        return found

    async def _read(self, found: _Found, what: str, look: Callable[[_Found], Awaitable[T]]) -> T | None:
        try:
            return await look(found)
        except NotFound:  # a tag that is unknown holds nothing
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, this was not read back
            found.unread[what] = error
        return None

    async def _look_at_documents(self, found: _Found) -> None:
        seen: set[str] = set()
        perhaps_later: list[StoredCall] = []
        for number in range(1, _PAGES):
            page = await self._store.list_documents(
                self._tag, page=number, limit=_DOCUMENTS, contents=False, timeout=self._left()
            )
            new = [one for one in page.entries if one.id not in seen]
            seen.update(one.id for one in new)
            perhaps_later += [one for one in new if self._may_be_later(one)]
            earlier = [one for one in new if not self._may_be_later(one)]
            found.documents += [one.id for one in earlier]
            found.working = found.working or any(not one.processed for one in earlier)
            if not page.more or not new:
                break
        for one in perhaps_later:
            text = await self._text_of(one)
            if text is not None and self._was_said_later(text):
                found.later[one.id] = text
            else:
                found.documents.append(one.id)
                found.working = found.working or not one.processed

    async def _look_at_memories(self, found: _Found) -> list[StoredMemory]:
        memories: dict[str, StoredMemory] = {}
        marks: set[str] = set()
        try:
            for number in range(1, _PAGES):
                page: MemoryPage = await self._store.memories(
                    self._tag, page=number, limit=_MEMORIES, timeout=self._left()
                )
                new = {memory.id: memory for memory in page.entries if memory.id not in memories}
                new_marks = set(page.gone).difference(marks)
                memories |= new
                marks |= new_marks
                if not page.more or not (new or new_marks):
                    break
        finally:
            found.memories = list(memories)
            found.marks = len(marks)
        return list(memories.values())

    async def _look_at_profile(self, found: _Found) -> None:
        profile = await self._store.profile(self._tag, timeout=self._left())
        if not all(_stems_from_later(found, line) for line in (*profile.static, *profile.dynamic)):
            found.shown = (*found.shown, "profile")

    async def _look_with_search(self, found: _Found) -> None:
        for question in _QUESTIONS:
            hits = await self._store.search(
                self._tag, question, limit=100, threshold=0.0, mode="hybrid", timeout=self._left()
            )
            if not all(_hits_later(found, hit) for hit in hits):
                found.shown = (*found.shown, "search")
                return

    # -- what began after the erasure ----------------------------------------------------------------------------

    def _may_be_later(self, document: StoredCall) -> bool:
        """Whether it is worth reading a document to see whether a call wrote it that began after the erasure."""
        if self._moment is None or document.custom_id is None:
            return False
        return document.created_at is None or document.created_at > self._moment - _CLOCKS

    async def _text_of(self, document: StoredCall) -> str | None:
        try:
            return await self._store.read(
                self._tag, document.custom_id or "", service_id=document.id, timeout=self._left()
            )
        except (NotFound, NotImplementedError):
            return None

    def _was_said_later(self, text: str) -> bool:
        """Whether the text has lines of a call, and every one was said after the erasure.

        A write of the erased call that comes late says something earlier, and nothing said later in that call passes
        the gate.
        """
        stamps = [stamp for stamp, _ in marks_in(text)]
        try:
            return bool(stamps) and self._moment is not None and _moment(min(stamps)) > self._moment
        except ValueError:  # of something else that looks like a stamp
            return False

    def _set_apart(self, found: _Found, memories: Iterable[StoredMemory]) -> None:
        """Take memories that stem from later calls alone out of what is left. One that names no document stays in."""
        for memory in memories:
            if memory.documents and all(one in found.later for one in memory.documents):
                found.later_memories[memory.id] = fold(memory.text)
                found.memories.remove(memory.id)

    def _left(self) -> float:
        """Seconds for a request. The last look gets some, too."""
        left = self._deadline - asyncio.get_running_loop().time()
        return min(_REQUEST, max(1.0, left))


def _lasts(error: Exception) -> bool:
    """Whether asking again is of no use."""
    lasting = (AccessDenied, APIMismatch, PaymentRequired)
    return isinstance(error, lasting) or not isinstance(error, ServiceError)


def _stems_from_later(found: _Found, text: str) -> bool:
    """Whether this is what a later call has said, or a memory made of it, dated perhaps as profiles do."""
    text = _DATE.sub("", fold(text))
    return any(text in fold(said) for said in found.later.values()) or text in found.later_memories.values()


def _hits_later(found: _Found, hit: Hit) -> bool:
    return hit.memory_id in found.later_memories or _stems_from_later(found, hit.text)


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00"))


def _together(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Each once, in the order in which they come first."""
    return tuple(dict.fromkeys(one for part in parts for one in part))
