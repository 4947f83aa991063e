"""The memory tools on a failing service: the model is told what is not so, and nothing is raised."""

from __future__ import annotations

import asyncio

import pytest

from supermemory_livekit.testing import ScriptedLLM, ToolCall
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

from .faults import FAULTS, STORES_ALL_THE_SAME
from .world import Call, World, agent_over, uses

TAG = "ana-zanzibar"
OLD, NEW, FRESH = "Likes zanzibar tea.", "Moved to zanzibar Porto.", "Has a zanzibar parrot."

NOT_SAVED = ("NOT saved",)
NOT_FORGOTTEN = ("NOT forgotten", "Nothing was deleted now")
NOT_SEARCHED = ("The memory could NOT be searched",)
NOTHING_FOUND = ("Nothing stored about the caller matches this",)

EMPTY = ("wrong JSON shape", "null JSON", "null JSON after commit")
"""Case R1: an answer without results is an answer."""

every_fault = pytest.mark.parametrize("name", FAULTS)


def told(model: ScriptedLLM) -> dict[str, str]:
    """What each tool answered to the model last."""
    return {item.name or "": item.text for item in model.last.items if item.type == "function_call_output"}


@every_fault
async def test_the_model_is_told_plainly_what_did_not_work(
    clock: VirtualClock, world: World, name: str
) -> None:
    """Cases T3, T4, Design 6: NOT saved, NOT forgotten, could NOT be searched; what failed is not done half."""
    await world.knows(TAG, OLD)
    memory = world.memory(TAG)
    model = uses(
        ToolCall("remember", {"memory": NEW}),
        ToolCall("forget", {"memory_text": OLD}),
        ToolCall("search_memories", {"query": "tea"}),
    )
    world.fail(FAULTS[name])
    async with started(agent_over(memory), llm=model) as session:
        call = Call(session)
        assert await say(session, "Remember, forget and search, zanzibar!") == "Done."
    world.work()
    await memory.aclose()
    assert call.errors == []
    answers = told(model)
    assert answers["remember"].startswith(NOT_SAVED)
    assert answers["forget"].startswith(NOT_FORGOTTEN)
    assert answers["search_memories"].startswith(NOTHING_FOUND if name in EMPTY else NOT_SEARCHED)
    if name in STORES_ALL_THE_SAME:
        assert "as far as is known" in answers["remember"]
    await world.settled()
    assert (NEW in (await world.documents(TAG)).values()) is (name in STORES_ALL_THE_SAME)
    found = await world.memory(TAG, "room-2").search("zanzibar tea")
    assert (OLD in found) is (name not in STORES_ALL_THE_SAME)


@every_fault
async def test_a_fact_saved_in_this_call_is_not_called_forgotten_while_it_is_there(
    clock: VirtualClock, world: World, name: str
) -> None:
    """Case T7: forgetting what was remembered a moment ago, on a service that fails in between."""
    memory = world.memory(TAG)
    assert (await memory.remember(FRESH)).startswith("Saved")
    await world.settled()
    world.fail(FAULTS[name])
    answer = await asyncio.wait_for(memory.forget(memory_text=FRESH), 30)
    assert answer.startswith(NOT_FORGOTTEN)
    world.work()
    again = await memory.forget(memory_text=FRESH)
    assert again.startswith("Forgotten")
    assert FRESH not in await memory.search("zanzibar parrot")
    assert FRESH not in (await world.documents(TAG)).values()
    await memory.aclose()
