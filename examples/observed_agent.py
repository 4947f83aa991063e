"""Spans and metrics over OTLP from the processes in which LiveKit runs its jobs."""

from __future__ import annotations

import asyncio

from livekit import agents
from livekit.agents import AgentServer, AgentSession, JobContext, JobProcess
from livekit.agents.telemetry import set_tracer_provider
from opentelemetry import metrics
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from supermemory_livekit import SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.retrieval import load_embedder


def prewarm(process: JobProcess) -> None:
    """Runs once in each job process, before it takes a call."""
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(timeout=2))])
    metrics.set_meter_provider(meters)
    spans = TracerProvider()
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=2)))
    set_tracer_provider(spans)
    process.userdata["telemetry"] = [meters, spans]
    load_embedder()


server = AgentServer(setup_fnc=prewarm)


def create_session() -> AgentSession[None]:
    return AgentSession(stt="deepgram/nova-3:en", llm="openai/gpt-4.1-mini", tts="cartesia/sonic-3")


@server.rtc_session(agent_name="observed-agent")
async def entrypoint(ctx: JobContext) -> None:
    memory = SupermemoryLiveKit()

    async def finish() -> None:
        # LiveKit ends a job process without running exit handlers, so nobody else exports what is left.
        await memory.aclose()
        providers = ctx.proc.userdata["telemetry"]
        await asyncio.gather(*(asyncio.to_thread(provider.force_flush) for provider in providers))

    ctx.add_shutdown_callback(finish)
    await ctx.connect()
    memory.bind(participant=await ctx.wait_for_participant(), session_id=ctx.room.name)

    session = create_session()
    memory.attach(session)
    agent = SupermemoryAgent(memory, instructions="You are a helpful voice assistant.")
    await session.start(room=ctx.room, agent=agent)


if __name__ == "__main__":
    agents.cli.run_app(server)
