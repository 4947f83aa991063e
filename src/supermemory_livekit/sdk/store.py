"""The official SDK behind the `MemoryStore` protocol: hosted, self-hosted and embedded service alike.

Speaks v3/v4 of the API through `supermemory` 3.x, from 3.48, and v5 through 5.x, by an adapter for each. Each method is
one operation with a hard deadline; whatever goes wrong comes out as a `ServiceError` that quotes neither the request
nor the answer.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from datetime import datetime, timezone

from supermemory import AsyncSupermemory, Supermemory

from supermemory_livekit.errors import ConfigurationError
from supermemory_livekit.store import (
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

from .adapter import MOST_DOCUMENTS, SDKAdapter
from .calls import answered
from .client import make_client
from .v3 import V3Adapter
from .v5 import V5Adapter, speaks_v5

__all__ = ["SDKStore", "make_client"]

_MOST_HITS = 100


class SDKStore(MemoryStore):
    """A `MemoryStore` over an async client of the official SDK, or over an object with the same methods.

    Its generation shows by its methods, whatever is installed. One of 3.x needs `add`, `profile`, `search.memories` and
    `memories.forget`, one of 5.x `add`, `profile`, `search` and `memories.forget`; one of them missing is a
    `ConfigurationError`. With `documents.get`, `.list` and `.delete` (5.x: `list` in place of `.list`) it can also read
    and delete documents, with `post` (5.x: `list`) list memories, with `delete` (5.x: `namespaces.delete`) delete
    container tags.
    `owns_client` says whether `aclose` closes it.
    """

    def __init__(self, client: object, *, owns_client: bool = True) -> None:
        if isinstance(client, Supermemory):
            raise ConfigurationError("client is the blocking Supermemory: pass AsyncSupermemory")
        self._client = client
        self._owned = owns_client
        calls = _without_retries(client)
        self._sdk: SDKAdapter = V5Adapter(calls) if speaks_v5(calls) else V3Adapter(calls)
        _quieten_sdk_log()

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        return await answered("profile", lambda: self._sdk.profile(tag, timeout=timeout), timeout=timeout)

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        hits = await answered(
            "search",
            lambda: self._sdk.search(
                tag,
                _encodable(query),
                limit=max(1, min(limit, _MOST_HITS)),
                threshold=threshold,
                mode=mode,
                timeout=timeout,
            ),
            timeout=timeout,
        )
        # Services differ in what they do with limit and threshold, so both hold here whatever was answered.
        best = sorted(hits, key=lambda hit: hit.similarity, reverse=True)
        return [hit for hit in best if hit.similarity >= threshold][:limit]

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        moment = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
        date = moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return await answered(
            "append",
            lambda: self._sdk.append(
                tag, custom_id, _encodable(text), dreaming=dreaming, date=date, timeout=timeout
            ),
            timeout=timeout,
            write=True,
        )

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        return await answered(
            "read",
            lambda: self._sdk.read(tag, custom_id, service_id=service_id, timeout=timeout),
            timeout=timeout,
        )

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None:
        return await answered(
            "remember",
            lambda: self._sdk.remember(tag, _as_prose(_encodable(text)), dreaming=dreaming, timeout=timeout),
            timeout=timeout,
            write=True,
        )

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        await answered(
            "unremember",
            lambda: self._sdk.unremember(tag, service_id, timeout=timeout),
            timeout=timeout,
            write=True,
        )

    async def forget(
        self, tag: str, *, memory_id: str | None = None, text: str | None = None, timeout: float
    ) -> bool:
        if not memory_id and not text:
            raise ValueError("forget takes memory_id or text")
        return await answered(
            "forget",
            lambda: self._sdk.forget(tag, memory_id=memory_id, text=_encodable(text or ""), timeout=timeout),
            timeout=timeout,
            write=True,
        )

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        return await answered(
            "memories",
            lambda: self._sdk.memories(tag, page=page, limit=max(1, limit), timeout=timeout),
            timeout=timeout,
        )

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        most = max(1, min(limit, MOST_DOCUMENTS))
        return await answered(
            "latest_calls",
            lambda: self._sdk.latest_calls(tag, limit=most, timeout=timeout),
            timeout=timeout,
        )

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        most = max(1, min(limit, MOST_DOCUMENTS))
        return await answered(
            "list_documents",
            lambda: self._sdk.list_documents(tag, page=page, limit=most, contents=contents, timeout=timeout),
            timeout=timeout,
        )

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        await answered(
            "delete_documents",
            lambda: self._sdk.delete_documents(tag, ids, timeout=timeout),
            timeout=timeout,
            write=True,
        )

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        return await answered(
            "delete_tag", lambda: self._sdk.delete_tag(tag, timeout=timeout), timeout=timeout, write=True
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


def _without_retries(client: object) -> object:
    """The SDK client with its own retries off: a repeated append would store turns twice."""
    if not isinstance(client, AsyncSupermemory):
        return client
    try:
        return client.with_options(max_retries=0)
    except TypeError:  # a subclass with another constructor keeps the retries its author chose
        return client


class _WithoutRequests(logging.Filter):
    """Drops what the SDK logs of its requests at DEBUG: bodies with the caller's words, addresses with their tag.

    A level would not do: whoever looks for a fault sets it, for the root logger or for this one by name.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG


_WITHOUT_REQUESTS = _WithoutRequests()


def _quieten_sdk_log() -> None:
    logging.getLogger("supermemory._base_client").addFilter(_WITHOUT_REQUESTS)  # once: a filter is added once


def _as_prose(text: str) -> str:
    """The text, but a bare link gets a word before it: the service would store the page it leads to."""
    word = text.strip()
    is_link = "://" in word or word.lower().startswith("www.")
    return f"Link: {word}" if is_link and not any(character.isspace() for character in word) else text


def _encodable(text: str) -> str:
    """Without the lone surrogates that no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
