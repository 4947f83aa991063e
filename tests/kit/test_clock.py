"""Virtual time in a loop that somebody else made, and nowhere else."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from supermemory_livekit.testing import VirtualClock, virtual_time
from supermemory_livekit.testing.clock import ControlledTime


async def test_the_loop_and_pythons_clocks_are_real_again_after_the_block() -> None:
    """Kit: a test that used virtual time leaves nothing for the next one."""
    loop = asyncio.get_running_loop()
    clocks = time.time, time.monotonic, time.perf_counter
    before = dict(vars(loop))
    with virtual_time() as clock:
        await asyncio.sleep(3600)
        assert clock.elapsed == pytest.approx(3600)
        assert time.time is not clocks[0]
    assert (time.time, time.monotonic, time.perf_counter) == clocks
    assert {name for name, value in vars(loop).items() if before.get(name) is not value} <= {"_ready"}
    assert abs(loop.time() - time.monotonic()) < 1
    assert not clock.virtual


async def test_time_that_is_virtual_already_is_not_controlled_twice(clock: VirtualClock) -> None:
    """Kit: two clocks in one loop would each wait for the other."""
    with pytest.raises(RuntimeError, match="virtual already"), virtual_time():
        pass
    await asyncio.sleep(10)
    assert clock.elapsed == pytest.approx(10)


def test_a_loop_that_waits_without_a_selector_is_refused_by_name() -> None:
    """Kit: uvloop and Windows' default loop cannot jump; a test must not run in real time unawares."""

    class OtherLoop(asyncio.AbstractEventLoop):
        """As uvloop's: no selector of Python's."""

    with pytest.raises(RuntimeError, match=r"needs asyncio\.SelectorEventLoop, not OtherLoop"):
        ControlledTime(OtherLoop())


async def test_another_loop_of_the_process_keeps_real_time(clock: VirtualClock) -> None:
    """Kit: a loop that saw time stand still would wait for its timers for ever."""
    waited: list[float] = []

    async def other() -> None:
        before = time.monotonic()
        await asyncio.wait_for(asyncio.sleep(0.01), 10)
        waited.append(time.monotonic() - before)

    with clock.hold():
        thread = threading.Thread(target=lambda: asyncio.run(other()))
        thread.start()
        await asyncio.to_thread(thread.join, 20)
    assert not thread.is_alive()
    assert waited
    assert 0 < waited[0] < 10
    assert clock.elapsed == 0
