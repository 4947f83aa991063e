"""The service as an ASGI app: Supermemory's v3/v4 routes over an `Engine`.

The same app is served over HTTP (`server.py`) and mounted in the process under an httpx client
(`open_local`). Every answer is JSON, errors included, and no answer or log line repeats what a client sent.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from . import schemas, views
from .database import StorageError
from .engine import Engine, Operations
from .faults import Fault, Missing, Refused, TooLarge

__all__ = ["MAX_BODY", "Ask", "NoBody", "OpenRoute", "Reply", "create_app", "json_route"]

logger = logging.getLogger("supermemory_livekit.local")

MAX_BODY = 16_000_000
"""Most bytes of a request body."""

_OPEN_PATHS = ("/", "/health")
"""Answered without a key: they tell that something listens here, and nothing else."""

_FREE_FORM = ("metadata", "filterByMetadata", "filters")

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True)
class Ask(Generic[Body]):
    """A request that has been checked."""

    body: Body
    path: dict[str, str]
    query: dict[str, str]


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: object = None


class NoBody(BaseModel):
    """For routes that take none; what a client sends anyway is not looked at."""


class OpenRoute(Route):
    """One of `extra_routes` that is answered without a key: it must hold nothing that was stored."""


def create_app(engine: Engine, *, api_key: str | None, extra_routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The app. With `api_key` None it asks for no key: for mounting inside the process alone.

    `extra_routes` are looked at first and lie behind the key too, except each `OpenRoute`. The engine
    starts with the server's lifespan, which also closes it, or where there is none with the first request.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await engine.start()
        try:
            yield
        finally:
            await engine.aclose()

    routes = [*extra_routes, *(json_route(engine, *entry) for entry in _ROUTES)]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={404: _no_route, 405: _no_route},
    )
    # A path that differs by a slash is another path; a redirect would lose the body.
    app.router.redirect_slashes = False
    if api_key is None:
        return app
    return _KeyRequired(
        app, api_key, (*_OPEN_PATHS, *(route.path for route in extra_routes if isinstance(route, OpenRoute)))
    )


class _KeyRequired:
    """Lets through what carries `Authorization: Bearer <key>`."""

    def __init__(self, app: ASGIApp, key: str, open_paths: Collection[str]) -> None:
        self._app = app
        self._open_paths = open_paths
        self._expected = f"bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._open_paths or self._allowed(scope):
            await self._app(scope, receive, send)
            return
        refusal = _json(
            401,
            {
                "error": "Unauthorized",
                "details": "Either userId or orgId not found. Are you using the right API key?",
            },
        )
        await refusal(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
        given = [value for name, value in headers if name.lower() == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, key = given[0].strip().partition(b" ")
        # Compared in constant time, so that an answer's delay tells nothing about the key.
        return secrets.compare_digest(scheme.lower() + b" " + key.strip(), self._expected)


def json_route(
    engine: Engine,
    method: str,
    path: str,
    kind: Literal["read", "write"],
    schema: type[BaseModel],
    answer: Callable[[Operations, Ask[Any]], Reply],
) -> Route:
    """A route that reads or writes, with a body of this schema; faults and failures are answered as JSON."""

    async def endpoint(request: Request) -> Response:
        try:
            raw = b"" if schema is NoBody else await _read_body(request)

            def work(operations: Operations) -> Response:
                body = schema() if schema is NoBody else _parse(raw, schema)
                reply = answer(operations, Ask(body, dict(request.path_params), dict(request.query_params)))
                return _json(reply.status, reply.body)

            return await (engine.read(work) if kind == "read" else engine.write(work))
        except Fault as fault:
            return _error(fault)
        except ClientDisconnect:
            return Response(status_code=400)
        except StorageError as error:
            logger.error("%s", error)
            return _json(503, {"error": "The memory file cannot be used", "details": str(error)})
        except sqlite3.Error as error:
            logger.error("the memory file cannot be used now: %s", type(error).__name__)
            return _json(503, {"error": "The memory file cannot be used now"})
        except Exception as error:  # noqa: BLE001 - a traceback may show what a caller said
            logger.error("a request failed: %s", type(error).__name__)
            return _json(500, {"error": "Internal server error"})

    return Route(path, endpoint, methods=[method])


async def _read_body(request: Request) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > MAX_BODY:
        raise TooLarge("Request body too large")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise TooLarge("Request body too large")
        parts.append(part)
    return b"".join(parts)


def _parse(raw: bytes, schema: type[BaseModel]) -> BaseModel:
    try:
        value = _without_surrogates(json.loads(raw, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        raise Refused("Invalid request parameters", "the body is not valid JSON") from None
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise _refused(error) from None
    except RecursionError:
        raise Refused("Invalid request parameters", "the body is nested too deeply") from None


def _refused(error: ValidationError) -> Refused:
    """Names the fields and what they take, never the value that was sent."""
    problems: list[str] = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False)[:5]:
        unknown = problem["type"] == "extra_forbidden"
        place = _place(problem["loc"][:-1] if unknown else problem["loc"])
        problems.append(f"{place}: {'has a key that is not known here' if unknown else problem['msg']}")
    return Refused("Invalid request parameters", "; ".join(problems))


def _place(location: tuple[int | str, ...]) -> str:
    """The field, without the keys that a client makes up."""
    free = [index for index, part in enumerate(location) if part in _FREE_FORM]
    return ".".join(str(part) for part in location[: free[0] + 1 if free else None]) or "body"


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _without_surrogates(value: Any) -> Any:
    """JSON can spell half of a UTF-16 pair, which no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {_without_surrogates(key): _without_surrogates(item) for key, item in pairs}
    return value


