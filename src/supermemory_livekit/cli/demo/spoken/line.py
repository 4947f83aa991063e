"""Both ends of a telephone line in real time: what the caller says goes in, what the agent says comes out.

Everything that was to be heard is kept with its moment, so that the call can be written to a WAV.
"""

from __future__ import annotations

import asyncio
import time
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from livekit import rtc
from livekit.agents.voice import io

from .voice import Speech

__all__ = ["Earpiece", "Microphone", "Recording"]

_FRAME_SECONDS = 0.05


@dataclass(frozen=True)
class _Heard:
    at: float
    samples: bytes


class Recording:
    """The sound of one call: the caller on the left, the agent on the right."""

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._began = time.perf_counter()
        self._caller: list[_Heard] = []
        self._agent: list[_Heard] = []

    def caller(self, at: float, samples: bytes) -> None:
        """Mono 16-bit samples of the caller that began to sound at the moment `at` of `time.perf_counter`."""
        self._caller.append(_Heard(at - self._began, samples))

    def agent(self, at: float, samples: bytes) -> None:
        """The same of the agent."""
        self._agent.append(_Heard(at - self._began, samples))

    def write(self, path: Path) -> None:
        """Write a WAV of 16 bits and two channels."""
        both = np.zeros((max(map(self._end, [*self._caller, *self._agent]), default=0), 2), dtype=np.int16)
        for channel, pieces in enumerate((self._caller, self._agent)):
            for piece in pieces:
                start = self._start(piece)
                sound = np.frombuffer(piece.samples, dtype=np.int16)
                both[start : start + len(sound), channel] = sound
        with wave.open(str(path), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(self.sample_rate)
            file.writeframes(both.tobytes())

    def _start(self, piece: _Heard) -> int:
        return max(0, round(piece.at * self.sample_rate))

    def _end(self, piece: _Heard) -> int:
        return self._start(piece) + len(piece.samples) // 2


class Microphone(io.AudioInput):
    """The caller's end: silence in real time, and words when there are any, until the line is cut."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(label="caller's voice")
        self._recording = recording
        self._samples = round(_FRAME_SECONDS * recording.sample_rate)
        self._due: float | None = None
        """When the next frame is to sound, by `time.perf_counter`."""
        self._words = b""
        self._said = asyncio.Event()
        self._said.set()
        self._cut = asyncio.Event()
        self.fell_silent = 0.0
        """When the last word ended, by `time.perf_counter`."""

    async def speak(self, speech: Speech) -> None:
        """Say this, and wait until the last of it is on the line or the line is cut."""
        self._words += speech.samples
        self._said.clear()
        await self._said.wait()

    def cut(self) -> None:
        """Nothing more is heard, not even silence."""
        self._cut.set()
        self._said.set()

    async def __anext__(self) -> rtc.AudioFrame:
        now = time.perf_counter()
        self._due = now if self._due is None else self._due + _FRAME_SECONDS
        await asyncio.sleep(max(0.0, self._due - now))
        if self._cut.is_set():
            raise StopAsyncIteration
        size = 2 * self._samples
        words, self._words = self._words[:size], self._words[size:]
        if words:
            self._recording.caller(self._due, words)
            self.fell_silent = self._due + _FRAME_SECONDS
        if not self._words:
            self._said.set()
        return rtc.AudioFrame(
            data=words.ljust(size, b"\0"),
            sample_rate=self._recording.sample_rate,
            num_channels=1,
            samples_per_channel=self._samples,
        )


class Earpiece(io.AudioOutput):
    """What the caller hears: plays replies in real time, and stops in mid-word when one is cut off."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(
            label="caller's ear",
            capabilities=io.AudioOutputCapabilities(pause=False),
            sample_rate=recording.sample_rate,
        )
        self._recording = recording
        self._sound = b""
        self._since = 0.0
        """When the reply began to sound, by `time.perf_counter`."""
        self._end: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        now = time.perf_counter()
        if not self._sound:
            self._since = now
            self.on_playback_started(created_at=time.time())
        elif (late := now - self._since - self._seconds()) > 0:
            # the voice came late: a gap in what is heard
            self._sound += bytes(2 * round(late * self._recording.sample_rate))
        self._sound += bytes(frame.data)

    def flush(self) -> None:
        super().flush()
        if self._sound and self._end is None:
            left = self._since + self._seconds() - time.perf_counter()
            self._end = asyncio.get_running_loop().call_later(max(0.0, left), self._finish)

    def clear_buffer(self) -> None:
        if self._sound:
            self._finish(interrupted=True)

    @property
    def sounds(self) -> bool:
        """Whether the agent is being heard."""
        return bool(self._sound)

    def _seconds(self) -> float:
        return len(self._sound) / 2 / self._recording.sample_rate

    def _finish(self, interrupted: bool = False) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        heard = self._seconds()
        if interrupted:
            heard = min(heard, time.perf_counter() - self._since)
        samples = self._sound[: 2 * round(heard * self._recording.sample_rate)]
        self._recording.agent(self._since, samples)
        self._sound = b""
        self.on_playback_finished(playback_position=heard, interrupted=interrupted)
