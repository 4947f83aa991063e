"""A call to `examples/observed_agent.py` in a process that ends as LiveKit's job processes end: no exit handlers.

    python -m tests.examples.observed

Where its telemetry goes is for the environment to say (`OTEL_EXPORTER_OTLP_ENDPOINT`).
"""

from __future__ import annotations

import asyncio
import os

from livekit.agents import JobProcess, get_job_context

from supermemory_livekit.testing import ScriptedLLM
from tests.examples.calls import example, on_the_line, text_session


async def main() -> None:
    module = example("observed_agent")
    entrypoint = module.entrypoint

    async def in_a_warm_process(ctx: object) -> None:
        process: JobProcess = get_job_context().proc
        module.prewarm(process)
        await entrypoint(ctx)

    module.entrypoint = in_a_warm_process  # type: ignore[attr-defined]
    async with on_the_line(module, lambda: text_session(ScriptedLLM("Gladly."))) as line:
        assert await line.says("A table for two, please.") == "Gladly."


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)
