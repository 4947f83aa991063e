"""Speech synthesis without a network: Piper, run as a program of its own that is given one line at a time.

Piper is under the GPL. This module starts its command and reads the sound files it writes; it imports nothing of it.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import wave
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from livekit.agents import APIConnectionError, tts
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions
from livekit.agents.utils import shortuuid
from livekit.agents.utils.aio import cancel_and_wait

__all__ = ["Piper", "PiperTTS", "Speech"]

_WROTE = re.compile(r"Wrote (?P<path>.+\.wav)\s*$")


@dataclass(frozen=True)
class Speech:
    """Spoken words: mono 16-bit samples, as bytes."""

    samples: bytes
    sample_rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / 2 / self.sample_rate


class Piper:
    """The program, started once, since loading its voice takes longer than a sentence. Use `async with`."""

    def __init__(self, voice: Path) -> None:
        """`voice` is the model file; its settings lie beside it."""
        self._voice = voice
        self._one_line = asyncio.Lock()
        self._lines: set[asyncio.Task[Speech]] = set()
        self._process: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.sample_rate = 0
        """Samples a second of everything it says. Known after the first words, which `async with` has it say."""

    async def __aenter__(self) -> Piper:
        self._folder = tempfile.TemporaryDirectory(prefix="supermemory-voice-")
        command = ["-m", "piper", "--model", str(self._voice), "--output-dir", self._folder.name]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            self.sample_rate = (await self.say("Hello.")).sample_rate
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await cancel_and_wait(*self._lines)
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.communicate()
        if self._folder is not None:
            self._folder.cleanup()

    async def say(self, text: str) -> Speech:
        """Speak `text`; blanks make no sound. `APIConnectionError` if the program has ended."""
        line = " ".join(text.split())
        if not line:
            return Speech(b"", self.sample_rate)
        # In a task of its own: a reply that is cut off while its words are made leaves no answer unread.
        task = asyncio.create_task(self._say(line))
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)
        return await asyncio.shield(task)

    async def _say(self, line: str) -> Speech:
        async with self._one_line:
            process = self._process
            if process is None or process.stdin is None or process.stderr is None:
                raise APIConnectionError("the speech synthesis is not running")
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()
            while said := await process.stderr.readline():
                if found := _WROTE.search(said.decode(errors="replace")):
                    return _read(Path(found["path"]))
        raise APIConnectionError(f"the speech synthesis has ended with code {await process.wait()}")


class PiperTTS(tts.TTS[Any]):
    """The agent's voice. LiveKit gives it a sentence at a time."""

    def __init__(self, piper: Piper) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False), sample_rate=piper.sample_rate, num_channels=1
        )
        self.piper = piper

    @property
    def model(self) -> str:
        return "piper"

    @property
    def provider(self) -> str:
        return "piper"

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return _PiperStream(self, text, conn_options)


class _PiperStream(tts.ChunkedStream):
    def __init__(self, voice: PiperTTS, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=voice, input_text=text, conn_options=conn_options)  # pyright: ignore[reportUnknownMemberType]
        self._piper = voice.piper

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        speech = await self._piper.say(self.input_text)
        output_emitter.initialize(
            request_id=shortuuid(),
            sample_rate=speech.sample_rate,
            num_channels=1,
            mime_type="audio/pcm",
        )
        output_emitter.push(speech.samples)
        output_emitter.flush()


def _read(path: Path) -> Speech:
    with wave.open(str(path), "rb") as file:
        speech = Speech(file.readframes(file.getnframes()), file.getframerate())
    path.unlink()
    return speech
