"""The official SDK 3.x, from 3.48, and whatever has the same methods: v3/v4 of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from urllib.parse import quote

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

from .adapter import METADATA, MOST_DOCUMENTS, SDKAdapter
from .calls import Method, NotOffered, status_of
from .fields import UnreadableAnswer
from .unlogged import unlogged
from .v3_answers import (
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

__all__ = ["V3Adapter"]

_LIST_PAGES = 3
_MOST_MEMORIES = 1_000
"""Memories per page; the API caps its answers at 1,100."""
_ASKED_ONE_BY_ONE = 3
"""Documents asked whether they are processed, when the list does not tell. Older ones nearly always are."""


class V3Adapter(SDKAdapter):
    """The client needs `add`, `profile`, `search.memories` and `memories.forget`; see `SDKStore` for the others."""

    def __init__(self, client: object) -> None:
        self._add = Method(client, "add", "content", "container_tag", "custom_id", "dreaming")
        self._profile = Method(client, "profile", "container_tag")
        self._search = Method(
            client, "search.memories", "q", "container_tag", "limit", "threshold", "search_mode"
        )
        self._forget = Method(client, "memories.forget", "container_tag", "id", "content")
        self._get = Method.optional(client, "documents.get", "id")
        self._list = Method.optional(client, "documents.list", "container_tags")
        self._delete = Method.optional(client, "documents.delete", "id")
        self._delete_bulk = Method.optional(client, "documents.delete_bulk", "ids")
        self._send_delete = Method.optional(client, "delete", "path", "cast_to", "options")
        self._post = Method.optional(client, "post", "path", "body", "cast_to", "options")
        self._dated = True
        """False once the service has turned out to know no document dates."""

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        return read_profile(await self._profile(container_tag=tag, timeout=timeout))

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        answer = await self._search(
            q=query, container_tag=tag, limit=limit, threshold=threshold, search_mode=mode, timeout=timeout
        )
        return read_hits(answer)

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, date: str, timeout: float
    ) -> str | None:
        async def add(**dated: str) -> str | None:
            answer = await self._add(
                content=text,
                container_tag=tag,
                custom_id=custom_id,
                dreaming=dreaming,
                metadata=METADATA,
                timeout=timeout,
                **dated,
            )
            return self._receipt(answer)

        if not (self._dated and self._add.accepts("document_date")):
            return await add()
        try:
            return await add(document_date=date)
        except Exception as error:
            if status_of(error) not in (400, 422):
                raise
        # Servers older than document dates refuse the unknown field, and with it the turns.
        receipt = await add()
        self._dated = False
        return receipt

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        get, list_ = self._get, self._list
        if get is None or list_ is None:
            raise NotOffered("this client cannot read documents")

        async def content(identifier: str) -> str | None:
            try:
                answer = await get(id=identifier, timeout=timeout)
            except Exception as error:
                if status_of(error) == 404:
                    return None
                raise
            return read_document(answer, tag=tag, custom_id=custom_id)

        if service_id and (text := await content(service_id)) is not None:
            return text
        # The list is asked for without contents, which may be long calls, and then for the one document.
        for page in range(1, _LIST_PAGES + 1):
            answer = await list_(
                container_tags=[tag],
                limit=MOST_DOCUMENTS,
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

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None:
        answer = await self._add(
            content=text, container_tag=tag, dreaming=dreaming, metadata=METADATA, timeout=timeout
        )
        return self._receipt(answer)

    def _receipt(self, answer: object) -> str | None:
        """The id in the answer to a write. One without an id leaves open whether anything is stored.

        That is worth an error only where it can be found out: other people's clients may return nothing at all.
        """
        identifier = read_id(answer)
        if identifier is None and self._get is not None and self._list is not None:
            raise UnreadableAnswer
        return identifier

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        del tag  # the route names the document alone
        if self._delete is None:
            raise NotOffered("this client cannot delete documents")
        await self._delete(id=service_id, timeout=timeout)

    async def forget(self, tag: str, *, memory_id: str | None, text: str | None, timeout: float) -> bool:
        which = {"id": memory_id} if memory_id else {"content": text}
        return read_forgotten(await self._forget(container_tag=tag, **which, timeout=timeout))

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        if self._post is None:
            raise NotOffered("this client cannot list memories")
        # The SDK has no method for this route, and the route no form with a single tag.
        body = {
            "containerTags": [tag],
            "page": page,
            "limit": min(limit, _MOST_MEMORIES),
            "sort": "updatedAt",
            "order": "desc",
        }
        answer = await self._post(
            path="/v4/memories/list",
            body=body,
            cast_to=object,
            options={"timeout": timeout},
            timeout=timeout,
        )
        return read_memories(answer)

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        if self._list is None or not self._list.accepts("include_content"):
            raise NotOffered("this client cannot list documents with their contents")
        answer = await self._list(
            container_tags=[tag],
            include_content=True,
            limit=limit,
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
        if self._list is None or (contents and not self._list.accepts("include_content")):
            raise NotOffered("this client cannot list documents")
        options = {"include_content": True} if contents else {}
        answer = await self._list(
            container_tags=[tag],
            limit=limit,
            page=page,
            sort="updatedAt",
            order="desc",
            timeout=timeout,
            **options,
        )
        return read_document_page(answer, tag=tag)

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        del tag  # the routes name documents alone; callers pass ids that were listed under the tag
        if self._delete is None:
            raise NotOffered("this client cannot delete documents")
        if self._delete_bulk is not None:
            try:
                await self._delete_bulk(ids=list(ids), timeout=timeout)
            except Exception as error:
                if status_of(error) not in (404, 405):
                    raise
            else:
                return
        for identifier in ids:
            await _unless_gone(self._delete(id=identifier, timeout=timeout))

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        if self._send_delete is None:
            raise NotOffered("this client cannot delete container tags")
        # The SDK has no method for this route.
        with unlogged():
            answer = await self._send_delete(
                path=f"/v3/container-tags/{quote(tag, safe='')}",
                cast_to=object,
                options={"timeout": timeout},
                timeout=timeout,
            )
        return read_deleted_tag(answer)


async def _unless_gone(deletion: Awaitable[object]) -> None:
    try:
        await deletion
    except Exception as error:
        if status_of(error) != 404:
            raise
