"""Memory in an `Agent` class of your own: pass the tools in, and recall from `llm_node`."""

from __future__ import annotations

from collections.abc import AsyncIterable

from livekit import agents
from livekit.agents import Agent, AgentServer, AgentSession, FlushSentinel, JobContext, ModelSettings, llm

from supermemory_livekit import InputParams, SupermemoryLiveKit

server = AgentServer()


class Assistant(Agent):
    def __init__(self, memory: SupermemoryLiveKit) -> None:
        super().__init__(
            instructions="You are a helpful voice assistant.",
            tools=memory.tools(),
        )
        self.memory = memory

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncIterable[llm.ChatChunk | str | FlushSentinel]:
        await self.memory.enrich(chat_ctx)
        return Agent.default.llm_node(self, chat_ctx, tools, model_settings)


def create_session() -> AgentSession[None]:
    return AgentSession(stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3")


@server.rtc_session(agent_name="own-agent")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit(params=InputParams(recall_timeout=1.5, search_limit=5))
    await ctx.connect()
    memory.bind(participant=await ctx.wait_for_participant(), session_id=ctx.room.name)

    session = create_session()
    memory.attach(session)
    await session.start(room=ctx.room, agent=Assistant(memory))


if __name__ == "__main__":
    agents.cli.run_app(server)
