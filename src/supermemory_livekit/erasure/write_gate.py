"""The one door through which a call writes to the service: it is shut for a caller who was erased.

All parts of a call speak to the service through one `WriteGate`, so that nothing which was on its way, in whichever
part, arrives after an erasure. The gate of this call is shut by `shut`; those of other calls in this process are told
by `shut_others`; those of other processes see the mark that the erasure left on this machine, or that their document
has vanished together with everything else of the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from supermemory_livekit.errors import CallerErased, ServiceError
from supermemory_livekit.store import (
    DeletedTag,
    DocumentPage,
    Dreaming,
    Hit,
    MemoryPage,
    MemoryStore,
    Profile,
    SearchMode,
    StoredCall,
    StoredMemory,
)

from .marks import ErasureMarks

__all__ = ["WriteGate", "shut_others"]

T = TypeVar("T")

_LOOK = 5.0
"""Seconds to find out whether a document vanished alone."""


class WriteGate(MemoryStore):
    """A `MemoryStore` that stores nothing of callers who were erased since it was made. Everything else passes.

    Args:
        store: What is behind the door.
        marks: Where erasures of other processes leave word.
        erased: Called, once per tag, when such a one was noticed.
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        marks: ErasureMarks | None = None,
        erased: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._marks = marks
        self._erased = erased
        self._since = time.time()
        self._shut: set[str] = set()
        self._told: set[str] = set()
        """Tags that another call of this process erased."""
        self._loop = _running_loop()
        self._writing: dict[str, int] = defaultdict(int)
        self._made: dict[tuple[str, str], str | datetime] = {}
        """By tag and custom id, what tells a document that was written from another made in its place: the service's
        id, or when it was made."""
        self._unclear: set[str] = set()
        """Tags of which a write ended without an answer."""
        self._ended = asyncio.Event()
        self._deletions: set[asyncio.Future[Any]] = set()
        """Of documents that are taken back."""
        with _LOCK:
            _GATES.add(self)

    def is_shut(self, tag: str) -> bool:
        """Whether nothing of this caller is stored any more."""
        if tag not in self._shut and (tag in self._told or self._is_marked(tag)):
            self._notice(tag)
        return tag in self._shut

    def shut(self, tag: str) -> None:
        """Let nothing of this caller through from now on."""
        self._shut.add(tag)

    def tell(self, tag: str) -> bool:
        """The caller was erased by another call of this process; may be called in any thread.

        Returns whether it is unknown how a write of this caller ends, or ended.
        """
        self._told.add(tag)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # that call is over, and its loop closed
                self._loop.call_soon_threadsafe(self.is_shut, tag)
        return bool(self._writing.get(tag)) or tag in self._unclear

    def _is_marked(self, tag: str) -> bool:
        return self._marks is not None and self._marks.erased_since(tag, self._since)

    async def writes_ended(self, tag: str, timeout: float) -> bool:
        """Wait until no write of this caller is under way, at most so many seconds.

        Returns whether it is known of each write how it ended.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        while self._writing[tag] and (left := deadline - asyncio.get_running_loop().time()) > 0:
            self._ended.clear()
            try:
                await asyncio.wait_for(self._ended.wait(), left)
            except asyncio.TimeoutError:
                break
        return not self._writing[tag] and tag not in self._unclear

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        receipt = await self._write(
            "append",
            tag,
            lambda: self._store.append(tag, custom_id, text, dreaming=dreaming, at=at, timeout=timeout),
        )
        if receipt is None:
            return None
        made = receipt if receipt != custom_id else await self._made_at(tag, receipt)
        if made is not None:
            before = self._made.get((tag, custom_id), made)
            if before != made and await self._stands_alone(tag, receipt, made):
                await self._take_back(tag, receipt)
                raise CallerErased("append: the caller was erased elsewhere")
            self._made[tag, custom_id] = made
        return receipt

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None:
        return await self._write(
            "remember", tag, lambda: self._store.remember(tag, text, dreaming=dreaming, timeout=timeout)
        )

    async def _write(self, what: str, tag: str, write: Callable[[], Awaitable[T]]) -> T:
        self._loop = asyncio.get_running_loop()
        if self.is_shut(tag):
            raise CallerErased(f"{what}: the caller was erased")
        self._writing[tag] += 1
        clear = False
        try:
            answer = await write()
            clear = True
        except ServiceError as error:
            clear = not error.uncertain
            raise
        finally:
            if not clear:
                self._unclear.add(tag)
            self._writing[tag] -= 1
            self._ended.set()
        return answer

    # -- a document that vanished --------------------------------------------------------------------------------

    async def _made_at(self, tag: str, receipt: str) -> datetime | None:
        """When the document was made, asked where a service names it by our own id; None when it does not tell."""
        try:
            texts = await self._store.list_documents(tag, page=1, limit=10, contents=False, timeout=_LOOK)
        except Exception:  # noqa: BLE001 - the text is stored, whatever cannot be found out about it
            return None
        return next((one.created_at for one in texts.entries if one.id == receipt), None)

    async def _stands_alone(self, tag: str, receipt: str, made: str | datetime) -> bool:
        """Whether a document that had to be made anew is all there is of the caller: then they were erased.

        One document alone may have been deleted for other reasons, by a person or by the service.
        """
        try:
            texts = await self._store.list_documents(tag, page=1, limit=10, contents=False, timeout=_LOOK)
            facts = await self._store.memories(tag, page=1, limit=10, timeout=_LOOK)
        except Exception:  # noqa: BLE001 - the text is stored, whatever cannot be found out about others
            return False
        others = [one.id for one in texts.entries if one.id != receipt]
        kept = [memory for memory in facts.entries if not _comes_from(memory, receipt, made)]
        return not (others or kept or facts.gone)

    async def _take_back(self, tag: str, receipt: str) -> None:
        known = tag in self._shut
        self._shut.add(tag)
        # A task of its own: whoever is told ends the write that noticed it.
        deletion = asyncio.ensure_future(self._store.delete_documents(tag, [receipt], timeout=_LOOK))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deleted)
        try:
            await asyncio.shield(deletion)
        except Exception:  # noqa: BLE001
            # The last words that were said before this was noticed stay; no others follow.
            self._unclear.add(tag)
        finally:
            if not known:
                self._tell(tag)

    def _deleted(self, deletion: asyncio.Future[Any]) -> None:
        self._deletions.discard(deletion)
        if not deletion.cancelled():
            deletion.exception()  # read, or asyncio complains about one that nobody waited for to the end

    def _notice(self, tag: str) -> None:
        if tag not in self._shut:
            self._shut.add(tag)
            self._tell(tag)

    def _tell(self, tag: str) -> None:
        if self._erased is not None:
            self._erased(tag)

    # -- what passes ---------------------------------------------------------------------------------------------

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        return await self._store.profile(tag, timeout=timeout)

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        return await self._store.search(
            tag, query, limit=limit, threshold=threshold, mode=mode, timeout=timeout
        )

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        return await self._store.read(tag, custom_id, service_id=service_id, timeout=timeout)

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        await self._store.unremember(tag, service_id, timeout=timeout)

    async def forget(
        self, tag: str, *, memory_id: str | None = None, text: str | None = None, timeout: float
    ) -> bool:
        return await self._store.forget(tag, memory_id=memory_id, text=text, timeout=timeout)

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        return await self._store.memories(tag, page=page, limit=limit, timeout=timeout)

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        return await self._store.latest_calls(tag, limit=limit, timeout=timeout)

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        return await self._store.list_documents(
            tag, page=page, limit=limit, contents=contents, timeout=timeout
        )

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        await self._store.delete_documents(tag, ids, timeout=timeout)

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        return await self._store.delete_tag(tag, timeout=timeout)

    async def aclose(self) -> None:
        if self._deletions:
            await asyncio.wait(self._deletions, timeout=_LOOK)
        await self._store.aclose()


_GATES: weakref.WeakSet[WriteGate] = weakref.WeakSet()
"""Those of this process that are in use."""

_LOCK = threading.Lock()
"""Jobs may run in threads of one process."""


def shut_others(tag: str, own: WriteGate) -> bool:
    """Tell the gates of all other calls of this process that the caller is erased; calls that begin later are free.

    Returns whether it is unknown of a write of theirs how it ends, or ended.
    """
    with _LOCK:
        others = [gate for gate in _GATES if gate is not own]
    # All are told, whatever the first answers.
    unclear = [gate.tell(tag) for gate in others]
    return any(unclear)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _comes_from(memory: StoredMemory, receipt: str, made: str | datetime) -> bool:
    """Whether a memory is of this document alone; where memories name none, whether it is no older."""
    if memory.documents or isinstance(made, str):
        return memory.documents == (receipt,)
    return memory.updated_at is not None and memory.updated_at >= made
