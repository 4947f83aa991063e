"""What the service answered by v3/v4 of the API, read into the store's own types.

An answer of another shape than the API describes raises `UnreadableAnswer`; junk among the items of a list is
skipped.
"""

from __future__ import annotations

from datetime import datetime, timezone

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
    chunks_text,
    count_of,
    details_of,
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
    "is_processed",
    "read_calls",
    "read_deleted_tag",
    "read_document",
    "read_document_page",
    "read_documents",
    "read_forgotten",
    "read_hits",
    "read_id",
    "read_memories",
    "read_profile",
]


def read_profile(answer: object) -> Profile:
    """`{"profile": {"static": [...], "dynamic": [...]}}`; null or absent at any level is empty."""
    profile = field(record_of(answer), "profile")
    if profile is None:
        return Profile()
    record_of(profile)
    return Profile(static=texts_of(field(profile, "static")), dynamic=texts_of(field(profile, "dynamic")))


def read_hits(answer: object) -> list[Hit]:
    """`{"results": [...]}`: every hit that holds text, in the order of the answer."""
    hits: list[Hit] = []
    for item in items_of(field(record_of(answer), "results")):
        memory = text_of(field(item, "memory"))
        text = memory or text_of(field(item, "chunk")) or chunks_text(field(item, "chunks"))
        if text:
            hits.append(
                Hit(
                    text=text,
                    similarity=similarity_of(field(item, "similarity")),
                    # Neither a chunk nor a memory put together from several can be forgotten by its id.
                    memory_id=text_of(field(item, "id")) if memory and not _is_aggregated(item) else None,
                    updated_at=moment(field(item, "updated_at", "updatedAt")),
                )
            )
    return hits


def read_id(answer: object) -> str | None:
    """The id in the answer to a write; None when a success came without one."""
    answer = record_of(answer)
    identifier = text_of(field(answer, "id"))
    if identifier is None and field(answer, "error"):
        raise UnreadableAnswer
    return identifier


def read_forgotten(answer: object) -> bool:
    """Whether something was forgotten. An answer that says neither is unreadable, not a no."""
    forgotten = answer if isinstance(answer, bool) else field(record_of(answer), "forgotten")
    if not isinstance(forgotten, bool):
        raise UnreadableAnswer
    return forgotten


def read_document(answer: object, *, tag: str, custom_id: str) -> str | None:
    """The content of a document; None when it says that it is another one or another caller's."""
    answer = record_of(answer)
    if not _is_ours(answer, tag=tag, custom_id=custom_id):
        return None
    content = field(answer, "content")
    if not isinstance(content, str):
        # It is there and its text is not told: to call it absent would have its turns written twice.
        raise UnreadableAnswer
    return content


def read_documents(answer: object, *, tag: str, custom_id: str) -> tuple[str | None, bool]:
    """One page of a list: the service's id of our document if it is there, and whether the page was empty."""
    items = items_of(field(record_of(answer), "memories", "documents"))
    for item in items:
        if field(item, "custom_id", "customId") == custom_id and _is_ours(item, tag=tag, custom_id=custom_id):
            return text_of(field(item, "id")), False
    return None, not items


