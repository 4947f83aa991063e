"""From a memory to the turn of the call in which it was said."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from supermemory_livekit.local.extraction import Line, parse_transcript
from supermemory_livekit.local.records import Document, Memory
from supermemory_livekit.local.texts import to_ms
from supermemory_livekit.retrieval import norm_form
from supermemory_livekit.retrieval.words import terms

__all__ = ["Source", "lines_of", "source_of"]

_AROUND = 1
"""Turns shown before and after the one that says it."""

_ENOUGH = 0.5
"""Share of a memory's terms that a turn must hold to be taken for its source when no time tells."""


@dataclass(frozen=True)
class Source:
    """Where a document says a memory. Without `turn` the document is known and the place is not."""

    document: Document
    lines: Sequence[Line]
    """All of the document's."""
    turn: int | None
    """Counted from 0."""
    around: slice
    """The turns to show: this one and its neighbours."""


def lines_of(document: Document) -> tuple[list[Line], bool]:
    """The turns of a call, and whether it is one; of any other text the lines, which nobody says."""
    turns = parse_transcript(document.content)
    if turns:
        return turns, True
    return [Line(None, None, row) for row in document.content.splitlines() if row.strip()], False


def source_of(memory: Memory, document: Document) -> Source:
    """The turn that says it: the caller's turn of the time the memory is dated with, else the likest one.

    A memory is dated with its turn when the extractor found it there. One that was said again is dated with
    the last time, so in earlier calls words have to tell.
    """
    lines, _ = lines_of(document)
    asked = set(terms(memory.text))
    said = [number for number, line in enumerate(lines) if line.role != "agent"]
    dated = [number for number in said if (at := lines[number].at) is not None and to_ms(at) == memory.at]
    turn = _likest(asked, memory.text, lines, dated or said, least=0.0 if dated else _ENOUGH)
    if turn is None:
        return Source(document, lines, None, slice(0, 0))
    return Source(document, lines, turn, slice(max(0, turn - _AROUND), turn + _AROUND + 1))


def _likest(
    asked: Collection[str], text: str, lines: Sequence[Line], among: Sequence[int], *, least: float
) -> int | None:
    best: tuple[float, int] | None = None
    for number in among:
        if norm_form(text) == norm_form(lines[number].text):
            return number
        share = len(set(terms(lines[number].text)) & set(asked)) / max(1, len(asked))
        if share >= least and (best is None or share > best[0]):
            best = (share, number)
    return None if best is None else best[1]
