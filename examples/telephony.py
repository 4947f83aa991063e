"""Phone calls: whose memory is it when all that is known is a number?

Best: your backend looks the customer up when the call is dispatched and passes your own customer id as
`container_tag` in the job's metadata. Next: it sets the participant attribute `supermemory_container_tag` on the SIP
participant. Without either, the number itself names the memory: it is turned into a stable container tag, so a
caller who rings back from the same number is remembered. A withheld number names nobody, so such a call is neither
stored nor recalled here.
"""

from __future__ import annotations

import json

from livekit import agents, rtc
from livekit.agents import AgentServer, AgentSession, ChatContext, JobContext

from supermemory_livekit import SupermemoryAgent, SupermemoryLiveKit

server = AgentServer()

WITHHELD = {"", "anonymous", "unknown", "unavailable", "restricted", "private", "withheld"}


def create_session() -> AgentSession[None]:
    return AgentSession(stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3")


def caller_is_known(participant: rtc.RemoteParticipant) -> bool:
    if participant.attributes.get("supermemory_container_tag"):
        return True
    if participant.kind != rtc.ParticipantKind.PARTICIPANT_KIND_SIP:
        return True  # a browser or an app; its identity comes from your backend
    # Without a number the identity may be made up for this one call, and would name nobody who rings back.
    return participant.attributes.get("sip.phoneNumber", "").strip().lower() not in WITHHELD


@server.rtc_session(agent_name="phone-agent")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit()
    metadata = json.loads(ctx.job.metadata or "{}")
    await ctx.connect()
    participant = await ctx.wait_for_participant()
    # One room may see several calls over a day; the call id of the trunk keeps their documents apart.
    call_id = participant.attributes.get("sip.callID") or ctx.room.name
    if container_tag := metadata.get("container_tag"):
        memory.bind(container_tag=container_tag, session_id=call_id)
    elif caller_is_known(participant):
        memory.bind(participant=participant, session_id=call_id)

    # For a caller nobody knows, memory is not bound: preload, recall and capture then do nothing.
    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)

    session = create_session()
    memory.attach(session)
    await session.start(
        room=ctx.room,
        agent=SupermemoryAgent(
            memory, chat_ctx=chat_ctx, instructions="You answer the phone of a bicycle workshop. Be brief."
        ),
    )


if __name__ == "__main__":
    agents.cli.run_app(server)
