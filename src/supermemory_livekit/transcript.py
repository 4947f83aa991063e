"""How spoken turns become the text of a call's document: one line per turn, lines into chunks. Pure.

    [2026-11-29T17:16:29.123Z] Caller: I moved to Porto.
    [2026-11-29T17:16:31.004Z] Agent (interrupted): Noted. Shall I al
    [2026-11-29T17:16:40.000Z] Caller (part 2 of 3): ...

The stamp is in UTC with milliseconds and grows strictly within a document, so stamp and role alone identify a
line. White space inside a turn is folded to single spaces: nothing said can start a line of its own, or forge
a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Literal

__all__ = [
    "MAX_CHUNK",
    "Line",
    "Role",
    "Turn",
    "fold",
    "is_blank",
    "marks_in",
    "next_chunk",
    "restored_line",
    "split_turn",
    "spoken_in",
    "to_stamp_time",
]

MAX_CHUNK = 100_000
"""Most characters of one write. Source: specification, "chunks of at most 100k characters"."""

_PREFIX_ROOM = 80
"""Characters kept free for stamp and label of a piece of a long turn; the longest real one is shorter."""

_STEP = timedelta(milliseconds=1)

Role = Literal["caller", "agent"]


@dataclass(frozen=True)
class Turn:
    """What one side said, or one piece of it when it is longer than a chunk."""

    role: Role
    text: str
    """Folded, not blank."""
    at: datetime
    """When it was said: UTC, whole milliseconds."""
    order: int = 0
    """Where it comes among turns said at the same time. Pieces of one turn share it; no two turns do."""
    interrupted: bool = False
    """The agent was cut short; the text is what was heard of it."""
    part: int = 1
    parts: int = 1


@dataclass(frozen=True)
class Line:
    """A turn as it stands in the document."""

    stamp: datetime
    """Not before `turn.at`, and later than every line above it."""
    mark: tuple[str, str]
    """Stamp and role as they are written. No other line of the document has both."""
    text: str
    turn: Turn


def to_stamp_time(at: datetime | None, now: datetime) -> datetime:
    """`at` in UTC and whole milliseconds. A naive time is UTC; a missing or absurd one becomes `now`."""
    if at is None or not 1970 < at.year < 3000:
        at = now
    at = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


# Control characters other than white space, and halves of a surrogate pair, are refused by JSON or by the
# databases behind it: one such turn would block every later one of its document.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def fold(text: str) -> str:
    """`text` on one line: white space of any kind becomes single spaces, what cannot be sent is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return " ".join(_CONTROL.sub("", text).split())


def is_blank(text: str) -> bool:
    """Whether nothing can be seen of `text`: only spaces and invisible format characters."""
    return all(unicodedata.category(char) in ("Cf", "Zs") for char in text)


def split_turn(turn: Turn, *, limit: int = MAX_CHUNK) -> tuple[Turn, ...]:
    """The turn itself, or pieces that fit a chunk each, cut between words and never inside a character."""
    room = limit - _PREFIX_ROOM
    if len(turn.text) <= room:
        return (turn,)
    texts = _split_text(turn.text, room)
    return tuple(
        # The earlier pieces of an interrupted reply were heard to their end.
        replace(turn, text=text, part=i, parts=len(texts), interrupted=turn.interrupted and i == len(texts))
        for i, text in enumerate(texts, start=1)
    )


def next_chunk(turns: Iterable[Turn], *, after: datetime | None, limit: int = MAX_CHUNK) -> list[Line]:
    """Lines of the first turns, as many as fit `limit` characters joined by newlines; at least one.

    `after` is the stamp of the document's last line so far. The turns are pieces as `split_turn` gives them.
    """
    lines: list[Line] = []
    length = -1
    for turn in turns:
        line = _line(turn, after)
        length += len(line.text) + 1
        if lines and length > limit:
            break
        lines.append(line)
        after = line.stamp
    return lines


def _line(turn: Turn, after: datetime | None) -> Line:
    return restored_line(turn, turn.at if after is None else max(turn.at, after + _STEP))


def restored_line(turn: Turn, stamp: datetime) -> Line:
    """The line of a turn that was given this stamp, earlier or just now."""
    notes = ["interrupted"] if turn.interrupted else []
    if turn.parts > 1:
        notes.append(f"part {turn.part} of {turn.parts}")
    written, role = stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"), turn.role.capitalize()
    label = f"{role} ({', '.join(notes)})" if notes else role
    return Line(stamp, (written, role), f"[{written}] {label}: {turn.text}", turn)


# Loose, because a service may lay the text out anew (other white space, escaped brackets).
_MARK = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\W{1,8}(Caller|Agent)\b")


def marks_in(document: str) -> set[tuple[str, str]]:
    """The marks of all lines that a stored document holds."""
    return {(match[1], match[2]) for match in _MARK.finditer(document)}


_LINE_START = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z\] (?:Caller|Agent)(?: \([^)]*\))?: ")


def spoken_in(text: str) -> list[str]:
    """What was said in the lines that `text` holds, folded; empty when it holds none. Their start must be whole."""
    first, *spoken = _LINE_START.split(text)
    return [] if first.strip() else [fold(words) for words in spoken]


def _split_text(text: str, room: int) -> Sequence[str]:
    pieces: list[str] = []
    while len(text) > room:
        cut, resume = _cut(text, room)
        pieces.append(text[:cut])
        text = text[resume:]
    pieces.append(text)
    return pieces


def _cut(text: str, room: int) -> tuple[int, int]:
    """Where the next piece ends and where the one after it starts (past the space, if there is one)."""
    space = text.rfind(" ", 1, room + 1)
    while space > 0:
        if not _joined(text, space) and not _joined(text, space + 1):
            return space, space + 1
        space = text.rfind(" ", 1, space)
    for cut in range(room, 0, -1):
        if not _joined(text, cut):
            return cut, cut
    return room, room  # one "character" longer than a chunk: there is no good place


def _joined(text: str, i: int) -> bool:
    """Whether text[i - 1] and text[i] belong to one character as readers see it.

    A safe approximation of the grapheme rules of Unicode (UAX 29): joining too much only moves a cut.
    """
    before, char = text[i - 1], text[i]
    if _extends(char) or before == "\u200d" or unicodedata.combining(before) == _VIRAMA:
        return True
    if _is_flag_half(before) and _is_flag_half(char):
        start = i
        while start and _is_flag_half(text[start - 1]):
            start -= 1
        return (i - start) % 2 == 1
    return False


_VIRAMA = 9
"""Combining class of the signs that bind two consonants in Indic scripts."""


def _extends(char: str) -> bool:
    """Marks, variation selectors, joiners, skin tones, tag characters, and Hangul vowels and finals."""
    return (
        unicodedata.category(char) in ("Mn", "Me", "Mc")
        or char in "\u200c\u200d\uff9e\uff9f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
        or "\u1160" <= char <= "\u11ff"
        or "\ud7b0" <= char <= "\ud7ff"
    )


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def whole_turns(pieces: Iterable[Turn]) -> int:
    """How many turns end among the pieces: the last piece stands for its turn."""
    return sum(piece.part == piece.parts for piece in pieces)
