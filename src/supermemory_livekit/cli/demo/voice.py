"""`demo --voice`: the caller rings twice and speaks. Real audio, no cloud; the calls are kept as WAVs."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from livekit.agents import ChatContext, llm

from supermemory_livekit.agent import SupermemoryAgent
from supermemory_livekit.cli.text import counted

from .call import GREET, INSTRUCTIONS, stored_text
from .observe import ObservedMemory, memory_lines
from .output import Output
from .spoken.call import SpokenCall, Studio, speaking, studio
from .spoken.parts import how_to_install, missing_parts
from .standin import StandInLLM

__all__ = ["VoiceScript", "run_voice"]

_NAMES = ("Laura", "Daniel", "Emma", "Thomas", "Robert")
_CITIES = ("Boston", "London", "Paris", "Chicago", "Berlin")
_FOODS = ("peanuts", "tomatoes", "almonds", "mushrooms", "mustard")
_INSTRUMENTS = ("violin", "piano", "guitar", "trumpet", "saxophone")

_INTERRUPTS_AFTER = 1.0
"""Seconds into the greeting after which the caller speaks: the name is out, the rest is not."""


@dataclass(frozen=True)
class VoiceScript:
    """One scripted caller, in words that a small recogniser knows."""

    seed: int
    name: str
    city: str
    food: str
    instrument: str

    @classmethod
    def draw(cls, seed: int) -> VoiceScript:
        """The caller with this number: the same number gives the same caller."""
        chance = random.Random(seed)  # noqa: S311 - no secret, a caller to play
        return cls(
            seed,
            chance.choice(_NAMES),
            chance.choice(_CITIES),
            chance.choice(_FOODS),
            chance.choice(_INSTRUMENTS),
        )

    def first_call(self) -> tuple[str, ...]:
        """What the caller says to the end in the first call."""
        return (
            f"Hello, my name is {self.name}. I live in {self.city}.",
            f"I am allergic to {self.food}.",
        )

    def unfinished(self) -> str:
        """What the caller says when the line breaks, half-way through."""
        return (
            f"My sister plays the {self.instrument}, and she told me that she would like to come on Friday."
        )

    def second_call(self) -> tuple[tuple[str, str], ...]:
        """Questions of the second call, each with the word that its answer has to hold."""
        return (
            ("Sorry, where do I live?", self.city),
            ("What am I allergic to?", self.food),
            ("Which instrument does my sister play?", self.instrument),
        )


def run_voice(*, seed: int | None = None, path: Path | None = None, verbose: bool = False) -> int:
    """Play the spoken demo and print it.

    Returns the exit code: 0 when the caller was recognised on the second call, 1 when not, 2 when parts are missing.
    """
    output = Output(verbose=verbose)
    if missing := missing_parts():
        for line in how_to_install(missing).splitlines():
            output.line(line)
        return 2
    script = VoiceScript.draw(random.randrange(1_000_000) if seed is None else seed)  # noqa: S311 - no secret
    folder = Path(tempfile.mkdtemp(prefix="supermemory-voice-"))
    recognised = False
    code = 1
    try:
        recognised = asyncio.run(_play(script, folder, path or folder / "memory.db", output))
        code = 0 if recognised else 1
    except KeyboardInterrupt:
        code = 130
    except asyncio.TimeoutError:
        output.line("The demo stopped: what was to be heard did not come for a minute.", "red")
    except Exception as error:  # noqa: BLE001 - the last line says how it ended, whatever went wrong
        output.line(f"The demo stopped: {type(error).__name__}: {error}", "red")
    output.line()
    output.line(f"The calls, the caller on the left and the agent on the right: {folder}")
    output.line(f"demo: caller recognised on the second call: {'yes' if recognised else 'no'}", "bold")
    return code


async def _play(script: VoiceScript, folder: Path, database: Path, output: Output) -> bool:
    output.line(
        f"A caller rings twice and speaks. Seed {script.seed}: the same number plays the same caller."
    )
    output.line(
        "Voice detection, recognition and synthesis are real and run here. The language model is a stand-in."
    )
    async with studio() as parts:
        first = await _first_call(script, parts, folder, database, output)
        second, answers = await _second_call(script, parts, folder, database, output)
    waits = [*first.heard.first_audio, *second.heard.first_audio]
    if waits:
        output.note(
            f"from the caller's last sound to the agent's first: {statistics.median(waits):.1f} s, the median"
        )
    output.heading("What had to hold")
    held = list(_verdict(script, second, answers))
    for good, what in held:
        output.line(f"  {'yes' if good else 'NO ':<4} {what}", "" if good else "red")
    return all(good for good, _ in held)


async def _first_call(
    script: VoiceScript, parts: Studio, folder: Path, database: Path, output: Output
) -> SpokenCall:
    output.heading("First call")
    memory = _memory(script, database, call=1)
    call = SpokenCall(parts, StandInLLM())
    memory.attach(call.session)
    try:
        agent = SupermemoryAgent(memory, instructions=INSTRUCTIONS)
        async with speaking(call, agent, recording=folder / "first-call.wav"):
            for words in script.first_call():
                await call.says(words)
                await call.hears_reply()
            await call.hangs_up_within(script.unfinished(), share=0.5)
    finally:
        await memory.aclose()
    _show(call, output)
    output.note("the caller hung up in mid-sentence")
    text = await stored_text(f"local:{database}", memory)
    turns = text.splitlines() if text else []
    output.note(f"stored as one document: {counted(len(turns), 'turn')}")
    output.lines(turns)
    return call


async def _second_call(
    script: VoiceScript, parts: Studio, folder: Path, database: Path, output: Output
) -> tuple[SpokenCall, list[str]]:
    output.heading("Second call: the agent greets, and the caller interrupts")
    memory = _memory(script, database, call=2)
    chat_ctx = ChatContext()
    if await memory.preload(chat_ctx):
        output.note(f"preloaded before the first word: {counted(len(memory_lines(chat_ctx)), 'line')}")
    call = SpokenCall(parts, StandInLLM())
    memory.attach(call.session)
    answers: list[str] = []
    try:
        agent = SupermemoryAgent(memory, instructions=INSTRUCTIONS, chat_ctx=chat_ctx)
        async with speaking(call, agent, recording=folder / "second-call.wav"):
            (interruption, _), *questions = script.second_call()
            call.session.generate_reply(instructions=GREET)
            await call.interrupts(interruption, after=_INTERRUPTS_AFTER)
            answers.append(await call.hears_reply())
            for words, _ in questions:
                await call.says(words)
                answers.append(await call.hears_reply())
    finally:
        await memory.aclose()
    _show(call, output)
    return call, answers


def _memory(script: VoiceScript, database: Path, *, call: int) -> ObservedMemory:
    return ObservedMemory(
        base_url=f"local:{database}",
        container_tag=f"demo-voice-{script.seed}",
        session_id=f"demo-voice-{script.seed}-{call}",
    )


def _show(call: SpokenCall, output: Output) -> None:
    """What the session made of the call, as it was kept."""
    for message in call.messages:
        words = message.text_content or ""
        cut = " … (interrupted)" if message.interrupted else ""
        output.spoke("Caller" if message.role == "user" else "Agent", words + cut)
    output.note(
        f"words before the caller had ended: {counted(len(call.heard.interim), 'interim transcript')}"
    )


def _verdict(script: VoiceScript, second: SpokenCall, answers: list[str]) -> Iterator[tuple[bool, str]]:
    """What had to hold, and whether it did."""
    greeting = next((message for message in second.messages if message.role == "assistant"), None)
    yield script.name in _words(greeting), f"greeted by name: {script.name}"
    yield greeting is not None and greeting.interrupted, "the caller's voice cut the greeting off"
    for (question, expected), answer in zip(script.second_call(), answers, strict=True):
        yield expected.casefold() in answer.casefold(), f'"{question}" {expected}'


def _words(message: llm.ChatMessage | None) -> str:
    return (message.text_content or "") if message is not None else ""
