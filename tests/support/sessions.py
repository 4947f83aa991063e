"""Real `AgentSession`s to talk to, by text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from livekit.agents import Agent, AgentSession, llm

__all__ = ["say", "started"]


@asynccontextmanager
async def started(
    agent: Agent, *, llm: llm.LLM[Any] | llm.RealtimeModel, **options: Any
) -> AsyncGenerator[AgentSession[None]]:
    """A session with `agent` at work and no audio. Closed at the end, whatever happens."""
    session = AgentSession[None](llm=llm, **options)
    try:
        await asyncio.wait_for(session.start(agent), 20)  # pyright: ignore[reportUnknownMemberType]
        yield session
    finally:
        await asyncio.wait_for(session.aclose(), 20)


async def say(session: AgentSession[None], text: str, *, timeout: float = 60) -> str:
    """One text turn of the caller. Returns what the agent said, utterances joined by a space."""
    result = await asyncio.wait_for(_run(session, text), timeout)
    return " ".join(
        event.item.text_content or ""
        for event in result.events
        if event.type == "message" and event.item.role == "assistant"
    )


async def _run(session: AgentSession[None], text: str) -> Any:
    return await session.run(user_input=text)  # pyright: ignore[reportUnknownVariableType]
