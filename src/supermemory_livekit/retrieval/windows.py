"""Pieces of stored text that are found one by one: turns of a conversation, lines of other text."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["LONGEST", "in_context", "is_turn", "speaker", "turns", "windows"]

LONGEST = 1_200
"""Most characters in a piece."""
_WINDOW_TURNS = 3
"""Turns per window. One turn alone says too little to be found; more dilute what is said."""

_TURN = re.compile(r"(?:\[[^\]\n]{8,40}\][ \t]*)?([^\W\d_][\w .'-]{0,30}?)(?: ?\([^)\n]{0,40}\))?:[ \t]")


def is_turn(text: str) -> bool:
    """Whether `text` begins as a line of a conversation does: who speaks, and perhaps when."""
    return _TURN.match(text) is not None


def speaker(text: str) -> str:
    """Who speaks in the turn that `text` begins with, as it is written; empty when it begins with none."""
    found = _TURN.match(text)
    return found[1].strip() if found else ""


def in_context(text: str, before: str) -> str:
    """`text` as it is embedded when `before` stands before it: a turn together with what it may answer."""
    return f"{before}\n{text}" if before and is_turn(text) and len(before) + len(text) < LONGEST else text


def turns(content: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Cut `content[start:]` into pieces `[from, to)`: of a conversation its turns, each by itself.

    A turn longer than a piece may be is cut between words; other text is cut between lines, as few of them as
    possible, else between words. `start` is 0 or the beginning of a piece of an earlier, shorter state of the
    same content.
    """
    yield from _groups(content, start, most=1 if is_turn(content) else None)


def windows(content: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Cut `content[start:]` into windows `[from, to)` that can be found without what stands around them.

    Of a conversation each window holds up to three neighbouring turns and begins with the last turn of the one
    before, so that an answer is never parted from its question. Other text is cut as `turns` does, as is `start`.
    """
    yield from _groups(content, start, most=_WINDOW_TURNS if is_turn(content) else None)


def _groups(content: str, start: int, most: int | None) -> Iterator[tuple[int, int]]:
    """Units, as many at once as fit. With `most` above 1 groups share their last unit with the next."""
    units = list(_units(content, start))
    first = 0
    while first < len(units):
        begin, end = units[first]
        last = first
        while last + 1 < len(units) and units[last + 1][1] - begin <= LONGEST:
            if last - first + 1 == most:
                break
            last += 1
            end = units[last][1]
        yield begin, end
        if last + 1 >= len(units):
            return
        first = last if most is not None and last > first else last + 1


def _units(content: str, start: int) -> Iterator[tuple[int, int]]:
    """Lines that hold something, a longer one cut between words."""
    while start < len(content):
        newline = content.find("\n", start)
        stop = len(content) if newline < 0 else newline
        piece = start
        while stop - piece > LONGEST:
            cut = content.rfind(" ", piece + 1, piece + LONGEST)
            cut = piece + LONGEST if cut < 0 else cut + 1
            yield piece, cut
            piece = cut
        if content[piece:stop].strip():
            yield piece, stop
        start = stop + 1
