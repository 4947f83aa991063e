"""Records in the JSON shapes of the v5 API."""

# The keys are the API's own.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from supermemory_livekit.local.finding import Hit, ProfileLine, ProfileLines
from supermemory_livekit.local.memories import Related
from supermemory_livekit.local.records import Chunk, Document, Memory, Metadata, TagInfo
from supermemory_livekit.local.texts import iso, now_ms

__all__ = [
    "ChunkOfDocument",
    "Counts",
    "DocumentDetail",
    "Forgotten",
    "FoundItems",
    "Lists",
    "MemoryDetail",
    "NamespacePage",
    "NamespaceSettings",
    "ProfileAnswer",
    "Removed",
    "Retired",
    "StoredDocument",
    "StoredDocuments",
    "chunk_item",
    "chunk_view",
    "document_item",
    "document_view",
    "hit_view",
    "markdown_of",
    "memory_view",
    "namespace_view",
    "page_view",
    "profile_view",
    "related_view",
    "settings_view",
]

Status = Literal["unknown", "queued", "extracting", "chunking", "embedding", "indexing", "done", "failed"]
Relation = Literal["updates", "extends", "derives"]
Free = dict[str, object]
"""Metadata as the client gave it."""


class Times(TypedDict):
    createdAt: str
    updatedAt: str


class CreatedAt(TypedDict):
    createdAt: str


class UpdatedAt(TypedDict):
    updatedAt: str


class StoredDocument(TypedDict):
    id: str
    status: Status


class StoredItem(TypedDict):
    id: str
    status: Literal[
        "unknown", "queued", "extracting", "chunking", "embedding", "indexing", "done", "failed", "error"
    ]
    error: NotRequired[str]
    details: NotRequired[str]


class StoredDocuments(TypedDict):
    results: list[StoredItem]
    count: int
    failed: int


class Problem(TypedDict):
    id: str
    error: str


class Removed(TypedDict):
    count: int
    errors: list[Problem]


class Fact(TypedDict):
    id: str
    memory: str


class Forgotten(TypedDict):
    count: int
    errors: list[Problem]
    matches: list[Fact]


class DocumentState(TypedDict):
    status: Status
    dreamingStatus: Literal["dreaming", "done"]
    createdAt: str
    updatedAt: str
    memoryCount: NotRequired[int]
    """In lists, if asked for."""


class ChunkOfDocument(TypedDict):
    id: str
    position: int
    content: str
    type: str
    metadata: Free
    system: CreatedAt


class MemoryItem(TypedDict):
    id: str
    memory: str
    metadata: Free
    isStatic: bool
    isInference: bool
    isLatest: bool
    isForgotten: bool
    version: int
    system: Times


class DocumentDetail(TypedDict):
    id: str
    title: str | None
    type: str
    summary: str | None
    content: str | None
    metadata: Free
    system: DocumentState
    chunks: NotRequired[list[ChunkOfDocument]]
    memories: NotRequired[list[MemoryItem]]


class SourceDocument(TypedDict):
    id: str
    title: str | None
    type: str | None
    metadata: Free
    summary: str | None
    system: Times


class RelatedMemory(TypedDict):
    id: str
    relation: Relation
    version: int | None
    memory: str
    metadata: Free
    system: UpdatedAt
    document: NotRequired[SourceDocument]


class RelatedMemories(TypedDict):
    parents: list[RelatedMemory]
    children: list[RelatedMemory]
    siblings: list[RelatedMemory]


class Included(TypedDict):
    related: NotRequired[RelatedMemories]
    document: NotRequired[SourceDocument]


class MemoryDetail(MemoryItem):
    included: Included


class FoundTimes(TypedDict):
    updatedAt: str
    createdAt: NotRequired[str]


class FoundItem(TypedDict):
    id: str
    memory: NotRequired[str]
    chunk: NotRequired[str]
    metadata: Free
    similarity: float
    isLatest: bool
    isInference: bool
    system: FoundTimes
    included: NotRequired[Included]


