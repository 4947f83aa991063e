"""Records in the JSON shapes of Supermemory's v3/v4 API. Keys that the contract requires are always there."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from . import shapes
from .finding import FoundDocument, Hit, ProfileLines
from .memories import Listed, Matched
from .records import Chunk, Document, Memory, Metadata, TagInfo
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


def document_view(document: Document, *, content: bool = True) -> shapes.DocumentView:
    view: shapes.DocumentView = {
        "id": document.id,
        "customId": document.custom_id,
        "title": document.title,
        "type": "text",
        "status": document.status,
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
        "metadata": _free(document.metadata),
        "containerTags": [document.tag],
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


def processing_view(document: Document) -> shapes.ProcessingDocument:
    return {
        "id": document.id,
        "customId": document.custom_id,
        "title": document.title,
        "type": "text",
        "status": document.status,
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
        "metadata": _free(document.metadata),
        "containerTags": [document.tag],
    }


def chunk_view(chunk: Chunk, document: Document) -> shapes.ChunkView:
    return {
        "id": chunk.id,
        "position": chunk.position,
        "content": chunk.text,
        "type": "text",
        "metadata": _free(document.metadata),
        "createdAt": iso(chunk.at),
    }


def memory_of_document_view(memory: Memory) -> shapes.MemoryOfDocument:
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
        "metadata": _free(memory.metadata),
        "parentMemoryId": memory.parent_id,
        "rootMemoryId": memory.root_id,
    }


def created_memory_view(memory: Memory) -> shapes.CreatedMemory:
    return {
        "id": memory.id,
        "memory": memory.text,
        "isStatic": memory.static,
        "createdAt": iso(memory.created_at),
        "forgetAfter": _iso(memory.forget_after),
        "forgetReason": memory.forget_reason,
        "metadata": _free(memory.metadata),
    }


def updated_memory_view(memory: Memory) -> shapes.UpdatedMemory:
    return {
        "id": memory.id,
        "memory": memory.text,
        "createdAt": iso(memory.created_at),
        "forgetAfter": _iso(memory.forget_after),
        "forgetReason": memory.forget_reason,
        "metadata": _free(memory.metadata),
        "version": memory.version,
        "parentMemoryId": memory.parent_id,
        "rootMemoryId": memory.root_id,
    }


def listed_memory_view(listed: Listed, tag: str) -> shapes.ListedMemory:
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


def hit_view(hit: Hit, include: Include) -> shapes.FoundItem:
    """`updatedAt` is when it was said last, which is what tells a reader how old it is."""
    if hit.memory is not None:
        view: shapes.FoundItem = {
            "id": hit.memory.id,
            "memory": hit.memory.text,
            "metadata": _free(hit.memory.metadata),
            "updatedAt": iso(hit.memory.at),
            "similarity": round(hit.similarity, 4),
            "version": hit.memory.version,
            "rootMemoryId": hit.memory.root_id,
        }
    else:
        assert hit.chunk is not None
        document = hit.documents[0]
        view = {
            "id": hit.chunk.id,
            "chunk": hit.chunk.text,
            "metadata": _free(document.metadata),
            "updatedAt": iso(hit.chunk.at),
            "similarity": round(hit.similarity, 4),
            "filepath": document.filepath,
        }
    if include.related_memories and hit.memory is not None:
        context: shapes.Context = {"parents": _parents(hit), "children": [], "related": []}
        view["context"] = context
    if include.documents:
        view["documents"] = [_source(document, summary=include.summaries) for document in hit.documents]
    return view


def found_document_view(found: FoundDocument, ask: DocumentSearch) -> shapes.FoundDocument:
    document = found.document
    view: shapes.FoundDocument = {
        "documentId": document.id,
        "title": document.title,
        "type": "text",
        "score": round(found.score, 4),
        "chunks": [
            {"content": chunk.text, "isRelevant": True, "score": round(score, 4), "position": chunk.position}
            for chunk, score in found.chunks
        ],
        "metadata": _free(document.metadata),
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
    }
    if ask.include_full_docs:
        view["content"] = document.content
    if ask.include_summary:
        view["summary"] = None
    return view


def profile_view(lines: ProfileLines, sections: Sequence[str]) -> shapes.ProfileSections:
    view: shapes.ProfileSections = {}
    if "static" in sections:
        view["static"] = [line.text for line in lines.static]
    if "dynamic" in sections:
        view["dynamic"] = [line.text for line in lines.dynamic]
    if "buckets" in sections:
        view["buckets"] = {}
    return view


def matched_view(match: Matched) -> shapes.MatchedMemory:
    return {"id": match.memory.id, "memory": match.memory.text, "score": round(match.score, 4)}


def tag_settings_view(tag: TagInfo) -> shapes.TagSettings:
    return {
        "containerTag": tag.tag,
        "name": None,
        "entityContext": tag.entity_context,
        "memoryFilesystemPaths": None,
        "profileBuckets": [],
        "createdAt": iso(tag.created_at),
        "updatedAt": iso(tag.updated_at),
    }


def tag_view(tag: TagInfo) -> shapes.TagItem:
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


def page_view(page: int, limit: int, total: int) -> shapes.PageInfo:
    return {"currentPage": page, "limit": limit, "totalItems": total, "totalPages": ceil(total / limit)}


def _iso(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)


def _parents(hit: Hit) -> list[shapes.ParentMemory]:
    return [
        {
            "relation": "updates",
            "version": -distance,
            "memory": parent.text,
            "metadata": _free(parent.metadata),
            "updatedAt": iso(parent.at),
        }
        for distance, parent in enumerate(hit.parents, 1)
    ]


def _source(document: Document, *, summary: bool) -> shapes.SourceDocument:
    view: shapes.SourceDocument = {
        "id": document.id,
        "title": document.title,
        "type": "text",
        "metadata": _free(document.metadata),
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
    }
    if summary:
        view["summary"] = None
    return view


def _free(metadata: Metadata) -> shapes.Free | None:
    return dict(metadata) or None
