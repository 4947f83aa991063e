"""Ears and mouth of a scripted call: recognition, voice detection, a voice, both ends of the line.

`ScriptedCaller` moves them. Every word takes the same time to say, so what was heard of an interrupted
reply is exactly known. All times are seconds of the loop's clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from livekit import rtc
from livekit.agents import stt, tts, vad
from livekit.agents.language import LanguageCode
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr
from livekit.agents.utils import AudioBuffer, shortuuid
from livekit.agents.voice import io

__all__ = ["Loudspeaker", "Microphone", "ScriptedSTT", "ScriptedTTS", "ScriptedVAD", "Subtitles", "silence"]

S = TypeVar("S")

SAMPLE_RATE = 8000
"""Samples a second of all audio here. Low, since every sample is silence."""

FRAME_SECONDS = 0.1


def silence(seconds: float) -> rtc.AudioFrame:
    """One mono frame without sound."""
    samples = round(seconds * SAMPLE_RATE)
    return rtc.AudioFrame(
        data=bytes(2 * samples), sample_rate=SAMPLE_RATE, num_channels=1, samples_per_channel=samples
    )


class _Streams(list[S]):
    """The open streams of a model, newest last. LiveKit opens a new one whenever it clears a turn."""

    def newest(self) -> S | None:
        return self[-1] if self else None


class ScriptedSTT(stt.STT[Any]):
    """Speech recognition that hears what it is told, whatever the audio holds."""

    def __init__(self) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=True))
        self._streams: _Streams[_STTStream] = _Streams()

    def hears(self, text: str, *, final: bool) -> None:
        """Report words to the session. Lost when nobody listens, as on a line that is closed."""
        kind = stt.SpeechEventType.FINAL_TRANSCRIPT if final else stt.SpeechEventType.INTERIM_TRANSCRIPT
        data = stt.SpeechData(language=LanguageCode("en"), text=text, confidence=1.0)
        if (stream := self._streams.newest()) is not None:
            stream.send(stt.SpeechEvent(type=kind, alternatives=[data]))

    def stream(
        self,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.RecognizeStream:
        return _STTStream(self, self._streams, conn_options)

    async def _recognize_impl(
        self,
        buffer: AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions,
    ) -> stt.SpeechEvent:
        raise NotImplementedError("scripted speech recognition only streams")


class _STTStream(stt.RecognizeStream):
    def __init__(
        self, model: ScriptedSTT, streams: _Streams[_STTStream], conn_options: APIConnectOptions
    ) -> None:
        super().__init__(stt=model, conn_options=conn_options)  # pyright: ignore[reportUnknownMemberType]
        self._streams = streams

    def send(self, event: stt.SpeechEvent) -> None:
        self._event_ch.send_nowait(event)

    async def _run(self) -> None:
        self._streams.append(self)
        try:
            async for _ in self._input_ch:
                pass
        finally:
            self._streams.remove(self)


class ScriptedVAD(vad.VAD):
    """Voice detection that says "speech" when it is told to."""

    def __init__(self) -> None:
        super().__init__(capabilities=vad.VADCapabilities(update_interval=FRAME_SECONDS))
        self._streams: _Streams[_VADStream] = _Streams()

    def detects(
        self, kind: vad.VADEventType, *, speech: float = 0.0, quiet: float = 0.0, speaking: bool = False
    ) -> None:
        """Report one event: `speech` and `quiet` are the seconds of either so far."""
        event = vad.VADEvent(
            type=kind,
            samples_index=0,
            timestamp=time.time(),
            speech_duration=speech,
            silence_duration=quiet,
            speaking=speaking,
            probability=1.0 if speaking else 0.0,
            raw_accumulated_speech=0.0 if quiet else speech,
            raw_accumulated_silence=quiet,
        )
        if (stream := self._streams.newest()) is not None:
            stream.send(event)

    def stream(self) -> vad.VADStream:
        return _VADStream(self, self._streams)


class _VADStream(vad.VADStream):
    def __init__(self, model: ScriptedVAD, streams: _Streams[_VADStream]) -> None:
        super().__init__(model)
        self._streams = streams

    def send(self, event: vad.VADEvent) -> None:
        self._event_ch.send_nowait(event)

    async def _main_task(self) -> None:
        self._streams.append(self)
        try:
            async for _ in self._input_ch:
                pass
        finally:
            self._streams.remove(self)


class ScriptedTTS(tts.TTS[Any]):
    """A voice that says nothing audible and takes `word_seconds` for every word."""

    def __init__(self, *, word_seconds: float = 0.3) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=True), sample_rate=SAMPLE_RATE, num_channels=1
        )
        self.word_seconds = word_seconds
        self.said: list[str] = []
        """Every text that was to be spoken, heard or not."""

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return self._synthesize_with_stream(text, conn_options=conn_options)

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.SynthesizeStream:
        return _TTSStream(self, conn_options)


class _TTSStream(tts.SynthesizeStream):
    def __init__(self, voice: ScriptedTTS, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, conn_options=conn_options)  # pyright: ignore[reportUnknownMemberType]
        self._voice = voice

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=shortuuid(),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            mime_type="audio/pcm",
            stream=True,
        )
        text, spoken = "", 0
        async for part in self._input_ch:
            if not isinstance(part, str):
                continue
            if not text:
                self._mark_started()
                output_emitter.start_segment(segment_id=shortuuid())
            text += part
            words = len(text.split())
            samples = round((words - spoken) * self._voice.word_seconds * SAMPLE_RATE)
            output_emitter.push(bytes(2 * samples))
            spoken = words
        if text:
            output_emitter.end_segment()
        self._voice.said.append(text)


class Microphone(io.AudioInput):
    """The caller's end of the line: silence in real time until it is closed."""

    def __init__(self) -> None:
        super().__init__(label="scripted microphone")
        self._open = True

    async def __anext__(self) -> rtc.AudioFrame:
        if not self._open:
            raise StopAsyncIteration
        await asyncio.sleep(FRAME_SECONDS)
        return silence(FRAME_SECONDS)

    def close(self) -> None:
        """No sound comes after this."""
        self._open = False


