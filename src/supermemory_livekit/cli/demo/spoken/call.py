"""One call with real audio through a real `AgentSession`: the caller is synthesised, and so is the agent.

Between the two lie voice detection, recognition and the turn taking of LiveKit, in real time, as in a room.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livekit.agents import Agent, AgentSession, CloseReason, inference, llm
from livekit.agents.voice.transcription import TranscriptSynchronizer

from .line import Earpiece, Microphone, Recording
from .parts import PartsMissing, missing_parts, model_folder, voice_file
from .recogniser import WhisperSTT
from .voice import Piper, PiperTTS, Speech

__all__ = ["Heard", "SpokenCall", "Studio", "speaking", "studio"]

SILENCE_SECONDS = 0.5
"""Silence after which an utterance is over. The caller pauses less between sentences."""

_LAST_WORDS_SECONDS = 8.0
"""How long a closing session waits for the words of a caller who hung up. LiveKit's own 2 s are for a recogniser that
is faster than one on a busy processor."""


@dataclass(frozen=True)
class Studio:
    """What every call of a process uses; loading it takes seconds."""

    piper: Piper
    recogniser: WhisperSTT
    detection: inference.VAD


@asynccontextmanager
async def studio() -> AsyncGenerator[Studio]:
    """Load the parts. `PartsMissing` when one is not installed."""
    if missing := missing_parts():
        raise PartsMissing(missing)
    detection = inference.VAD(min_silence_duration=SILENCE_SECONDS)
    recogniser = await asyncio.to_thread(WhisperSTT, model_folder(), detection=detection)
    try:
        async with Piper(voice_file()) as piper:
            yield Studio(piper, recogniser, detection)
    finally:
        await recogniser.aclose()


@dataclass
class Heard:
    """What the session made of the caller's voice, and the caller of the agent's."""

    interim: list[str] = field(default_factory=lambda: list[str]())
    """Transcripts of what was not yet said to its end."""
    final: list[str] = field(default_factory=lambda: list[str]())
    first_audio: list[float] = field(default_factory=lambda: list[float]())
    """Seconds from the caller's last sound to the agent's first one, for each turn that was answered."""


class SpokenCall:
    """A call that is going on. Waits are bounded by `timeout` seconds, and raise `TimeoutError`."""

    def __init__(self, parts: Studio, model: llm.LLM[Any], *, timeout: float = 60.0, **options: Any) -> None:
        """`options` go to `AgentSession`."""
        self._piper = parts.piper
        self._timeout = timeout
        self.recording = Recording(parts.piper.sample_rate)
        self.microphone = Microphone(self.recording)
        self.earpiece = Earpiece(self.recording)
        self.heard = Heard()
        self.messages: list[llm.ChatMessage] = []
        """What the session has kept of the conversation, in order."""
        self.left = False
        """Whether the caller has hung up."""
        self._closed = False
        self._spoke_after = 0
        """How many messages there were before the caller's newest words."""
        self._waits_since: float | None = None
        """When the caller fell silent, until the agent answers."""
        self._news = asyncio.Event()
        self.session: AgentSession[None] = AgentSession(
            vad=parts.detection,
            stt=parts.recogniser,
            llm=model,
            tts=PiperTTS(parts.piper),
            turn_handling={
                "turn_detection": "vad",
                "endpointing": {"mode": "fixed", "min_delay": SILENCE_SECONDS, "max_delay": SILENCE_SECONDS},
                "interruption": {"mode": "vad", "min_duration": 0.4, "resume_false_interruption": False},
            },
            # interruptions count from the first word on
            aec_warmup_duration=None,
            user_away_timeout=None,
            session_close_transcript_timeout=_LAST_WORDS_SECONDS,
            max_tool_steps=4,
            **options,
        )
        # What RoomIO does too: only so knows the session how much of a reply was heard when it was cut off.
        subtitles = TranscriptSynchronizer(next_in_chain_audio=self.earpiece, next_in_chain_text=None)
        self._subtitles = subtitles
        self.session.input.audio = self.microphone
        self.session.output.audio = subtitles.audio_output
        self.session.output.transcription = subtitles.text_output
        self.earpiece.on("playback_started", self._on_sound)
        self.session.on("user_input_transcribed", self._on_words)
        self.session.on("conversation_item_added", self._on_item)
        self.session.on("close", self._on_close)

    async def says(self, words: str) -> None:
        """Say this to the end."""
        await self._speak(await self._piper.say(words))

    async def interrupts(self, words: str, *, after: float) -> None:
        """Say this into the agent's next words, `after` seconds after their first sound."""
        speech = await self._piper.say(words)
        await self.until(lambda: self.earpiece.sounds)
        await asyncio.sleep(after)
        await self._speak(speech)

    async def hangs_up_within(self, words: str, *, share: float = 0.6) -> None:
        """Say the beginning of this, `share` of it, and leave in mid-word. Returns when the session is closed."""
        speech = await self._piper.say(words)
        spoken = 2 * round(len(speech.samples) / 2 * share)
        await self._speak(Speech(speech.samples[:spoken], speech.sample_rate))
        self.microphone.cut()
        self.left = True
        # what RoomIO calls when the linked participant disconnects; there is no public way without a room
        self.session._close_soon(reason=CloseReason.PARTICIPANT_DISCONNECTED)  # pyright: ignore[reportPrivateUsage]
        await self.until(lambda: self._closed)

    async def hears_reply(self) -> str:
        """Wait until the agent has answered the caller's newest words, or its answer was cut off. Returns it."""
        await self.until(lambda: self._answer() is not None)
        return self._answer() or ""

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something of the call holds that its events bring about."""

        async def wait() -> None:
            while not holds():
                self._news.clear()
                await self._news.wait()

        await asyncio.wait_for(wait(), self._timeout)

    async def aclose(self) -> None:
        """End the call, however it stands."""
        self.microphone.cut()
        await self.session.aclose()
        await self._subtitles.aclose()

    async def _speak(self, speech: Speech) -> None:
        self._spoke_after = len(self.messages)
        await asyncio.wait_for(self.microphone.speak(speech), self._timeout + speech.seconds)
        self._waits_since = self.microphone.fell_silent

    def _answer(self) -> str | None:
        """The agent's newest words, if they are an answer to the caller's newest ones."""
        since = self.messages[self._spoke_after :]
        if since and since[-1].role == "assistant" and any(message.role == "user" for message in since):
            return since[-1].text_content or ""
        return None

    def _on_sound(self, _: object) -> None:
        if self._waits_since is not None:
            self.heard.first_audio.append(time.perf_counter() - self._waits_since)
            self._waits_since = None
        self._news.set()

    def _on_words(self, event: Any) -> None:
        (self.heard.final if event.is_final else self.heard.interim).append(event.transcript)
        self._news.set()

    def _on_item(self, event: Any) -> None:
        if isinstance(event.item, llm.ChatMessage):
            self.messages.append(event.item)
        self._news.set()

    def _on_close(self, _: object) -> None:
        self._closed = True
        self._news.set()


@asynccontextmanager
async def speaking(
    call: SpokenCall, agent: Agent, *, recording: Path | None = None
) -> AsyncGenerator[SpokenCall]:
    """`agent` answers `call`, which is over at the end; its sound is written to `recording`, a WAV."""
    try:
        await call.session.start(agent)  # pyright: ignore[reportUnknownMemberType]
        yield call
    finally:
        await call.aclose()
        if recording is not None:
            call.recording.write(recording)
