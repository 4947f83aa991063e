"""A caller who types to a real `AgentSession`: no audio, no timing, a whole call in a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeAlias

from livekit.agents import Agent, AgentSession, llm

from .llm import ScriptedLLM

__all__ = ["Answering", "TextCaller", "answered_by", "conversation_of", "verify_model"]

Answering: TypeAlias = "Agent | Callable[[AgentSession[Any]], Awaitable[object]]"
"""Who answers a scripted call: an agent, or a function of yours that starts the session it is given.

A function tests more: what it does besides, such as `memory.attach(session)`, is then the code that runs in
production.
"""


class TextCaller:
    """Makes a call by text.

    ```python
    async with TextCaller(agent, llm=ScriptedLLM("Hello!")) as caller:
        assert await caller.says("Hi") == "Hello!"
    ```

    The session is closed at the end, whatever happens, and a `ScriptedLLM` is verified. Use
    `ScriptedCaller` where timing matters: pauses, interruptions, preemptive replies.

    Args:
        agent: Who answers: an agent, or a function that starts the session (see `Answering`).
        llm: The model of the session, usually a `ScriptedLLM`.
        session_options: Any other keyword of `AgentSession`.
    """

    def __init__(
        self, agent: Answering, *, llm: llm.LLM[Any] | llm.RealtimeModel, **session_options: Any
    ) -> None:
        self.session: AgentSession[Any] = AgentSession(llm=llm, **session_options)
        self.waited: float | None = None
        """Seconds of the loop's clock from the newest words of the caller to the whole reply; None before it."""
        self._agent = agent

    async def __aenter__(self) -> TextCaller:
        try:
            await answered_by(self._agent, self.session)
        except BaseException:
            await self.session.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.aclose()
        if error is None:
            verify_model(self.session)

    async def says(self, text: str, *, timeout: float = 60) -> str:
        """Take a turn. Returns what the agent said to it, utterances joined by a space.

        Raises:
            asyncio.TimeoutError: There was no whole reply in `timeout` seconds of the loop's clock.
        """
        loop = asyncio.get_running_loop()
        since = loop.time()
        result = await asyncio.wait_for(self._run(text), timeout)
        self.waited = loop.time() - since
        return " ".join(
            event.item.text_content or ""
            for event in result.events
            if event.type == "message" and event.item.role == "assistant"
        )

    async def hears_greeting(self, *, timeout: float = 60) -> str:
        """Wait for the first words of the agent, said unasked. Returns them."""
        spoken = asyncio.Event()

        def added(_: Any) -> None:
            if self._first_words() is not None:
                spoken.set()

        self.session.on("conversation_item_added", added)  # pyright: ignore[reportUnknownMemberType]
        try:
            added(None)
            await asyncio.wait_for(spoken.wait(), timeout)
        finally:
            self.session.off("conversation_item_added", added)  # pyright: ignore[reportUnknownMemberType]
        return self._first_words() or ""

    def conversation(self) -> list[tuple[str, str]]:
        """Role and words of every message of the session so far."""
        return conversation_of(self.session)

    async def _run(self, text: str) -> Any:
        return await self.session.run(user_input=text)  # pyright: ignore[reportUnknownVariableType]

    def _first_words(self) -> str | None:
        return next((text for role, text in self.conversation() if role == "assistant"), None)


async def answered_by(agent: Answering, session: AgentSession[Any]) -> None:
    """Start `session` with this agent, or let the function start it.

    Raises:
        RuntimeError: The function came back without having started the session.
    """
    if isinstance(agent, Agent):
        await session.start(agent)  # pyright: ignore[reportUnknownMemberType]
        return
    await agent(session)
    try:
        _ = session.current_agent
    except RuntimeError:
        raise RuntimeError(
            "the function that answers the call has to start the session it is given"
        ) from None


def verify_model(session: AgentSession[Any]) -> None:
    """Raise again what a scripted model of this session found wrong and the session swallowed."""
    if isinstance(session.llm, ScriptedLLM):
        session.llm.verify()


def conversation_of(session: AgentSession[Any]) -> list[tuple[str, str]]:
    """Role and words of every message of the session so far."""
    return [
        (str(item.role), item.text_content or "") for item in session.history.items if item.type == "message"
    ]
