"""Records in the JSON shapes of the v5 API."""

# The keys are the API's own.

from __future__ import annotations

from collections.abc import Mapping, Sequence

from supermemory_livekit.local.finding import Hit, ProfileLine, ProfileLines
from supermemory_livekit.local.memories import Related
from supermemory_livekit.local.records import Chunk, Document, Memory, Metadata, TagInfo
from supermemory_livekit.local.texts import iso, now_ms

from . import shapes

__all__ = [
    "chunk_item",
    "chunk_view",
    "document_item",
    "document_view",
    "hit_view",
    "markdown_of",
    "memory_view",
    "namespace_view",
    "profile_view",
    "public_id",
    "related_view",
    "settings_view",
]


def document_view(
    document: Document, chunks: Sequence[Chunk] | None, memories: Sequence[Memory] | None
) -> shapes.DocumentDetail:
    view: shapes.DocumentDetail = {
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


def chunk_view(chunk: Chunk, document: Document) -> shapes.ChunkOfDocument:
    return {
        "id": chunk.id,
        "position": chunk.position,
        "content": chunk.text,
        "type": "text",
        "metadata": _free(document.metadata),
        "system": {"createdAt": iso(chunk.at)},
    }


def chunk_item(chunk: Chunk, document: Document) -> shapes.ChunkItem:
    return {**chunk_view(chunk, document), "documentId": public_id(document)}


def memory_view(memory: Memory) -> shapes.MemoryItem:
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


def related_view(found: Related, *, limit: int, related: bool, documents: bool) -> shapes.MemoryDetail:
    included: shapes.Included = {}
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


def hit_view(hit: Hit, *, related: bool, documents: bool) -> shapes.FoundItem:
    """`updatedAt` is when it was said last, which is what tells a reader how old it is."""
    if hit.memory is not None:
        view: shapes.FoundItem = {
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
    included: shapes.Included = {}
    if related and hit.memory is not None:
        parents = [_relative(memory, -step, {}) for step, memory in enumerate(hit.parents, 1)]
        included["related"] = {"parents": parents, "children": [], "siblings": []}
    if documents and hit.documents:
        included["document"] = _source(hit.documents[0])
    if included:
        view["included"] = included
    return view


def profile_view(lines: ProfileLines) -> shapes.ProfileAnswer:
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


def document_item(document: Document, *, content: bool, memory_count: int | None) -> shapes.DocumentItem:
    view: shapes.DocumentItem = {
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


def namespace_view(tag: TagInfo) -> shapes.NamespaceItem:
    return {
        "id": tag.tag,
        "namespace": tag.tag,
        "documentCount": tag.documents,
        "memoryCount": tag.memories,
        "description": None,
        "system": _times(tag),
    }


def settings_view(tag: TagInfo) -> shapes.NamespaceSettings:
    return {"namespace": tag.tag, "supportingContext": tag.entity_context, "system": _times(tag)}


def _relative(
    memory: Memory, version: int, sources: Mapping[int, Sequence[Document]]
) -> shapes.RelatedMemory:
    """`version`: steps from the memory that was asked for, earlier ones below 0."""
    view: shapes.RelatedMemory = {
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


def _state(document: Document, memory_count: int | None = None) -> shapes.DocumentState:
    view: shapes.DocumentState = {
        "status": document.status,
        "dreamingStatus": document.dreaming_status,
        "createdAt": iso(document.created_at),
        "updatedAt": iso(document.updated_at),
    }
    if memory_count is not None:
        view["memoryCount"] = memory_count
    return view


def _source(document: Document) -> shapes.SourceDocument:
    return {
        "id": public_id(document),
        "title": document.title,
        "type": "text",
        "metadata": _free(document.metadata),
        "summary": None,
        "system": _times(document),
    }


def _facts(lines: Sequence[ProfileLine]) -> list[shapes.Fact]:
    return [{"id": line.id, "memory": line.text} for line in lines]


def _times(record: Document | Memory | TagInfo) -> shapes.Times:
    return {"createdAt": iso(record.created_at), "updatedAt": iso(record.updated_at)}


def _free(metadata: Metadata) -> shapes.Free:
    return dict(metadata)