class Subtitles(io.TextOutput):
    """Keeps the text of the reply that is being spoken."""

    def __init__(self) -> None:
        super().__init__(label="scripted subtitles", next_in_chain=None)
        self.current = ""
        self._done = False

    async def capture_text(self, text: str) -> None:
        self.current = text if self._done else self.current + text
        self._done = False

    def flush(self) -> None:
        self._done = True


class Loudspeaker(io.AudioOutput):
    """Plays a reply in real time, and knows how much of it was heard when it is cut off.

    It can pause, like the output to a room: LiveKit pauses a reply when it detects the caller's voice, and
    cuts it off when words come.
    """

    def __init__(self, subtitles: Subtitles, *, word_seconds: Callable[[], float]) -> None:
        super().__init__(
            label="scripted loudspeaker",
            capabilities=io.AudioOutputCapabilities(pause=True),
            sample_rate=SAMPLE_RATE,
        )
        self._subtitles = subtitles
        self._word_seconds = word_seconds
        self._pushed = 0.0
        self._played = 0.0
        """Seconds played until `_since`."""
        self._since: float | None = None
        """Loop time since which it plays; None while it does not."""
        self._complete = False
        self._paused = False
        self._end: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._pushed:
            self.on_playback_started(created_at=time.time())
        self._pushed += frame.duration
        self._play()

    def flush(self) -> None:
        super().flush()
        self._complete = bool(self._pushed)
        self._play()

    def clear_buffer(self) -> None:
        if self._pushed:
            self._finish(interrupted=True)

    def pause(self) -> None:
        super().pause()
        self._played, self._since, self._paused = self._position(), None, True
        self._cancel_end()

    def resume(self) -> None:
        super().resume()
        self._paused = False
        self._play()

    def _play(self) -> None:
        """Go on playing, and end when all of a complete reply is out."""
        if self._paused or not self._pushed:
            return
        loop = asyncio.get_running_loop()
        if self._since is None:
            self._since = loop.time()
        if self._complete and self._end is None:
            self._end = loop.call_later(max(0.0, self._pushed - self._position()), self._finish)

    def _position(self) -> float:
        """Seconds of the reply that were heard."""
        if self._since is None:
            return self._played
        return min(self._played + asyncio.get_running_loop().time() - self._since, self._pushed)

    def _finish(self, interrupted: bool = False) -> None:
        position = self._position() if interrupted else self._pushed
        self._cancel_end()
        self._pushed, self._played, self._since, self._complete = 0.0, 0.0, None, False
        heard: str | None = None
        if interrupted:
            # the small addition keeps a word that ended just now from being lost to rounding
            words = int(position / self._word_seconds() + 1e-6)
            heard = " ".join(self._subtitles.current.split()[:words])
        self.on_playback_finished(
            playback_position=position, interrupted=interrupted, synchronized_transcript=heard
        )

    def _cancel_end(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
