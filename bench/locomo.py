"""Reads LoCoMo conversations (Maharana et al., ACL 2024; CC BY-NC 4.0, so not part of this repository)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

__all__ = ["Conversation", "Question", "Turn", "read_all"]

_ADVERSARIAL = 5
"""Category of questions that have no answer."""
_BETWEEN_TURNS = timedelta(seconds=10)


@dataclass(frozen=True)
class Turn:
    speaker: str
    text: str
    line: str
    """As a call's document has it: who and when, and the words on one line. No two turns share it."""


@dataclass(frozen=True)
class Question:
    text: str
    category: int
    """1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop."""
    evidence: frozenset[int]
    """Positions of the turns that answer it."""


@dataclass(frozen=True)
class Conversation:
    name: str
    sessions: list[list[Turn]]
    questions: list[Question]
    """Those that have an answer and evidence."""

    @property
    def turns(self) -> list[Turn]:
        """Of all sessions, in order."""
        return [turn for session in self.sessions for turn in session]


def read_all(folder: Path, *, roles: bool = False) -> list[Conversation]:
    """The conversations of a folder, one JSON file each; none when there is no such folder.

    `roles`: lines say Caller and Agent, as those of a stored call do, instead of who the two people are.
    """
    return [_read(path, roles) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []


def _read(path: Path, roles: bool) -> Conversation:
    raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    numbers = sorted(int(match[1]) for name in raw if (match := re.fullmatch(r"session_(\d+)", name)))
    sessions: list[list[Turn]] = []
    positions: dict[str, int] = {}
    for number in numbers:
        at = datetime.strptime(str(raw[f"session_{number}_date_time"]), "%I:%M %p on %d %B, %Y")
        session: list[Turn] = []
        for turn in raw[f"session_{number}"]:
            positions[str(turn["dia_id"])] = len(positions)
            stamp = (at + _BETWEEN_TURNS * len(session)).isoformat(timespec="milliseconds")
            speaker, text = str(turn["speaker"]), " ".join(str(turn["text"]).split())
            label = speaker if not roles else "Caller" if speaker == raw["speaker_a"] else "Agent"
            session.append(Turn(label, text, f"[{stamp}Z] {label}: {text}"))
        sessions.append(session)
    questions: list[Question] = []
    for one in raw["qa"]:
        # Some fields hold several ids at once, and a few name turns that do not exist.
        named = [name for field in one.get("evidence", ()) for name in re.findall(r"D\d+:\d+", str(field))]
        evidence = frozenset(positions[name] for name in named if name in positions)
        if one.get("category") != _ADVERSARIAL and evidence:
            questions.append(Question(str(one["question"]), int(one["category"]), evidence))
    return Conversation(path.stem, sessions, questions)
