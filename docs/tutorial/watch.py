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
    logger.log(logging.WARNING if lost else logging.INFO, "Call over", extra=dataclasses.asdict(stats))
