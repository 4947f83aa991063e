"""One call by text through a real `AgentSession`, shown as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from livekit.agents import Agent, AgentSession, ChatContext, llm
from livekit.agents.voice.run_result import RunResult

from supermemory_livekit.agent import SupermemoryAgent
from supermemory_livekit.cli.text import counted
from supermemory_livekit.scope import document_id
from supermemory_livekit.sdk.client import make_client
from supermemory_livekit.sdk.store import SDKStore

from .observe import ObservedMemory, memory_lines
from .output import Output

__all__ = ["GREET", "INSTRUCTIONS", "Call", "TurnResult", "calling", "stored_text"]

INSTRUCTIONS = (
    "You answer the telephone of the restaurant Blue Door. You remember your callers: use what you know of them "
    "naturally. Keep answers short; they are spoken."
)
GREET = "Greet the caller, by name if you know them."


@dataclass(frozen=True)
class TurnResult:
    """What a turn of the caller brought."""

    answer: str
    recalled: tuple[str, ...]
    """Lines the model was shown."""


class Call:
    """A call that is going on."""

    def __init__(self, session: AgentSession[None], memory: ObservedMemory, output: Output) -> None:
        self._session = session
        self._memory = memory
        self._output = output
        self._seen = 0
        """Recalls shown so far."""

    async def greet(self) -> str:
        """The agent speaks first. Returns its words."""
        handle = self._session.generate_reply(instructions=GREET)
        await handle.wait_for_playout()
        self._seen = len(self._memory.recalls)
        words = " ".join(_spoken(item) for item in handle.chat_items if _spoken(item))
        self._output.spoke("Agent", words)
        return words

    async def say(self, words: str, *, echo: bool = True) -> TurnResult:
        """One turn of the caller, with what was recalled, which tools were used and what was answered."""
        if echo:
            self._output.spoke("Caller", words)
        result: RunResult[None] = await self._session.run(user_input=words)  # pyright: ignore
        recalled: tuple[str, ...] = ()
        if len(self._memory.recalls) > self._seen:
            first = self._memory.recalls[self._seen]
            self._seen = len(self._memory.recalls)
            recalled = first.lines
            self._output.note(f"recalled {counted(len(recalled), 'line')} in {first.seconds * 1000:.0f} ms")
            self._output.lines(list(recalled))
        answers: list[str] = []
        for event in result.events:
            if event.type == "function_call":
                self._output.note(f"tool {event.item.name} {event.item.arguments}")
            elif event.type == "function_call_output":
                self._show_output(event.item.output)
            elif event.type == "message" and _spoken(event.item):
                answers.append(_spoken(event.item))
        answer = " ".join(answers)
        self._output.spoke("Agent", answer)
        return TurnResult(answer, recalled)

    def _show_output(self, output: str) -> None:
        results = [line[2:] for line in output.splitlines() if line.startswith("- ")]
        self._output.note(f"  -> {counted(len(results), 'result')}" if results else f"  -> {output}")
        self._output.lines(results)


@asynccontextmanager
async def calling(
    memory: ObservedMemory, model: llm.LLM[Any], output: Output, *, recall: bool = True
) -> AsyncGenerator[Call]:
    """A call with the bound caller of `memory`, which is closed and flushed at the end.

    Without `recall` the agent is a plain `Agent`: the call is stored and the tools work, but nothing is recalled.
    """
    chat_ctx = ChatContext()
    if recall and await memory.preload(chat_ctx):
        lines = memory_lines(chat_ctx)
        output.note(f"preloaded before the first word: {counted(len(lines), 'line')}")
        output.lines(lines)
    agent = (
        SupermemoryAgent(memory, instructions=INSTRUCTIONS, chat_ctx=chat_ctx)
        if recall
        else Agent(instructions=INSTRUCTIONS, tools=memory.tools())
    )
    session = AgentSession[None](llm=model, max_tool_steps=4)
    memory.attach(session)
    await session.start(agent)  # pyright: ignore[reportUnknownMemberType]
    try:
        yield Call(session, memory, output)
    finally:
        await session.aclose()
        await memory.aclose()


async def stored_text(address: str, memory: ObservedMemory) -> str | None:
    """What the service keeps of the call now. `address` is the `base_url` of the memory."""
    if memory.container_tag is None or memory.session_id is None:
        return None
    store = SDKStore(make_client(api_key=None, base_url=address))
    try:
        return await store.read(
            memory.container_tag, document_id(memory.session_id), service_id=None, timeout=10.0
        )
    finally:
        await store.aclose()


def _spoken(item: object) -> str:
    if isinstance(item, llm.ChatMessage) and item.role == "assistant":
        return item.text_content or ""
    return ""
