"""One call of the reply benchmark, in real time: a real session, a scripted line, and one way to remember."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from livekit import rtc
from livekit.agents import Agent, llm

from reply_network import Delays, Network, Service
from reply_people import Person, Question
from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.errors import ServiceError
from supermemory_livekit.recall.render import insert, render_block, strip
from supermemory_livekit.sdk.store import SDKStore
from supermemory_livekit.store import Hit, MemoryStore, Profile
from supermemory_livekit.testing import ScriptedCaller, ScriptedLLM

__all__ = ["STRATEGIES", "Call", "Line", "Turn", "make_call"]

INSTRUCTIONS = "You are a helpful voice assistant. Answer briefly."
GREETING = "Hello, how can I help?"
PARAMS = InputParams(capture="never")
"""Not stored: all strategies talk to the same callers, and a call must not change what the next one finds."""

STRATEGIES = ("none", "waiting", "hook", "early", "ours", "ours-hangs", "ours-hung")
"""
none        no memory
waiting     the profile is loaded before the call, a search is asked and waited for in `llm_node`, 2 s at most
hook        the same in `on_user_turn_completed`, which edits the turn
early       this package with `InputParams(mirror=False)`
ours        this package as it is
ours-hangs  the same, and the service stops answering when `preload` returns
ours-hung   the same, and the service never answers
"""


@dataclass(frozen=True)
class Line:
    """Delays of everything that is not memory, in seconds."""

    word: float = 0.3
    """To say one word: 200 words a minute."""
    final: float = 0.25
    """From the last word to the final transcript."""
    quiet: float = 0.3
    """From the last word until voice detection notices."""
    endpointing: float = 0.5
    """From the last word to the end of the turn."""
    first_token: float = 0.4
    """Of the model."""
    first_audio: float = 0.15
    """Of the voice."""


@dataclass
class Turn:
    """What was measured of one turn."""

    caller: str
    question: int
    late: bool
    segments: int
    reply: float = float("inf")
    """Seconds from the end of the caller's speech to the first audio of the reply."""
    found: bool = False
    """The reply's context held the fact that answers the question."""
    requests: int = 0
    """Requests to the model."""
    searches: int = 0
    """Searches of the service."""


@dataclass
class Call:
    """What was measured of one call."""

    strategy: str
    memories: int
    turns: list[Turn] = field(default_factory=lambda: list[Turn]())
    silent: int = 0
    """Turns that nothing answered within 30 s. They are in no other figure."""
    ready: float | None = None
    """Seconds from the beginning of `preload` until the mirror could be searched."""
    complete: float | None = None
    """Until it held everything, with vectors."""
    preload: float | None = None
    """Seconds that `preload` took."""


class _Voice:
    """Adds the delay of a voice to an agent."""

    first_audio = 0.15

    async def tts_node(self, text: AsyncIterable[str], model_settings: Any) -> AsyncIterable[rtc.AudioFrame]:
        spoken = Agent.default.tts_node(self, text, model_settings)  # type: ignore[arg-type]
        first = True
        async for frame in spoken:
            if first:
                first = False
                await asyncio.sleep(self.first_audio)
            yield frame


class PlainAgent(_Voice, Agent):
    pass


class OurAgent(_Voice, SupermemoryAgent):
    pass


