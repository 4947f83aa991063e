"""Windows of neighbouring turns: the pieces of a conversation that are found one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["windows"]

_WINDOW_TURNS = 3
"""Turns per window. One turn alone says too little to be found; more dilute what is said."""
_WINDOW_CHARS = 1_200
"""Most characters in a window."""

_TURN = re.compile(r"(?:\[[^\]\n]{8,40}\][ \t]*)?[A-Za-z][\w ()-]{0,30}:[ \t]")


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
