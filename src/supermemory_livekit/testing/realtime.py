"""A realtime model of LiveKit that keeps what reached it and answers with what a test computes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, TypeAlias

from livekit import rtc
from livekit.agents import llm
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from livekit.agents.utils import is_given, shortuuid

from .llm import SeenItem, snapshot
from .speech import silence

__all__ = ["RealtimeReply", "RealtimeRequest", "ScriptedRealtimeModel", "ScriptedRealtimeSession"]

RealtimeReply: TypeAlias = "Callable[[llm.ChatContext], str] | str"
"""What a scripted realtime model says: fixed words, or a function of the context it has at that moment."""


@dataclasses.dataclass(frozen=True)
class RealtimeRequest:
    """What a realtime model knew when it was asked for a reply."""

    items: tuple[SeenItem, ...]
    instructions: str | None
    """Standing instructions of the session."""
    extra_instructions: str | None
    """Instructions for this reply alone."""
    at: float
    """Loop time in seconds."""

    @property
    def text(self) -> str:
        """Everything the model could read, one item a line."""
        return "\n".join([self.instructions or "", *(item.text for item in self.items)])


class ScriptedRealtimeModel(llm.RealtimeModel):
    """A realtime model with any capabilities.

    `turn_detection=False` leaves turn taking to the client, as in LiveKit. A context or instructions that are
    not mutable are taken once, at the start of the session; a later update raises `RealtimeError`, as a
    provider would.
    """

    def __init__(
        self,
        reply: RealtimeReply = "ok",
        *,
        turn_detection: bool = False,
        user_transcription: bool = False,
        mutable_chat_context: bool = True,
        mutable_instructions: bool = True,
        audio_output: bool = True,
        word_seconds: float = 0.3,
    ) -> None:
        wanted = {
            "message_truncation": True,
            "turn_detection": turn_detection,
            "user_transcription": user_transcription,
            "auto_tool_reply_generation": False,
            "audio_output": audio_output,
            "manual_function_calls": True,
            "mutable_chat_context": mutable_chat_context,
            "mutable_instructions": mutable_instructions,
            "mutable_tools": True,
        }
        # capabilities grew over the versions of LiveKit
        known = {field.name for field in dataclasses.fields(llm.RealtimeCapabilities)}
        capabilities: dict[str, Any] = {name: value for name, value in wanted.items() if name in known}
        super().__init__(capabilities=llm.RealtimeCapabilities(**capabilities))
        self.reply = reply
        self.word_seconds = word_seconds
        self.sessions: list[ScriptedRealtimeSession] = []
        """Every session that LiveKit opened, oldest first."""

    @property
    def model(self) -> str:
        return "scripted-realtime"

    @property
    def current(self) -> ScriptedRealtimeSession:
        """The newest session."""
        return self.sessions[-1]

    def session(self, *, turn_detection_disabled: bool = False) -> ScriptedRealtimeSession:
        session = ScriptedRealtimeSession(self)
        self.sessions.append(session)
        return session

    async def aclose(self) -> None:
        """Nothing to close."""


class ScriptedRealtimeSession(llm.RealtimeSession[Any]):
    """One session of a `ScriptedRealtimeModel`."""

    def __init__(self, model: ScriptedRealtimeModel) -> None:
        super().__init__(model)  # pyright: ignore[reportUnknownMemberType]
        self._model = model
        self._chat_ctx = llm.ChatContext.empty()
        self._tools = llm.ToolContext([])
        self._fixed: set[str] = set()
        self.instructions: str | None = None
        """Instructions in force."""
        self.requests: list[RealtimeRequest] = []
        """One entry for each reply it was asked for or gave by itself."""
        self.committed = 0
        """How often the client ended the caller's turn."""
        self.interrupted = 0
        self.closed = False

    @property
    def chat_ctx(self) -> llm.ChatContext:
        return self._chat_ctx.copy()

    @property
    def tools(self) -> llm.ToolContext:
        return self._tools.copy()

    async def update_instructions(self, instructions: str) -> None:
        self._check("instructions", self._model.capabilities.mutable_instructions)
        self.instructions = instructions

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        self._check("chat context", self._model.capabilities.mutable_chat_context)
        self._chat_ctx = chat_ctx.copy()

    async def update_tools(self, tools: list[llm.Tool]) -> None:
        self._tools = llm.ToolContext(tools)

    def update_options(self, *, tool_choice: NotGivenOr[llm.ToolChoice | None] = NOT_GIVEN) -> None:
        """Nothing here depends on it."""

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        """The model hears only what `hears` tells it."""

    def push_video(self, frame: rtc.VideoFrame) -> None:
        """The model is blind."""

    def generate_reply(
        self,
        *,
        instructions: NotGivenOr[str] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        tools: NotGivenOr[list[llm.Tool]] = NOT_GIVEN,
    ) -> asyncio.Future[llm.GenerationCreatedEvent]:
        created: asyncio.Future[llm.GenerationCreatedEvent] = asyncio.get_running_loop().create_future()
        created.set_result(
            self._generate(user_initiated=True, extra=instructions if is_given(instructions) else None)
        )
        return created

    def commit_audio(self) -> None:
        self.committed += 1

    def clear_audio(self) -> None:
        """There is none."""

    def interrupt(self) -> None:
        self.interrupted += 1

    def truncate(
        self,
        *,
        message_id: str,
        modalities: list[Literal["text", "audio"]],
        audio_end_ms: int,
        audio_transcript: NotGivenOr[str] = NOT_GIVEN,
    ) -> None:
        """The service's own copy of the conversation is not modelled."""

    async def aclose(self) -> None:
        self.closed = True

    # What the service does by itself

    def hears(self, transcript: str) -> None:
        """Report the service's own transcript of what the caller said."""
        item_id = shortuuid("item_")
        event = llm.InputTranscriptionCompleted(item_id=item_id, transcript=transcript, is_final=True)
        self.emit("input_audio_transcription_completed", event)

    def takes_turn(self, transcript: str | None = None, *, transcript_first: bool = False) -> None:
        """The caller spoke, the service noticed the end of the turn, and replies.

        For models with turn detection. The transcript comes after the reply was begun, as services do it, or
        before.
        """
        self.emit("input_speech_started", llm.InputSpeechStartedEvent())
        stopped = llm.InputSpeechStoppedEvent(user_transcription_enabled=transcript is not None)
        self.emit("input_speech_stopped", stopped)
        if transcript is not None and transcript_first:
            self.hears(transcript)
        self.emit("generation_created", self._generate(user_initiated=False, extra=None))
        if transcript is not None and not transcript_first:
            self.hears(transcript)

    def _generate(self, *, user_initiated: bool, extra: str | None) -> llm.GenerationCreatedEvent:
        loop = asyncio.get_running_loop()
        request = RealtimeRequest(snapshot(self._chat_ctx.items), self.instructions, extra, loop.time())
        self.requests.append(request)
        reply = self._model.reply
        text = reply if isinstance(reply, str) else reply(self._chat_ctx.copy())
        modalities: asyncio.Future[list[Literal["text", "audio"]]] = loop.create_future()
        spoken = self._model.capabilities.audio_output
        modalities.set_result(["audio", "text"] if spoken else ["text"])
        message = llm.MessageGeneration(
            message_id=shortuuid("item_"),
            text_stream=_each(text),
            audio_stream=_each(
                *(silence(self._model.word_seconds) for _ in text.split() if spoken),
            ),
            modalities=modalities,
        )
        return llm.GenerationCreatedEvent(
            message_stream=_each(message), function_stream=_each(), user_initiated=user_initiated
        )

    def _check(self, what: str, mutable: bool) -> None:
        if not mutable and what in self._fixed:
            raise llm.RealtimeError(f"the {what} of this model cannot be changed during a session")
        self._fixed.add(what)


async def _each(*values: Any) -> AsyncIterator[Any]:
    for value in values:
        yield value
