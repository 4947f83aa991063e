"""The quick start, word for word but for its models, as jobs of real LiveKit workers on one database.

Real processes and real time; every wait is bounded, and a worker is killed with all it started when its test ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from livekit.agents import JobExecutorType

from tests.jobs.worker import Call
from tests.jobs.workers import Report, Worker, spoken, stored, worker

pytestmark = pytest.mark.timeout(180)

CALLER = "mock_user"
"""The participant of LiveKit's simulated jobs."""


@pytest.mark.parametrize("executor", [JobExecutorType.PROCESS.value, JobExecutorType.THREAD.value])
async def test_a_caller_who_rings_back_is_remembered_by_a_fresh_process(
    tmp_path: Path, executor: str
) -> None:
    """Specification: a voice agent remembers its caller across sessions; one call is one document."""
    first = Call("room-1", ("I live in Porto.", "Goodbye."))
    second = Call("room-2", ("where do I live",))
    # A job process is fresh for each call. Threads share theirs with the worker, so each call gets a worker.
    shifts = [[first, second]] if executor == JobExecutorType.PROCESS.value else [[first], [second]]
    said: list[Report] = []
    for calls in shifts:
        async with worker(tmp_path, executor=executor) as running:
            said += [await running.call(call) for call in calls]
            await running.finished()
    replies = [["Noted.", "Noted."], ["You live in Porto."]]
    assert [report["replies"] for report in said] == replies
    for call, heard in zip([first, second], replies, strict=True):
        assert await stored(tmp_path, CALLER, call.room) == spoken(call.says, heard)
    assert len({report["pid"] for report in said}) == 2


async def test_the_tag_in_the_jobs_metadata_decides_whose_memory_it_is(tmp_path: Path) -> None:
    """Specification: the tag usually comes from job metadata; memory is isolated by container tag."""
    metadata = json.dumps({"container_tag": "user_7"})
    async with worker(tmp_path) as running:
        await running.call(Call("room-1", ("I live in Porto.",), metadata=metadata))
        rings_back = await running.call(Call("room-2", ("where do I live",), metadata=metadata))
        somebody_else = await running.call(Call("room-3", ("where do I live",)))
        await running.finished()
    assert rings_back["replies"] == ["You live in Porto."]
    assert somebody_else["replies"] == ["I do not know."]
    assert await stored(tmp_path, "user_7", "room-1") == spoken(["I live in Porto."], ["Noted."])
    assert await stored(tmp_path, CALLER, "room-1") == []
    assert await stored(tmp_path, CALLER, "room-3") == spoken(["where do I live"], ["I do not know."])


async def test_a_worker_that_is_told_to_stop_stores_its_live_calls(tmp_path: Path) -> None:
    """Case L3: SIGTERM with three live calls; each call's turns are stored, the next worker continues them."""
    cities = {"ana": "Porto", "bo": "Lisbon", "cy": "Graz"}
    live = [
        Call(f"room-{name}", (f"I live in {city}.",), caller=name, unanswered="One more thing.", ends=False)
        for name, city in cities.items()
    ]
    async with worker(tmp_path) as running:
        await running.takes(*live)
        for call in live:
            await running.reports("said", call.room)
        await running.terminated()
    left = "Caller: One more thing."
    for call in live:
        assert await stored(tmp_path, call.caller, call.room) == [*spoken(call.says, ["Noted."]), left]

    async with worker(tmp_path) as running:
        again = Call("room-ana", ("where do I live",), caller="ana")
        assert (await running.call(again))["replies"] == ["You live in Porto."]
        await running.finished()
    assert await stored(tmp_path, "ana", "room-ana") == [
        *spoken(["I live in Porto."], ["Noted."]),
        left,
        *spoken(["where do I live"], ["You live in Porto."]),
    ]


async def test_a_killed_job_loses_nothing_that_was_answered_and_the_next_continues(tmp_path: Path) -> None:
    """Cases L2 and C10: process 1 writes turns and dies; the document holds all turns of both, each once."""
    before = ("I live in Porto.", "Just a moment.")
    told = spoken(before, ["Noted.", "Noted."])
    async with worker(tmp_path) as running:
        await _killed(running, Call("room-1", before, ends=False), once=told, folder=tmp_path)
        said = await running.call(Call("room-1", ("where do I live",)))
        await running.finished()
    assert said["replies"] == ["You live in Porto."]
    assert await stored(tmp_path, CALLER, "room-1") == [
        *told,
        *spoken(["where do I live"], ["You live in Porto."]),
    ]


async def _killed(running: Worker, call: Call, *, once: list[str], folder: Path) -> None:
    """Make a call and kill its process while the call is on the line, `once` the document holds these lines."""
    await running.takes(call)
    said = await running.reports("said", call.room)

    async def written() -> None:
        # Another process writes it, so there is no event to wait for.
        while await stored(folder, call.caller, call.room) != once:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    await asyncio.wait_for(written(), 10)
    os.kill(said["pid"], signal.SIGKILL)
    await running.reports("ended", call.room)
