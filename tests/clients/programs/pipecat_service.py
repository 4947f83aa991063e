"""Two calls of a Pipecat pipeline's memory service: what it stores in the first, the second one's context holds.

Prints the messages of the context as JSON.
"""

import asyncio
import json
import sys

from pipecat.frames.frames import LLMContextFrame
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection
from supermemory_pipecat import SupermemoryPipecatService

FIRST = ["Hi, I sail on weekends", "Nice! Where?", "I live in Bergen", "A fine town."]


async def call(base_url: str, session: str, turns: list[str]) -> list[object]:
    """One call, its context after each turn of the caller; the last context."""
    service = SupermemoryPipecatService(
        user_id="ana",
        session_id=session,
        base_url=base_url,
        params=SupermemoryPipecatService.InputParams(inject_mode="system"),
    )
    context = LLMContext([{"role": "system", "content": "You are helpful."}])
    for number, text in enumerate(turns):
        context.add_message({"role": ("user", "assistant")[number % 2], "content": text})
        if number % 2 == 0:
            await service.process_frame(LLMContextFrame(context), FrameDirection.DOWNSTREAM)
    await service.cleanup()
    return list(context.get_messages())


step, base_url = sys.argv[1:]
turns = FIRST if step == "write" else ["Where do I sail?"]
print(json.dumps({"messages": asyncio.run(call(base_url, step, turns))}))
