"""A LiveKit worker that takes its calls from stdin instead of a LiveKit server.

    python -m tests.jobs.worker process|thread

Each line of stdin is a `Call` as JSON; it becomes a simulated job that runs the quick start. The job and the worker
report on stdout, one JSON object a line. The worker shuts down as LiveKit's own command line does: on SIGTERM, and
here also when stdin ends, so that it never outlives its test.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from typing import Any, cast

from livekit.agents import AgentServer, AgentSession, JobContext, JobExecutorType
from livekit.protocol import models

from supermemory_livekit.testing import ScriptedLLM
from tests.jobs import quickstart
from tests.support.sessions import say


@dataclass(frozen=True)
class Call:
    """One call, and what the caller says in it."""

    room: str
    says: tuple[str, ...]
    caller: str = "mock_user"
    """Identity of the participant; the default is what LiveKit's simulated jobs give."""
    metadata: str = ""
    """Metadata of the job, as an explicit dispatch would bring it."""
    unanswered: str = ""
    """What the caller says last; the model never answers it."""
    ends: bool = True
    """The job shuts down after the last reply; otherwise the call stays on the line."""


def report(event: str, call: Call, **more: Any) -> None:
    line = json.dumps({"event": event, "room": call.room, "pid": os.getpid(), **more})
    # one write each: several job processes share this pipe
    os.write(sys.stdout.fileno(), line.encode() + b"\n")


async def take_call(ctx: JobContext) -> None:
    """Runs in the job: the quick start's entrypoint, then a caller who types."""
    call = Call(**json.loads(ctx.job.room.metadata))
    # A simulated job has one room, one participant and no metadata; a server would set these three.
    room: Any = ctx.room
    room.name = call.room
    next(iter(room.remote_participants.values())).identity = call.caller
    ctx.job.metadata = call.metadata

    await quickstart.entrypoint(ctx)
    session = cast("AgentSession[None]", ctx.primary_session)
    replies = [await say(session, words, timeout=20) for words in call.says]
    if call.unanswered:
        await asyncio.wait_for(say_without_reply(session, call.unanswered), 20)
    report("said", call, replies=replies)
    if call.ends:
        ctx.shutdown()


async def say_without_reply(session: AgentSession[None], words: str) -> None:
    """Return when the words are part of the conversation and the model, which will not answer, is asked."""
    heard = asyncio.Event()

    def on_item(event: object) -> None:
        heard.set()

    session.on("conversation_item_added", on_item)  # pyright: ignore[reportUnknownMemberType]
    cast("ScriptedLLM", session.llm).first_token = 3600.0
    session.generate_reply(user_input=words)
    await heard.wait()


async def main(executor: str) -> None:
    server = AgentServer(num_idle_processes=0, port=0, job_executor_type=JobExecutorType(executor))
    server.rtc_session(take_call)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)

    async def dispatch() -> None:
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async for line in lines:
            call = Call(**json.loads(line))
            room = models.Room(name=call.room, sid=f"RM_{call.room}", metadata=json.dumps(asdict(call)))
            await server.simulate_job(call.room, agent_identity="agent", room_info=room, fake_job=True)
        stopping.set()

    def ended(process: Any) -> None:
        if process.running_job is not None:
            report("ended", Call(**json.loads(process.running_job.job.room.metadata)))

    def follow() -> None:
        server._proc_pool.on("process_closed", ended)  # pyright: ignore[reportPrivateUsage]
        tasks.append(loop.create_task(dispatch()))

    tasks: list[asyncio.Task[None]] = []
    server.once("worker_started", follow)
    tasks.append(loop.create_task(server.run(devmode=True, unregistered=True)))
    await stopping.wait()
    await server.aclose()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
