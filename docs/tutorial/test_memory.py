from agent import PARAMS, answer

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedLLM, ScriptedStore, TextCaller, VirtualClock, expect, stored


async def test_a_guest_who_rings_back_is_known(
    supermemory_clock: VirtualClock, supermemory_store: ScriptedStore
) -> None:
    supermemory_store.knows("ana", "Is allergic to peanuts.")
    supermemory_store.finds("ana", "Likes the risotto best.")
    memory = SupermemoryLiveKit.from_store(
        supermemory_store, container_tag="ana", params=PARAMS, session_id="monday"
    )
    model = ScriptedLLM("There is.")

    async with TextCaller(lambda session: answer(session, memory), llm=model) as caller:
        assert await caller.says("Is there risotto today?") == "There is."
    await memory.aclose()

    expect(model).knew("allergic to peanuts", "risotto best").had_one_block()
    assert stored(supermemory_store, "ana", session_id="monday") == [
        "Caller: Is there risotto today?",
        "Agent: There is.",
    ]


async def test_guests_do_not_hear_of_each_other(
    supermemory_clock: VirtualClock, supermemory_store: ScriptedStore
) -> None:
    supermemory_store.knows("ana", "Is allergic to peanuts.").knows("ben", "Sits by the window.")
    memory = SupermemoryLiveKit.from_store(supermemory_store, container_tag="ben", params=PARAMS)
    model = ScriptedLLM(["The risotto.", "By the window, as always?"])

    async with TextCaller(lambda session: answer(session, memory), llm=model) as caller:
        await caller.says("What do you recommend?")
        await caller.says("A table for Friday, please.")
    await memory.aclose()

    expect(model, to="a table").knew("by the window")
    expect(model, reply="every").knew_nothing_of("ana", supermemory_store)
