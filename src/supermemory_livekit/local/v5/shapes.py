"""The JSON shapes of the answers of the v5 API. The service's own contract is made of them."""

# The keys are the API's own.

from __future__ import annotations

from typing import Literal

from typing_extensions import NotRequired, TypedDict

from supermemory_livekit.local.shapes import Free, PageInfo, Problem, Status, StoredDocument

__all__ = [
    "ChunkItem",
    "ChunkOfDocument",
    "Counts",
    "CreatedAt",
    "DocumentDetail",
    "DocumentItem",
    "DocumentState",
    "Fact",
    "Forgotten",
    "FoundItem",
    "FoundItems",
    "FoundTimes",
    "Free",
    "Included",
    "Lists",
    "MemoryCount",
    "MemoryDetail",
    "MemoryItem",
    "NamespaceItem",
    "NamespacePage",
    "NamespaceSettings",
    "PageInfo",
    "Problem",
    "ProfileAnswer",
    "ProfileSections",
    "RelatedMemories",
    "RelatedMemory",
    "Removed",
    "Retired",
    "SourceDocument",
    "StoredDocument",
    "StoredDocuments",
    "StoredItem",
    "Times",
    "UpdatedAt",
]

Relation = Literal["updates", "extends", "derives"]


class Times(TypedDict):
    createdAt: str
    updatedAt: str


class CreatedAt(TypedDict):
    createdAt: str


class UpdatedAt(TypedDict):
    updatedAt: str


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
