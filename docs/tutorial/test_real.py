from pathlib import Path

from agent import PARAMS, answer

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedLLM, TextCaller, expect


async def call(day: str, words: str) -> ScriptedLLM:
    memory = SupermemoryLiveKit(container_tag="ana", session_id=day, params=PARAMS)
    model = ScriptedLLM("Let me see.")
    async with TextCaller(lambda session: answer(session, memory), llm=model) as caller:
        await caller.says(words)
    await memory.aclose()
    return model


async def test_what_a_guest_said_on_monday_is_known_on_friday(supermemory_local: Path) -> None:
    expect(await call("monday", "I am allergic to peanuts.")).had_no_block()
    expect(await call("friday", "What can I eat?")).knew("allergic to peanuts")
