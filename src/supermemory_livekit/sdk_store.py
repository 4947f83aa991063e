"""The official SDK behind the `MemoryStore` protocol: hosted, self-hosted and embedded service alike.

Speaks v3/v4 of the API through `supermemory` 3.48 and newer 3.x. Each method is one operation with a hard
deadline; whatever goes wrong comes out as a `ServiceError` that quotes neither the request nor the answer.
"""

from __future__ import annotations

import asyncio
import email.utils
import inspect
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, TypeVar, cast
from urllib.parse import quote

import anyio
import httpx
from supermemory import AsyncSupermemory, Supermemory

from .errors import (
    AccessDenied,
    ConfigurationError,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from .sdk_answers import (
    UnreadableAnswer,
    is_processed,
    read_calls,
    read_deleted_tag,
    read_document,
    read_document_page,
    read_documents,
    read_forgotten,
    read_hits,
    read_id,
    read_memories,
    read_profile,
)
from .sdk_client import make_client
from .store import (
    DeletedTag,
    DocumentPage,
    Dreaming,
    Hit,
    MemoryPage,
    MemoryStore,
    Profile,
    SearchMode,
    StoredCall,
)
from .unlogged import unlogged

__all__ = ["SDKStore", "make_client"]

_T = TypeVar("_T")

_METADATA = {"source": "livekit"}
_LIST_PAGES = 3
_LIST_LIMIT = 100
_MOST_MEMORIES = 1_000
"""Memories per page; the API caps its answers at 1,100."""
_ASKED_ONE_BY_ONE = 3
"""Documents asked whether they are processed, when the list does not tell. Older ones nearly always are."""
_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_TIMEOUTS = (
    TimeoutError,
    asyncio.TimeoutError,
    httpx.TimeoutException,
)  # two kinds of one before Python 3.11
_BY_STATUS: Mapping[int, type[ServiceError]] = {
    401: AccessDenied,
    402: PaymentRequired,
    403: AccessDenied,
    404: NotFound,
    408: ServiceTimeout,
    409: Conflict,
}


class SDKStore(MemoryStore):
    """A `MemoryStore` over an async client of the official SDK, or over an object with the same methods.

    The client needs `add`, `profile`, `search.memories` and `memories.forget`; one of them missing is a
    `ConfigurationError`. With `documents.get`, `.list` and `.delete` it can also read and delete documents, with
    the SDK's `post` also list memories, with its `delete` also delete container tags.
    `owns_client` says whether `aclose` closes it.
    """

    def __init__(self, client: object, *, owns_client: bool = True) -> None:
        if isinstance(client, Supermemory):
            raise ConfigurationError("client is the blocking Supermemory: pass AsyncSupermemory")
        self._client = client
        self._owned = owns_client
        calls = _without_retries(client)
        self._add = _Method(calls, "add", "content", "container_tag", "custom_id", "dreaming")
        self._profile = _Method(calls, "profile", "container_tag")
        self._search = _Method(
            calls, "search.memories", "q", "container_tag", "limit", "threshold", "search_mode"
        )
        self._forget = _Method(calls, "memories.forget", "container_tag", "id", "content")
        self._get = _Method.optional(calls, "documents.get", "id")
        self._list = _Method.optional(calls, "documents.list", "container_tags")
        self._delete = _Method.optional(calls, "documents.delete", "id")
        self._delete_bulk = _Method.optional(calls, "documents.delete_bulk", "ids")
        self._send_delete = _Method.optional(calls, "delete", "path", "cast_to", "options")
        self._post = _Method.optional(calls, "post", "path", "body", "cast_to", "options")
        self._dated = True
        """False once the service has turned out to know no document dates."""
        _quieten_sdk_log()

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        return await _answer(
            "profile",
            lambda: self._profile(container_tag=tag, timeout=timeout),
            read_profile,
            timeout=timeout,
        )

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        def call() -> Awaitable[object]:
            return self._search(
                q=_encodable(query),
                container_tag=tag,
                limit=max(1, min(limit, 100)),
                threshold=threshold,
                search_mode=mode,
                timeout=timeout,
            )

        hits = await _answer("search", call, read_hits, timeout=timeout)
        # Services differ in what they do with limit and threshold, so both hold here whatever was answered.
        best = sorted(hits, key=lambda hit: hit.similarity, reverse=True)
        return [hit for hit in best if hit.similarity >= threshold][:limit]

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        moment = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
        date = moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")

        async def add(**dated: str) -> object:
            return await self._add(
                content=_encodable(text),
                container_tag=tag,
                custom_id=custom_id,
                dreaming=dreaming,
                metadata=_METADATA,
                timeout=timeout,
                **dated,
            )

        async def call() -> object:
            if not (self._dated and self._add.accepts("document_date")):
                return await add()
            try:
                return await add(document_date=date)
            except Exception as error:
                if _status(error) not in (400, 422):
                    raise
            # Servers older than document dates refuse the unknown field, and with it the turns.
            answer = await add()
            self._dated = False
            return answer

        return await _answer("append", call, self._receipt, timeout=timeout, write=True)

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        get, list_ = self._get, self._list
        if get is None or list_ is None:
            raise NotImplementedError("this client cannot read documents")

        async def content(identifier: str) -> str | None:
            try:
                answer = await get(id=identifier, timeout=timeout)
            except Exception as error:
                if _status(error) == 404:
                    return None
                raise
            return read_document(answer, tag=tag, custom_id=custom_id)

        async def call() -> str | None:
            if service_id and (text := await content(service_id)) is not None:
                return text
            # The list is asked for without contents, which may be long calls, and then for the one document.
            for page in range(1, _LIST_PAGES + 1):
                answer = await list_(
                    container_tags=[tag],
                    limit=_LIST_LIMIT,
                    page=page,
                    sort="updatedAt",
                    order="desc",
                    timeout=timeout,
                )
                found, exhausted = read_documents(answer, tag=tag, custom_id=custom_id)
                if found:
                    return await content(found)
                if exhausted:
                    break
            return None

        return await _answer("read", call, _as_it_is, timeout=timeout)

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None:
        def call() -> Awaitable[object]:
            return self._add(
                content=_as_prose(_encodable(text)),
                container_tag=tag,
                dreaming=dreaming,
                metadata=_METADATA,
                timeout=timeout,
            )

        return await _answer("remember", call, self._receipt, timeout=timeout, write=True)

    def _receipt(self, answer: object) -> str | None:
        """The id in the answer to a write. One without an id leaves open whether anything is stored.

        That is worth an error only where it can be found out: other people's clients may return nothing at all.
        """
        identifier = read_id(answer)
        if identifier is None and self._get is not None and self._list is not None:
            raise UnreadableAnswer
        return identifier

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        delete = self._delete
        if delete is None:
            raise NotImplementedError("this client cannot delete documents")
        await _answer(
            "unremember", lambda: delete(id=service_id, timeout=timeout), _ignore, timeout=timeout, write=True
        )

    async def forget(
        self, tag: str, *, memory_id: str | None = None, text: str | None = None, timeout: float
    ) -> bool:
        if not memory_id and not text:
            raise ValueError("forget takes memory_id or text")
        which = {"id": memory_id} if memory_id else {"content": _encodable(text or "")}
        return await _answer(
            "forget",
            lambda: self._forget(container_tag=tag, **which, timeout=timeout),
            read_forgotten,
            timeout=timeout,
            write=True,
        )

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        post = self._post
        if post is None:
            raise NotImplementedError("this client cannot list memories")
        # The SDK has no method for this route, and the route no form with a single tag.
        body = {
            "containerTags": [tag],
            "page": page,
            "limit": max(1, min(limit, _MOST_MEMORIES)),
            "sort": "updatedAt",
            "order": "desc",
        }
        return await _answer(
            "memories",
            lambda: post(
                path="/v4/memories/list",
                body=body,
                cast_to=object,
                options={"timeout": timeout},
                timeout=timeout,
            ),
            read_memories,
            timeout=timeout,
        )

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        list_ = self._list
        if list_ is None or not list_.accepts("include_content"):
            raise NotImplementedError("this client cannot list documents with their contents")

        async def call() -> list[StoredCall]:
            answer = await list_(
                container_tags=[tag],
                include_content=True,
                limit=max(1, min(limit, _LIST_LIMIT)),
                page=1,
                sort="updatedAt",
                order="desc",
                timeout=timeout,
            )
            found = read_calls(answer, tag=tag)
            unclear = [one for one, told in found if not told][:_ASKED_ONE_BY_ONE]
            states = await asyncio.gather(*(self._is_processed(one.id, timeout) for one in unclear))
            waiting = {one.id for one, processed in zip(unclear, states, strict=True) if not processed}
            return [replace(one, processed=one.processed and one.id not in waiting) for one, _ in found]

        return await _answer("latest_calls", call, _as_it_is, timeout=timeout)

    async def _is_processed(self, document_id: str, timeout: float) -> bool:
        """Asked of one document; when it does not tell, its text is better kept than missed."""
        if self._get is None:
            return False
        try:
            answer = await self._get(id=document_id, timeout=timeout)
        except Exception:  # noqa: BLE001 - a detail of a list that was answered
            return False
        return is_processed(answer) is True

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        list_ = self._list
        if list_ is None or (contents and not list_.accepts("include_content")):
            raise NotImplementedError("this client cannot list documents")
        options = {"include_content": True} if contents else {}
        return await _answer(
            "list_documents",
            lambda: list_(
                container_tags=[tag],
                limit=max(1, min(limit, _LIST_LIMIT)),
                page=page,
                sort="updatedAt",
                order="desc",
                timeout=timeout,
                **options,
            ),
            lambda answer: read_document_page(answer, tag=tag),
            timeout=timeout,
        )

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        del tag  # the routes name documents alone; callers pass ids that were listed under the tag
        bulk, delete = self._delete_bulk, self._delete
        if delete is None:
            raise NotImplementedError("this client cannot delete documents")

        async def one_by_one() -> None:
            for identifier in ids:
                await _unless_gone(delete(id=identifier, timeout=timeout))

        async def call() -> None:
            if bulk is None:
                return await one_by_one()
            try:
                await bulk(ids=list(ids), timeout=timeout)
            except Exception as error:
                if _status(error) not in (404, 405):
                    raise
                return await one_by_one()

        await _answer("delete_documents", call, _ignore, timeout=timeout, write=True)

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        delete = self._send_delete
        if delete is None:
            raise NotImplementedError("this client cannot delete container tags")
        # The SDK has no method for this route.
        with unlogged():
            return await _answer(
                "delete_tag",
                lambda: delete(
                    path=f"/v3/container-tags/{quote(tag, safe='')}",
                    cast_to=object,
                    options={"timeout": timeout},
                    timeout=timeout,
                ),
                read_deleted_tag,
                timeout=timeout,
                write=True,
            )

    async def aclose(self) -> None:
        if not self._owned:
            return
        self._owned = False
        close = getattr(self._client, "close", None) or getattr(self._client, "aclose", None)
        if callable(close):
            closing = close()
            if inspect.isawaitable(closing):
                await closing


class _Method:
    """One async method of the client, found and checked once, called with the optional arguments it knows."""

    def __init__(self, client: object, path: str, *required: str) -> None:
        method: object = client
        for name in path.split("."):
            method = getattr(method, name, None)
        if not callable(method):
            raise ConfigurationError(
                f"client has no method {path}: pass AsyncSupermemory of supermemory>=3.48,<5, or an object"
                " with its async methods add, profile, search.memories and memories.forget"
            )
        self._call = cast("Callable[..., Awaitable[object]]", method)
        self._names = _parameter_names(self._call)
        unknown = [name for name in required if not self.accepts(name)]
        if unknown:
            raise ConfigurationError(
                f"client.{path} takes no {unknown[0]}: this package speaks to supermemory>=3.48,<5"
            )

    @classmethod
    def optional(cls, client: object, path: str, *required: str) -> _Method | None:
        """The method, or None when the client does without it."""
        try:
            return cls(client, path, *required)
        except ConfigurationError:
            return None

    def accepts(self, name: str) -> bool:
        return self._names is None or name in self._names

    async def __call__(self, *, timeout: float, metadata: object = None, **arguments: object) -> object:
        """`timeout` in seconds and `metadata` go along when the method takes them; older clients do not."""
        if self.accepts("timeout"):
            arguments["timeout"] = timeout
        if metadata is not None and self.accepts("metadata"):
            arguments["metadata"] = metadata
        return await self._call(**arguments)


def _parameter_names(method: Callable[..., Any]) -> frozenset[str] | None:
    """The names a method can be called with; None for any."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


def _without_retries(client: object) -> object:
    """The SDK client with its own retries off: a repeated append would store turns twice."""
    if not isinstance(client, AsyncSupermemory):
        return client
    try:
        return client.with_options(max_retries=0)
    except TypeError:  # a subclass with another constructor keeps the retries its author chose
        return client


def _quieten_sdk_log() -> None:
    """Keep the SDK from logging requests, with the caller's words in them, when everything logs at DEBUG."""
    log = logging.getLogger("supermemory._base_client")
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)


