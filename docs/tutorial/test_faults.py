import asyncio

from agent import PARAMS, answer

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.testing import Hang, ScriptedCaller, ScriptedLLM, ScriptedStore, VirtualClock, stored


async def test_a_service_that_hangs_delays_a_reply_a_little_and_loses_no_word(
    supermemory_clock: VirtualClock, supermemory_store: ScriptedStore
) -> None:
    memory = SupermemoryLiveKit.from_store(supermemory_store, container_tag="ana", params=PARAMS)
    model = ScriptedLLM("Gladly. Under which name?")

    async with ScriptedCaller(lambda session: answer(session, memory), llm=model) as caller:
        supermemory_store.breaks(Hang())
        await caller.says("a table for two", "on Friday please")
        assert await caller.hears_reply() == "Gladly. Under which name?"
        assert caller.waited is not None
        assert caller.waited < 2.5
        supermemory_store.mends()
        await asyncio.sleep(15)
        await caller.hangs_up()
    await memory.aclose()

    assert stored(supermemory_store, "ana") == [
        "Caller: a table for two on Friday please",
        "Agent: Gladly. Under which name?",
    ]
    assert memory.stats.turns_dropped == 0
