"""What the service answered, read into the store's own types.

The SDK does not validate answers: it hands out typed objects with missing or wrong fields, plain dicts, or
text, as they came; clients of other people's making return dicts. An answer of another shape than the API
describes raises `UnreadableAnswer`; junk among the items of a list is skipped.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import cast

from pydantic import TypeAdapter, ValidationError

from .store import DeletedTag, DocumentPage, Hit, MemoryPage, Profile, StoredCall, StoredMemory

__all__ = [
    "UnreadableAnswer",
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

_USUAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DATETIME: TypeAdapter[datetime] = TypeAdapter(datetime)


class UnreadableAnswer(Exception):
    """A success whose body is not what the API describes."""


def read_profile(answer: object) -> Profile:
    """`{"profile": {"static": [...], "dynamic": [...]}}`; null or absent at any level is empty."""
    profile = _field(_record(answer), "profile")
    if profile is None:
        return Profile()
    _record(profile)
    return Profile(static=_texts(_field(profile, "static")), dynamic=_texts(_field(profile, "dynamic")))


def read_hits(answer: object) -> list[Hit]:
    """`{"results": [...]}`: every hit that holds text, in the order of the answer."""
    hits: list[Hit] = []
    for item in _items(_field(_record(answer), "results")):
        memory = _text(_field(item, "memory"))
        text = memory or _text(_field(item, "chunk")) or _chunks_text(_field(item, "chunks"))
        if text:
            hits.append(
                Hit(
                    text=text,
                    similarity=_similarity(_field(item, "similarity")),
                    # Neither a chunk nor a memory put together from several can be forgotten by its id.
                    memory_id=_text(_field(item, "id")) if memory and not _is_aggregated(item) else None,
                    updated_at=_datetime(_field(item, "updated_at", "updatedAt")),
                )
            )
    return hits


def read_id(answer: object) -> str | None:
    """The id in the answer to a write; None when a success came without one."""
    answer = _record(answer)
    identifier = _text(_field(answer, "id"))
    if identifier is None and _field(answer, "error"):
        raise UnreadableAnswer
    return identifier


def read_forgotten(answer: object) -> bool:
    """Whether something was forgotten. An answer that says neither is unreadable, not a no."""
    forgotten = answer if isinstance(answer, bool) else _field(_record(answer), "forgotten")
    if not isinstance(forgotten, bool):
        raise UnreadableAnswer
    return forgotten


def read_document(answer: object, *, tag: str, custom_id: str) -> str | None:
    """The content of a document; None when it says that it is another one or another caller's."""
    answer = _record(answer)
    if not _is_ours(answer, tag=tag, custom_id=custom_id):
        return None
    content = _field(answer, "content")
    if not isinstance(content, str):
        # It is there and its text is not told: to call it absent would have its turns written twice.
        raise UnreadableAnswer
    return content


def read_documents(answer: object, *, tag: str, custom_id: str) -> tuple[str | None, bool]:
    """One page of a list: the service's id of our document if it is there, and whether the page was empty."""
    items = _items(_field(_record(answer), "memories", "documents"))
    for item in items:
        if _field(item, "custom_id", "customId") == custom_id and _is_ours(
            item, tag=tag, custom_id=custom_id
        ):
            return _text(_field(item, "id")), False
    return None, not items


def read_memories(answer: object) -> MemoryPage:
    """`{"memoryEntries": [...], "pagination": {...}}`: what holds, and the ids of what no longer does."""
    items = _listed(_field(_record(answer), "memoryEntries", "memory_entries", "memories"))
    now = datetime.now(timezone.utc)
    entries: list[StoredMemory] = []
    gone: list[str] = []
    replaced: list[str] = []
    forgotten: list[StoredMemory] = []
    for item in items:
        identifier = _text(_field(item, "id"))
        if identifier is None:
            continue
        old = (_text(_field(version, "id")) for version in _sequence(_field(item, "history")))
        replaced += [version for version in old if version is not None and version != identifier]
        expires_at = _datetime(_field(item, "forgetAfter", "forget_after"))
        expired = expires_at is not None and expires_at <= now
        text = _text(_field(item, "memory"))
        if text is None:
            gone.append(identifier)
            continue
        memory = StoredMemory(
            id=identifier,
            text=text,
            static=_field(item, "isStatic", "is_static") is True,
            updated_at=_datetime(_field(item, "updatedAt", "updated_at")),
            said_at=_datetime(_field(_field(item, "temporalContext"), "documentDate")),
            expires_at=expires_at,
            documents=tuple(
                document
                for value in _sequence(_field(item, "documentIds", "document_ids"))
                if (document := _text(value)) is not None
            ),
        )
        if (
            expired
            or _field(item, "isForgotten", "is_forgotten") is True
            or _field(item, "isLatest", "is_latest") is False
        ):
            gone.append(identifier)
            forgotten.append(memory)
        else:
            entries.append(memory)
    more, total = _paged(answer, items)
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
    items = _listed(_field(_record(answer), "memories", "documents"))
    more, total = _paged(answer, items)
    entries: list[StoredCall] = []
    for item in items:
        identifier, text = _text(_field(item, "id")), _field(item, "content")
        custom_id = _text(_field(item, "custom_id", "customId"))
        if identifier is not None and _is_ours(item, tag=tag, custom_id=custom_id or ""):
            entries.append(
                StoredCall(
                    id=identifier,
                    custom_id=custom_id,
                    text=text if isinstance(text, str) else "",
                    processed=is_processed(item) is not False,
                    updated_at=_datetime(_field(item, "updated_at", "updatedAt")),
                )
            )
    return DocumentPage(entries=tuple(entries), more=more, total=total)


