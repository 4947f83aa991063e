"""The routes of the v5 API: from a checked request to what the engine can do, and back to the API's shapes."""

from __future__ import annotations

import time

from supermemory_livekit.local import schemas as v4
from supermemory_livekit.local.endpoint import Ask, Endpoint, NoBody, Reply, checked
from supermemory_livekit.local.engine import Operations
from supermemory_livekit.local.faults import Fault, Refused, each
from supermemory_livekit.local.tags import delete_tag, find_tag, set_entity_context, tags_page
from supermemory_livekit.local.views import page_view

from . import schemas, shapes, views

__all__ = ["ENDPOINTS"]


def _add(operations: Operations, ask: Ask[schemas.AddDocument]) -> Reply:
    """Store a text, or add to the one that has this id."""
    item = ask.body.asked(ask.path["namespace"], ask.body.task_type, ask.body.dreaming)
    stored = operations.documents.add(item)
    return Reply(200, {"id": ask.body.id or stored.id, "status": stored.status})


def _add_batch(operations: Operations, ask: Ask[schemas.BatchAdd]) -> Reply:
    """Store up to 600 texts, each as if it were sent alone."""
    results: list[dict[str, str]] = []
    failed = 0
    for document in ask.body.documents:
        item = document.asked(ask.path["namespace"], ask.body.task_type, ask.body.dreaming)
        try:
            stored = operations.documents.add(item)
        except Fault as fault:
            failed += 1
            details = {"details": fault.details} if fault.details else {}
            results.append({"id": document.id or "", "status": "error", "error": fault.error, **details})
        else:
            results.append({"id": document.id or stored.id, "status": stored.status})
    return Reply(200, {"results": results, "count": len(results), "failed": failed})


