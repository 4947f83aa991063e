"""Two callers on one memory, or on one service at the same time, whatever the service does: nothing crosses over."""

from __future__ import annotations

import asyncio
import json

import pytest

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.recall.render import ITEM_ID_PREFIX
from supermemory_livekit.testing import ScriptedLLM, ToolCall, WireRequest, WireStep
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

from .faults import FAULTS
from .world import Call, World, agent_over, echo, uses

ANA, BO = "ana-zanzibar", "bo-zanzibar"
HERS, HIS = "quagga", "wombat"
"""In everything that Ana, or Bo, says or has stored; in nothing of the other."""

every_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())

TELLING = ("hang", "hang after commit", "reset after commit", "null JSON", "403", "404", "429", "500")
"""Faults that end requests in ways of their own: these come at every moment, the others at the most delicate one."""


async def known(world: World) -> None:
    await world.knows(ANA, f"Her zanzibar {HERS} number is 4812.")
    await world.knows(BO, f"His zanzibar {HIS} number is 77.")


def about(requests: list[WireRequest], tag: str) -> list[WireRequest]:
    return [request for request in requests if tag in json.dumps(request.body)]


def lines(who: str) -> list[str]:
    return [
        line
        for number in range(3)
        for line in (
            f"Caller: Zanzibar {who} turn {number}.",
            f"Agent: You said Zanzibar {who} turn {number}.",
        )
    ]


async def talk(world: World, memory: SupermemoryLiveKit, who: str, model: ScriptedLLM) -> None:
    """A call of three turns."""
    async with started(agent_over(memory), llm=model) as session:
        call = Call(session)
        memory.attach(session)
        for number in range(3):
            await say(session, f"Zanzibar {who} turn {number}.")
            await asyncio.sleep(2)
    assert call.errors == []


@pytest.mark.parametrize(
    ("onset", "fault"),
    [
        pytest.param(onset, fault, id=f"{name} {onset}")
        for onset in ("before the first", "between them", "with the second")
        for name, fault in FAULTS.items()
        if onset == "between them" or name in TELLING
    ],
)
async def test_a_second_caller_on_the_same_memory_gets_nothing_of_the_first(
    clock: VirtualClock, world: World, fault: WireStep, onset: str
) -> None:
    """Cases S9, S7, Design 4.5: model context, tool results, stored documents and queries, however requests end."""
    await known(world)
    memory = world.memory(ANA)
    if onset == "before the first":
        world.fail(fault)
    await talk(world, memory, HERS, echo())
    if onset == "between them":
        world.fail(fault)
        await memory.search("the number")
    memory.bind(container_tag=BO)
    rebound = len(world.wire.requests)
    if onset == "with the second":
        world.fail(fault)
    asks = uses(ToolCall("search_memories", {"query": "the number"}))
    async with started(agent_over(memory), llm=asks) as session:
        await say(session, "What is my zanzibar number?")
    await asyncio.sleep(5)
    world.work()
    his = echo()
    await talk(world, memory, HIS, his)
    asks_again = uses(ToolCall("search_memories", {"query": "the number"}))
    async with started(agent_over(memory), llm=asks_again) as session:
        await say(session, "What is my zanzibar number?")
    await memory.aclose()

    for seen in (*asks.seen, *his.seen, *asks_again.seen):
        assert HERS not in seen.text
    assert HIS in asks_again.last.text
    for request in about(world.wire.requests[rebound:], BO):
        assert HERS not in json.dumps(request.body)
    for request in about(world.wire.requests[rebound:], ANA):
        assert request.path in ("/v3/documents", "/v3/documents/list"), (
            "only her own turns may still be stored"
        )
    hers, of_his = await world.documents(ANA), await world.documents(BO)
    assert [HIS in text for text in hers.values()] == [False]
    assert [HERS in text for text in of_his.values()] == [False]
    assert not set(hers) & set(of_his)
    assert await world.transcript(ANA) == lines(HERS)
    assert [await world.transcript(BO, str(name)[3:]) for name in of_his] == [lines(HIS)]


@every_fault
@pytest.mark.parametrize("mode", ["profile", "full"])
async def test_a_rebind_in_mid_session_shows_the_model_no_block_of_the_first_caller(
    clock: VirtualClock, world: World, fault: WireStep, mode: str
) -> None:
    """Case S9: the conversation itself is LiveKit's; what we put into it is the bound caller's alone."""
    await known(world)
    memory = world.memory(ANA, mode=mode)
    model = echo()
    async with started(agent_over(memory), llm=model) as session:
        call = Call(session)
        memory.attach(session)
        await say(session, f"Zanzibar {HERS} turn.")
        before = len(model.seen)
        world.fail(fault)
        await say(session, f"Another zanzibar {HERS} turn.")
        memory.bind(container_tag=BO)
        await say(session, f"Zanzibar {HIS} turn.")
        world.work()
        await asyncio.sleep(20)
        await say(session, f"Another zanzibar {HIS} turn.")
    await memory.aclose()
    assert call.errors == []
    blocks = [
        item.text for seen in model.seen[before + 1 :] for item in seen.having(id_prefix=ITEM_ID_PREFIX)
    ]
    assert blocks
    assert not any(HERS in block for block in blocks)
    assert any(HIS in block for block in blocks)
    assert not any(HIS in text for text in (await world.documents(ANA)).values())
    assert not any(HERS in text for text in (await world.documents(BO)).values())


@every_fault
async def test_two_calls_at_once_keep_apart(clock: VirtualClock, world: World, fault: WireStep) -> None:
    """Specification: memory is isolated by container tag; a worker handles many calls."""
    await known(world)
    memories = {HERS: world.memory(ANA, "room-a"), HIS: world.memory(BO, "room-b")}
    models = {HERS: echo(), HIS: echo()}

    async def outage() -> None:
        await asyncio.sleep(1)
        world.fail(fault)
        await asyncio.sleep(2)
        world.work()

    calls = [talk(world, memories[who], who, models[who]) for who in memories]
    await asyncio.gather(outage(), *calls)
    await asyncio.sleep(10)
    await asyncio.gather(*(memory.aclose() for memory in memories.values()))
    for who, other in ((HERS, HIS), (HIS, HERS)):
        assert len(models[who].seen) == 3
        assert all(other not in seen.text for seen in models[who].seen)
    for tag, other in ((ANA, HIS), (BO, HERS)):
        assert all(other not in json.dumps(request.body) for request in about(world.wire.requests, tag))
    assert await world.transcript(ANA, "room-a") == lines(HERS)
    assert await world.transcript(BO, "room-b") == lines(HIS)
