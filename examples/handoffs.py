"""Several agents, one memory: every agent that shall remember is a `SupermemoryAgent` over the same object.

The session is attached once; it captures the whole call, whoever speaks. Each agent recalls for its own replies.
"""

from __future__ import annotations

from livekit import agents
from livekit.agents import AgentServer, AgentSession, ChatContext, JobContext, function_tool

from supermemory_livekit import SupermemoryAgent, SupermemoryLiveKit

server = AgentServer()


def create_session() -> AgentSession[None]:
    return AgentSession(stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3")


class Billing(SupermemoryAgent):
    def __init__(self, memory: SupermemoryLiveKit, chat_ctx: ChatContext) -> None:
        super().__init__(memory, chat_ctx=chat_ctx, instructions="You answer questions about invoices.")


class FrontDesk(SupermemoryAgent):
    def __init__(self, memory: SupermemoryLiveKit, chat_ctx: ChatContext) -> None:
        super().__init__(
            memory, chat_ctx=chat_ctx, instructions="You greet callers and find out what they need."
        )

    @function_tool
    async def to_billing(self) -> tuple[Billing, str]:
        """Hand the caller over to the billing specialist, for anything about invoices and payments."""
        return Billing(self.memory, self.chat_ctx.copy(exclude_instructions=True)), "Handing over to billing."


@server.rtc_session(agent_name="handoffs")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit()
    await ctx.connect()
    memory.bind(participant=await ctx.wait_for_participant(), session_id=ctx.room.name)

    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)

    session = create_session()
    memory.attach(session)
    await session.start(room=ctx.room, agent=FrontDesk(memory, chat_ctx))


if __name__ == "__main__":
    agents.cli.run_app(server)
