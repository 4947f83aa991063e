"""Reads a stored document as a call, when it is one.

Understood are the lines this package writes, `User:` / `Assistant:` lines, `[role: user] … [user:end]`
blocks, and JSON lists of `{"role": …, "content": …}`: what clients of this API are known to send.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, cast

from .types import Line

__all__ = ["parse_transcript"]

Role = Literal["caller", "agent"]

_CALLER = frozenset({"caller", "user", "human", "customer", "client"})
_AGENT = frozenset({"agent", "assistant", "ai", "bot", "model"})
_OTHER = frozenset({"system", "developer", "tool", "function"})

_STAMP = r"\[(?P<stamp>\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?)\][ \t]*"
_LINE = re.compile(
    rf"^[ \t]*(?:{_STAMP})?(?P<label>[^\W\d_][^:\[\]()\n]{{0,40}}?)[ \t]*"
    r"(?:\((?P<notes>[^()\n]{0,60})\))?[ \t]*:[ \t]*(?P<text>.*)$"
)
_LATER_PART = re.compile(r"part (?:[2-9]|\d{2,}) of \d+")
_BLOCK = re.compile(
    r"\[role:[ \t]*(?P<role>\w{1,20})\](?P<text>.*?)(?:\[(?P=role):end\]|(?=\[role:)|\Z)", re.DOTALL
)
_FRACTION = re.compile(r"[.,](\d+)")
_MILLISECONDS_FROM = 1e11  # as seconds this would be the year 5138


def parse_transcript(text: str) -> list[Line]:
    """The turns of a call in order; empty when `text` is no transcript. Never raises.

    A line that starts no turn belongs to the turn before it. Pieces of a turn that was too long for one write
    are joined again.
    """
    start = text.lstrip()[:1]
    if start in ("[", "{"):
        lines = list(_from_json(text)) or list(_from_blocks(text))
        if lines:
            return lines
    return _from_lines(text)


def _from_lines(text: str) -> list[Line]:
    # Pieces are joined at the end: a turn may have a hundred thousand lines.
    spoken: list[tuple[Line, list[str]]] = []
    turns = 0
    opens_with_turn = True
    for row in text.splitlines():
        turn = _turn(row)
        if turn is None and not row.strip():
            continue
        if turn is None:
            if spoken:
                spoken[-1][1].append(row.strip())
            else:
                opens_with_turn = False
                spoken.append((Line(None, None, ""), [row.strip()]))
            continue
        line, continues = turn
        turns += 1
        if continues and spoken and spoken[-1][0].role == line.role:
            spoken[-1][1].append(line.text)
        else:
            spoken.append((line, [line.text]))
    # A heading may stand above a call, but prose that holds one line like a turn is still prose.
    if turns <= (0 if opens_with_turn else 1):
        return []
    return [Line(line.at, line.role, " ".join(parts).strip()) for line, parts in spoken]


def _turn(row: str) -> tuple[Line, bool] | None:
    """The turn that a row starts, and whether it goes on with the one before."""
    found = _LINE.match(row)
    if found is None:
        return None
    label = found["label"].strip().lower()
    role = _role(label)
    # Without a stamp only well-known labels count: "Note: the key is under the mat" is no speaker.
    if role is None and label not in _OTHER and found["stamp"] is None:
        return None
    notes = found["notes"] or ""
    return Line(_time(found["stamp"]), role, found["text"].strip()), bool(_LATER_PART.search(notes))


def _from_blocks(text: str) -> Iterator[Line]:
    if text.lstrip()[:6].lower() != "[role:":
        return
    for found in _BLOCK.finditer(text):
        yield Line(None, _role(found["role"].lower()), " ".join(found["text"].split()))


def _from_json(text: str) -> Iterator[Line]:
    for data in _values(text):
        if isinstance(data, dict):
            data = cast(dict[str, Any], data).get("messages")
        if not isinstance(data, list):
            return
        for item in cast(Sequence[Any], data):
            if not isinstance(item, dict):
                continue
            message = cast(dict[str, Any], item)
            said = _content(message.get("content"))
            role = message.get("role")
            if isinstance(role, str) and said:
                yield Line(_message_time(message), _role(role.strip().lower()), said)


def _values(text: str) -> list[Any]:
    """The JSON values that stand one after another: each write of a client adds one. None when there is other text."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    place = 0
    try:
        while rest := text[place:].lstrip():
            place = len(text) - len(rest)
            value, place = decoder.raw_decode(text, place)
            values.append(value)
    except (ValueError, RecursionError):
        return []
    return values


def _content(content: Any) -> str:
    if isinstance(content, str):
        return " ".join(content.split())
    if isinstance(content, list):
        parts = map(_part, cast(Sequence[Any], content))
        return " ".join(" ".join(parts).split())
    return ""


def _part(part: Any) -> str:
    if isinstance(part, Mapping):
        part = cast(Mapping[str, Any], part).get("text")
    return part if isinstance(part, str) else ""


def _message_time(message: Mapping[str, Any]) -> datetime | None:
    for name in ("timestamp", "created_at", "createdAt", "time", "at"):
        value = message.get(name)
        if isinstance(value, str):
            return _time(value)
        if isinstance(value, int | float) and 0 < value < 1e14:
            seconds = value / 1000 if value > _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, tz=timezone.utc)
    return None


def _role(label: str) -> Role | None:
    if label in _CALLER:
        return "caller"
    return "agent" if label in _AGENT else None


def _time(stamp: str | None) -> datetime | None:
    if not stamp:
        return None
    # Python 3.10 reads neither "Z" nor a fraction of any other length than 3 or 6 digits.
    stamp = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), stamp.strip(), count=1)
    try:
        moment = datetime.fromisoformat(stamp[:-1] + "+00:00" if stamp[-1:] in ("Z", "z") else stamp)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=timezone.utc)
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
