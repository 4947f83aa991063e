"""Calls on a service that fails in every way: each reply comes, and each word is stored once and in order."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import ChatContext

from supermemory_livekit.testing import Hang, Reset, WireStep, Work
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

from .faults import FAULTS
from .world import WRITES, Call, World, agent_over, echo, timed

TAG = "ana-zanzibar"
BUDGET = 1.0
A_LITTLE = 0.1
every_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())


def conversation(*words: str) -> list[str]:
    return [line for text in words for line in (f"Caller: {text}", f"Agent: You said {text}")]


@every_fault
@pytest.mark.parametrize("onset", [0, 2], ids=["from the start", "in mid-call"])
async def test_every_reply_comes_in_time_and_all_that_is_said_is_stored_once(
    clock: VirtualClock, world: World, fault: WireStep, onset: int
) -> None:
    """Specification: an outage does not end the call; Cases C14, C15, L8, L9, P10: nothing lost, nothing doubled."""
    await world.knows(TAG, "Likes zanzibar tea.")
    memory = world.memory(TAG, recall_timeout=BUDGET)
    words = [*(f"This is zanzibar turn {number}." for number in range(7)), "Which zanzibar tea do I like?"]
    if onset == 0:
        world.fail(fault)
    context = ChatContext()
    _, seconds = await timed(memory.preload(context))
    assert seconds <= BUDGET + A_LITTLE
    model = echo()
    async with started(agent_over(memory, chat_ctx=context), llm=model) as session:
        call = Call(session)
        memory.attach(session)
        for number, text in enumerate(words):
            if number == onset:
                world.fail(fault)
            if number == 5:
                world.work()
            reply, seconds = await timed(say(session, text))
            assert reply == f"You said {text}"
            assert seconds <= BUDGET + A_LITTLE
            await asyncio.sleep(4)
    await memory.aclose()
    assert call.errors == []
    assert await world.transcript(TAG) == conversation(*words)
    assert memory.stats.turns_unwritten == memory.stats.turns_dropped == 0
    assert "Likes zanzibar tea." in model.last.text


@every_fault
async def test_a_service_that_takes_no_writes_still_gives_every_reply_its_memory(
    clock: VirtualClock, world: World, fault: WireStep
) -> None:
    """Case C7, Design 6: what fails in writing costs no recall, and no time."""
    await world.knows(TAG, "Likes zanzibar tea.")
    memory = world.memory(TAG, recall_timeout=BUDGET)
    model = echo()
    world.fail(fault, *WRITES)
    words = [f"Tea, the zanzibar kind, {number}?" for number in range(4)]
    async with started(agent_over(memory), llm=model) as session:
        call = Call(session)
        memory.attach(session)
        for text in words:
            reply, seconds = await timed(say(session, text))
            assert reply == f"You said {text}"
            assert seconds <= A_LITTLE
            await asyncio.sleep(4)
        world.work()
        await asyncio.sleep(12)
    await memory.aclose()
    assert call.errors == []
    assert len(model.seen) == len(words)
    assert all("Likes zanzibar tea." in seen.text for seen in model.seen)
    assert await world.transcript(TAG) == conversation(*words)


@pytest.mark.parametrize("route", ["POST /v4/search", "POST /v4/profile"])
async def test_where_one_kind_of_request_alone_hangs_a_call_waits_for_it_twice_at_most(
    clock: VirtualClock, world: World, route: str
) -> None:
    """Case L9: the total wait of a call is bounded, also when the other kind of request is answered all the time."""
    await world.knows(TAG, "Likes zanzibar tea.")
    memory = world.memory(TAG, recall_timeout=BUDGET, capture="never", mirror=False)
    world.fail(Hang(), route)
    model = echo()
    waited = 0.0
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for number in range(20):
            _, seconds = await timed(say(session, f"Tea, the zanzibar kind, {number}?"))
            waited += seconds
            await asyncio.sleep(4)
        assert waited <= 2 * (BUDGET + A_LITTLE)
        assert all("Likes zanzibar tea." in seen.text for seen in model.seen)
        world.wire.always(route, None)
        await asyncio.sleep(16)
        await say(session, "Tea, the zanzibar kind, at last?")
        # Nobody waits for that search, and the next turn starts none while it runs.
        await asyncio.sleep(1)
        before = len(world.wire.sent(route))
        await say(session, "And which zanzibar tea?")
        assert len(world.wire.sent(route)) == before + 1
    await memory.aclose()


@pytest.mark.parametrize("lead", [0.5, 3.0])
@every_fault
async def test_what_is_said_last_is_stored_when_the_service_is_back_at_the_hang_up(
    clock: VirtualClock, world: World, fault: WireStep, lead: float
) -> None:
    """Cases C2, L1: the flush at the end has 8 s, and a request that still hangs from before does not use them up."""
    memory = world.memory(TAG, recall_timeout=BUDGET)
    words = [f"This is zanzibar turn {number}." for number in range(2)]
    world.fail(fault)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        for text in words:
            await say(session, text)
        await asyncio.sleep(lead)
        world.work()
        hang_up = clock.elapsed
    await memory.aclose()
    assert clock.elapsed - hang_up <= 8.0
    assert await world.transcript(TAG) == conversation(*words)
    assert memory.stats.turns_unwritten == 0


async def test_a_second_unclear_end_is_settled_as_carefully_as_the_first(
    clock: VirtualClock, world: World
) -> None:
    """Case C14: what was read before a write was sent again says nothing about what became of it."""
    memory = world.memory(TAG)
    world.wire.script("POST /v3/documents", Reset(), Reset(committed=True))
    absent = [Work()] * 3
    world.wire.script("POST /v3/documents/list", *absent, FAULTS["409"], FAULTS["409"])
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "This is the one zanzibar turn.")
        await asyncio.sleep(60)
    await memory.aclose()
    world.wire.verify()
    assert await world.transcript(TAG) == conversation("This is the one zanzibar turn.")
