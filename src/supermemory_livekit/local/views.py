"""Records in the JSON shapes of Supermemory's v3/v4 API. Keys that the contract requires are always there."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from .finding import FoundDocument, Hit, ProfileLines
from .memories import Listed, Matched
from .records import Chunk, Document, Memory, TagInfo
from .schemas import DocumentSearch, Include
from .texts import iso, now_ms

__all__ = [
    "chunk_view",
    "created_memory_view",
    "document_view",
    "found_document_view",
    "hit_view",
    "listed_memory_view",
    "matched_view",
    "memory_of_document_view",
    "page_view",
    "processing_view",
    "profile_view",
    "tag_settings_view",
    "tag_view",
    "updated_memory_view",
]

Json = dict[str, Any]


def document_view(document: Document, *, content: bool = True) -> Json:
    view: Json = {
        **processing_view(document),
        "connectionId": None,
        "filepath": document.filepath,
        "summary": None,
        "dreamingStatus": document.dreaming_status,
        "taskType": document.task_type,
        "ogImage": None,
        "raw": None,
        "source": None,
        "url": None,
    }
    if content:
        view["content"] = document.content
    return view


def processing_view(document: Document) -> Json:
    return {
        "id": document.id,
        "customId": document.custom_id,
        "title": document.title,
        "type": "text",
        "status": document.status,
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
        "metadata": document.metadata or None,
        "containerTags": [document.tag],
    }


def chunk_view(chunk: Chunk, document: Document) -> Json:
    return {
        "id": chunk.id,
        "position": chunk.position,
        "content": chunk.text,
        "type": "text",
        "metadata": document.metadata or None,
        "createdAt": iso(chunk.at),
    }


def memory_of_document_view(memory: Memory) -> Json:
    now = now_ms()
    return {
        "id": memory.id,
        "memory": memory.text,
        "createdAt": iso(memory.created_at),
        "updatedAt": iso(memory.updated_at),
        "isLatest": memory.latest,
        "isForgotten": memory.forgotten(now),
        "isStatic": memory.static,
        "isInference": False,
        "version": memory.version,
        "sourceCount": memory.source_count,
        "metadata": memory.metadata or None,
        "parentMemoryId": memory.parent_id,
        "rootMemoryId": memory.root_id,
    }


def created_memory_view(memory: Memory) -> Json:
    return {
        "id": memory.id,
        "memory": memory.text,
        "isStatic": memory.static,
        "createdAt": iso(memory.created_at),
        "forgetAfter": _iso(memory.forget_after),
        "forgetReason": memory.forget_reason,
        "metadata": memory.metadata or None,
    }


def updated_memory_view(memory: Memory) -> Json:
    view = created_memory_view(memory)
    del view["isStatic"]
    return {
        **view,
        "version": memory.version,
        "parentMemoryId": memory.parent_id,
        "rootMemoryId": memory.root_id,
    }


def listed_memory_view(listed: Listed, tag: str) -> Json:
    memory = listed.memory
    return {
        **memory_of_document_view(memory),
        "spaceId": tag,
        "orgId": "local",
        "forgetAfter": _iso(memory.forget_after),
        "forgetReason": memory.forget_reason,
        "memoryRelations": {memory.parent_id: "updates"} if memory.parent_id else {},
        "temporalContext": {"documentDate": iso(memory.at)},
        "history": [
            {
                "id": old.id,
                "memory": old.text,
                "version": old.version,
                "createdAt": iso(old.created_at),
                "updatedAt": iso(old.updated_at),
                "parentMemoryId": old.parent_id,
                "rootMemoryId": old.root_id,
                "isLatest": old.latest,
                "isForgotten": old.forgotten_at is not None,
            }
            for old in listed.history
        ],
        "documentIds": list(listed.document_ids),
    }


def hit_view(hit: Hit, include: Include) -> Json:
    """`updatedAt` is when it was said last, which is what tells a reader how old it is."""
    view: Json = {"similarity": round(hit.similarity, 4)}
    if hit.memory is not None:
        memory = hit.memory
        view |= {
            "id": memory.id,
            "memory": memory.text,
            "metadata": memory.metadata or None,
            "updatedAt": iso(memory.at),
            "version": memory.version,
            "rootMemoryId": memory.root_id,
        }
    elif hit.chunk is not None:
        document = hit.documents[0]
        view |= {
            "id": hit.chunk.id,
            "chunk": hit.chunk.text,
            "metadata": document.metadata or None,
            "updatedAt": iso(hit.chunk.at),
            "filepath": document.filepath,
        }
    if include.related_memories and hit.memory is not None:
        parents = [
            {
                "relation": "updates",
                "version": -distance,
                "memory": parent.text,
                "metadata": parent.metadata or None,
                "updatedAt": iso(parent.at),
            }
            for distance, parent in enumerate(hit.parents, 1)
        ]
        view["context"] = {"parents": parents, "children": [], "related": []}
    if include.documents:
        view["documents"] = [
            {
                "id": document.id,
                "title": document.title,
                "type": "text",
                "metadata": document.metadata or None,
                "createdAt": iso(document.created_at),
                "updatedAt": iso(document.updated_at),
                **({"summary": None} if include.summaries else {}),
            }
            for document in hit.documents
        ]
    return view


def found_document_view(found: FoundDocument, ask: DocumentSearch) -> Json:
    document = found.document
    view: Json = {
        "documentId": document.id,
        "title": document.title,
        "type": "text",
        "score": round(found.score, 4),
        "chunks": [
            {"content": chunk.text, "isRelevant": True, "score": round(score, 4), "position": chunk.position}
            for chunk, score in found.chunks
        ],
        "metadata": document.metadata or None,
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
    }
    if ask.include_full_docs:
        view["content"] = document.content
    if ask.include_summary:
        view["summary"] = None
    return view


def profile_view(lines: ProfileLines, sections: Sequence[str]) -> Json:
    whole: Json = {
        "static": [line.text for line in lines.static],
        "dynamic": [line.text for line in lines.dynamic],
        "buckets": {},
    }
    return {name: value for name, value in whole.items() if name in sections}


def matched_view(match: Matched) -> Json:
    return {"id": match.memory.id, "memory": match.memory.text, "score": round(match.score, 4)}


def tag_settings_view(tag: TagInfo) -> Json:
    return {
        "containerTag": tag.tag,
        "name": None,
        "entityContext": tag.entity_context,
        "memoryFilesystemPaths": None,
        "profileBuckets": [],
        "createdAt": iso(tag.created_at),
        "updatedAt": iso(tag.updated_at),
    }


def tag_view(tag: TagInfo) -> Json:
    return {
        "id": tag.tag,
        "name": tag.tag,
        "containerTag": tag.tag,
        "description": None,
        "createdAt": iso(tag.created_at),
        "updatedAt": iso(tag.updated_at),
        "isExperimental": False,
        "isNova": False,
        "documentCount": tag.documents,
        "memoryCount": tag.memories,
        "lastActivityAt": iso(tag.updated_at),
    }


def page_view(page: int, limit: int, total: int) -> Json:
    return {"currentPage": page, "limit": limit, "totalItems": total, "totalPages": ceil(total / limit)}


def _iso(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)
