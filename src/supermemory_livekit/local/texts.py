"""Pure helpers on texts: ids, times, equality of facts, and windows of neighbouring turns."""

from __future__ import annotations

import re
import secrets
import string
import time
import unicodedata
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone

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
    "windows",
]

_ALPHABET = string.ascii_letters + string.digits
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_WINDOW_TURNS = 3
"""Turns per window. One turn alone says too little to be found; more dilute what is said."""
_WINDOW_CHARS = 1_200
"""Most characters in a window."""

_DATE_PREFIX = re.compile(r"^\s*\[\d{4}-\d{2}-\d{2}\]\s*")
_STAMP = re.compile(r"^\[(\d{4}-\d{2}-\d{2}T[0-9:.]+(?:Z|[+-]\d{2}:\d{2}))\][ \t]*", re.MULTILINE)
_TURN = re.compile(r"(?:\[[^\]\n]{8,40}\][ \t]*)?[A-Za-z][\w ()-]{0,30}:[ \t]")
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


def exact_form(text: str) -> str:
    """What "the exact text" of a memory means: space around it, case and a leading `[date]` do not count."""
    return _DATE_PREFIX.sub("", text).strip().casefold()


def norm_form(text: str) -> str:
    """Texts of one norm are one fact: inner space, width of letters and a final stop do not count either."""
    folded = unicodedata.normalize("NFKC", exact_form(text)).casefold()
    return " ".join(folded.split()).rstrip(".!。 ") or folded


def opening_time(text: str) -> int | None:
    """Milliseconds of the first time stamp in a piece of transcript."""
    found = _STAMP.search(text)
    if found is None:
        return None
    try:
        return to_ms(parse_time(found.group(1)))
    except ValueError:
        return None


def windows(content: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Cut `content[start:]` into windows `[from, to)` that can be found one by one.

    Of a transcript each window holds up to three neighbouring turns and begins with the last turn of the one
    before, so that an answer is never parted from its question. Other text is cut between lines, else between
    words.
    `start` is 0 or the beginning of a window of an earlier, shorter state of the same content.
    """
    spoken = _TURN.match(content) is not None
    units = list(_units(content, start))
    first = 0
    while first < len(units):
        begin, end = units[first]
        last = first
        while last + 1 < len(units) and units[last + 1][1] - begin <= _WINDOW_CHARS:
            if spoken and last - first + 1 == _WINDOW_TURNS:
                break
            last += 1
            end = units[last][1]
        yield begin, end
        if last + 1 >= len(units):
            return
        first = last if spoken and last > first else last + 1


def _units(content: str, start: int) -> Iterator[tuple[int, int]]:
    """Lines that hold something, a longer one cut between words."""
    while start < len(content):
        newline = content.find("\n", start)
        stop = len(content) if newline < 0 else newline
        piece = start
        while stop - piece > _WINDOW_CHARS:
            cut = content.rfind(" ", piece + 1, piece + _WINDOW_CHARS)
            cut = piece + _WINDOW_CHARS if cut < 0 else cut + 1
            yield piece, cut
            piece = cut
        if content[piece:stop].strip():
            yield piece, stop
        start = stop + 1
