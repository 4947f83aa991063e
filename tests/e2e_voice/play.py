"""Two spoken calls over the real stack, and what came of them: the tests of this folder look at nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from livekit.agents import ChatContext, llm
from supermemory import AsyncSupermemory

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.cli.demo import standin
from supermemory_livekit.cli.demo.spoken.call import SpokenCall, Studio, speaking, studio
from supermemory_livekit.cli.demo.voice import VoiceScript
from supermemory_livekit.cli.demo.words import content_words
from supermemory_livekit.local import Engine, create_app
from supermemory_livekit.local.schemas import ListDocuments
from supermemory_livekit.testing import FaultyTransport, Reply, ScriptedLLM

__all__ = ["Played", "play"]

SCRIPT = VoiceScript(seed=0, name="Laura", city="Boston", food="peanuts", instrument="violin")

# Long before it comes to the point: a busy machine takes seconds for an interim transcript.
ASKS_FOR_THE_MENU = (
    "I have been thinking about dinner with my family tomorrow, so please tell me what is on the menu today."
)
INTERRUPTS = "Stop please. Where do I live?"
ASKS_WHAT_WAS_CUT_OFF = "Which instrument does my sister play?"
MENU = (
    "Today we have tomato soup with fresh bread, grilled fish with potatoes and spinach, chicken with rice and "
    "carrots, pancakes with mushrooms, and for dessert there is apple pie or chocolate cake with vanilla ice cream."
)

TAG = "caller-of-the-voice-lane"


@dataclass(frozen=True)
class Played:
    """What the sessions and the service had of both calls."""

    first: SpokenCall
    second: SpokenCall
    answers: tuple[str, ...]
    """The agent's words in the second call after it was interrupted."""
    documents: tuple[str, str]
    """What the service keeps of each call."""
    searches: tuple[str, ...]
    """What the service was asked to search for in the second call."""
    recordings: tuple[Path, Path]

    def figures(self) -> dict[str, object]:
        """For the last line of the lane."""
        messages = [*self.first.messages, *self.second.messages]
        said = " ".join(self.spoken())
        heard = " ".join(message.text_content or "" for message in messages if message.role == "user")
        right = len(content_words(said) & content_words(heard)) / len(content_words(said))
        waits = [*self.first.heard.first_audio, *self.second.heard.first_audio]
        return {
            "voice_turns": sum(message.role == "user" for message in messages),
            "words_right": f"{right:.2f}",
            "barge_ins": sum(message.role == "assistant" and message.interrupted for message in messages),
            "hang_ups": sum(call.left for call in (self.first, self.second)),
            "interims": len(self.first.heard.interim) + len(self.second.heard.interim),
            "first_audio_p50_ms": round(1000 * statistics.median(waits)),
        }

    def spoken(self) -> tuple[str, ...]:
        """What the caller said to the end, in both calls."""
        return (*SCRIPT.first_call(), ASKS_FOR_THE_MENU, INTERRUPTS, ASKS_WHAT_WAS_CUT_OFF)


async def play(folder: Path) -> Played:
    """Make both calls. The database and the recordings go into `folder`."""
    engine = Engine(folder / "memory.db", drain=0.0)
    wire = FaultyTransport(httpx.ASGITransport(app=create_app(engine, api_key=None)))
    recordings = folder / "first-call.wav", folder / "second-call.wav"
    try:
        async with studio() as parts:
            first = await _first_call(parts, _memory(wire, "first"), recordings[0])
            assert await engine.settled(60), "the service is still at work"
            before = len(wire.requests)
            second, answers = await _second_call(parts, _memory(wire, "second"), recordings[1])
        searches = [request.body["q"] for request in wire.requests[before:] if request.path == "/v4/search"]
        documents = [await _document(engine, session_id) for session_id in ("first", "second")]
    finally:
        await engine.aclose()
    return Played(first, second, tuple(answers), (documents[0], documents[1]), tuple(searches), recordings)


async def _first_call(parts: Studio, memory: SupermemoryLiveKit, recording: Path) -> SpokenCall:
    """The caller tells of themselves and is cut off in mid-sentence."""
    call = SpokenCall(parts, ScriptedLLM(_reply))
    memory.attach(call.session)
    async with speaking(call, SupermemoryAgent(memory, instructions="Be brief."), recording=recording):
        for words in SCRIPT.first_call():
            await call.says(words)
            await call.hears_reply()
        await call.hangs_up_within(SCRIPT.unfinished(), share=0.5)
    await memory.aclose()
    return call


async def _second_call(
    parts: Studio, memory: SupermemoryLiveKit, recording: Path
) -> tuple[SpokenCall, Sequence[str]]:
    """The caller asks for the menu, does not want to hear all of it, and asks what the agent ought to know."""
    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)
    call = SpokenCall(parts, ScriptedLLM(_reply))
    memory.attach(call.session)
    answers: list[str] = []
    agent = SupermemoryAgent(memory, instructions="Be brief.", chat_ctx=chat_ctx)
    async with speaking(call, agent, recording=recording):
        await call.says(ASKS_FOR_THE_MENU)
        await call.interrupts(INTERRUPTS, after=1.0)
        answers.append(await call.hears_reply())
        await call.says(ASKS_WHAT_WAS_CUT_OFF)
        answers.append(await call.hears_reply())
    await memory.aclose()
    return call, answers


def _reply(chat_ctx: llm.ChatContext, tools: list[llm.Tool]) -> Reply:
    """The stand-in of the demo, which knows only what it is shown. The menu is long, to be interrupted."""
    asked = [item.text_content or "" for item in chat_ctx.items if isinstance(item, llm.ChatMessage)]
    return MENU if asked and "menu" in asked[-1].casefold() else standin.reply(chat_ctx, tools)


def _memory(wire: FaultyTransport, session_id: str) -> SupermemoryLiveKit:
    """Without the mirror: the service is searched, for the words that are there before the caller has ended too."""
    client = AsyncSupermemory(
        api_key="unused", base_url="http://memory.test", http_client=httpx.AsyncClient(transport=wire)
    )
    params = InputParams(mirror=False, recall_timeout=10.0)
    return SupermemoryLiveKit(client=client, container_tag=TAG, session_id=session_id, params=params)


async def _document(engine: Engine, session_id: str) -> str:
    ask = ListDocuments.model_validate({"containerTags": [TAG], "limit": 10})
    found, _ = await engine.read(lambda operations: operations.documents.page(ask))
    return {document.custom_id: document.content for document in found}[f"lk-{session_id}"]
