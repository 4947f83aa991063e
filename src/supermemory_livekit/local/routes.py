"""The routes of the v3/v4 API: from a checked request to what the engine can do, and back to the API's shapes."""

from __future__ import annotations

import time

from pydantic import ValidationError

from . import conversations, schemas, shapes, views
from .endpoint import Ask, Endpoint, NoBody, Reply, checked, refused
from .engine import Operations
from .faults import Fault, each
from .tags import delete_tag, find_tag, set_entity_context

__all__ = ["ENDPOINTS"]


def _health(_: Operations, __: Ask[NoBody]) -> Reply:
    """Tell that something listens here, and nothing else."""
    return Reply(200, {"status": "ok", "service": "supermemory-livekit"})


def _add(operations: Operations, ask: Ask[schemas.AddDocument]) -> Reply:
    """Store a text, or add to the one with this custom id."""
    stored = operations.documents.add(ask.body)
    return Reply(200, {"id": stored.id, "status": stored.status})


def _add_batch(operations: Operations, ask: Ask[schemas.BatchAdd]) -> Reply:
    """Store up to 600 texts, each as if it were sent alone."""
    try:
        items = ask.body.items()
    except ValidationError as error:
        raise refused(error) from None
    results = [_add_one(operations, item) for item in items]
    failed = sum(1 for result in results if result["status"] == "error")
    return Reply(200, {"results": results, "failed": failed, "success": len(results) - failed})


def _add_one(operations: Operations, item: schemas.AddDocument) -> dict[str, str]:
    try:
        stored = operations.documents.add(item)
    except Fault as fault:
        return {"id": "", "status": "error", "error": fault.error, "details": fault.details or ""}
    return {"id": stored.id, "status": stored.status}


