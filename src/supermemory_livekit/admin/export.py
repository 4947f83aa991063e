"""Everything that is known of one caller, as records that can be written as JSON Lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from supermemory_livekit.errors import NotFound
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.spool.records import turns_under
from supermemory_livekit.store import MemoryStore, StoredCall, StoredMemory

__all__ = ["export_caller"]

_REQUEST = 30.0
"""Seconds of one request."""

_DOCUMENTS = 20
"""Documents per page: a call may be long."""

_MEMORIES = 500


async def export_caller(
    store: MemoryStore, tag: str, *, spool_dir: str | Path | None = None
) -> AsyncGenerator[dict[str, Any]]:
    """The caller's records, each with its `kind`:

    - `profile`: `static` and `dynamic`, lists of lines; only when there are any
    - `memory`: `id`, `text`, `static`, `forgotten`, `documents`, and times; forgotten ones that the service still
      lists are among them
    - `document`: a call or a remembered fact with its `text`, `id`, `custom_id` and `processed`
    - `turn`: `role`, `text`, `said_at` and `custom_id` of what waits in the spool and is not stored yet

    Times are ISO 8601 with time zone, or null. A caller nobody knows has no records.

    Raises:
        ServiceError: The service did not answer as it should; what came before is incomplete.
        NotImplementedError: The client can list neither memories nor documents.
    """
    if profile := await store.profile(tag, timeout=_REQUEST):
        yield {"kind": "profile", "static": list(profile.static), "dynamic": list(profile.dynamic)}
    async for memory, forgotten in _memories(store, tag):
        yield _memory_record(memory, forgotten=forgotten)
    async for document in _documents(store, tag):
        yield _document_record(document)
    if spool_dir is not None:
        for record in _spooled(Path(spool_dir), tag):
            yield record


async def _memories(store: MemoryStore, tag: str) -> AsyncGenerator[tuple[StoredMemory, bool]]:
    seen: set[str] = set()
    number = 0
    while True:
        number += 1
        try:
            page = await store.memories(tag, page=number, limit=_MEMORIES, timeout=_REQUEST)
        except NotFound:
            return
        listed = [*((one, False) for one in page.entries), *((one, True) for one in page.forgotten)]
        new = [(memory, forgotten) for memory, forgotten in listed if memory.id not in seen]
        seen.update(memory.id for memory, _ in new)
        for one in new:
            yield one
        if not page.more or not new:
            return


async def _documents(store: MemoryStore, tag: str) -> AsyncGenerator[StoredCall]:
    seen: set[str] = set()
    number = 0
    while True:
        number += 1
        try:
            page = await store.list_documents(
                tag, page=number, limit=_DOCUMENTS, contents=True, timeout=_REQUEST
            )
        except NotFound:
            return
        new = [document for document in page.entries if document.id not in seen]
        seen.update(document.id for document in new)
        for document in new:
            yield document
        if not page.more or not new:
            return


def _memory_record(memory: StoredMemory, *, forgotten: bool) -> dict[str, Any]:
    return {
        "kind": "memory",
        "id": memory.id,
        "text": memory.text,
        "static": memory.static,
        "forgotten": forgotten,
        "said_at": _iso(memory.said_at),
        "updated_at": _iso(memory.updated_at),
        "expires_at": _iso(memory.expires_at),
        "documents": list(memory.documents),
    }


def _document_record(document: StoredCall) -> dict[str, Any]:
    return {
        "kind": "document",
        "id": document.id,
        "custom_id": document.custom_id,
        "text": document.text,
        "processed": document.processed,
        "updated_at": _iso(document.updated_at),
    }


def _spooled(directory: Path, tag: str) -> Iterable[dict[str, Any]]:
    for path in SpoolDirectory(directory).files():
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # delivered and deleted meanwhile
            continue
        for scope, turn in turns_under(data, tag):
            yield {
                "kind": "turn",
                "role": turn.role,
                "text": turn.text,
                "said_at": _iso(turn.at),
                "custom_id": scope.document_id,
            }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
