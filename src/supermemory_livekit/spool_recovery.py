"""Delivers what dead processes left in a spool, under the tag and the document it was spoken under."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .scope import Scope
from .spool import Left, Spool, left_behind, take_over
from .store import Dreaming, MemoryStore
from .telemetry import Stats, logger
from .transcript import Turn
from .writer import CallWrites, DocumentWriter

__all__ = ["Recovered", "recover"]

FILE_BUDGET = 30.0
"""Seconds for one file. What is not delivered then stays for the next process."""


@dataclass
class Recovered:
    """Counts of turns, and of files that are not ours to read."""

    delivered: int = 0
    left: int = 0
    unscoped: int = 0
    damaged: int = 0
    foreign: int = 0


async def recover(
    store: MemoryStore, directory: Path, *, dreaming: Dreaming = "instant", write_timeout: float = 10.0
) -> Recovered:
    """Deliver the files of dead processes, the oldest first; files of live ones are left alone."""
    result = Recovered()
    blocked: set[Scope] = set()
    for path in left_behind(directory):
        taken = take_over(path)
        if taken is None:
            continue
        spool, left = taken
        try:
            if not left.known:
                result.foreign += 1
                continue
            await _deliver(store, spool, left, result, blocked, dreaming, write_timeout)
        finally:
            spool.close()
    if result.delivered or result.left or result.unscoped or result.damaged or result.foreign:
        logger.info(
            "Left in the spool by earlier processes: %d turns delivered, %d not, %d without a caller, "
            "%d records damaged, %d files unknown",
            result.delivered,
            result.left,
            result.unscoped,
            result.damaged,
            result.foreign,
        )
    return result


async def _deliver(
    store: MemoryStore,
    spool: Spool,
    left: Left,
    result: Recovered,
    blocked: set[Scope],
    dreaming: Dreaming,
    write_timeout: float,
) -> None:
    result.unscoped += left.unscoped
    result.damaged += left.damaged

    def written(pieces: Sequence[Turn]) -> None:
        result.delivered += sum(piece.part == piece.parts for piece in pieces)
        spool.acked(pieces)

    call = CallWrites(
        store,
        Stats(),
        dreaming=dreaming,
        timeout=write_timeout,
        jitter=random.random,
        written=written,
        spool=spool,
    )
    writers: dict[Scope, DocumentWriter] = {}
    loop = asyncio.get_running_loop()
    deadline = call.hurry_until = loop.time() + FILE_BUDGET
    for scope in dict.fromkeys([*left.sent, *left.waiting]):
        if scope not in blocked:
            writers[scope] = DocumentWriter(scope, call)
            writers[scope].restore(left.sent.get(scope, []), left.waiting.get(scope, []))
    turns = sum(
        turn.part == turn.parts
        for turns in (
            *left.waiting.values(),
            *([line.turn for line in lines] for lines in left.sent.values()),
        )
        for turn in turns
    )
    before = result.delivered
    try:
        while (rest := deadline - loop.time()) > 0:
            tasks = [task for writer in writers.values() if (task := writer.start()) is not None]
            if not tasks:
                break
            await asyncio.wait(tasks, timeout=rest)
    finally:
        for writer in writers.values():
            writer.stop()
        result.left += turns - (result.delivered - before)
        # A later file must not overtake an earlier one of the same document.
        if result.delivered - before < turns:
            blocked.update(writers)
