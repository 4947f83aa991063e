"""One log line per call: what memory did in it, in numbers."""

from __future__ import annotations

import dataclasses
import logging

from supermemory_livekit import SupermemoryLiveKit

logger = logging.getLogger("restaurant")


async def report(memory: SupermemoryLiveKit) -> None:
    """Store what is left of the call, then log its counters."""
    await memory.aclose()
    stats = memory.stats
    lost = stats.turns_unwritten + stats.turns_dropped
    level = logging.WARNING if lost else logging.INFO
    # In the message for who reads the log, in `extra` for what collects it.
    message = "Call over: %d turns stored, %d lost, %d replies with late memory"
    extra = dataclasses.asdict(stats)
    logger.log(level, message, stats.turns_written, lost, stats.recalls_late, extra=extra)
