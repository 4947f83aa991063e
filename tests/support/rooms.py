"""Who is in a room and on the line. There is no LiveKit server here, so these stand for its participants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from livekit.agents import AgentSession, UserInputTranscribedEvent, UserStateChangedEvent

__all__ = ["Line", "Permissions", "Person", "hears", "speaks"]


@dataclass
class Permissions:
    can_update_metadata: bool = False


@dataclass
class Person:
    """Stands for a participant of a room."""

    identity: str
    attributes: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    permissions: Permissions = field(default_factory=Permissions)
    sid: str = ""


class Line:
    """Who is linked to the sessions. RoomIO needs a room on a server; what is asked of it here is who is linked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, person: Person) -> None:
        self.linked_participant: Person | None = person
        monkeypatch.setattr(AgentSession, "room_io", property(lambda session: self))


def speaks(session: AgentSession[Any]) -> None:
    """What LiveKit reports when somebody begins to speak."""
    session.emit("user_state_changed", UserStateChangedEvent(old_state="listening", new_state="speaking"))


def hears(session: AgentSession[Any], words: str) -> None:
    """What LiveKit reports while somebody is speaking."""
    session.emit("user_input_transcribed", UserInputTranscribedEvent(transcript=words, is_final=False))