def _get_document(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """A document by its id or the client's own, with its pieces or memories if asked for."""
    include = checked(schemas.DocumentQuery, ask.query).include
    namespace, key = ask.path["namespace"], ask.path["id"]
    document, memories = operations.documents.get(key, namespace)
    chunks = operations.documents.chunks(key, namespace)[1] if "chunks" in include else None
    made = memories if "memories" in include else None
    return Reply(200, views.document_view(document, chunks, made))


def _update_document(operations: Operations, ask: Ask[schemas.UpdateDocument]) -> Reply:
    """Change a document. Content replaces; what only the old content said is forgotten."""
    namespace = ask.path["namespace"]
    stored = operations.documents.update(
        ask.path["id"],
        ask.body.asked(),
        namespace,
        document_date=ask.body.date,
        instant=ask.body.dreaming != "dynamic",
    )
    if ask.body.supporting_context is not None:
        set_entity_context(operations.storage, namespace, ask.body.supporting_context)
    return Reply(200, {"id": ask.path["id"], "status": stored.status})


def _remove_documents(operations: Operations, ask: Ask[schemas.RemoveDocuments]) -> Reply:
    """Delete documents and what is known from them alone, each id on its own."""
    namespace = ask.path["namespace"]
    errors = each(ask.body.ids, lambda key: operations.documents.delete(key, namespace))
    return Reply(200, {"count": len(ask.body.ids) - len(errors), "errors": errors})


def _search(operations: Operations, ask: Ask[schemas.Search]) -> Reply:
    """What bears on a query: memories, pieces of text, or both."""
    started = time.perf_counter()
    hits = operations.finder.search(ask.body.asked(ask.path["namespace"]))
    include = ask.body.include
    results = [views.hit_view(hit, related=include.related, documents=include.documents) for hit in hits]
    return Reply(200, {"results": results, "searchTime": round((time.perf_counter() - started) * 1000)})


def _profile(operations: Operations, ask: Ask[schemas.Profile]) -> Reply:
    """What holds of a caller, as JSON or as Markdown."""
    lines, _ = operations.finder.profile(ask.body.asked(ask.path["namespace"]))
    if "text/markdown" in ask.accept:
        return Reply(200, views.markdown_of(lines), "text/markdown")
    return Reply(200, views.profile_view(lines))


def _forget(operations: Operations, ask: Ask[schemas.ForgetMemories]) -> Reply:
    """Forget memories, each id on its own."""
    matches: list[shapes.Fact] = []

    def forget(memory_id: str) -> None:
        one = v4.ForgetMemory.model_validate({"containerTag": ask.path["namespace"], "id": memory_id})
        memory = operations.memories.forget(one)
        matches.append({"id": memory.id, "memory": memory.text})

    errors = each(ask.body.ids, forget)
    return Reply(200, {"count": len(matches), "errors": errors, "matches": matches})


def _forget_similar(operations: Operations, ask: Ask[schemas.ForgetSimilar]) -> Reply:
    """Forget what is near to a query in meaning, or only name it."""
    found = operations.memories.forget_matching(ask.body.asked(ask.path["namespace"]))
    matches = [{"id": match.memory.id, "memory": match.memory.text} for match in found]
    return Reply(200, {"count": len(matches), "errors": [], "matches": matches})


def _get_memory(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """One version of a memory, with those before and after it and its document if asked for."""
    query = checked(schemas.MemoryQuery, ask.query)
    found = operations.memories.get(ask.path["namespace"], ask.path["id"])
    view = views.related_view(
        found,
        limit=query.related_limit,
        related="related" in query.include,
        documents="documents" in query.include,
    )
    return Reply(200, view)


def _list(operations: Operations, ask: Ask[schemas.Listing]) -> Reply:
    """One page of the documents, pieces or memories of a namespace."""
    query = checked(schemas.ListQuery, ask.query)
    kind, include = ask.path["type"], ask.body.include
    if query.sort == "position" and kind != "chunks":
        raise Refused("Invalid request parameters", "sort: position orders chunks alone")
    asked = query.asked(ask.path["namespace"], ask.body.filter)
    lists: dict[str, object] = {"documents": [], "chunks": [], "memories": []}
    if kind == "documents":
        documents, total = operations.documents.page(v4.ListDocuments.model_validate(asked))
        ids = [document.id for document in documents] if include.memory_count else []
        counts = operations.documents.memory_counts(ask.path["namespace"], ids)
        lists["documents"] = [
            views.document_item(document, content=include.content, memory_count=counts.get(document.id))
            for document in documents
        ]
    elif kind == "chunks":
        chunks, total = operations.documents.page_of_chunks(v4.ListChunks.model_validate(asked))
        lists["chunks"] = [views.chunk_item(chunk, document) for chunk, document in chunks]
    else:
        memories, total = operations.memories.page(
            v4.ListMemories.model_validate(asked), forgotten=include.forgotten
        )
        lists["memories"] = [views.memory_view(one.memory) for one in memories]
    return Reply(200, {**lists, "pagination": page_view(query.page, query.limit, total)})


def _count_memories(operations: Operations, ask: Ask[schemas.RemoveDocuments]) -> Reply:
    """How many memories that hold now come from each of these documents."""
    counts = operations.documents.memory_counts(ask.path["namespace"], ask.body.ids)
    return Reply(200, {"counts": [{"id": key, "memoryCount": count} for key, count in counts.items()]})


def _namespaces(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """One page of the namespaces, changed last first."""
    query = checked(schemas.NamespacesQuery, ask.query)
    found, total = tags_page(operations.storage, query.q, query.limit, (query.page - 1) * query.limit)
    page = [views.namespace_view(tag) for tag in found]
    return Reply(200, {"namespaces": page, "pagination": page_view(query.page, query.limit, total)})


def _namespace(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """What is noted about a namespace."""
    return Reply(200, views.settings_view(find_tag(operations.storage, ask.path["namespace"])))


def _update_namespace(operations: Operations, ask: Ask[schemas.UpdateNamespace]) -> Reply:
    """Note something about a namespace. What is left out stays as it is."""
    namespace = ask.path["namespace"]
    if "supporting_context" in ask.body.model_fields_set:
        tag = set_entity_context(operations.storage, namespace, ask.body.supporting_context)
    else:
        tag = find_tag(operations.storage, namespace)
    return Reply(200, views.settings_view(tag))


def _retire_namespace(operations: Operations, ask: Ask[NoBody]) -> Reply:
    """Delete everything under a namespace. Moving it into another is not offered, and refused."""
    if checked(schemas.RetireQuery, ask.query).move_to is not None:
        raise Refused("Invalid request parameters", "moveTo: this service cannot move a namespace")
    documents, memories = delete_tag(operations.storage, ask.path["namespace"])
    return Reply(
        200,
        {
            "status": "deleted",
            "namespace": ask.path["namespace"],
            "deletedDocumentsCount": documents,
            "deletedMemoriesCount": memories,
        },
    )


_NS = "/ns/{namespace}"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        f"{_NS}/document",
        "write",
        _add,
        parameters=schemas.NamespacePath,
        body=schemas.AddDocument,
        gives=shapes.StoredDocument,
    ),
    Endpoint(
        "DELETE",
        f"{_NS}/document",
        "write",
        _remove_documents,
        parameters=schemas.NamespacePath,
        body=schemas.RemoveDocuments,
        gives=shapes.Removed,
    ),
    Endpoint(
        "POST",
        f"{_NS}/document/batch",
        "write",
        _add_batch,
        parameters=schemas.NamespacePath,
        body=schemas.BatchAdd,
        gives=shapes.StoredDocuments,
    ),
    # `path`, since a client's id may hold a slash.
    Endpoint(
        "GET",
        f"{_NS}/document/{{id:path}}",
        "read",
        _get_document,
        parameters=schemas.DocumentPath,
        query=schemas.DocumentQuery,
        gives=shapes.DocumentDetail,
    ),
    Endpoint(
        "PATCH",
        f"{_NS}/document/{{id:path}}",
        "write",
        _update_document,
        parameters=schemas.DocumentPath,
        body=schemas.UpdateDocument,
        gives=shapes.StoredDocument,
    ),
    Endpoint(
        "POST",
        f"{_NS}/search",
        "read",
        _search,
        parameters=schemas.NamespacePath,
        body=schemas.Search,
        gives=shapes.FoundItems,
    ),
    Endpoint(
        "POST",
        f"{_NS}/profile",
        "read",
        _profile,
        parameters=schemas.NamespacePath,
        body=schemas.Profile,
        body_optional=True,
        gives=shapes.ProfileAnswer,
        also="text/markdown",
    ),
    Endpoint(
        "DELETE",
        f"{_NS}/memories",
        "write",
        _forget,
        parameters=schemas.NamespacePath,
        body=schemas.ForgetMemories,
        gives=shapes.Forgotten,
    ),
    Endpoint(
        "DELETE",
        f"{_NS}/memories/semantic",
        "write",
        _forget_similar,
        parameters=schemas.NamespacePath,
        body=schemas.ForgetSimilar,
        gives=shapes.Forgotten,
    ),
    Endpoint(
        "GET",
        f"{_NS}/memories/{{id}}",
        "read",
        _get_memory,
        parameters=schemas.MemoryPath,
        query=schemas.MemoryQuery,
        gives=shapes.MemoryDetail,
    ),
    Endpoint(
        "POST",
        f"{_NS}/list/documents/memory-counts",
        "read",
        _count_memories,
        parameters=schemas.NamespacePath,
        body=schemas.RemoveDocuments,
        gives=shapes.Counts,
    ),
    Endpoint(
        "POST",
        f"{_NS}/list/{{type}}",
        "read",
        _list,
        parameters=schemas.ListPath,
        query=schemas.ListQuery,
        body=schemas.Listing,
        body_optional=True,
        gives=shapes.Lists,
    ),
    *(
        Endpoint("GET", path, "read", _namespaces, query=schemas.NamespacesQuery, gives=shapes.NamespacePage)
        for path in ("/ns", "/namespaces")
    ),
    Endpoint(
        "GET", _NS, "read", _namespace, parameters=schemas.NamespacePath, gives=shapes.NamespaceSettings
    ),
    Endpoint(
        "PATCH",
        _NS,
        "write",
        _update_namespace,
        parameters=schemas.NamespacePath,
        body=schemas.UpdateNamespace,
        gives=shapes.NamespaceSettings,
    ),
    Endpoint(
        "DELETE",
        _NS,
        "write",
        _retire_namespace,
        parameters=schemas.NamespacePath,
        query=schemas.RetireQuery,
        gives=shapes.Retired,
    ),
)
