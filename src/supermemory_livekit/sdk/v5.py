"""The official SDK 5.x: v5 of the API, in which a container tag is a namespace and a custom id simply an id."""

from __future__ import annotations

from collections.abc import Sequence

from supermemory_livekit.errors import APIMismatch, NotFound
from supermemory_livekit.store import (
    DeletedTag,
    DocumentPage,
    Dreaming,
    Hit,
    MemoryPage,
    Profile,
    SearchMode,
    StoredCall,
)
from supermemory_livekit.telemetry import logger

from .adapter import METADATA, MOST_DOCUMENTS, SDKAdapter
from .calls import Method, NotOffered, parameters_of, status_of
from .unlogged import unlogged
from .v5_answers import (
    check_removed,
    read_content,
    read_deleted_namespace,
    read_documents,
    read_facts,
    read_forgotten,
    read_found,
    read_memories,
    read_stored,
)

__all__ = ["V5Adapter", "speaks_v5"]

_LIST_PAGES = 3
_MOST_MEMORIES = 100
"""Memories per page."""
_SAME_TEXT = 100
"""Search results among which a memory with exactly this text is looked for."""
_SAME_TEXT_PAGES = 10
"""Pages of the list that are looked through when search does not show it."""
_MISMATCH = (
    "the server has no v5 API, which the installed supermemory 5 speaks; for one that speaks the v3/v4 API:"
    " pip install 'supermemory<5'"
)


def speaks_v5(client: object) -> bool:
    """Whether the client has the methods of 5.x: its `add` takes a namespace."""
    names = parameters_of(add) if callable(add := getattr(client, "add", None)) else None
    return names is not None and "namespace" in names and "container_tag" not in names