class WaitingAgent(_Voice, Agent):
    """Asks in `llm_node`, for each attempt at a reply."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(instructions=INSTRUCTIONS)
        self._waiting = waiting

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: Any
    ) -> AsyncIterable[Any]:
        question = next((item for item in reversed(chat_ctx.items) if _is_user(item)), None)
        if isinstance(question, llm.ChatMessage):
            await self._waiting.show(question.text_content or "", chat_ctx)
        async for chunk in Agent.default.llm_node(self, chat_ctx, tools, model_settings):
            yield chunk


class HookAgent(_Voice, Agent):
    """Asks in `on_user_turn_completed` and edits the turn."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(instructions=INSTRUCTIONS)
        self._waiting = waiting

    async def on_user_turn_completed(self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        await self._waiting.show(new_message.text_content or "", turn_ctx)


def _is_user(item: llm.ChatItem) -> bool:
    return isinstance(item, llm.ChatMessage) and item.role == "user"


@dataclass
class Waiting:
    """Recall that waits for the service: the profile once, a search for each question."""

    store: MemoryStore
    tag: str
    profile: Profile | None = None

    async def load(self) -> None:
        with contextlib.suppress(ServiceError):
            self.profile = await self.store.profile(self.tag, timeout=PARAMS.recall_timeout)

    async def show(self, question: str, context: llm.ChatContext) -> None:
        hits: list[Hit] = []
        with contextlib.suppress(ServiceError):
            hits = await self.store.search(
                self.tag,
                question,
                limit=PARAMS.search_limit,
                threshold=PARAMS.search_threshold,
                mode="hybrid",
                timeout=PARAMS.recall_timeout,
            )
        strip(context)
        block = render_block(
            self.profile,
            hits,
            mode=PARAMS.mode,
            limit=PARAMS.search_limit,
            now=datetime.now(timezone.utc),
            query=question,
        )
        if block is not None:
            insert(context, block)


async def make_call(
    strategy: str, person: Person, rounds: int, service: Service, delays: Delays, line: Line, seed: str
) -> Call:
    """The caller rings, hears the greeting and asks all questions, so many times."""
    # The same delays for every strategy, request by request.
    network = Network(delays, f"{seed}:{person.tag}")
    network.hangs = strategy == "ours-hung"
    client = service.client(network)
    call = Call(strategy, len(person.memories))
    memory: SupermemoryLiveKit | None = None
    watch: asyncio.Task[None] | None = None
    agent: Agent
    if strategy == "none":
        agent = PlainAgent(instructions=INSTRUCTIONS)
    elif strategy in ("waiting", "hook"):
        waiting = Waiting(SDKStore(client), person.tag)
        await waiting.load()
        agent = WaitingAgent(waiting) if strategy == "waiting" else HookAgent(waiting)
    else:
        params = PARAMS.model_copy(update={"mirror": strategy != "early"})
        memory = SupermemoryLiveKit(client=client, container_tag=person.tag, params=params)
        context = llm.ChatContext.empty()
        began = time.perf_counter()
        if strategy == "ours":
            watch = asyncio.ensure_future(_watch(memory, call, began))
        await memory.preload(context)
        call.preload = time.perf_counter() - began
        network.hangs = network.hangs or strategy == "ours-hangs"
        agent = OurAgent(memory, instructions=INSTRUCTIONS, chat_ctx=context)
    model = ScriptedLLM("Sure.", first_token=line.first_token)
    caller = ScriptedCaller(
        agent,
        llm=model,
        word_seconds=line.word,
        recognition=line.final,
        quiet=line.quiet,
        endpointing=line.endpointing,
    )
    if memory is not None:
        memory.attach(caller.session)
    async with caller:
        await caller.session.say(GREETING, allow_interruptions=False)
        await asyncio.sleep(0.4)
        for number, question in list(enumerate(person.questions)) * rounds:
            turn = Turn(person.tag, number, question.late, len(question.segments))
            try:
                await _ask(caller, model, network, question, turn)
            except asyncio.TimeoutError:
                call.silent += 1
            else:
                call.turns.append(turn)
    if memory is not None:
        await memory.aclose()
    if watch is not None:
        watch.cancel()
    await client.close()
    return call


async def _ask(
    caller: ScriptedCaller, model: ScriptedLLM, network: Network, question: Question, turn: Turn
) -> None:
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[float] = loop.create_future()

    def begins(_: object) -> None:
        if not heard.done():
            heard.set_result(loop.time())

    asked, searched = len(model.seen), network.requests["POST /v4/search"]
    *first, last = question.segments
    for segment in first:
        await caller.begins(segment)
        await caller.pauses(segment)
        await asyncio.sleep(0.05)
    await caller.begins(last)
    ended = loop.time()
    # Listened for from here on: an agent that takes the pause for the end and is interrupted has not replied yet.
    caller.loudspeaker.on("playback_started", begins)
    try:
        await caller.pauses(last)
        turn.reply = await asyncio.wait_for(heard, 30) - ended
    finally:
        caller.loudspeaker.off("playback_started", begins)
    await caller._until("listening", after=(), timeout=30)
    shown = [seen for seen in model.seen[asked:] if not seen.cancelled]
    turn.found = bool(shown) and question.fact in shown[-1].text
    turn.requests = len(model.seen) - asked
    turn.searches = network.requests["POST /v4/search"] - searched
    await asyncio.sleep(0.3)  # the caller draws breath


async def _watch(memory: SupermemoryLiveKit, call: Call, began: float) -> None:
    """Look when the mirror is there. Private parts are read: no user of the package needs to know."""
    recall = memory._recall
    while recall._mirror is None or not recall._mirror.ready:  # noqa: ASYNC110 - looked at from outside
        await asyncio.sleep(0.002)
    call.ready = time.perf_counter() - began
    while not (recall._mirror.complete and recall._mirror.semantic):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    call.complete = time.perf_counter() - began
