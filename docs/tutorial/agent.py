"""The telephone voice of a small restaurant. It remembers its guests."""

from __future__ import annotations

from typing import Any

from livekit import agents
from livekit.agents import AgentServer, AgentSession, ChatContext, JobContext, function_tool
from watch import report

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit

INSTRUCTIONS = "You take reservations. You remember guests: use what you know of them, naturally."
PARAMS = InputParams(off_the_record_tools=True)

server = AgentServer()


@function_tool
async def book_table(day: str, guests: int) -> str:
    """Book a table."""
    return f"A table for {guests} is booked on {day}."


async def answer(session: AgentSession[Any], memory: SupermemoryLiveKit, **where: Any) -> None:
    """Everything that belongs to a call, whatever the models and the line. Tests call it, too."""
    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)
    memory.attach(session)
    agent = SupermemoryAgent(memory, instructions=INSTRUCTIONS, chat_ctx=chat_ctx, tools=[book_table])
    await session.start(agent, **where)


def create_session() -> AgentSession[Any]:
    return AgentSession(stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3")


@server.rtc_session(agent_name="restaurant")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit(params=PARAMS)
    await ctx.connect()
    memory.bind(participant=await ctx.wait_for_participant(), session_id=ctx.room.name)
    ctx.add_shutdown_callback(lambda: report(memory))
    await answer(create_session(), memory, room=ctx.room)


if __name__ == "__main__":
    agents.cli.run_app(server)
