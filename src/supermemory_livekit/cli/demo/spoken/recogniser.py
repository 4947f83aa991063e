"""Speech recognition without a network: Whisper, told by voice detection where an utterance begins and ends.

Whisper does not stream. So that there are words before the end, it is run again and again over what has been said so
far; each run gives an interim transcript, and a last one over all of the utterance the final one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from livekit import rtc
from livekit.agents import stt, utils, vad
from livekit.agents.language import LanguageCode
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr
from livekit.agents.utils import AudioBuffer

__all__ = ["WhisperSTT"]

SAMPLE_RATE = 16_000
"""Samples a second that Whisper takes."""

INTERIM_SECONDS = 0.8
"""Speech that has to be new before what was said so far is recognised again."""

_QUIET = 0.1
"""Seconds of silence after which the end may be near, and the recogniser is kept free for the final run."""


class WhisperSTT(stt.STT[Any]):
    """faster-whisper with the model in the folder `model`, on the CPU. Streams, with interim transcripts."""

    def __init__(self, model: Path, *, detection: vad.VAD, threads: int = 2) -> None:
        """Load the model, which takes a second or more. `detection` finds the utterances."""
        super().__init__(
            capabilities=stt.STTCapabilities(streaming=True, interim_results=True, offline_recognize=True)
        )
        whisper: Any = import_module("faster_whisper")
        self._model = whisper.WhisperModel(
            str(model), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
        )
        self._detection = detection
        # one at a time: two runs would only slow each other down
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="whisper")

    @property
    def model(self) -> str:
        return "whisper tiny.en"

    @property
    def provider(self) -> str:
        return "faster-whisper"

    def stream(
        self,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.RecognizeStream:
        return _WhisperStream(self, self._detection, self.transcribe, conn_options)

    async def transcribe(self, samples: np.ndarray[Any, np.dtype[np.float32]]) -> str:
        """The words in mono `samples`, -1 to 1, at 16 kHz."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._transcribe, samples)

    async def aclose(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _recognize_impl(
        self,
        buffer: AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions,
    ) -> stt.SpeechEvent:
        frames = buffer if isinstance(buffer, list) else [buffer]
        text = await self.transcribe(_samples(_at_16k(frames)))
        return _event(stt.SpeechEventType.FINAL_TRANSCRIPT, text)

    def _transcribe(self, samples: np.ndarray[Any, np.dtype[np.float32]]) -> str:
        # Without the fallback to other temperatures: it repeats a run up to five times.
        segments, _ = self._model.transcribe(
            samples, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False
        )
        return " ".join(segment.text.strip() for segment in segments).strip()


Transcribe = Callable[[np.ndarray[Any, np.dtype[np.float32]]], Any]


class _WhisperStream(stt.RecognizeStream):
    """Utterances of one call, one after the other."""

    def __init__(
        self, model: WhisperSTT, detection: vad.VAD, transcribe: Transcribe, conn_options: APIConnectOptions
    ) -> None:
        super().__init__(stt=model, conn_options=conn_options, sample_rate=SAMPLE_RATE)  # pyright: ignore[reportUnknownMemberType]
        self._detection = detection
        self._transcribe = transcribe
        self._speech: list[rtc.AudioFrame] = []
        """The utterance that is being spoken, from a little before its first sound."""
        self._recognised = 0.0
        """Seconds of it that an interim run has covered."""
        self._interim: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        voices = self._detection.stream()
        tasks = [asyncio.create_task(self._listen(voices)), asyncio.create_task(self._recognise(voices))]
        try:
            await asyncio.gather(*tasks)
        finally:
            await utils.aio.cancel_and_wait(*tasks)
            await self._end_interim()
            await voices.aclose()

    async def _listen(self, voices: vad.VADStream) -> None:
        async for frame in self._input_ch:
            # A flush would make voice detection forget an utterance that is going on.
            if isinstance(frame, rtc.AudioFrame):
                voices.push_frame(frame)
        voices.end_input()

    async def _recognise(self, voices: vad.VADStream) -> None:
        async for event in voices:
            if event.type is vad.VADEventType.START_OF_SPEECH:
                self._speech, self._recognised = list(event.frames), 0.0
                self._event_ch.send_nowait(stt.SpeechEvent(type=stt.SpeechEventType.START_OF_SPEECH))
            elif event.type is vad.VADEventType.INFERENCE_DONE and event.speaking and self._speech:
                self._speech += event.frames
                self._begin_interim(quiet=event.raw_accumulated_silence)
            elif event.type is vad.VADEventType.END_OF_SPEECH:
                await self._finish(event)

    def _begin_interim(self, *, quiet: float) -> None:
        said = sum(frame.duration for frame in self._speech)
        busy = self._interim is not None and not self._interim.done()
        if busy or quiet > _QUIET or said - self._recognised < INTERIM_SECONDS:
            return
        if self._interim is not None:
            self._interim.result()  # a recogniser that fails ends the stream
        self._recognised = said
        self._interim = asyncio.create_task(self._recognise_interim(list(self._speech)))

    async def _recognise_interim(self, frames: list[rtc.AudioFrame]) -> None:
        text = await self._transcribe(_samples(frames))
        if text:
            self._event_ch.send_nowait(_event(stt.SpeechEventType.INTERIM_TRANSCRIPT, text))

    async def _finish(self, event: vad.VADEvent) -> None:
        ended = time.time() - event.silence_duration - event.inference_duration
        self._speech = []
        await self._end_interim()
        self._event_ch.send_nowait(
            stt.SpeechEvent(type=stt.SpeechEventType.END_OF_SPEECH, speech_end_time=ended)
        )
        text = await self._transcribe(_samples(event.frames))
        if text:
            final = _event(stt.SpeechEventType.FINAL_TRANSCRIPT, text)
            final.speech_end_time = ended
            self._event_ch.send_nowait(final)

    async def _end_interim(self) -> None:
        """What an interim run finds after the end is of no use: the final transcript is on its way."""
        interim, self._interim = self._interim, None
        if interim is not None:
            await utils.aio.cancel_and_wait(interim)
            if not interim.cancelled():
                interim.result()


def _samples(frames: list[rtc.AudioFrame]) -> np.ndarray[Any, np.dtype[np.float32]]:
    joined = np.concatenate([np.frombuffer(frame.data, dtype=np.int16) for frame in frames])
    return joined.astype(np.float32) / 32_768.0


def _at_16k(frames: list[rtc.AudioFrame]) -> list[rtc.AudioFrame]:
    if all(frame.sample_rate == SAMPLE_RATE for frame in frames):
        return frames
    resampler = rtc.AudioResampler(input_rate=frames[0].sample_rate, output_rate=SAMPLE_RATE)
    return [out for frame in frames for out in resampler.push(frame)] + resampler.flush()


def _event(kind: stt.SpeechEventType, text: str) -> stt.SpeechEvent:
    data = stt.SpeechData(language=LanguageCode("en"), text=text, confidence=1.0)
    return stt.SpeechEvent(type=kind, alternatives=[data])