def _json(status: int, body: object) -> Response:
    if status == 204:
        return Response(status_code=204)
    return Response(
        json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
        status,
        media_type="application/json",
    )


def _error(fault: Fault) -> Response:
    return _json(
        fault.status, {"error": fault.error, **({"details": fault.details} if fault.details else {})}
    )


async def _no_route(_request: Request, _error: Exception) -> Response:
    return _json(404, {"error": "Not found", "details": "This service has no such route"})


def _health(_: Operations, __: Ask[NoBody]) -> Reply:
    return Reply(200, {"status": "ok", "service": "supermemory-livekit"})


def _add(operations: Operations, ask: Ask[schemas.AddDocument]) -> Reply:
    stored = operations.documents.add(ask.body)
    return Reply(200, {"id": stored.id, "status": stored.status})


def _add_batch(operations: Operations, ask: Ask[schemas.BatchAdd]) -> Reply:
    try:
        items = ask.body.items()
    except ValidationError as error:
        raise _refused(error) from None
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
    document, memories = operations.documents.get(ask.path["id"])
    made = [views.memory_of_document_view(memory) for memory in memories]
    return Reply(200, {**views.document_view(document), "memories": made})


def _update_document(operations: Operations, ask: Ask[schemas.UpdateDocument]) -> Reply:
    stored = operations.documents.update(ask.path["id"], ask.body)
    return Reply(200, {"id": stored.id, "status": stored.status})


def _delete_document(operations: Operations, ask: Ask[NoBody]) -> Reply:
    operations.documents.delete(ask.path["id"])
    return Reply(204)


def _list_documents(operations: Operations, ask: Ask[schemas.ListDocuments]) -> Reply:
    page, total = operations.documents.page(ask.body)
    listed = [views.document_view(document, content=ask.body.include_content) for document in page]
    return Reply(
        200, {"memories": listed, "pagination": views.page_view(ask.body.page, ask.body.limit, total)}
    )


def _delete_documents(operations: Operations, ask: Ask[schemas.BulkDelete]) -> Reply:
    keys = ask.body.ids or []
    errors = [error for key in keys if (error := _delete_one(operations, key)) is not None]
    deleted = len(keys) - len(errors)
    for tag in dict.fromkeys(ask.body.container_tags or ()):
        deleted += operations.documents.delete_under(tag, ask.body.filepath)
    reply: dict[str, object] = {"success": not errors, "deletedCount": deleted}
    if errors:
        reply["errors"] = errors
    if ask.body.container_tags:
        reply["containerTags"] = ask.body.container_tags
    return Reply(200, reply)


def _delete_one(operations: Operations, key: str) -> dict[str, str] | None:
    try:
        operations.documents.delete(key)
    except Fault as fault:
        return {"id": key, "error": fault.error}
    return None


def _processing(operations: Operations, ask: Ask[NoBody]) -> Reply:
    try:
        tag = schemas.TagQuery.model_validate(
            {"containerTags": ask.query.get("containerTags", "")}
        ).container_tags
    except ValidationError as error:
        raise _refused(error) from None
    documents = [views.processing_view(document) for document in operations.documents.processing(tag)]
    return Reply(200, {"documents": documents, "totalCount": len(documents)})


def _profile(operations: Operations, ask: Ask[schemas.Profile]) -> Reply:
    started = time.perf_counter()
    lines, hits = operations.finder.profile(ask.body)
    reply: dict[str, object] = {"profile": views.profile_view(lines, ask.body.include)}
    if hits is not None:
        found = [views.hit_view(hit, schemas.Include()) for hit in hits]
        reply["searchResults"] = {"results": found, "total": len(found), "timing": _ms_since(started)}
    return Reply(200, reply)


