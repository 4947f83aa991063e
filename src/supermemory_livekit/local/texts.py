"""Pure helpers on texts: ids and times; equality of facts and turns of calls are the ones of `retrieval`."""

from __future__ import annotations

import re
import secrets
import string
import time
from datetime import date, datetime, timedelta, timezone

from supermemory_livekit.retrieval import exact_form, norm_form, turns

__all__ = [
    "exact_form",
    "from_ms",
    "iso",
    "new_id",
    "norm_form",
    "now_ms",
    "opening_time",
    "parse_time",
    "to_ms",
    "turns",
]

_ALPHABET = string.ascii_letters + string.digits
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_STAMP = re.compile(r"^\[(\d{4}-\d{2}-\d{2}T[0-9:.]+(?:Z|[+-]\d{2}:\d{2}))\][ \t]*", re.MULTILINE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FRACTION = re.compile(r"\.(\d+)")


def new_id() -> str:
    """22 random letters and digits: the length of the API's ids, and nobody guesses one."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(22))


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def from_ms(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def to_ms(moment: datetime) -> int:
    """A time without zone is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def iso(ms: int) -> str:
    """`2026-11-29T17:16:29.123Z`, the API's form."""
    return from_ms(ms).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_time(text: str) -> datetime:
    """`YYYY-MM-DD` or an ISO 8601 timestamp, as UTC.

    Raises `ValueError` for anything else, and for years that leave no room for a time zone.
    """
    text = text.strip()
    if not _ISO_DATE.match(text):
        raise ValueError("not an ISO 8601 date or time")
    if len(text) == 10:
        day = date.fromisoformat(text)
        moment = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    else:
        # Python 3.10 reads neither "Z" nor a fraction of any other length than 3 or 6.
        text = _FRACTION.sub(lambda found: "." + found.group(1)[:6].ljust(6, "0"), text, count=1)
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text[-1] in "zZ" else text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
    if not 1 < moment.year < 9999:
        raise ValueError("out of range")
    return moment.astimezone(timezone.utc)


def opening_time(text: str) -> int | None:
    """Milliseconds of the first time stamp in a piece of transcript."""
    found = _STAMP.search(text)
    if found is None:
        return None
    try:
        return to_ms(parse_time(found.group(1)))
    except ValueError:
        return None
