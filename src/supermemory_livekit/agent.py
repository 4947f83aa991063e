"""SupermemoryAgent: an `Agent` that recalls before each reply, through the hook its model supports."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import Any, cast

from livekit.agents import Agent, AgentSession, FlushSentinel, ModelSettings, llm
from livekit.agents.types import NOT_GIVEN, NotGivenOr

from .memory import SupermemoryLiveKit
from .session.realtime import is_realtime

__all__ = ["SupermemoryAgent"]


class SupermemoryAgent(Agent):
    """An agent with the memory of its caller.

    It recalls inside `llm_node` before each reply (voice turns, text turns, preemptive generation), or in
    `on_user_turn_completed` when it speaks with a realtime model, and offers the memory tools to the model.

    A subclass that overrides one of these two hooks calls `super()`; one that does not is reported once in the log.

    Args:
        memory: The memory of this call. Call `memory.attach(session)` too, so that the call is stored.
        instructions: As for `Agent`.
        chat_ctx: As for `Agent`; usually the context that `memory.preload` filled.
        tools: Tools of your own, beside the three memory tools.
        agent_kwargs: Any other keyword of `Agent`.
    """

    def __init__(
        self,
        memory: SupermemoryLiveKit,
        *,
        instructions: str,
        chat_ctx: NotGivenOr[llm.ChatContext | None] = NOT_GIVEN,
        tools: Sequence[llm.Tool | llm.Toolset] | None = None,
        **agent_kwargs: Any,
    ) -> None:
        own = list(tools or [])
        # The same tool object given twice would be offered to the model twice.
        memory_tools = [tool for tool in memory.tools() if all(tool is not other for other in own)]
        super().__init__(
            instructions=instructions, chat_ctx=chat_ctx, tools=[*own, *memory_tools], **agent_kwargs
        )
        self._memory = memory

    @property
    def memory(self) -> SupermemoryLiveKit:
        """The memory given at construction."""
        return self._memory

    async def llm_node(
        self,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool],
        model_settings: ModelSettings,
    ) -> AsyncIterable[llm.ChatChunk | str | FlushSentinel]:
        """Recall, then reply as `Agent` does."""
        await self._memory.enrich(chat_ctx)
        async for chunk in Agent.default.llm_node(self, chat_ctx, tools, model_settings):
            yield chunk

    async def on_user_turn_completed(self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        """With a realtime model: recall and show the model what was found. Otherwise `llm_node` does it."""
        session: AgentSession[Any] = cast("Any", self).session
        if is_realtime(self, session):
            await self._memory.on_user_turn_completed(turn_ctx, new_message)
