"""The page's data: routes under `/inspector/api/`, behind the key and the service's guard against other sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from supermemory_livekit._version import __version__
from supermemory_livekit.local import schemas as service
from supermemory_livekit.local.container import Container
from supermemory_livekit.local.endpoint import Ask, Endpoint, Reply
from supermemory_livekit.local.engine import Engine, Operations
from supermemory_livekit.local.faults import Missing
from supermemory_livekit.local.finding import Hit
from supermemory_livekit.local.recalls import RecentSearches, Search
from supermemory_livekit.local.records import Document, Memory
from supermemory_livekit.local.tags import delete_tag, find_tag, tags_page

from . import schemas, views
from .pages import PRIVATE_HEADERS
from .sources import lines_of, source_of

__all__ = ["api_endpoints", "api_routes"]

_NEAR_MISSES = 5
"""Hits shown besides that recall would leave out."""


def api_routes(engine: Engine) -> Sequence[BaseRoute]:
    """Routes that answer the page."""
    return [_private(endpoint.route(engine)) for endpoint in api_endpoints(engine.recent)]


def api_endpoints(recent: RecentSearches) -> Sequence[Endpoint]:
    """What those routes take; `recent` are the searches of the service they look into."""

    def recalls(operations: Operations, ask: Ask[schemas.AskRecalls]) -> Reply:
        return Reply(200, {"recalls": _recalls(operations, recent, ask.body.after)})

    def erase_caller(operations: Operations, ask: Ask[schemas.EraseCaller]) -> Reply:
        return _erase_caller(operations, recent, ask.body.tag)

    return [
        _endpoint("overview", "read", schemas.AskOverview, _overview),
        _endpoint("callers", "read", schemas.AskCallers, _callers),
        _endpoint("caller", "read", schemas.AskCaller, _caller),
        _endpoint("memories", "read", schemas.AskMemories, _memories),
        _endpoint("memory", "read", schemas.AskMemory, _memory),
        _endpoint("calls", "read", schemas.AskCalls, _calls),
        _endpoint("call", "read", schemas.AskCall, _call),
        _endpoint("search", "read", schemas.AskSearch, _search),
        _endpoint("recalls", "read", schemas.AskRecalls, recalls),
        _endpoint("forget", "write", schemas.Forget, _forget),
        _endpoint("erase-call", "write", schemas.EraseCall, _erase_call),
        _endpoint("erase-caller", "write", schemas.EraseCaller, erase_caller),
    ]


def _endpoint(
    name: str,
    kind: Literal["read", "write"],
    schema: type[BaseModel],
    answer: Callable[[Operations, Ask[Any]], Reply],
) -> Endpoint:
    return Endpoint("POST", f"/inspector/api/{name}", kind, answer, body=schema, gives=views.Json)


def _private(route: Route) -> Route:
    async def endpoint(request: Request) -> Response:
        response: Response = await route.endpoint(request)
        response.headers.update(PRIVATE_HEADERS)
        return response

    return Route(route.path, endpoint, methods=["POST"])


def _overview(operations: Operations, _: Ask[schemas.AskOverview]) -> Reply:
    tags = operations.storage.tags()
    return Reply(
        200,
        {
            "version": __version__,
            "callers": len(tags),
            "memories": sum(tag.memories for tag in tags),
            "documents": sum(tag.documents for tag in tags),
        },
    )


def _callers(operations: Operations, ask: Ask[schemas.AskCallers]) -> Reply:
    body = ask.body
    page, total = tags_page(operations.storage, body.find, body.limit, (body.page - 1) * body.limit)
    return Reply(200, {"callers": [views.caller_view(tag) for tag in page], "total": total})


def _caller(operations: Operations, ask: Ask[schemas.AskCaller]) -> Reply:
    info = find_tag(operations.storage, ask.body.tag)
    lines, _ = operations.finder.profile(
        service.Profile.model_validate({"containerTag": ask.body.tag}), note=False
    )
    profile = {
        section: [{"text": line.text, "id": line.id} for line in held]
        for section, held in (("lasting", lines.static), ("recent", lines.dynamic))
    }
    return Reply(200, {**views.caller_view(info), "profile": profile})


def _memories(operations: Operations, ask: Ask[schemas.AskMemories]) -> Reply:
    body = ask.body
    with operations.storage.read(body.tag) as container:
        page, total = container.memories_page(body.state, body.find, body.limit, (body.page - 1) * body.limit)
    return Reply(200, {"memories": [views.memory_view(memory) for memory in page], "total": total})


def _memory(operations: Operations, ask: Ask[schemas.AskMemory]) -> Reply:
    with operations.storage.read(ask.body.tag) as container:
        memory = container.memory(ask.body.id)
        if memory is None:
            raise Missing("Memory not found")
        history = _history(container, memory)
        documents = container.sources([one.seq for one in (memory, *history)])
        later = container.versions_after(memory)
    return Reply(
        200,
        {
            **_with_sources(memory, documents),
            "history": [_with_sources(one, documents) for one in history],
            "later": [views.memory_view(one) for one in later],
        },
    )


def _with_sources(memory: Memory, documents: dict[int, list[Document]]) -> dict[str, Any]:
    said = [views.source_view(source_of(memory, document)) for document in documents[memory.seq]]
    return {**views.memory_view(memory), "said": said}


def _history(container: Container, memory: Memory) -> list[Memory]:
    """What it took the place of, newest first."""
    history: list[Memory] = []
    seen = {memory.id}
    while memory.parent_id is not None and memory.parent_id not in seen:
        seen.add(memory.parent_id)
        parent = container.memory(memory.parent_id)
        if parent is None:
            break
        history.append(parent)
        memory = parent
    return history


def _calls(operations: Operations, ask: Ask[schemas.AskCalls]) -> Reply:
    body = ask.body
    with operations.storage.read(body.tag) as container:
        page, total = container.documents_page(body.limit, (body.page - 1) * body.limit)
        counts = container.memory_counts(page)
    listed = [views.call_view(document, counts.get(document.seq, 0)) for document in page]
    return Reply(200, {"calls": listed, "total": total})


def _call(operations: Operations, ask: Ask[schemas.AskCall]) -> Reply:
    body = ask.body
    with operations.storage.read(body.tag) as container:
        document = container.document(body.id)
        if document is None:
            raise Missing("Document not found")
        memories = container.memories_of(document)
    lines, spoken = lines_of(document)
    first = (body.page - 1) * body.limit
    return Reply(
        200,
        {
            **views.document_view(document, lines),
            "spoken": spoken,
            "turns": len(lines),
            "lines": views.lines_view(lines[first : first + body.limit], first),
            "made": [views.memory_view(memory) for memory in memories if memory.latest],
        },
    )


def _search(operations: Operations, ask: Ask[schemas.AskSearch]) -> Reply:
    """What recall would return, and what comes next that it would not."""
    body = ask.body
    find_tag(operations.storage, body.tag)
    asked = {"containerTag": body.tag, "q": body.q, "searchMode": body.mode, "limit": body.limit}
    finder = operations.finder
    wanted = service.MemorySearch.model_validate({**asked, "threshold": body.threshold})
    recalled = finder.search(wanted, note=False)
    more = {**asked, "threshold": 0.0, "limit": min(100, body.limit + _NEAR_MISSES)}
    further = finder.search(service.MemorySearch.model_validate(more), note=False)
    names = {_name(hit) for hit in recalled}
    hits = [*recalled, *[hit for hit in further if _name(hit) not in names][:_NEAR_MISSES]]
    parts = finder.explain(body.tag, body.q, hits)
    shown = [views.hit_view(hit, why) for hit, why in zip(hits, parts, strict=True)]
    return Reply(200, {"recalled": shown[: len(recalled)], "missed": shown[len(recalled) :]})


def _name(hit: Hit) -> str:
    """Tells hits of two searches apart. Ids are random, so a memory and a piece of a call never share one."""
    found = hit.memory or hit.chunk
    return "" if found is None else found.id


def _forget(operations: Operations, ask: Ask[schemas.Forget]) -> Reply:
    wanted = {"containerTag": ask.body.tag, "id": ask.body.id, "reason": "forgotten in the inspector"}
    operations.memories.forget(service.ForgetMemory.model_validate(wanted))
    return Reply(200, {})


def _erase_call(operations: Operations, ask: Ask[schemas.EraseCall]) -> Reply:
    """The text, and the memories that stem from it alone."""
    operations.documents.delete(ask.body.id, ask.body.tag)
    return Reply(200, {})


def _erase_caller(operations: Operations, recent: RecentSearches, tag: str) -> Reply:
    documents, memories = delete_tag(operations.storage, tag)
    recent.discard(tag)
    return Reply(200, {"documents": documents, "memories": memories})


def _recalls(operations: Operations, recent: RecentSearches, after: int) -> list[dict[str, Any]]:
    searches = recent.after(after)
    shown: dict[int, dict[str, Any]] = {}
    for tag in dict.fromkeys(search.tag for search in searches):
        with operations.storage.read(tag) as container:
            of_tag = [search for search in searches if search.tag == tag and _still(search, container)]
            memories = container.memories(
                {one.memory_id for search in of_tag for one in search.found if one.memory_id is not None}
            )
            documents = _documents(
                container, {one.document_id for search in of_tag for one in search.found if one.document_id}
            )
            chunks = container.chunks(
                {one.chunk_id for search in of_tag for one in search.found if one.chunk_id is not None}
            )
        for search in of_tag:
            shown[search.number] = views.recall_view(search, memories, documents, chunks)
    return [shown[number] for number in sorted(shown)]


def _still(search: Search, container: Container) -> bool:
    """A tag that was erased meanwhile takes what was asked under it along."""
    return search.tag_id == container.tag_id


def _documents(container: Container, ids: set[str]) -> dict[str, Document]:
    found = {document_id: container.document(document_id) for document_id in ids}
    return {document_id: document for document_id, document in found.items() if document is not None}
