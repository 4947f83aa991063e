"""What one process of the demo tells the other one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Report"]


@dataclass
class Report:
    """What the second process saw, for the verdict."""

    greeting: str = ""
    answers: list[str] = field(default_factory=lambda: list[str]())
    """To the questions of the script, in order."""
    recalled: list[list[str]] = field(default_factory=lambda: list[list[str]]())
    """Lines the model was shown for each of them."""
    other: list[str] = field(default_factory=lambda: list[str]())
    """Everything the other caller was told, or the model was shown in that call."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Report:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
