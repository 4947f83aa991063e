"""Real processes and `kill -9`, the official SDK and the embedded service on a real file."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import pytest
from tests.unit.capturing import ANA, turns_in

from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.spool.recovery import recover

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs file locks of POSIX, and kill -9"),
    pytest.mark.timeout(120),  # a line that a killed process sent is believed missing after twelve seconds
]

ROOT = Path(__file__).parents[2]


async def killed_after(turns: int, spool: Path, database: Path, first: int) -> int:
    """The number of the last turn that a process took which was killed when it had taken so many."""
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "tests.unit.killed", str(spool), str(database), str(first)],
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    taken: list[bytes] = []
    try:
        while len(taken) < turns:
            taken.append(await asyncio.wait_for(process.stdout.readline(), 50))
    finally:
        process.send_signal(signal.SIGKILL)
    taken += (await process.stdout.read()).split()
    assert await process.wait() == -signal.SIGKILL
    return int(taken[-1])


async def test_processes_that_are_killed_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    """Issue: kill -9 at any moment; the next process goes on with the call, and the rest is delivered."""
    spool, database = tmp_path / "spool", tmp_path / "memory.db"
    chance = random.Random(20261129)
    firsts = (1, 1001)
    lasts = [await killed_after(chance.randint(5, 60), spool, database, first) for first in firsts]
    store = SDKStore(make_client(base_url=f"local:{database}"))
    try:
        result = await recover(store, spool)
        document = await store.read(ANA.container_tag, ANA.document_id, service_id=None, timeout=10)
    finally:
        await store.aclose()
    assert (result.left, result.damaged) == (0, 0)
    numbers = [int(words.split()[1]) for _, words in turns_in(document)]
    assert numbers == sorted(set(numbers))
    told = {number for first, last in zip(firsts, lasts, strict=True) for number in range(first, last + 1)}
    # Each may have taken one more than it told of.
    assert told <= set(numbers) <= told | {last + 1 for last in lasts}
    assert not list(spool.iterdir())
