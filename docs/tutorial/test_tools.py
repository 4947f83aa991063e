from agent import PARAMS, answer

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedLLM, ScriptedStore, TextCaller, ToolCall, VirtualClock, stored


async def test_a_table_is_booked(supermemory_clock: VirtualClock, supermemory_store: ScriptedStore) -> None:
    memory = SupermemoryLiveKit.from_store(supermemory_store, container_tag="ana", params=PARAMS)
    model = ScriptedLLM([ToolCall("book_table", {"day": "Friday", "guests": 2}), "See you on Friday."])

    async with TextCaller(lambda session: answer(session, memory), llm=model) as caller:
        assert await caller.says("A table for two on Friday, please.") == "See you on Friday."
    await memory.aclose()

    assert "A table for 2 is booked on Friday." in model.last.text


async def test_what_is_off_the_record_is_not_stored(
    supermemory_clock: VirtualClock, supermemory_store: ScriptedStore
) -> None:
    memory = SupermemoryLiveKit.from_store(supermemory_store, container_tag="ana", params=PARAMS)
    off = [ToolCall("go_off_the_record"), "Off the record."]
    model = ScriptedLLM(["Good evening.", *off, "I keep it to myself."])

    async with TextCaller(lambda session: answer(session, memory), llm=model) as caller:
        await caller.says("Good evening.")
        await caller.says("Off the record, please.")
        await caller.says("It is for a proposal of marriage.")
    await memory.aclose()

    assert stored(supermemory_store, "ana") == ["Caller: Good evening.", "Agent: Good evening."]
