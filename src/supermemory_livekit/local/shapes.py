"""The JSON shapes of the answers of the v3/v4 API. The service's own contract is made of them."""

# The keys are the API's own.

from __future__ import annotations

from typing import Literal

from typing_extensions import NotRequired, TypedDict

__all__ = [
    "AddedDocuments",
    "ChunkList",
    "ChunkView",
    "Context",
    "CreatedMemories",
    "CreatedMemory",
    "DeletedDocuments",
    "DeletedTag",
    "DocumentDetail",
    "DocumentList",
    "DocumentView",
    "ForgottenMemories",
    "ForgottenMemory",
    "FoundDocument",
    "FoundDocuments",
    "FoundItem",
    "FoundItems",
    "Free",
    "Health",
    "ListedMemory",
    "MatchedMemory",
    "MemoryList",
    "MemoryOfDocument",
    "PageInfo",
    "ParentMemory",
    "ProcessingDocument",
    "ProcessingDocuments",
    "ProfileAnswer",
    "ProfileSections",
    "SourceDocument",
    "StoredConversation",
    "StoredDocument",
    "TagItem",
    "TagSettings",
    "UpdatedMemory",
]

Free = dict[str, object]
"""Metadata as the client gave it."""
Status = Literal["unknown", "queued", "extracting", "chunking", "embedding", "indexing", "done", "failed"]


class Health(TypedDict):
    status: str
    service: str


class StoredDocument(TypedDict):
    id: str
    status: Status


class StoredConversation(TypedDict):
    id: str
    conversationId: str
    status: Status


class AddedDocument(TypedDict):
    id: str
    status: str
    error: NotRequired[str]
    details: NotRequired[str]


class AddedDocuments(TypedDict):
    results: list[AddedDocument]
    failed: int
    success: int


class ProcessingDocument(TypedDict):
    id: str
    customId: str | None
    title: str | None
    type: Literal["text"]
    status: Status
    createdAt: str
    updatedAt: str
    metadata: Free | None
    containerTags: list[str]


class ProcessingDocuments(TypedDict):
    documents: list[ProcessingDocument]
    totalCount: int


class DocumentView(ProcessingDocument):
    connectionId: None
    filepath: str | None
    summary: str | None
    dreamingStatus: Literal["dreaming", "done"]
    taskType: str
    ogImage: None
    raw: None
    source: None
    url: None
    content: NotRequired[str]


class MemoryOfDocument(TypedDict):
    id: str
    memory: str
    createdAt: str
    updatedAt: str
    isLatest: bool
    isForgotten: bool
    isStatic: bool
    isInference: bool
    version: int
    sourceCount: int
    metadata: Free | None
    parentMemoryId: str | None
    rootMemoryId: str | None


class DocumentDetail(DocumentView):
    memories: list[MemoryOfDocument]


class PageInfo(TypedDict):
    currentPage: int
    limit: int
    totalItems: int
    totalPages: int


class DocumentList(TypedDict):
    memories: list[DocumentView]
    pagination: PageInfo


class ChunkView(TypedDict):
    id: str
    position: int
    content: str
    type: str
    metadata: Free | None
    createdAt: str


class ChunkList(TypedDict):
    documentId: str
    chunks: list[ChunkView]
    total: int


class Problem(TypedDict):
    id: str
    error: str


class DeletedDocuments(TypedDict):
    success: bool
    deletedCount: int
    errors: NotRequired[list[Problem]]
    containerTags: NotRequired[list[str]]


class ProfileSections(TypedDict):
    static: NotRequired[list[str]]
    dynamic: NotRequired[list[str]]
    buckets: NotRequired[dict[str, list[str]]]


class ParentMemory(TypedDict):
    relation: Literal["updates", "extends", "derives"]
    version: int | None
    memory: str
    metadata: Free | None
    updatedAt: str


class Context(TypedDict):
    parents: list[ParentMemory]
    children: list[ParentMemory]
    related: list[ParentMemory]


class SourceDocument(TypedDict):
    id: str
    title: str
    type: str
    metadata: Free | None
    createdAt: str
    updatedAt: str
    summary: NotRequired[str | None]


class FoundItem(TypedDict):
    id: str
    memory: NotRequired[str]
    chunk: NotRequired[str]
    metadata: Free | None
    updatedAt: str
    similarity: float
    version: NotRequired[int | None]
    rootMemoryId: NotRequired[str | None]
    filepath: NotRequired[str | None]
    context: NotRequired[Context]
    documents: NotRequired[list[SourceDocument]]


class FoundItems(TypedDict):
    results: list[FoundItem]
    total: int
    timing: int


class ProfileAnswer(TypedDict):
    profile: ProfileSections
    searchResults: NotRequired[FoundItems]


class FoundChunk(TypedDict):
    content: str
    isRelevant: bool
    score: float
    position: int


class FoundDocument(TypedDict):
    documentId: str
    title: str | None
    type: str | None
    score: float
    chunks: list[FoundChunk]
    metadata: Free | None
    createdAt: str
    updatedAt: str
    content: NotRequired[str]
    summary: NotRequired[str | None]


class FoundDocuments(TypedDict):
    results: list[FoundDocument]
    total: int
    timing: int


class CreatedMemory(TypedDict):
    id: str
    memory: str
    isStatic: bool
    createdAt: str
    forgetAfter: str | None
    forgetReason: str | None
    metadata: Free | None


class CreatedMemories(TypedDict):
    documentId: str | None
    memories: list[CreatedMemory]


class UpdatedMemory(TypedDict):
    id: str
    memory: str
    createdAt: str
    forgetAfter: str | None
    forgetReason: str | None
    metadata: Free | None
    version: int
    parentMemoryId: str | None
    rootMemoryId: str | None


class ForgottenMemory(TypedDict):
    id: str
    forgotten: bool


class MatchedMemory(TypedDict):
    id: str
    memory: str
    score: float


class ForgottenMemories(TypedDict):
    dryRun: bool
    count: int
    forgetBatchId: str | None
    summary: str
    candidates: NotRequired[list[MatchedMemory]]
    forgotten: NotRequired[list[MatchedMemory]]


class EarlierMemory(TypedDict):
    id: str
    memory: str
    version: int
    createdAt: str
    updatedAt: str
    parentMemoryId: str | None
    rootMemoryId: str | None
    isLatest: bool
    isForgotten: bool


class ListedMemory(MemoryOfDocument):
    spaceId: str
    orgId: str
    forgetAfter: str | None
    forgetReason: str | None
    memoryRelations: dict[str, Literal["updates", "extends", "derives"]]
    temporalContext: Free
    history: list[EarlierMemory]
    documentIds: list[str]


class MemoryList(TypedDict):
    memoryEntries: list[ListedMemory]
    pagination: PageInfo


class TagSettings(TypedDict):
    containerTag: str
    name: str | None
    entityContext: str | None
    memoryFilesystemPaths: None
    profileBuckets: list[Free]
    createdAt: str
    updatedAt: str


class TagItem(TypedDict):
    id: str
    name: str
    containerTag: str
    description: str | None
    createdAt: str
    updatedAt: str
    isExperimental: bool
    isNova: bool
    documentCount: int
    memoryCount: int
    lastActivityAt: str


class DeletedTag(TypedDict):
    success: bool
    containerTag: str
    deletedDocumentsCount: int
    deletedMemoriesCount: int
