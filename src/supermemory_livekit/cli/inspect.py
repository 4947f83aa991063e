"""`inspect`: profile, memories and documents of one caller, for a person to read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from supermemory_livekit.errors import NotFound
from supermemory_livekit.store import DocumentPage, MemoryPage, MemoryStore, Profile, StoredCall, StoredMemory

from .caller import add_service, add_tag, one_line, parser, print_table, with_store

__all__ = ["main"]

_REQUEST = 30.0
"""Seconds of one request."""


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments, and return its exit code. `SystemExit` for `--help` and wrong usage."""
    known = parser(
        "inspect",
        "Show what is known of one caller: profile, memories and documents, those changed last first.",
        "The exit code is 0, 1 when the service fails, and 2 for wrong set-up.",
    )
    add_tag(known)
    add_service(known, spool=False)
    known.add_argument(
        "--limit",
        type=int,
        default=20,
        help="Most memories, and most documents, that are shown. [default: 20]",
    )
    known.add_argument("--json", action="store_true", help="Print one JSON object instead.")
    given = known.parse_args(arguments)
    limit = max(1, min(given.limit, 100))

    async def work(store: MemoryStore) -> int:
        profile = await store.profile(given.tag, timeout=_REQUEST)
        memories = await _memories(store, given.tag, limit)
        documents = await _documents(store, given.tag, limit)
        if given.json:
            print(json.dumps({"tag": given.tag, **_as_json(profile, memories, documents)}))
        else:
            print(f"Tag: {given.tag}")
            _show(profile, memories, documents)
        return 0

    return with_store(given.base_url, work)


async def _memories(store: MemoryStore, tag: str, limit: int) -> MemoryPage:
    try:
        return await store.memories(tag, page=1, limit=limit, timeout=_REQUEST)
    except NotFound:
        return MemoryPage(total=0)


async def _documents(store: MemoryStore, tag: str, limit: int) -> DocumentPage:
    try:
        return await store.list_documents(tag, page=1, limit=limit, contents=True, timeout=_REQUEST)
    except NotFound:
        return DocumentPage(total=0)


def _show(profile: Profile, memories: MemoryPage, documents: DocumentPage) -> None:
    if not (profile or memories.entries or documents.entries):
        print("Nothing is known of this caller.")
        return
    lines = [("lasting", line) for line in profile.static] + [("recent", line) for line in profile.dynamic]
    print_table("Profile", ("Kind", "Line"), [(kind, one_line(line)) for kind, line in lines])
    print()
    print_table(
        f"Memories ({_of(len(memories.entries), memories.total)})",
        ("Id", "Said or changed", "Kind", "Memory"),
        [_memory_row(memory) for memory in memories.entries],
    )
    print()
    print_table(
        f"Documents ({_of(len(documents.entries), documents.total)})",
        ("Id", "Changed", "Custom id", "Memories", "Characters", "Ends with"),
        [_document_row(document) for document in documents.entries],
    )


def _memory_row(memory: StoredMemory) -> Sequence[str]:
    said = _day(memory.said_at or memory.updated_at)
    return memory.id, said, "lasting" if memory.static else "recent", one_line(memory.text)


def _document_row(document: StoredCall) -> Sequence[str]:
    made = "made" if document.processed else "to come"
    last = document.text.rstrip().rpartition("\n")[2]
    return (
        document.id,
        _day(document.updated_at),
        document.custom_id or "-",
        made,
        str(len(document.text)),
        one_line(last, 60),
    )


def _of(shown: int, total: int | None) -> str:
    return str(shown) if total is None or total <= shown else f"{shown} of {total}"


def _day(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment is not None else "-"


def _as_json(profile: Profile, memories: MemoryPage, documents: DocumentPage) -> dict[str, Any]:
    return {
        "profile": {"static": list(profile.static), "dynamic": list(profile.dynamic)},
        "memories": [
            {"id": one.id, "text": one.text, "static": one.static, "said_at": _iso(one.said_at)}
            for one in memories.entries
        ],
        "memories_total": memories.total,
        "documents": [
            {
                "id": one.id,
                "custom_id": one.custom_id,
                "text": one.text,
                "processed": one.processed,
                "updated_at": _iso(one.updated_at),
            }
            for one in documents.entries
        ],
        "documents_total": documents.total,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