class V5Adapter(SDKAdapter):
    """The client needs `add`, `profile`, `search` and `memories.forget`.

    With `documents.get`, `list`, `documents.delete` and `namespaces.delete` it can do the rest.
    """

    def __init__(self, client: object) -> None:
        self._add = Method(client, "add", "namespace", "content", "id", "dreaming")
        self._profile = Method(client, "profile", "namespace")
        self._search = Method(client, "search", "namespace", "query", "limit", "threshold", "search_mode")
        self._forget = Method(client, "memories.forget", "namespace", "ids")
        self._get = Method.optional(client, "documents.get", "namespace", "id")
        self._list = Method.optional(client, "list", "namespace", "type", "include")
        self._delete = Method.optional(client, "documents.delete", "namespace", "ids")
        self._delete_namespace = Method.optional(client, "namespaces.delete", "namespace")
        self._told = False
        """The log says once that the server does not speak v5, whichever part of a call meets it first."""

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        return read_facts(await self._asked(self._profile, tag, timeout=timeout))

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        answer = await self._asked(
            self._search,
            tag,
            query=query,
            limit=limit,
            threshold=threshold,
            search_mode=mode,
            timeout=timeout,
        )
        return read_found(answer)

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, date: str, timeout: float
    ) -> str:
        """A write with an id that is taken adds to the document, as in v3."""
        answer = await self._asked(
            self._add,
            tag,
            content=text,
            id=custom_id,
            dreaming=dreaming,
            metadata=METADATA,
            date=date,
            timeout=timeout,
        )
        return read_stored(answer)

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        del service_id  # the custom id names the document as well, and within its namespace alone
        if self._get is None or self._list is None:
            raise NotOffered("this client cannot read documents")
        if (text := await self._content(self._get, tag, custom_id, timeout)) is not None:
            return text
        # A document that was stored a moment ago may be listed before it can be asked for.
        for page in range(1, _LIST_PAGES + 1):
            found = await self._documents(
                tag, page=page, limit=MOST_DOCUMENTS, contents=False, timeout=timeout
            )
            if any(entry.id == custom_id for entry in found.entries):
                return await self._content(self._get, tag, custom_id, timeout)
            if not found.more:
                break
        return None

    async def _content(self, get: Method, tag: str, custom_id: str, timeout: float) -> str | None:
        try:
            answer = await self._asked(get, tag, id=custom_id, timeout=timeout, missing=True)
        except NotFound:
            return None
        return read_content(answer)

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str:
        answer = await self._asked(
            self._add, tag, content=text, dreaming=dreaming, metadata=METADATA, timeout=timeout
        )
        return read_stored(answer)

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        answer = await self._deleted(tag, [service_id], timeout)
        check_removed(answer, "unremember", gone_is_fine=False)

    async def forget(self, tag: str, *, memory_id: str | None, text: str | None, timeout: float) -> bool:
        ids = [memory_id] if memory_id else await self._with_text(tag, (text or "").strip(), timeout)
        if not ids:
            raise NotFound("forget found no memory with this text", status=404)
        return read_forgotten(await self._asked(self._forget, tag, ids=ids, timeout=timeout))

    async def _with_text(self, tag: str, text: str, timeout: float) -> list[str]:
        """Ids of the memories that read exactly so. v5 forgets by id, or by meaning, which may take others along."""
        if not text:
            return []
        hits = await self.search(tag, text, limit=_SAME_TEXT, threshold=0.0, mode="memories", timeout=timeout)
        found = [hit.memory_id for hit in hits if hit.text == text and hit.memory_id]
        if found or self._list is None:
            return found
        for number in range(1, _SAME_TEXT_PAGES + 1):
            page = await self.memories(tag, page=number, limit=_MOST_MEMORIES, timeout=timeout)
            found = [memory.id for memory in page.entries if memory.text == text]
            if found or not page.more:
                break
        return found

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        answer = await self._listed(
            tag,
            "memories",
            page=page,
            limit=min(limit, _MOST_MEMORIES),
            include={"forgotten": True},
            timeout=timeout,
        )
        return read_memories(answer)

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        page = await self._documents(tag, page=1, limit=limit, contents=True, timeout=timeout)
        return [call for call in page.entries if call.text.strip()]

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        return await self._documents(tag, page=page, limit=limit, contents=contents, timeout=timeout)

    async def _documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        answer = await self._listed(
            tag,
            "documents",
            page=page,
            limit=limit,
            include={"content": contents, "memory_count": False},
            timeout=timeout,
        )
        return read_documents(answer)

    async def _listed(
        self, tag: str, kind: str, *, page: int, limit: int, include: dict[str, bool], timeout: float
    ) -> object:
        if self._list is None:
            raise NotOffered(f"this client cannot list {kind}")
        return await self._asked(
            self._list,
            tag,
            type=kind,
            page=page,
            limit=limit,
            sort="updatedAt",
            order="desc",
            include=include,
            timeout=timeout,
        )

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        answer = await self._deleted(tag, ids, timeout)
        check_removed(answer, "delete_documents", gone_is_fine=True)

    async def _deleted(self, tag: str, ids: Sequence[str], timeout: float) -> object:
        if self._delete is None:
            raise NotOffered("this client cannot delete documents")
        return await self._asked(self._delete, tag, ids=list(ids), timeout=timeout)

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        if self._delete_namespace is None:
            raise NotOffered("this client cannot delete container tags")
        answer = await self._asked(self._delete_namespace, tag, timeout=timeout, missing=True)
        return read_deleted_namespace(answer)

    async def _asked(
        self, method: Method, tag: str, *, timeout: float, missing: bool = False, **arguments: object
    ) -> object:
        """Call a method. Every route of v5 names the caller in its address, which is kept out of httpx's log.

        `missing`: the route answers 404 for a thing that is not there. Any other that does is no route of this server.
        """
        try:
            with unlogged():
                return await method(namespace=tag, timeout=timeout, **arguments)
        except Exception as error:
            if status_of(error) != 404:
                raise
            if missing:
                raise NotFound("404: nothing under this id", status=404) from None
        if not self._told:
            self._told = True
            logger.error("404: %s", _MISMATCH)
        raise APIMismatch(f"404: {_MISMATCH}", status=404)