def _get_document(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """A document, by its id or custom id, with the memories made from it."""
    document, memories = operations.documents.get(ask.path["id"])
    made = [views.memory_of_document_view(memory) for memory in memories]
    return Reply(200, {**views.document_view(document), "memories": made})


def _chunks(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """The pieces that a document is searched by, in order."""
    document, chunks = operations.documents.chunks(ask.path["id"])
    listed = [views.chunk_view(chunk, document) for chunk in chunks]
    return Reply(200, {"documentId": document.id, "chunks": listed, "total": len(listed)})


def _update_document(operations: Operations, ask: Ask[schemas.UpdateDocument]) -> Reply:
    """Change a document. Content replaces; what only the old content said is forgotten."""
    stored = operations.documents.update(ask.path["id"], ask.body)
    return Reply(200, {"id": stored.id, "status": stored.status})


def _delete_document(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """Delete a document and what is known from it alone."""
    operations.documents.delete(ask.path["id"])
    return Reply(204)


def _list_documents(operations: Operations, ask: Ask[schemas.ListDocuments]) -> Reply:
    """One page of the documents of a container tag."""
    page, total = operations.documents.page(ask.body)
    listed = [views.document_view(document, content=ask.body.include_content) for document in page]
    return Reply(
        200, {"memories": listed, "pagination": views.page_view(ask.body.page, ask.body.limit, total)}
    )


def _delete_documents(operations: Operations, ask: Ask[schemas.BulkDelete]) -> Reply:
    """Delete documents by their ids, or all of a container tag."""
    keys = ask.body.ids or []
    errors = each(keys, operations.documents.delete)
    deleted = len(keys) - len(errors)
    for tag in dict.fromkeys(ask.body.container_tags or ()):
        deleted += operations.documents.delete_under(tag, ask.body.filepath)
    reply: dict[str, object] = {"success": not errors, "deletedCount": deleted}
    if errors:
        reply["errors"] = errors
    if ask.body.container_tags:
        reply["containerTags"] = ask.body.container_tags
    return Reply(200, reply)


def _processing(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """Documents that are not found by meaning yet, or not yet made into memories."""
    tag = checked(schemas.TagQuery, ask.query).container_tags
    documents = [views.processing_view(document) for document in operations.documents.processing(tag)]
    return Reply(200, {"documents": documents, "totalCount": len(documents)})


def _profile(operations: Operations, ask: Ask[schemas.Profile]) -> Reply:
    """What holds of a caller, and with `q` what bears on it."""
    started = time.perf_counter()
    lines, hits = operations.finder.profile(ask.body)
    reply: dict[str, object] = {"profile": views.profile_view(lines, ask.body.include)}
    if hits is not None:
        found = [views.hit_view(hit, schemas.Include()) for hit in hits]
        reply["searchResults"] = {"results": found, "total": len(found), "timing": _ms_since(started)}
    return Reply(200, reply)


def _search(operations: Operations, ask: Ask[schemas.MemorySearch]) -> Reply:
    """What bears on a query: memories, pieces of text, or both."""
    started = time.perf_counter()
    found = [views.hit_view(hit, ask.body.include) for hit in operations.finder.search(ask.body)]
    return Reply(200, {"results": found, "total": len(found), "timing": _ms_since(started)})


def _search_documents(operations: Operations, ask: Ask[schemas.DocumentSearch]) -> Reply:
    """Documents that bear on a query, ranked by their best piece."""
    started = time.perf_counter()
    found = [views.found_document_view(one, ask.body) for one in operations.finder.search_documents(ask.body)]
    return Reply(200, {"results": found, "total": len(found), "timing": _ms_since(started)})


def _converse(operations: Operations, ask: Ask[schemas.Conversation]) -> Reply:
    """Store what is new in a conversation."""
    stored = conversations.store(operations.documents, ask.body)
    return Reply(200, {"id": stored.id, "conversationId": ask.body.conversation_id, "status": stored.status})


def _create_memories(operations: Operations, ask: Ask[schemas.CreateMemories]) -> Reply:
    """Store facts as they are."""
    created = [views.created_memory_view(memory) for memory in operations.memories.create(ask.body)]
    return Reply(201, {"documentId": None, "memories": created})


def _forget(operations: Operations, ask: Ask[schemas.ForgetMemory]) -> Reply:
    """Forget one memory, by its id or its exact text."""
    memory = operations.memories.forget(ask.body)
    return Reply(200, {"id": memory.id, "forgotten": True})


def _update_memory(operations: Operations, ask: Ask[schemas.UpdateMemory]) -> Reply:
    """Put a new version in the place of a memory. The old one is kept as history."""
    return Reply(200, views.updated_memory_view(operations.memories.update(ask.body)))


def _forget_matching(operations: Operations, ask: Ask[schemas.ForgetMatching]) -> Reply:
    """Forget what is near to a query in meaning, or only name it."""
    matched = [views.matched_view(match) for match in operations.memories.forget_matching(ask.body)]
    dry = ask.body.dry_run
    return Reply(
        200,
        {
            "dryRun": dry,
            "count": len(matched),
            "forgetBatchId": None,
            "summary": f"{len(matched)} memories {'would be forgotten' if dry else 'forgotten'}",
            "candidates" if dry else "forgotten": matched,
        },
    )


def _list_memories(operations: Operations, ask: Ask[schemas.ListMemories]) -> Reply:
    """One page of the latest versions, forgotten ones too, with their history."""
    page, total = operations.memories.page(ask.body)
    listed = [views.listed_memory_view(one, ask.body.tag) for one in page]
    return Reply(
        200, {"memoryEntries": listed, "pagination": views.page_view(ask.body.page, ask.body.limit, total)}
    )


def _tags(operations: Operations, _: Ask[NoBody]) -> Reply:
    """All container tags, changed last first."""
    return Reply(200, [views.tag_view(tag) for tag in operations.storage.tags()])


def _tag(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """What is noted about a container tag."""
    return Reply(200, views.tag_settings_view(find_tag(operations.storage, ask.path["tag"])))


def _update_tag(operations: Operations, ask: Ask[schemas.UpdateTag]) -> Reply:
    """Note something about a container tag. What is left out stays as it is."""
    if "entity_context" in ask.body.model_fields_set:
        tag = set_entity_context(operations.storage, ask.path["tag"], ask.body.entity_context)
    else:
        tag = find_tag(operations.storage, ask.path["tag"])
    return Reply(200, views.tag_settings_view(tag))


def _delete_tag(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """Delete everything under a container tag."""
    documents, memories = delete_tag(operations.storage, ask.path["tag"])
    return Reply(
        200,
        {
            "success": True,
            "containerTag": ask.path["tag"],
            "deletedDocumentsCount": documents,
            "deletedMemoriesCount": memories,
        },
    )


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/", "read", _health, gives=shapes.Health),
    Endpoint("GET", "/health", "read", _health, gives=shapes.Health),
    Endpoint("POST", "/v3/documents", "write", _add, body=schemas.AddDocument, gives=shapes.StoredDocument),
    Endpoint(
        "POST", "/v3/documents/batch", "write", _add_batch, body=schemas.BatchAdd, gives=shapes.AddedDocuments
    ),
    Endpoint(
        "POST",
        "/v3/documents/list",
        "read",
        _list_documents,
        body=schemas.ListDocuments,
        gives=shapes.DocumentList,
    ),
    Endpoint(
        "DELETE",
        "/v3/documents/bulk",
        "write",
        _delete_documents,
        body=schemas.BulkDelete,
        gives=shapes.DeletedDocuments,
    ),
    Endpoint(
        "GET",
        "/v3/documents/processing",
        "read",
        _processing,
        query=schemas.TagQuery,
        gives=shapes.ProcessingDocuments,
    ),
    # `path`, since a custom id may hold a slash.
    Endpoint("GET", "/v3/documents/{id:path}/chunks", "read", _chunks, gives=shapes.ChunkList),
    Endpoint("GET", "/v3/documents/{id:path}", "read", _get_document, gives=shapes.DocumentDetail),
    Endpoint(
        "PATCH",
        "/v3/documents/{id:path}",
        "write",
        _update_document,
        body=schemas.UpdateDocument,
        gives=shapes.StoredDocument,
    ),
    Endpoint("DELETE", "/v3/documents/{id:path}", "write", _delete_document, status=204),
    Endpoint(
        "POST",
        "/v3/search",
        "read",
        _search_documents,
        body=schemas.DocumentSearch,
        gives=shapes.FoundDocuments,
    ),
    Endpoint("GET", "/v3/container-tags/list", "read", _tags, gives=list[shapes.TagItem]),
    Endpoint("GET", "/v3/container-tags/{tag}", "read", _tag, gives=shapes.TagSettings),
    Endpoint(
        "PATCH",
        "/v3/container-tags/{tag}",
        "write",
        _update_tag,
        body=schemas.UpdateTag,
        gives=shapes.TagSettings,
    ),
    Endpoint("DELETE", "/v3/container-tags/{tag}", "write", _delete_tag, gives=shapes.DeletedTag),
    Endpoint("POST", "/v4/profile", "read", _profile, body=schemas.Profile, gives=shapes.ProfileAnswer),
    Endpoint("POST", "/v4/search", "read", _search, body=schemas.MemorySearch, gives=shapes.FoundItems),
    Endpoint(
        "POST",
        "/v4/memories",
        "write",
        _create_memories,
        body=schemas.CreateMemories,
        gives=shapes.CreatedMemories,
        status=201,
    ),
    Endpoint(
        "DELETE", "/v4/memories", "write", _forget, body=schemas.ForgetMemory, gives=shapes.ForgottenMemory
    ),
    Endpoint(
        "PATCH",
        "/v4/memories",
        "write",
        _update_memory,
        body=schemas.UpdateMemory,
        gives=shapes.UpdatedMemory,
    ),
    Endpoint(
        "POST",
        "/v4/memories/list",
        "read",
        _list_memories,
        body=schemas.ListMemories,
        gives=shapes.MemoryList,
    ),
    Endpoint(
        "POST",
        "/v4/memories/forget-matching",
        "write",
        _forget_matching,
        body=schemas.ForgetMatching,
        gives=shapes.ForgottenMemories,
    ),
    Endpoint(
        "POST",
        "/v4/conversations",
        "write",
        _converse,
        body=schemas.Conversation,
        gives=shapes.StoredConversation,
    ),
)
