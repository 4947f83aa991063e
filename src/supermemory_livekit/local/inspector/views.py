"""What the page is sent, as JSON. Times are milliseconds since 1970, which a browser turns into the reader's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supermemory_livekit.local.extraction import Line
from supermemory_livekit.local.finding import Hit
from supermemory_livekit.local.recalls import Search
from supermemory_livekit.local.records import Chunk, Document, Memory, TagInfo
from supermemory_livekit.local.texts import now_ms, to_ms

from .sources import Source, lines_of

__all__ = [
    "Json",
    "call_view",
    "caller_view",
    "document_view",
    "hit_view",
    "lines_view",
    "memory_view",
    "recall_view",
    "source_view",
]

Json = dict[str, Any]

_SHORT = 160
"""Characters of a text that stands for a longer one."""


def caller_view(tag: TagInfo) -> Json:
    return {
        "tag": tag.tag,
        "documents": tag.documents,
        "memories": tag.memories,
        "context": tag.entity_context,
        "since": tag.created_at,
        "changed": tag.updated_at,
    }


def memory_view(memory: Memory) -> Json:
    now = now_ms()
    if not memory.latest:
        state = "replaced"
    elif memory.forgotten_at is not None:
        state = "forgotten"
    else:
        state = "expired" if memory.expired(now) else "held"
    return {
        "id": memory.id,
        "text": memory.text,
        "lasting": memory.static,
        "at": memory.at,
        "stored": memory.created_at,
        "version": memory.version,
        "state": state,
        "forgotten": memory.forgotten_at,
        "reason": memory.forget_reason,
        "until": memory.forget_after,
        "sources": memory.source_count,
        "metadata": dict(memory.metadata),
    }


def document_view(document: Document, lines: Sequence[Line]) -> Json:
    """A call or a note without its text; `lines` are its turns, whose times tell when a call was."""
    times = [to_ms(line.at) for line in lines if line.at is not None]
    dated = document.dated_at if document.dated_at is not None else document.created_at
    return {
        "id": document.id,
        "name": document.custom_id,
        "from": min(times, default=dated),
        "to": max(times, default=None),
        "changed": document.updated_at,
        "characters": len(document.content),
        "searchable": not document.embedding,
        "remembered": not document.dreaming,
        "metadata": dict(document.metadata),
    }


def call_view(document: Document, memories: int) -> Json:
    """A line of the list of calls."""
    lines, spoken = lines_of(document)
    return {
        **document_view(document, lines),
        "spoken": spoken,
        "turns": len(lines),
        "begins": _shortened(lines[0].text) if lines else "",
        "memories": memories,
    }


def lines_view(lines: Sequence[Line], first: int) -> list[Json]:
    return [
        {
            "turn": first + number,
            "role": line.role,
            "at": None if line.at is None else to_ms(line.at),
            "text": line.text,
        }
        for number, line in enumerate(lines)
    ]


def source_view(source: Source) -> Json:
    return {
        "document": document_view(source.document, source.lines),
        "turn": source.turn,
        "lines": lines_view(source.lines[source.around], source.around.start),
    }


def hit_view(hit: Hit, parts: Mapping[str, float] | None) -> Json:
    """`parts`: by name, from 0 to 1; None when the hit is gone meanwhile."""
    view: Json = {"similarity": round(hit.similarity, 4), "parts": None}
    if parts is not None:
        view["parts"] = {name: round(value, 4) for name, value in parts.items()}
    if hit.memory is not None:
        return {**view, "kind": "memory", "id": hit.memory.id, "text": hit.memory.text, "at": hit.memory.at}
    assert hit.chunk is not None
    return {
        **view,
        "kind": "call",
        "id": hit.documents[0].id,
        "name": hit.documents[0].custom_id,
        "text": hit.chunk.text,
        "at": hit.chunk.at,
    }


def recall_view(
    search: Search,
    memories: Mapping[str, Memory],
    documents: Mapping[str, Document],
    chunks: Mapping[str, Chunk],
) -> Json:
    """What is gone meanwhile is counted and not shown."""
    found: list[Json] = []
    for one in search.found:
        similarity = round(one.similarity, 4)
        memory = memories.get(one.memory_id or "")
        document = documents.get(one.document_id or "")
        if memory is not None:
            found.append({"kind": "memory", "id": memory.id, "text": memory.text, "similarity": similarity})
        elif document is not None:
            chunk = chunks.get(one.chunk_id or "")
            text = chunk.text if chunk is not None else document.custom_id or document.title
            found.append(
                {"kind": "call", "id": document.id, "text": _shortened(text), "similarity": similarity}
            )
    return {
        "number": search.number,
        "kind": search.kind,
        "tag": search.tag,
        "query": search.query,
        "at": search.at,
        "took": round(search.took, 1),
        "threshold": search.threshold,
        "total": search.total,
        "gone": len(search.found) - len(found),
        "found": found,
    }


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