class FoundItems(TypedDict):
    results: list[FoundItem]
    searchTime: int


class ProfileSections(TypedDict):
    static: list[Fact]
    dynamic: list[Fact]
    buckets: dict[str, list[Fact]]


class ProfileAnswer(TypedDict):
    profile: ProfileSections


class DocumentItem(TypedDict):
    id: str
    title: str | None
    type: str
    content: NotRequired[str | None]
    summary: str | None
    metadata: Free
    url: str | None
    system: DocumentState


class ChunkItem(ChunkOfDocument):
    documentId: str


class PageInfo(TypedDict):
    currentPage: int
    limit: int
    totalItems: int
    totalPages: int


class Lists(TypedDict):
    documents: list[DocumentItem]
    chunks: list[ChunkItem]
    memories: list[MemoryItem]
    pagination: PageInfo


class MemoryCount(TypedDict):
    id: str
    memoryCount: int


class Counts(TypedDict):
    counts: list[MemoryCount]


class NamespaceItem(TypedDict):
    id: str
    namespace: str
    documentCount: int
    memoryCount: int
    description: str | None
    system: Times


class NamespacePage(TypedDict):
    namespaces: list[NamespaceItem]
    pagination: PageInfo


class NamespaceSettings(TypedDict):
    namespace: str
    supportingContext: str | None
    system: Times


class Retired(TypedDict):
    status: Literal["deleted"]
    namespace: str
    deletedDocumentsCount: int
    deletedMemoriesCount: int


def document_view(
    document: Document, chunks: Sequence[Chunk] | None, memories: Sequence[Memory] | None
) -> DocumentDetail:
    view: DocumentDetail = {
        "id": public_id(document),
        "title": document.title,
        "type": "text",
        "summary": None,
        "content": document.content,
        "metadata": _free(document.metadata),
        "system": _state(document),
    }
    if chunks is not None:
        view["chunks"] = [chunk_view(chunk, document) for chunk in chunks]
    if memories is not None:
        view["memories"] = [memory_view(memory) for memory in memories]
    return view


def public_id(document: Document) -> str:
    """The client's own id, where it gave one."""
    return document.custom_id or document.id


def chunk_view(chunk: Chunk, document: Document) -> ChunkOfDocument:
    return {
        "id": chunk.id,
        "position": chunk.position,
        "content": chunk.text,
        "type": "text",
        "metadata": _free(document.metadata),
        "system": {"createdAt": iso(chunk.at)},
    }


def chunk_item(chunk: Chunk, document: Document) -> ChunkItem:
    return {**chunk_view(chunk, document), "documentId": public_id(document)}


def memory_view(memory: Memory) -> MemoryItem:
    return {
        "id": memory.id,
        "memory": memory.text,
        "metadata": _free(memory.metadata),
        "isStatic": memory.static,
        "isInference": False,
        "isLatest": memory.latest,
        "isForgotten": memory.forgotten(now_ms()),
        "version": memory.version,
        "system": _times(memory),
    }


def related_view(found: Related, *, limit: int, related: bool, documents: bool) -> MemoryDetail:
    included: Included = {}
    if related:
        sources: Mapping[int, Sequence[Document]] = found.documents if documents else {}
        parents = enumerate(found.parents[:limit], 1)
        children = enumerate(found.children[:limit], 1)
        included["related"] = {
            "parents": [_relative(memory, -step, sources) for step, memory in parents],
            "children": [_relative(memory, step, sources) for step, memory in children],
            "siblings": [],
        }
    source = found.documents.get(found.memory.seq, ())
    if documents and source:
        included["document"] = _source(source[0])
    return {**memory_view(found.memory), "included": included}


