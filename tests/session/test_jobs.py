"""The end of a job: what was said is stored, in time, whatever else happens there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from livekit.agents import AgentSession, JobContext

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.testing import Hang, ScriptedLLM, ScriptedStore, Work
from tests.support.jobs import job
from tests.support.sessions import say

TAG = "caller-1"


async def a_call(store: ScriptedStore, *words: str) -> tuple[SupermemoryLiveKit, AgentSession[None]]:
    """A call inside the running job, not ended yet."""
    memory = SupermemoryLiveKit.from_store(store, container_tag=TAG, session_id="room-1")
    session = AgentSession[None](llm=ScriptedLLM(lambda context, tools: "Yes."))
    memory.attach(session)
    await session.start(SupermemoryAgent(memory, instructions="Be kind."))
    for text in words:
        await say(session, text)
    return memory, session


def lines(store: ScriptedStore) -> int:
    return len((store.document(TAG, "lk-room-1") or "").splitlines())


async def test_the_job_waits_for_the_last_write() -> None:
    """Specification: stores anything left when the session closes; Design 5.6: also on job shutdown."""
    store = ScriptedStore().always("append", Work(after=2.0))
    with job() as running:
        _, session = await a_call(store, "One.", "Two.")
        await running.end(session)
    assert not running.killed
    assert lines(store) == 4


async def test_close_that_never_fires_loses_nothing() -> None:
    """Case L2: everything up to the last exchange is written already, and the shutdown callback does the rest."""
    store = ScriptedStore()
    with job() as running:
        await a_call(store, "One.", "Two.")
        await running.end(None)
    assert not running.killed
    assert lines(store) == 4


async def test_close_and_shutdown_write_once() -> None:
    """Case L2: flush from close and from the shutdown callback writes once."""
    store = ScriptedStore().always("append", Work(after=1.0))
    with job() as running:
        memory, session = await a_call(store, "One.")
        await running.end(session)
        await memory.aclose()
    assert lines(store) == 2
    assert store.closed >= 1


async def test_a_hung_service_does_not_get_the_job_killed(caplog: pytest.LogCaptureFixture) -> None:
    """Case L1: all writes together stay inside the shutdown limit of 10 s; what was not stored is counted."""
    store = ScriptedStore().always("append", Hang())
    with job() as running:
        loop = asyncio.get_running_loop()
        memory, session = await a_call(store, "One.")
        began = loop.time()
        await running.end(session)
        assert loop.time() - began <= 8.5
    assert not running.killed
    assert memory.stats.turns_unwritten == 2
    assert any("2 turns" in record.getMessage() for record in caplog.records)


async def test_a_client_that_ignores_its_deadline_does_not_get_the_job_killed() -> None:
    """Case L1: for ever means for ever."""
    store = ScriptedStore().always("append", Hang(deaf=True))
    with job() as running:
        _, session = await a_call(store, "One.")
        await running.end(session)
    assert not running.killed


async def test_three_calls_of_one_job_process_store_their_own() -> None:
    """Case L3: each call's turns are stored, and none under another's document."""
    store = ScriptedStore().always("append", Work(after=1.0))
    with job() as running:
        for name in ("ana", "bo", "cy"):
            memory = SupermemoryLiveKit.from_store(store, container_tag=name, session_id=f"room-{name}")
            session = AgentSession[None](llm=ScriptedLLM(lambda context, tools: "Yes."))
            memory.attach(session)
            await session.start(SupermemoryAgent(memory, instructions="Be kind."))
            await say(session, f"{name} speaks.")
        await running.end(None)
    assert not running.killed
    for name in ("ana", "bo", "cy"):
        document = store.document(name, f"lk-room-{name}") or ""
        assert f"Caller: {name} speaks." in document
        assert len(document.splitlines()) == 2


@pytest.mark.parametrize("spooled", [True, False])
async def test_live_calls_that_end_together_each_store_theirs_within_their_budget(
    spooled: bool, tmp_path: Path
) -> None:
    """Case L3: a worker drains; slow writes of one call take nothing from the time of another."""
    store = ScriptedStore().always("append", Work(after=2.5))
    params = InputParams(spool_dir=tmp_path if spooled else None)
    loop = asyncio.get_running_loop()

    async def drains(name: str) -> float:
        with job():
            memory = SupermemoryLiveKit.from_store(
                store, container_tag=name, session_id=f"room-{name}", params=params
            )
            session = AgentSession[None](llm=ScriptedLLM(lambda context, tools: "Yes."))
            memory.attach(session)
            await session.start(SupermemoryAgent(memory, instructions="Be kind."))
            for number in range(3):
                await say(session, f"{name} says {number}.")
            began = loop.time()
            await memory.aclose()
            await session.aclose()
            assert memory.stats.turns_unwritten == 0
            return loop.time() - began

    names = [f"caller-{number}" for number in range(6)]
    assert max(await asyncio.gather(*map(drains, names))) <= 8.0
    for name in names:
        lines = (store.document(name, f"lk-room-{name}") or "").splitlines()
        assert [line.partition("] ")[2] for line in lines if "Caller" in line] == [
            f"Caller: {name} says {number}." for number in range(3)
        ]
        assert len(lines) == 6
    assert not spooled or not SpoolDirectory(tmp_path).files()


@pytest.mark.parametrize("ends", ["on_session_end", "close", "shutdown", "all"])
async def test_however_a_call_ends_its_last_words_are_stored_once(ends: str) -> None:
    """Design 5.6: on_session_end, the session's close, the job's shutdown and aclose lead to one flush."""
    store = ScriptedStore().always("append", Work(after=1.0))
    with job() as running:
        loop = asyncio.get_running_loop()
        memory, session = await a_call(store, "One.", "Two.")
        began = loop.time()

        async def on_session_end(_: JobContext) -> None:
            await memory.aclose()

        hook = on_session_end if ends in ("on_session_end", "all") else None
        await running.end(session if ends in ("close", "all") else None, on_session_end=hook)
        await memory.aclose()
        assert loop.time() - began <= 8.5
    assert not running.killed
    assert lines(store) == 4
    assert memory.stats.turns_unwritten == 0


async def test_the_next_process_continues_the_document() -> None:
    """Case C10, Specification: a later update with the same session id appends to that call."""
    store = ScriptedStore()
    for words in (("One.", "Two."), ("Three.",)):
        with job() as running:
            _, session = await a_call(store, *words)
            await running.end(session)
    assert [line.partition("] ")[2] for line in (store.document(TAG, "lk-room-1") or "").splitlines()] == [
        line for words in ("One.", "Two.", "Three.") for line in (f"Caller: {words}", "Agent: Yes.")
    ]


async def test_job_metadata_reaches_bind() -> None:
    """Specification: the tag usually comes from job metadata."""
    with job(job_metadata=json.dumps({"container_tag": "user_7"})) as running:
        context: JobContext = running.context
        memory = SupermemoryLiveKit.from_store(ScriptedStore())
        tag: Any = json.loads(context.job.metadata)["container_tag"]
        memory.bind(container_tag=tag, session_id=context.room.name)
        assert memory.container_tag == "user_7"


async def test_another_callback_that_raises_costs_no_words() -> None:
    """Case L1: LiveKit then cancels what is left, in the middle of a write; one more attempt is made."""
    store = ScriptedStore().script("append", Hang())

    async def broken() -> None:
        await asyncio.sleep(1.0)
        raise RuntimeError

    with job() as running:
        await a_call(store, "One.")
        running.context.add_shutdown_callback(broken)
        await running.end(None)
    assert running.errors
    assert lines(store) == 2
