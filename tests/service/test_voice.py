"""Spoken calls over the whole stack: preemptive generation, hanging up, and a job's end on a failing service."""

from __future__ import annotations

import pytest
from livekit.agents import llm

from supermemory_livekit.testing import ScriptedCaller, WireStep
from tests.support.clock import VirtualClock

from .faults import FAULTS
from .world import Call, World, agent_over, echo

TAG = "ana-zanzibar"
BUDGET = 1.0
every_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())


@every_fault
async def test_a_spoken_call_loses_no_reply_and_no_word(
    clock: VirtualClock, world: World, fault: WireStep
) -> None:
    """Specification: an outage does not end the call; Cases C1, L6: one model call per turn, heard parts are stored."""
    await world.knows(TAG, "Likes zanzibar tea.")
    memory = world.memory(TAG, recall_timeout=BUDGET)
    model = echo()
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        call = Call(caller.session)
        memory.attach(caller.session)
        delays: list[float] = []
        for number in range(4):
            if number == 1:
                world.fail(fault)
            await caller.says(f"zanzibar turn {number}")
            ended = clock.elapsed
            await caller.hears_beginning()
            delays.append(clock.elapsed - ended)
            await caller.hears_reply()
        world.work()
        await caller.says("the last zanzibar turn")
        await caller.hears_beginning()
        await caller.hangs_up()
        stored = [
            f"{'Caller' if item.role == 'user' else 'Agent (interrupted)' if item.interrupted else 'Agent'}: "
            f"{item.text_content}"
            for item in caller.session.history.items
            if isinstance(item, llm.ChatMessage)
        ]
    await memory.aclose()
    assert call.errors == []
    assert len(model.seen) == 5
    assert max(delays) <= BUDGET + 0.1
    assert "Likes zanzibar tea." in model.seen[0].text
    assert len(stored) >= 9
    assert await world.transcript(TAG) == stored