def _search(operations: Operations, ask: Ask[schemas.MemorySearch]) -> Reply:
    started = time.perf_counter()
    found = [views.hit_view(hit, ask.body.include) for hit in operations.finder.search(ask.body)]
    return Reply(200, {"results": found, "total": len(found), "timing": _ms_since(started)})


def _search_documents(operations: Operations, ask: Ask[schemas.DocumentSearch]) -> Reply:
    started = time.perf_counter()
    found = [views.found_document_view(one, ask.body) for one in operations.finder.search_documents(ask.body)]
    return Reply(200, {"results": found, "total": len(found), "timing": _ms_since(started)})


def _create_memories(operations: Operations, ask: Ask[schemas.CreateMemories]) -> Reply:
    created = [views.created_memory_view(memory) for memory in operations.memories.create(ask.body)]
    return Reply(201, {"documentId": None, "memories": created})


def _forget(operations: Operations, ask: Ask[schemas.ForgetMemory]) -> Reply:
    memory = operations.memories.forget(ask.body)
    return Reply(200, {"id": memory.id, "forgotten": True})


def _update_memory(operations: Operations, ask: Ask[schemas.UpdateMemory]) -> Reply:
    return Reply(200, views.updated_memory_view(operations.memories.update(ask.body)))


def _forget_matching(operations: Operations, ask: Ask[schemas.ForgetMatching]) -> Reply:
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
    page, total = operations.memories.page(ask.body)
    listed = [views.listed_memory_view(one, ask.body.tag) for one in page]
    return Reply(
        200, {"memoryEntries": listed, "pagination": views.page_view(ask.body.page, ask.body.limit, total)}
    )


def _tags(operations: Operations, _: Ask[NoBody]) -> Reply:
    return Reply(200, [views.tag_view(tag) for tag in operations.storage.tags()])


def _tag(operations: Operations, ask: Ask[NoBody]) -> Reply:
    found = operations.storage.tags(ask.path["tag"])
    if not found:
        raise Missing("Container tag not found")
    return Reply(200, views.tag_settings_view(found[0]))


def _delete_tag(operations: Operations, ask: Ask[NoBody]) -> Reply:
    tag = ask.path["tag"]
    if not operations.storage.tags(tag):
        raise Missing("Container tag not found")
    with operations.storage.write(tag) as writer:
        documents, memories = writer.delete_all()
    return Reply(
        200,
        {
            "success": True,
            "containerTag": tag,
            "deletedDocumentsCount": documents,
            "deletedMemoriesCount": memories,
        },
    )


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


_ROUTES: tuple[
    tuple[str, str, Literal["read", "write"], type[BaseModel], Callable[[Operations, Ask[Any]], Reply]], ...
] = (
    ("GET", "/", "read", NoBody, _health),
    ("GET", "/health", "read", NoBody, _health),
    ("POST", "/v3/documents", "write", schemas.AddDocument, _add),
    ("POST", "/v3/documents/batch", "write", schemas.BatchAdd, _add_batch),
    ("POST", "/v3/documents/list", "read", schemas.ListDocuments, _list_documents),
    ("DELETE", "/v3/documents/bulk", "write", schemas.BulkDelete, _delete_documents),
    ("GET", "/v3/documents/processing", "read", NoBody, _processing),
    # `path`, since a custom id may hold a slash.
    ("GET", "/v3/documents/{id:path}", "read", NoBody, _get_document),
    ("PATCH", "/v3/documents/{id:path}", "write", schemas.UpdateDocument, _update_document),
    ("DELETE", "/v3/documents/{id:path}", "write", NoBody, _delete_document),
    ("POST", "/v3/search", "read", schemas.DocumentSearch, _search_documents),
    ("GET", "/v3/container-tags/list", "read", NoBody, _tags),
    ("GET", "/v3/container-tags/{tag}", "read", NoBody, _tag),
    ("DELETE", "/v3/container-tags/{tag}", "write", NoBody, _delete_tag),
    ("POST", "/v4/profile", "read", schemas.Profile, _profile),
    ("POST", "/v4/search", "read", schemas.MemorySearch, _search),
    ("POST", "/v4/memories", "write", schemas.CreateMemories, _create_memories),
    ("DELETE", "/v4/memories", "write", schemas.ForgetMemory, _forget),
    ("PATCH", "/v4/memories", "write", schemas.UpdateMemory, _update_memory),
    ("POST", "/v4/memories/list", "read", schemas.ListMemories, _list_memories),
    ("POST", "/v4/memories/forget-matching", "write", schemas.ForgetMatching, _forget_matching),
)
