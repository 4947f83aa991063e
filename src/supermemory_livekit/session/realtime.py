"""Bringing memory to a realtime model, which never runs `llm_node` and never sees edits of the turn context.

What reaches it is what its session is told: an item in its chat context where that can change during the call, or an
addition to its instructions. The model says in its capabilities which of the two it accepts.
"""

from __future__ import annotations

from typing import Any, cast

from livekit.agents import Agent, AgentSession, llm
from livekit.agents.types import NotGiven

from supermemory_livekit.recall.render import FENCE_OPEN, ITEM_ID_PREFIX, strip

__all__ = ["is_realtime", "push"]


ITEM_ID = f"{ITEM_ID_PREFIX}realtime"
"""One id for the whole call: the session replaces the item in place instead of collecting one per turn."""


def realtime_model(agent: Agent, session: AgentSession[Any] | None) -> llm.RealtimeModel | None:
    """The realtime model this agent speaks with, if it does: its own, else the one of its session."""
    # LiveKit leaves the type argument of `LLM` open.
    model = cast("Any", agent).llm
    if isinstance(model, NotGiven):
        model = cast("Any", session).llm if session is not None else None
    return model if isinstance(model, llm.RealtimeModel) else None


def is_realtime(agent: Agent, session: AgentSession[Any] | None) -> bool:
    return realtime_model(agent, session) is not None


async def push(agent: Agent, session: AgentSession[Any] | None, block: str | None) -> bool:
    """Show the model this block in place of the one before; None takes it away.

    Returns False when the model accepts no change during a call.
    """
    model = realtime_model(agent, session)
    if model is None:
        return False
    if model.capabilities.mutable_chat_context:
        await _push_item(agent, block)
        return True
    if model.capabilities.mutable_instructions:
        await _push_instructions(agent, block)
        return True
    return False


async def _push_item(agent: Agent, block: str | None) -> None:
    context = agent.chat_ctx.copy()
    before = [(item.id, getattr(item, "text_content", None)) for item in context.items]
    strip(context)
    if block is not None:
        context.items.append(llm.ChatMessage(id=ITEM_ID, role="system", content=[block]))
    after = [(item.id, getattr(item, "text_content", None)) for item in context.items]
    if before != after:
        await agent.update_chat_ctx(context)


async def _push_instructions(agent: Agent, block: str | None) -> None:
    current = str(agent.instructions)
    # The block always stands at the end, so the developer's own instructions are what precedes it.
    own = current.split(FENCE_OPEN)[0].rstrip()
    wanted = f"{own}\n\n{block}" if block is not None else own
    if wanted != current:
        await agent.update_instructions(wanted)