def read_memories(answer: object) -> MemoryPage:
    """`{"memoryEntries": [...], "pagination": {...}}`: what holds, and the ids of what no longer does."""
    items = listed(field(record_of(answer), "memoryEntries", "memory_entries", "memories"))
    now = datetime.now(timezone.utc)
    entries: list[StoredMemory] = []
    gone: list[str] = []
    replaced: list[str] = []
    forgotten: list[StoredMemory] = []
    for item in items:
        identifier = text_of(field(item, "id"))
        if identifier is None:
            continue
        old = (text_of(field(version, "id")) for version in details_of(field(item, "history")))
        replaced += [version for version in old if version is not None and version != identifier]
        expires_at = moment(field(item, "forgetAfter", "forget_after"))
        expired = expires_at is not None and expires_at <= now
        text = text_of(field(item, "memory"))
        if text is None:
            gone.append(identifier)
            continue
        memory = StoredMemory(
            id=identifier,
            text=text,
            static=field(item, "isStatic", "is_static") is True,
            updated_at=moment(field(item, "updatedAt", "updated_at")),
            said_at=moment(field(field(item, "temporalContext"), "documentDate")),
            expires_at=expires_at,
            documents=tuple(
                document
                for value in details_of(field(item, "documentIds", "document_ids"))
                if (document := text_of(value)) is not None
            ),
        )
        if (
            expired
            or field(item, "isForgotten", "is_forgotten") is True
            or field(item, "isLatest", "is_latest") is False
        ):
            gone.append(identifier)
            forgotten.append(memory)
        else:
            entries.append(memory)
    more, total = paging(answer, items)
    return MemoryPage(
        entries=tuple(entries),
        gone=tuple(gone),
        replaced=tuple(replaced),
        more=more,
        total=total,
        forgotten=tuple(forgotten),
    )


def read_document_page(answer: object, *, tag: str) -> DocumentPage:
    """One page of documents, with or without contents; those that name other tags are left out."""
    items = listed(field(record_of(answer), "memories", "documents"))
    more, total = paging(answer, items)
    entries: list[StoredCall] = []
    for item in items:
        identifier, text = text_of(field(item, "id")), field(item, "content")
        custom_id = text_of(field(item, "custom_id", "customId"))
        if identifier is not None and _is_ours(item, tag=tag, custom_id=custom_id or ""):
            entries.append(
                StoredCall(
                    id=identifier,
                    custom_id=custom_id,
                    text=text if isinstance(text, str) else "",
                    processed=is_processed(item) is not False,
                    updated_at=moment(field(item, "updated_at", "updatedAt")),
                    created_at=moment(field(item, "created_at", "createdAt")),
                )
            )
    return DocumentPage(entries=tuple(entries), more=more, total=total)


def read_deleted_tag(answer: object) -> DeletedTag:
    """`{"success": true, "deletedDocumentsCount": n, "deletedMemoriesCount": n}`."""
    if field(record_of(answer), "success") is False:
        raise UnreadableAnswer
    return DeletedTag(
        documents=count_of(field(answer, "deletedDocumentsCount", "deleted_documents_count")),
        memories=count_of(field(answer, "deletedMemoriesCount", "deleted_memories_count")),
    )


def read_calls(answer: object, *, tag: str) -> list[tuple[StoredCall, bool]]:
    """One page of documents with their contents, and of each whether the list told that it is processed.

    Documents that name other tags, have no id or no content are left out.
    """
    calls: list[tuple[StoredCall, bool]] = []
    for item in listed(field(record_of(answer), "memories", "documents")):
        identifier, text = text_of(field(item, "id")), field(item, "content")
        custom_id = text_of(field(item, "custom_id", "customId"))
        if identifier is None or not isinstance(text, str) or not text.strip():
            continue
        if not _is_ours(item, tag=tag, custom_id=custom_id or ""):
            continue
        processed = is_processed(item)
        call = StoredCall(
            id=identifier,
            custom_id=custom_id,
            text=text,
            processed=processed is not False,
            updated_at=moment(field(item, "updated_at", "updatedAt")),
        )
        calls.append((call, processed is not None))
    return calls


def is_processed(document: object) -> bool | None:
    """Whether memories were made of all of a document; None when it does not say."""
    status = field(document, "dreaming_status", "dreamingStatus")
    return status == "done" if isinstance(status, str) else None


def _is_aggregated(item: object) -> bool:
    return field(item, "is_aggregated", "isAggregated") is True


def _is_ours(document: object, *, tag: str, custom_id: str) -> bool:
    """False when the document names another custom id or other tags; services may leave both out."""
    found = field(document, "custom_id", "customId")
    if isinstance(found, str) and found != custom_id:
        return False
    tags = field(document, "container_tags", "containerTags")
    return not isinstance(tags, (list, tuple)) or not tags or tag in tags