async def _answer(
    operation: str,
    call: Callable[[], Awaitable[object]],
    read: Callable[[Any], _T],
    *,
    timeout: float,
    write: bool = False,
) -> _T:
    """Call, within `timeout` seconds in total, and read the answer; every failure is a `ServiceError`."""
    try:
        # Not asyncio.wait_for: before Python 3.12 it can swallow a cancellation that arrives with the answer.
        with anyio.fail_after(timeout):
            answer = await call()
        return read(answer)
    except Exception as error:  # noqa: BLE001 - any client may stand behind this
        # The cause is cut off because its text may quote the request or the answer.
        raise _translated(operation, error, write=write) from None


async def _unless_gone(deletion: Awaitable[object]) -> None:
    try:
        await deletion
    except Exception as error:
        if _status(error) != 404:
            raise


def _translated(operation: str, error: Exception, *, write: bool) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    status = _status(error)
    if status is not None and not 200 <= status < 300:
        return _from_status(operation, error, status, write=write)
    cause = error if isinstance(error, httpx.HTTPError) else error.__cause__
    uncertain = write and not isinstance(cause, _NEVER_SENT)
    if isinstance(error, _TIMEOUTS) or isinstance(cause, _TIMEOUTS):
        return ServiceTimeout(f"{operation} got no answer in time", uncertain=uncertain)
    if isinstance(cause, httpx.TransportError):
        return ServiceUnavailable(f"{operation} lost or found no connection", uncertain=uncertain)
    if status is not None or isinstance(error, (UnreadableAnswer, ValueError)):
        return ServiceUnavailable(
            f"{operation} got an answer that cannot be read", status=status, uncertain=write
        )
    return ServiceUnavailable(f"{operation} failed with {type(error).__name__}", uncertain=uncertain)