def read_deleted_tag(answer: object) -> DeletedTag:
    """`{"success": true, "deletedDocumentsCount": n, "deletedMemoriesCount": n}`."""
    if _field(_record(answer), "success") is False:
        raise UnreadableAnswer
    return DeletedTag(
        documents=_count(_field(answer, "deletedDocumentsCount", "deleted_documents_count")),
        memories=_count(_field(answer, "deletedMemoriesCount", "deleted_memories_count")),
    )


def read_calls(answer: object, *, tag: str) -> list[tuple[StoredCall, bool]]:
    """One page of documents with their contents, and of each whether the list told that it is processed.

    Documents that name other tags, have no id or no content are left out.
    """
    calls: list[tuple[StoredCall, bool]] = []
    for item in _listed(_field(_record(answer), "memories", "documents")):
        identifier, text = _text(_field(item, "id")), _field(item, "content")
        custom_id = _text(_field(item, "custom_id", "customId"))
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
            updated_at=_datetime(_field(item, "updated_at", "updatedAt")),
        )
        calls.append((call, processed is not None))
    return calls


def _paged(answer: object, items: list[object]) -> tuple[bool, int | None]:
    """Whether there may be a further page, and how many items there are on all."""
    pagination = _field(answer, "pagination")
    page, pages = (
        _count(_field(pagination, "currentPage", "current_page")),
        _count(_field(pagination, "totalPages", "total_pages")),
    )
    # Without page numbers only an empty page shows the end: a service may give fewer than it was asked for.
    more = bool(items) and (page is None or pages is None or page < pages)
    return more, _count(_field(pagination, "totalItems", "total_items"))


def is_processed(document: object) -> bool | None:
    """Whether memories were made of all of a document; None when it does not say."""
    status = _field(document, "dreaming_status", "dreamingStatus")
    return status == "done" if isinstance(status, str) else None


def _field(record: object, *names: str) -> object:
    """The first of these fields that is there and not null, of a dict or of a typed object."""
    for name in names:
        if isinstance(record, Mapping):
            value = cast("Mapping[object, object]", record).get(name)
        else:
            value = cast(object, getattr(record, name, None))
        if value is not None:
            return value
    return None


def _record(answer: object) -> object:
    """The answer if it can have fields: the SDK hands out text when the service sent a web page."""
    if isinstance(answer, (str, bytes, int, float, list, tuple)):
        raise UnreadableAnswer
    return answer


def _listed(value: object) -> list[object]:
    """The items of a list that has to be there: without it, nobody could tell an empty memory from a garbled one."""
    if value is None:
        raise UnreadableAnswer
    return _items(value)


def _items(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise UnreadableAnswer
    return list(cast("list[object] | tuple[object, ...]", value))


def _text(value: object) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    """Lines of a profile: plain strings, or `{"memory": "..."}` as newer services put it."""
    texts = (_text(item) or _text(_field(item, "memory")) for item in _items(value))
    return tuple(text for text in texts if text)


def _chunks_text(value: object) -> str | None:
    if not isinstance(value, (list, tuple)):
        return None
    return (
        "\n".join(text for item in _items(cast(object, value)) if (text := _text(_field(item, "content"))))
        or None
    )


def _sequence(value: object) -> list[object]:
    """The items of a list that is a detail: another shape is no items."""
    return list(cast("list[object] | tuple[object, ...]", value)) if isinstance(value, (list, tuple)) else []


def _count(value: object) -> int | None:
    """A number of things; the SDK gives floats, some services text."""
    if isinstance(value, str) and value.isdecimal():
        return int(value[:12])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return max(0, int(value))


def _similarity(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0.0
    return min(1.0, max(0.0, float(value)))


def _is_aggregated(item: object) -> bool:
    return _field(item, "is_aggregated", "isAggregated") is True


def _datetime(value: object) -> datetime | None:
    if not isinstance(value, (str, datetime)):
        return None
    if isinstance(value, str) and _USUAL_TIME.fullmatch(value):
        # A list holds thousands of these, and is read while somebody speaks.
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(value[:-1]).replace(tzinfo=timezone.utc)
    try:
        moment = _DATETIME.validate_python(value)
    except ValidationError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _is_ours(document: object, *, tag: str, custom_id: str) -> bool:
    """False when the document names another custom id or other tags; services may leave both out."""
    found = _field(document, "custom_id", "customId")
    if isinstance(found, str) and found != custom_id:
        return False
    tags = _field(document, "container_tags", "containerTags")
    return not isinstance(tags, (list, tuple)) or not tags or tag in tags
