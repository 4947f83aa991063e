"""The quick start of the README as a job process imports it: its very source, with scripted models.

Importable by name, since LiveKit's job processes are started afresh and import the entrypoint they run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from livekit.agents import ChatContext, llm

from supermemory_livekit.testing import ScriptedLLM, ScriptedSTT, ScriptedTTS

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "quickstart.py"

if TYPE_CHECKING:
    from livekit.agents import AgentServer, JobContext

    server: AgentServer

    async def entrypoint(ctx: JobContext) -> None: ...


CITIES = ("Porto", "Lisbon", "Graz")


def answer(context: ChatContext, tools: list[llm.Tool]) -> str:
    """What a model could say that has nothing but its context: it knows a city only from what it is shown."""
    said = [item for item in context.items if isinstance(item, llm.ChatMessage)]
    question = next((item.text_content or "" for item in reversed(said) if item.role == "user"), "")
    if "where do I live" not in question:
        return "Noted."
    shown = "\n".join(item.text_content or "" for item in said if item.role != "assistant")
    known = [city for city in CITIES if city in shown]
    return f"You live in {' and '.join(known)}." if known else "I do not know."


def scripted() -> str:
    """The source of the quick start with its three model names replaced, and nothing else."""
    source = SOURCE.read_text("utf-8")
    for name, stand_in in (
        ('"deepgram/nova-3:en"', "ScriptedSTT()"),
        ('"openai/gpt-4.1-mini"', "ScriptedLLM(answer)"),
        ('"cartesia/sonic-3"', "ScriptedTTS(word_seconds=0.02)"),
    ):
        assert source.count(name) == 1, f"the quick start names {name} {source.count(name)} times"
        source = source.replace(name, stand_in)
    return source


_models: dict[str, Any] = {"ScriptedSTT": ScriptedSTT, "ScriptedLLM": ScriptedLLM, "ScriptedTTS": ScriptedTTS}
globals().update(_models)
exec(compile(scripted(), str(SOURCE), "exec"), globals())