def _from_status(operation: str, error: Exception, status: int, *, write: bool) -> ServiceError:
    message = f"{operation} answered {status}"
    if status == 429:
        return RateLimited(message, retry_after=_retry_after(error))
    if kind := _BY_STATUS.get(status):
        return kind(message, status=status)
    if 400 <= status < 500:
        return RequestRejected(message, status=status)
    return ServiceUnavailable(message, status=status, uncertain=write and status >= 500)


def _status(error: Exception) -> int | None:
    """The HTTP status an exception carries, in the way of the SDK or in that of httpx."""
    for source in (error, getattr(error, "response", None)):
        status = getattr(source, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _retry_after(error: Exception) -> float | None:
    """Seconds from now, from a Retry-After header in either of its forms; None without a usable one."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = cast("Mapping[str, object]", headers).get("retry-after") if isinstance(headers, Mapping) else None
    if not isinstance(value, str):
        return None
    try:
        seconds = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        if date is None:
            return None
        seconds = email.utils.mktime_tz(date) - time.time()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _as_prose(text: str) -> str:
    """The text, but a bare link gets a word before it: the service would store the page it leads to."""
    word = text.strip()
    is_link = "://" in word or word.lower().startswith("www.")
    return f"Link: {word}" if is_link and not any(character.isspace() for character in word) else text


def _encodable(text: str) -> str:
    """Without the lone surrogates that no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _as_it_is(answer: _T) -> _T:
    return answer


def _ignore(_: object) -> None:
    return None
