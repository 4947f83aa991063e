"""What the service answered by v5 of the API, read into the store's own types.

As in `sdk_answers`: another shape raises `UnreadableAnswer`, junk among the items of a list is skipped.
"""

from __future__ import annotations

import re

from supermemory_livekit.errors import Conflict, NotFound, ServiceUnavailable
from supermemory_livekit.store import (
    DeletedTag,
    DocumentPage,
    Hit,
    MemoryPage,
    Profile,
    StoredCall,
    StoredMemory,
)

from .fields import (
    UnreadableAnswer,
    count_of,
    field,
    items_of,
    listed,
    moment,
    paging,
    record_of,
    similarity_of,
    text_of,
    texts_of,
)

__all__ = [
    "check_removed",
    "read_content",
    "read_deleted_namespace",
    "read_documents",
    "read_facts",
    "read_forgotten",
    "read_found",
    "read_memories",
    "read_stored",
]

_OWN_ID = re.compile(r"(?!lk-)[A-Za-z0-9_-]{22}")
"""An id that the service made. A document with an id of its client's has no other in v5; ours begin with `lk-`."""
_AGGREGATED = "aggregated_"
"""Begins the id of what the service put together from several memories."""
_UNREAD = ("queued", "extracting")
"""States of a document whose content is still that of before the last write, if it has any."""


def read_facts(answer: object) -> Profile:
    """`{"profile": {"static": [{"id", "memory"}], "dynamic": [...]}}`; null or absent at any level is empty."""
    profile = field(record_of(answer), "profile")
    if profile is None:
        return Profile()
    record_of(profile)
    return Profile(static=texts_of(field(profile, "static")), dynamic=texts_of(field(profile, "dynamic")))


def read_found(answer: object) -> list[Hit]:
    """`{"results": [...]}`: every hit that holds text, in the order of the answer."""
    hits: list[Hit] = []
    for item in items_of(field(record_of(answer), "results")):
        identifier, memory = text_of(field(item, "id")), text_of(field(item, "memory"))
        if text := memory or text_of(field(item, "chunk")):
            whole = identifier is not None and not identifier.startswith(_AGGREGATED)
            hits.append(
                Hit(
                    text=text,
                    similarity=similarity_of(field(item, "similarity")),
                    memory_id=identifier if memory and whole else None,
                    updated_at=moment(_system(item, "updated_at", "updatedAt")),
                )
            )
    return hits


def read_stored(answer: object) -> str:
    """The id in the answer to a write: the client's own, where it gave one."""
    identifier = text_of(field(record_of(answer), "id"))
    if identifier is None:
        raise UnreadableAnswer
    return identifier


def read_content(answer: object) -> str:
    """The text of a document.

    Until a write is extracted the service shows the text of before, in which its turns would be missed.
    """
    content = field(record_of(answer), "content")
    if not isinstance(content, str) or _system(answer, "status") in _UNREAD:
        raise UnreadableAnswer
    return content


def read_documents(answer: object) -> DocumentPage:
    """`{"documents": [...], "pagination": {...}}`, with or without contents."""
    items = listed(field(record_of(answer), "documents"))
    more, total = paging(answer, items)
    entries: list[StoredCall] = []
    for item in items:
        identifier, text = text_of(field(item, "id")), field(item, "content")
        if identifier is not None:
            entries.append(
                StoredCall(
                    id=identifier,
                    custom_id=None if _OWN_ID.fullmatch(identifier) else identifier,
                    text=text if isinstance(text, str) else "",
                    processed=_system(item, "dreaming_status", "dreamingStatus") in ("done", None),
                    updated_at=moment(_system(item, "updated_at", "updatedAt")),
                    created_at=moment(_system(item, "created_at", "createdAt")),
                )
            )
    return DocumentPage(entries=tuple(entries), more=more, total=total)


def read_memories(answer: object) -> MemoryPage:
    """`{"memories": [...], "pagination": {...}}`: what holds, and what no longer does.

    v5 tells of a memory neither when it was said nor which documents it comes from.
    """
    items = listed(field(record_of(answer), "memories"))
    entries: list[StoredMemory] = []
    forgotten: list[StoredMemory] = []
    for item in items:
        identifier, text = text_of(field(item, "id")), text_of(field(item, "memory"))
        if identifier is None:
            continue
        memory = StoredMemory(
            id=identifier,
            text=text or "",
            static=field(item, "is_static", "isStatic") is True,
            updated_at=moment(_system(item, "updated_at", "updatedAt")),
        )
        ended = (
            field(item, "is_forgotten", "isForgotten") is True
            or field(item, "is_latest", "isLatest") is False
        )
        (forgotten if ended or text is None else entries).append(memory)
    more, total = paging(answer, items)
    return MemoryPage(
        entries=tuple(entries),
        gone=tuple(memory.id for memory in forgotten),
        more=more,
        total=total,
        forgotten=tuple(memory for memory in forgotten if memory.text),
    )


def read_forgotten(answer: object) -> bool:
    """`{"count": n, "errors": [{"id", "error"}], "matches": [...]}`: 200 alone does not mean forgotten."""
    count = _removed(answer)
    if count:
        return True
    _raise_first(answer, "forget", gone_is_fine=False)
    return False


def check_removed(answer: object, operation: str, *, gone_is_fine: bool) -> None:
    """Raise for the first document that was not deleted; with `gone_is_fine` not for one that is no longer there."""
    _removed(answer)
    _raise_first(answer, operation, gone_is_fine=gone_is_fine)


def read_deleted_namespace(answer: object) -> DeletedTag:
    """`{"status": "deleted", "deletedDocumentsCount": n, "deletedMemoriesCount": n}`."""
    if field(record_of(answer), "status") != "deleted":
        raise UnreadableAnswer
    return DeletedTag(
        documents=count_of(field(answer, "deleted_documents_count", "deletedDocumentsCount")),
        memories=count_of(field(answer, "deleted_memories_count", "deletedMemoriesCount")),
    )


def _removed(answer: object) -> int:
    count = count_of(field(record_of(answer), "count"))
    if count is None:
        raise UnreadableAnswer
    return count


def _raise_first(answer: object, operation: str, *, gone_is_fine: bool) -> None:
    """The API gives reasons in words alone. They may quote anything, so none goes into a message."""
    for problem in items_of(field(answer, "errors")):
        reason = (text_of(field(problem, "error")) or "").lower()
        if "processing" in reason:
            raise Conflict(f"{operation} has to wait for processing", status=409)
        if "not found" not in reason and "already" not in reason:
            raise ServiceUnavailable(f"{operation} was not done", uncertain=True)
        if gone_is_fine:
            continue
        if "already" in reason:
            raise Conflict(f"{operation} is already done", status=409)
        raise NotFound(f"{operation} found nothing under this id", status=404)


def _system(item: object, *names: str) -> object:
    """A field among those that the service keeps of everything."""
    return field(field(item, "system"), *names)