def hit_view(hit: Hit, *, related: bool, documents: bool) -> FoundItem:
    """`updatedAt` is when it was said last, which is what tells a reader how old it is."""
    if hit.memory is not None:
        view: FoundItem = {
            "id": hit.memory.id,
            "memory": hit.memory.text,
            "metadata": _free(hit.memory.metadata),
            "similarity": round(hit.similarity, 4),
            "isLatest": hit.memory.latest,
            "isInference": False,
            "system": {"updatedAt": iso(hit.memory.at), "createdAt": iso(hit.memory.created_at)},
        }
    else:
        assert hit.chunk is not None
        view = {
            "id": hit.chunk.id,
            "chunk": hit.chunk.text,
            "metadata": _free(hit.documents[0].metadata),
            "similarity": round(hit.similarity, 4),
            "isLatest": True,
            "isInference": False,
            "system": {"updatedAt": iso(hit.chunk.at), "createdAt": iso(hit.documents[0].created_at)},
        }
    included: Included = {}
    if related and hit.memory is not None:
        parents = [_relative(memory, -step, {}) for step, memory in enumerate(hit.parents, 1)]
        included["related"] = {"parents": parents, "children": [], "siblings": []}
    if documents and hit.documents:
        included["document"] = _source(hit.documents[0])
    if included:
        view["included"] = included
    return view


def profile_view(lines: ProfileLines) -> ProfileAnswer:
    return {"profile": {"static": _facts(lines.static), "dynamic": _facts(lines.dynamic), "buckets": {}}}


def markdown_of(lines: ProfileLines) -> str:
    """The profile for a reader, one list per section that is not empty."""
    sections = (("Static", lines.static), ("Dynamic", lines.dynamic))
    parts = [
        f"## {name}\n\n" + "".join(f"- {' '.join(line.text.split())}\n" for line in section)
        for name, section in sections
        if section
    ]
    return "\n".join(parts)


def document_item(document: Document, *, content: bool, memory_count: int | None) -> DocumentItem:
    view: DocumentItem = {
        "id": public_id(document),
        "title": document.title,
        "type": "text",
        "summary": None,
        "metadata": _free(document.metadata),
        "url": None,
        "system": _state(document, memory_count),
    }
    if content:
        view["content"] = document.content
    return view


def namespace_view(tag: TagInfo) -> NamespaceItem:
    return {
        "id": tag.tag,
        "namespace": tag.tag,
        "documentCount": tag.documents,
        "memoryCount": tag.memories,
        "description": None,
        "system": _times(tag),
    }


def settings_view(tag: TagInfo) -> NamespaceSettings:
    return {"namespace": tag.tag, "supportingContext": tag.entity_context, "system": _times(tag)}


def page_view(page: int, limit: int, total: int) -> PageInfo:
    return {"currentPage": page, "limit": limit, "totalItems": total, "totalPages": ceil(total / limit)}


def _relative(memory: Memory, version: int, sources: Mapping[int, Sequence[Document]]) -> RelatedMemory:
    """`version`: steps from the memory that was asked for, earlier ones below 0."""
    view: RelatedMemory = {
        "id": memory.id,
        "relation": "updates",
        "version": version,
        "memory": memory.text,
        "metadata": _free(memory.metadata),
        "system": {"updatedAt": iso(memory.at)},
    }
    documents = sources.get(memory.seq, ())
    if documents:
        view["document"] = _source(documents[0])
    return view


def _state(document: Document, memory_count: int | None = None) -> DocumentState:
    view: DocumentState = {
        "status": "embedding" if document.embedding else "done",
        "dreamingStatus": "dreaming" if document.dreaming else "done",
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
    }
    if memory_count is not None:
        view["memoryCount"] = memory_count
    return view


def _source(document: Document) -> SourceDocument:
    return {
        "id": public_id(document),
        "title": document.title,
        "type": "text",
        "metadata": _free(document.metadata),
        "summary": None,
        "system": _times(document),
    }


def _facts(lines: Sequence[ProfileLine]) -> list[Fact]:
    return [{"id": line.id, "memory": line.text} for line in lines]


def _times(record: Document | Memory | TagInfo) -> Times:
    return {"createdAt": iso(record.created_at), "updatedAt": iso(record.updated_at)}


def _free(metadata: Metadata) -> Free:
    return dict(metadata)
