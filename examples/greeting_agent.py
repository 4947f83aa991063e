"""A voice agent that greets its caller from memory.

    export SUPERMEMORY_API_KEY=… LIVEKIT_URL=… LIVEKIT_API_KEY=… LIVEKIT_API_SECRET=…
    python -m livekit.agents start --dev greeting_agent.py

Remove `agent_name` to join every new room, for example to try it in the Agents Playground. Set
SUPERMEMORY_BASE_URL=local to keep the memory on this machine, without a Supermemory key.
"""

from __future__ import annotations

import json

from livekit import agents
from livekit.agents import AgentServer, AgentSession, ChatContext, JobContext

from supermemory_livekit import SupermemoryAgent, SupermemoryLiveKit

server = AgentServer()

INSTRUCTIONS = """
You are the friendly voice of a small hotel. You remember callers: use what you know of them naturally, say nothing
about a memory system, and ask when you are not sure that something is still true. Keep answers short; they are spoken.
"""


def create_session() -> AgentSession[None]:
    return AgentSession(stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3")


class Receptionist(SupermemoryAgent):
    async def on_enter(self) -> None:
        # The profile is in the context already: `preload` put it there before the caller heard a sound.
        self.session.generate_reply(
            instructions="Greet the caller. If you know them, greet them by name and pick up where you left off."
        )


@server.rtc_session(agent_name="greeting-agent")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit()
    container_tag = json.loads(ctx.job.metadata or "{}").get("container_tag")
    if container_tag:
        # Known before anybody connects: load the profile while the call is being set up.
        memory.bind(container_tag=container_tag, session_id=ctx.room.name)

    await ctx.connect()
    if not container_tag:
        participant = await ctx.wait_for_participant()
        memory.bind(participant=participant, session_id=ctx.room.name)

    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)

    session = create_session()
    memory.attach(session)
    await session.start(
        room=ctx.room, agent=Receptionist(memory, chat_ctx=chat_ctx, instructions=INSTRUCTIONS)
    )


if __name__ == "__main__":
    agents.cli.run_app(server)
