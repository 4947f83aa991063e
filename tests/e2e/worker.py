"""The worker: the quick start's own `AgentServer`, connected to LIVEKIT_URL.

    python -m tests.e2e.worker process|thread

Reports on stdout, one JSON object a line: `registered`, and `ended` with the `room` of each job that is over. Ends
when stdin does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from livekit.agents import JobExecutorType

from tests.e2e import agent


def report(event: str, **more: Any) -> None:
    # One write each: job processes have this pipe, too.
    os.write(sys.stdout.fileno(), json.dumps({"event": event, **more}).encode() + b"\n")


async def main(executor: str) -> None:
    server = agent.server
    # The quick start gives its server no options; what a process of its own would take from the environment.
    server._job_executor_type = JobExecutorType(executor)  # pyright: ignore[reportPrivateUsage]
    server._num_idle_processes = 1  # pyright: ignore[reportPrivateUsage]

    def ended(process: Any) -> None:
        if process.running_job is not None:
            report("ended", room=process.running_job.job.room.name)

    def registered(worker_id: str, server_info: Any) -> None:
        report("registered")

    def started() -> None:
        server._proc_pool.on("process_closed", ended)  # pyright: ignore[reportPrivateUsage]

    server.once("worker_started", started)
    server.on("worker_registered", registered)
    running = asyncio.create_task(server.run(devmode=True))
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    stopping = asyncio.create_task(lines.read())
    # A worker that cannot run must not leave its test waiting.
    await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
    await server.aclose()
    await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
