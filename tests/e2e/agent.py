"""The quick start of the README, its very source, with scripted models, and a story that takes a while to tell.

Importable by name, since LiveKit's job processes are started afresh and import the entrypoint they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livekit.agents import ChatContext, llm

from supermemory_livekit.testing import ScriptedLLM, ScriptedSTT, ScriptedTTS
from tests.jobs import quickstart

__all__ = ["STORY"]

if TYPE_CHECKING:
    from livekit.agents import AgentServer, JobContext

    server: AgentServer

    async def entrypoint(ctx: JobContext) -> None: ...


STORY = "Once upon a time there was a ship. " + " ".join(
    f"On day {day} it sailed on." for day in range(1, 31)
)
"""Takes about 30 seconds to tell."""


def answer(context: ChatContext, tools: list[llm.Tool]) -> str:
    """The story if it is asked for; otherwise what the model of the quick start's tests says."""
    last = next((item for item in reversed(context.messages()) if item.role == "user"), None)
    if last is not None and last.text_content == "Tell me a story.":
        return STORY
    return quickstart.answer(context, tools)


def scripted() -> str:
    """The quick start with a voice so slow that callers see it speak, and can hang up in the middle."""
    source = quickstart.scripted()
    assert "word_seconds=0.02" in source
    return source.replace("word_seconds=0.02", "word_seconds=0.15")


_models: dict[str, Any] = {"ScriptedSTT": ScriptedSTT, "ScriptedLLM": ScriptedLLM, "ScriptedTTS": ScriptedTTS}
globals().update(_models)
exec(compile(scripted(), str(quickstart.SOURCE), "exec"), globals())
