from pathlib import Path

from agent import answer

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedLLM, TextCaller, expect


async def test_what_a_guest_said_on_monday_is_known_on_friday(supermemory_local: Path) -> None:
    for day, words in (("monday", "I am allergic to peanuts."), ("friday", "What can I eat?")):
        memory = SupermemoryLiveKit(container_tag="ana", session_id=day)
        model = ScriptedLLM("Let me see.")
        async with TextCaller(lambda session, memory=memory: answer(session, memory), llm=model) as caller:
            await caller.says(words)
        await memory.aclose()
        if day == "monday":
            expect(model).had_no_block()
        else:
            expect(model).knew("allergic to peanuts")
