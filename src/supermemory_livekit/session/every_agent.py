"""Recall for every agent of a session: plain agents, handoff targets and agent tasks, without subclassing.

LiveKit announces each agent by a handoff item before its first reply, the first agent included, and looks `llm_node`
and `on_user_turn_completed` up at every turn. So recall is put in front of these two on the agent's instance.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from livekit.agents import Agent, AgentSession, llm

from .realtime import is_realtime

__all__ = ["add_tools", "recalls", "wrap"]

_MARK = "__supermemory_recall__"

Enrich = Callable[[llm.ChatContext], Awaitable[None]]
Hook = Callable[[llm.ChatContext, llm.ChatMessage], Awaitable[None]]


def recalls(agent: Agent) -> bool:
    """Whether this agent was wrapped before."""
    return hasattr(agent.llm_node, _MARK)


def wrap(agent: Agent, session: AgentSession[Any], *, enrich: Enrich, hook: Hook) -> None:
    """Put recall in front of the agent's own hooks. An agent is wrapped once, however often it takes over."""
    if recalls(agent):
        return
    reply, turn_completed = agent.llm_node, agent.on_user_turn_completed

    async def llm_node(chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: Any) -> Any:
        await enrich(chat_ctx)
        answer: Any = reply(chat_ctx, tools, model_settings)
        return await answer if inspect.isawaitable(answer) else answer

    async def on_user_turn_completed(turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        # With any other model `llm_node` recalls; a change of the turn here would cost the preemptive generation.
        if is_realtime(agent, session):
            await hook(turn_ctx, new_message)
        await turn_completed(turn_ctx, new_message)

    setattr(llm_node, _MARK, True)
    agent.llm_node = llm_node  # type: ignore[method-assign]
    agent.on_user_turn_completed = on_user_turn_completed  # type: ignore[method-assign]


def add_tools(session: AgentSession[Any], tools: list[llm.Tool | llm.Toolset]) -> None:
    """Offer the tools to every agent of a session that has not started yet.

    LiveKit keeps the very list that the developer passed, and a list may be shared by the sessions of many callers: it
    is replaced and never extended.
    """
    own = list(session.tools)
    own.extend(tool for tool in tools if all(tool is not other for other in own))
    session._tools = own  # pyright: ignore[reportPrivateUsage]
