"""Memory with a speech-to-speech model (needs `pip install livekit-plugins-openai`).

A realtime model runs no `llm_node`. `SupermemoryAgent` pushes what it recalls to the model's session instead, before
the reply, when turns are detected in the agent (`turn_detection="vad"` here). When the model detects turns by itself
there is no moment before the reply: what is recalled then reaches the reply after the next words, and the greeting and
the memory tools carry the rest.
"""

from __future__ import annotations

from livekit import agents
from livekit.agents import AgentServer, AgentSession, ChatContext, JobContext, TurnHandlingOptions
from livekit.plugins import openai

from supermemory_livekit import SupermemoryAgent, SupermemoryLiveKit

server = AgentServer()


def create_session() -> AgentSession[None]:
    return AgentSession(
        llm=openai.realtime.RealtimeModel(turn_detection=None),
        # The words of the caller, for the recall and for the stored call.
        stt="deepgram/nova-3:en",
        turn_handling=TurnHandlingOptions(turn_detection="vad"),
    )


@server.rtc_session(agent_name="realtime-agent")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit()
    await ctx.connect()
    memory.bind(participant=await ctx.wait_for_participant(), session_id=ctx.room.name)

    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)

    session = create_session()
    memory.attach(session)
    await session.start(
        room=ctx.room,
        agent=SupermemoryAgent(
            memory, chat_ctx=chat_ctx, instructions="You are a helpful voice assistant. Keep answers short."
        ),
    )


if __name__ == "__main__":
    agents.cli.run_app(server)
