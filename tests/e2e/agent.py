"""The quick start of the README, its very source, with scripted models, and a story that takes a while to tell.

Importable by name, since LiveKit's job processes are started afresh and import the entrypoint they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livekit.agents import ChatContext, llm

from supermemory_livekit.testing import ScriptedLLM, ScriptedSTT, ScriptedTTS
from tests.jobs import quickstart

__all__ = ["HARD_QUESTION", "STORY"]

if TYPE_CHECKING:
    from livekit.agents import AgentServer, JobContext

    server: AgentServer

    async def entrypoint(ctx: JobContext) -> None: ...


STORY = "Once upon a time there was a ship. " + " ".join(
    f"On day {day} it sailed on." for day in range(1, 31)
)
"""Takes about 30 seconds to tell."""


HARD_QUESTION = "What do you make of it all?"
"""Its answer takes longer than any test waits."""


class Thinker(ScriptedLLM):
    """Thinks long about a hard question."""

    def chat(self, *, chat_ctx: ChatContext, **options: Any) -> llm.LLMStream:
        self.first_token = 60.0 if _last_words(chat_ctx) == HARD_QUESTION else 0.0
        return super().chat(chat_ctx=chat_ctx, **options)


def _last_words(context: ChatContext) -> str:
    """What the caller said last."""
    return next((item.text_content or "" for item in reversed(context.messages()) if item.role == "user"), "")


def answer(context: ChatContext, tools: list[llm.Tool]) -> str:
    """The story if it is asked for; otherwise what the model of the quick start's tests says."""
    if _last_words(context) == "Tell me a story.":
        return STORY
    return quickstart.answer(context, tools)


def scripted() -> str:
    """The quick start with a voice so slow that callers see it speak, and can hang up in the middle."""
    source = quickstart.scripted()
    assert "word_seconds=0.02" in source
    return source.replace("word_seconds=0.02", "word_seconds=0.15")


_models: dict[str, Any] = {"ScriptedSTT": ScriptedSTT, "ScriptedLLM": Thinker, "ScriptedTTS": ScriptedTTS}
globals().update(_models)
exec(compile(scripted(), str(quickstart.SOURCE), "exec"), globals())
