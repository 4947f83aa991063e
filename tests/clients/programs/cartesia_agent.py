"""Two calls of a Cartesia Line agent with memory: what it stores in the first, the second one's agent is given.

Prints the memory that the wrapped agent got as JSON.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from line.events import AgentTextSent, UserTextSent, UserTurnEnded
from supermemory_cartesia import SupermemoryCartesiaAgent

FIRST = ["Hi, I sail on weekends", "Nice! Where?", "I live in Bergen"]


class Keeper:
    """The agent inside: keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[str | None] = []

    async def process(self, env: Any, event: Any, context: str | None = None) -> AsyncIterator[Any]:
        self.given.append(context)
        yield event


async def call(base_url: str, session: str, turns: list[str]) -> list[str | None]:
    keeper = Keeper()
    agent = SupermemoryCartesiaAgent(agent=keeper, container_tag="ana", custom_id=session, base_url=base_url)
    history: list[Any] = []
    for number, text in enumerate(turns):
        said = (UserTextSent, AgentTextSent)[number % 2](content=text)
        history.append(said)
        if number % 2 == 0:
            ended = UserTurnEnded(content=[said], history=list(history))
            async for _ in agent.process(None, ended):
                pass
            await asyncio.gather(*agent._background_tasks)
    return keeper.given


step, base_url = sys.argv[1:]
given = asyncio.run(call(base_url, step, FIRST if step == "write" else ["Where do I sail?"]))
print(json.dumps({"given": given}))
