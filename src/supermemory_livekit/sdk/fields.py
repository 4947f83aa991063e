"""Fields of what an SDK hands out: typed objects with missing or wrong fields, plain dicts, or text, as they came.

The SDKs do not validate answers, and clients of other people's making return dicts.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import cast

from pydantic import TypeAdapter, ValidationError

__all__ = [
    "UnreadableAnswer",
    "chunks_text",
    "count_of",
    "details_of",
    "field",
    "items_of",
    "listed",
    "moment",
    "paging",
    "record_of",
    "similarity_of",
    "text_of",
    "texts_of",
]

_USUAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DATETIME: TypeAdapter[datetime] = TypeAdapter(datetime)


class UnreadableAnswer(Exception):
    """A success whose body is not what the API describes."""


def field(record: object, *names: str) -> object:
    """The first of these fields that is there and not null, of a dict or of a typed object."""
    for name in names:
        if isinstance(record, Mapping):
            value = cast("Mapping[object, object]", record).get(name)
        else:
            value = cast(object, getattr(record, name, None))
        if value is not None:
            return value
    return None


def record_of(answer: object) -> object:
    """The answer if it can have fields: the SDK hands out text when the service sent a web page."""
    if isinstance(answer, (str, bytes, int, float, list, tuple)):
        raise UnreadableAnswer
    return answer


def listed(value: object) -> list[object]:
    """The items of a list that has to be there: without it, nobody could tell an empty memory from a garbled one."""
    if value is None:
        raise UnreadableAnswer
    return items_of(value)


def items_of(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise UnreadableAnswer
    return list(cast("list[object] | tuple[object, ...]", value))


def text_of(value: object) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def texts_of(value: object) -> tuple[str, ...]:
    """Lines of a profile: plain strings, or `{"memory": "..."}` as newer services put it."""
    texts = (text_of(item) or text_of(field(item, "memory")) for item in items_of(value))
    return tuple(text for text in texts if text)


def chunks_text(value: object) -> str | None:
    if not isinstance(value, (list, tuple)):
        return None
    return (
        "\n".join(text for item in items_of(cast(object, value)) if (text := text_of(field(item, "content"))))
        or None
    )


def details_of(value: object) -> list[object]:
    """The items of a list that is a detail: another shape is no items."""
    return list(cast("list[object] | tuple[object, ...]", value)) if isinstance(value, (list, tuple)) else []


def count_of(value: object) -> int | None:
    """A number of things; the SDK gives floats, some services text."""
    if isinstance(value, str) and value.isdecimal():
        return int(value[:12])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return max(0, int(value))


def similarity_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0.0
    return min(1.0, max(0.0, float(value)))


def moment(value: object) -> datetime | None:
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


def paging(answer: object, items: list[object]) -> tuple[bool, int | None]:
    """Whether there may be a further page, and how many items there are on all."""
    pagination = field(answer, "pagination")
    page, pages = (
        count_of(field(pagination, "currentPage", "current_page")),
        count_of(field(pagination, "totalPages", "total_pages")),
    )
    # Without page numbers only an empty page shows the end: a service may give fewer than it was asked for.
    more = bool(items) and (page is None or pages is None or page < pages)
    return more, count_of(field(pagination, "totalItems", "total_items"))
