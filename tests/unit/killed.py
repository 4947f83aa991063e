"""A process that speaks in one call until it is killed: `python -m tests.unit.killed SPOOL DATABASE FIRST`.

Writes the number of each turn to stdout when the call has it, and does not end by itself.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path

from tests.unit.capturing import ANA

from supermemory_livekit.capture.capture import Capture
from supermemory_livekit.params import InputParams
from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.telemetry import Stats


async def speak(spool: Path, database: Path, first: int) -> None:
    store = SDKStore(make_client(base_url=f"local:{database}"))
    capture = Capture(store, InputParams(spool_dir=spool), Stats())
    capture.bound(ANA)
    for number in itertools.count(first):
        capture.record("caller", f"turn {number}", scope=ANA)
        os.write(sys.stdout.fileno(), b"%d\n" % number)
        capture.wake()
        # Some turns meet a write that is under way, others none.
        await asyncio.sleep(0.002 * (number % 7))


if __name__ == "__main__":
    asyncio.run(speak(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
