"""Calls to the agents of `examples/`, up to their cloud models: those are replaced by scripted ones."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from livekit import rtc
from livekit.agents import AgentSession
from livekit.agents.ipc.mock_room import create_mock_room

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.testing import ScriptedLLM, ScriptedTTS
from tests.support.jobs import job
from tests.support.sessions import say

__all__ = ["EXAMPLES", "Caller", "Line", "call", "example", "knows", "on_the_line", "stored", "text_session"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    """The example of this name, imported anew."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Caller:
    """A participant as LiveKit's simulated jobs have them, with what a server would tell of it."""

    identity: str = "ana"
    attributes: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    kind: rtc.ParticipantKind.ValueType = rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD


class Line:
    """A call that is going on."""

    def __init__(self, session: AgentSession[None]) -> None:
        self.session = session
        self.said: asyncio.Queue[str] = asyncio.Queue()
        """What the agent said, in order."""
        session.on("conversation_item_added", self._on_item)  # pyright: ignore[reportUnknownMemberType]

    async def hears(self) -> str:
        """The next thing the agent says, also unasked."""
        return await asyncio.wait_for(self.said.get(), 20)

    async def says(self, text: str) -> str:
        return await say(self.session, text)

    def _on_item(self, event: Any) -> None:
        if event.item.type == "message" and event.item.role == "assistant":
            self.said.put_nowait(event.item.text_content or "")


@asynccontextmanager
async def on_the_line(
    module: ModuleType,
    create_session: Callable[[], AgentSession[None]] | None,
    *,
    room: str = "room-1",
    caller: Caller | None = None,
    metadata: str = "",
) -> AsyncGenerator[Line]:
    """Run the example's entrypoint in a job of its own; the job ends, as LiveKit ends it, with the block.

    `create_session` takes the place of the example's function; None leaves the example as it is.
    """
    person = caller or Caller()
    lines: list[Line] = []

    if create_session is not None:

        def session_with_scripted_models() -> AgentSession[None]:
            lines.append(Line(create_session()))
            return lines[0].session

        module.create_session = session_with_scripted_models  # type: ignore[attr-defined]
    # LiveKit keeps one such room for all jobs of a process.
    fresh: Any = create_mock_room.__wrapped__()
    fresh.name = room
    (participant,) = fresh.remote_participants.values()
    participant.identity, participant.kind = person.identity, person.kind
    participant.attributes = dict(person.attributes)
    with job(room=fresh, job_metadata=metadata) as running:
        await asyncio.wait_for(module.entrypoint(running.context), 20)
        if not lines:
            lines.append(Line(cast("AgentSession[None]", running.context.primary_session)))
        try:
            yield lines[0]
        finally:
            await running.end(lines[0].session)
    assert running.errors == []
    assert not running.killed


def text_session(model: ScriptedLLM) -> AgentSession[None]:
    """The session of an example, with this model and no cloud.

    Without speech recognition a session does not wait two seconds for last words when it closes.
    """
    return AgentSession(llm=model, tts=ScriptedTTS(word_seconds=0.02))


async def call(module: ModuleType, model: ScriptedLLM, says: Sequence[str], **options: Any) -> list[str]:
    """A whole call by text. Returns the replies to what was said."""
    async with on_the_line(module, lambda: text_session(model), **options) as line:
        return [await line.says(text) for text in says]


async def knows(tag: str, *facts: str) -> None:
    """Let the embedded service know these facts about a caller before the call."""
    memory = SupermemoryLiveKit(container_tag=tag)
    for fact in facts:
        assert "Saved" in await memory.remember(fact)
    await memory.aclose()


async def stored(tag: str, room: str) -> list[str]:
    """The lines of a call's document without their time stamps; empty when there is none."""
    store = SDKStore(make_client())
    try:
        text = await store.read(tag, f"lk-{room}", service_id=None, timeout=10) or ""
    finally:
        await store.aclose()
    return [line.partition("] ")[2] for line in text.splitlines()]
