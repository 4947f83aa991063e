"""A caller who speaks with timing through a real `AgentSession`."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, TypeVar

from livekit.agents import AgentSession, CloseReason, llm, vad
from livekit.agents.types import NOT_GIVEN

from .speech import Loudspeaker, Microphone, ScriptedSTT, ScriptedTTS, ScriptedVAD, Subtitles
from .text_caller import Answering, answered_by, conversation_of, verify_model

__all__ = ["ScriptedCaller"]

T = TypeVar("T")


class ScriptedCaller:
    """Makes a call: its voice, the recognition of it, the agent's voice and both ends of the line.

    ```python
    async with ScriptedCaller(agent, llm=ScriptedLLM("hello")) as caller:
        await caller.says("what is", "my name")   # two final transcripts, one turn
        await caller.hears_reply()
        await caller.hangs_up()
    ```

    Turns end by voice detection alone (mode `"vad"`). A word takes `word_seconds` to say. The final
    transcript of a segment comes `recognition` seconds after its last word, voice detection notices the
    silence after `quiet` seconds, and the turn ends `endpointing` seconds after the last word. All times are
    on the loop's clock, so a virtual clock makes a call instant.
    """

    def __init__(
        self,
        agent: Answering,
        *,
        llm: llm.LLM[Any] | llm.RealtimeModel,
        word_seconds: float = 0.3,
        recognition: float = 0.15,
        quiet: float = 0.3,
        endpointing: float = 0.6,
        preemptive: bool = True,
        transcribes: bool = True,
        **session_options: Any,
    ) -> None:
        """`agent` is who answers: an agent, or a function that starts the session (see `Answering`).
        `transcribes=False` leaves speech recognition out, for realtime models that do it
        themselves. Any other keyword goes to `AgentSession`.
        """
        self.agent = agent
        self.word_seconds = word_seconds
        self.recognition = recognition
        self.quiet = quiet
        self.stt = ScriptedSTT()
        self.vad = ScriptedVAD()
        self.tts = ScriptedTTS(word_seconds=word_seconds)
        self.subtitles = Subtitles()
        self.microphone = Microphone()
        self.loudspeaker = Loudspeaker(self.subtitles, word_seconds=lambda: self.tts.word_seconds)
        options: dict[str, Any] = {
            "turn_handling": {
                "turn_detection": "vad",
                "endpointing": {"mode": "fixed", "min_delay": endpointing, "max_delay": endpointing},
                "interruption": {"mode": "vad", "min_duration": 0.5},
                "preemptive_generation": {"enabled": preemptive},
            },
            # interruptions count from the first word on
            "aec_warmup_duration": None,
            "user_away_timeout": None,
            **session_options,
        }
        self.session: AgentSession[None] = AgentSession(
            stt=self.stt if transcribes else NOT_GIVEN, vad=self.vad, tts=self.tts, llm=llm, **options
        )
        self.waited: float | None = None
        """Seconds of the loop's clock from the last word of the caller's newest turn to the first sound of the
        reply; None before it."""
        self._closed = asyncio.Event()
        self._spoken = 0.0
        self._fell_silent: float | None = None
        """Loop time of the caller's last word that was not answered yet."""
        self.session.on("close", self._on_close)  # pyright: ignore[reportUnknownMemberType]
        self.session.on("agent_state_changed", self._on_agent_state)  # pyright: ignore[reportUnknownMemberType]

    async def __aenter__(self) -> ScriptedCaller:
        self.session.input.audio = self.microphone
        self.session.output.audio = self.loudspeaker
        self.session.output.transcription = self.subtitles
        try:
            await answered_by(self.agent, self.session)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()
        if error is None:
            verify_model(self.session)

    async def says(self, *segments: str, pause: float = 0.4) -> None:
        """Speak, and wait until the turn is over for the caller: silence noticed, last words recognised.

        Each segment ends in a final transcript of its own; between segments the caller is silent for `pause`
        seconds, which is one turn as long as it is shorter than the endpointing delay.
        """
        for index, segment in enumerate(segments):
            if index:
                await asyncio.sleep(max(0.0, pause - max(self.quiet, self.recognition)))
            await self.begins(segment)
            await self.pauses(segment)

    async def begins(self, text: str) -> None:
        """Speak without coming to an end: voice is detected and words are recognised for the time being."""
        self._spoken = 0.0
        self.vad.detects(vad.VADEventType.START_OF_SPEECH, speech=self._spoken, speaking=True)
        words = text.split()
        for count in range(1, len(words) + 1):
            await self._voice(self.word_seconds)
            self.stt.hears(" ".join(words[:count]), final=False)

    async def pauses(self, text: str) -> None:
        """End what `begins` began: silence is noticed, and `text` is the final transcript."""
        loop = asyncio.get_running_loop()
        since = self._fell_silent = loop.time()
        self.waited = None

        def ends() -> None:
            quiet = loop.time() - since
            self.vad.detects(vad.VADEventType.END_OF_SPEECH, speech=self._spoken, quiet=quiet)

        steps = [(self.quiet, ends), (self.recognition, lambda: self.stt.hears(text, final=True))]
        for due, step in sorted(steps, key=lambda step: step[0]):
            await asyncio.sleep(max(0.0, since + due - loop.time()))
            step()

    async def hears_reply(self, *, timeout: float = 60) -> str:
        """Wait until the agent has answered the newest turn and listens again. Returns its last words."""
        await self._until("listening", after=("thinking", "speaking"), timeout=timeout)
        return self._last_words()

    async def hears_beginning(self, *, timeout: float = 60) -> None:
        """Wait until the agent speaks."""
        await self._until("speaking", after=(), timeout=timeout)

    async def hangs_up(self, *, timeout: float = 60) -> None:
        """Leave the call, in the middle of a word if need be, and wait until the session is closed."""
        # what RoomIO calls when the linked participant disconnects; there is no public way without a room
        self.session._close_soon(reason=CloseReason.PARTICIPANT_DISCONNECTED)  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait_for(self._closed.wait(), timeout)

    def conversation(self) -> list[tuple[str, str]]:
        """Role and words of every message of the session so far."""
        return conversation_of(self.session)

    async def _close(self) -> None:
        self.microphone.close()
        await self.session.aclose()

    async def _voice(self, seconds: float) -> None:
        """Speak for `seconds`; voice detection reports in steps, as interruptions count by them."""
        steps = max(1, round(seconds / 0.1))
        for _ in range(steps):
            await asyncio.sleep(seconds / steps)
            self._spoken += seconds / steps
            self.vad.detects(vad.VADEventType.INFERENCE_DONE, speech=self._spoken, speaking=True)

    async def _until(self, state: str, *, after: tuple[str, ...], timeout: float) -> None:
        """Wait for the agent's state, having seen one of `after` before it if any are given."""
        reached = asyncio.Event()
        seen = not after or self.session.agent_state in after

        def changed(event: Any) -> None:
            nonlocal seen
            if seen and event.new_state == state:
                reached.set()
            seen = seen or event.new_state in after

        self.session.on("agent_state_changed", changed)  # pyright: ignore[reportUnknownMemberType]
        try:
            if not (seen and self.session.agent_state == state):
                await asyncio.wait_for(reached.wait(), timeout)
        finally:
            self.session.off("agent_state_changed", changed)  # pyright: ignore[reportUnknownMemberType]

    def _last_words(self) -> str:
        return next((text for role, text in reversed(self.conversation()) if role == "assistant"), "")

    def _on_agent_state(self, event: Any) -> None:
        if event.new_state == "speaking" and self._fell_silent is not None:
            self.waited = asyncio.get_running_loop().time() - self._fell_silent
            self._fell_silent = None

    def _on_close(self, _: Any) -> None:
        self._closed.set()
