"""A call whose every word is noted, to compare with what a store holds in the end."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from supermemory_livekit.capture.capture import Capture
from supermemory_livekit.params import InputParams
from supermemory_livekit.scope import Scope
from supermemory_livekit.store import MemoryStore
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.testing import ScriptedStore
from supermemory_livekit.transcript import Role

ANA = Scope(container_tag="tag-of-ana", session_id="room", document_id="lk-room")
BEN = Scope(container_tag="tag-of-ben", session_id="room", document_id="lk-room-2")

START = datetime(2026, 11, 29, 17, 0, 0, tzinfo=timezone.utc)

_LINE = re.compile(r"\[[^\]]{24}\] (Caller|Agent)(?: \(([^)]*)\))?: (.*)")


class Call:
    """Speaks, and remembers who said what under which scope."""

    def __init__(self, store: MemoryStore, *, params: InputParams | None = None, **options: Any) -> None:
        self.stats = Stats()
        self.capture = Capture(store, params or InputParams(), self.stats, jitter=lambda: 0.5, **options)
        self.said: dict[Scope, list[tuple[str, str]]] = {}
        self.clock = START

    def say(
        self, role: Role, text: str, *, scope: Scope | None = ANA, ago: float = 0.0, interrupted: bool = False
    ) -> None:
        """One turn, a second after the one before; `ago` seconds earlier when its event came late."""
        self.clock += timedelta(seconds=1)
        at = self.clock - timedelta(seconds=ago)
        if scope is not None:
            self.said.setdefault(scope, []).append((role, text))
        self.capture.record(role, text, at=at, scope=scope, interrupted=interrupted)

    def exchange(self, number: int, *, scope: Scope = ANA) -> None:
        """The caller says something, the agent answers, and what was said is to be written."""
        self.say("caller", f"question {number}", scope=scope)
        self.say("agent", f"answer {number}", scope=scope)
        self.capture.wake()


def turns_in(document: str | None) -> list[tuple[str, str]]:
    """Role and words of each line of a stored document."""
    if document is None:
        return []
    matches = [_LINE.fullmatch(line) for line in document.split("\n")]
    assert all(matches), "a stored line is not as agreed"
    return [(match[1].lower(), match[3]) for match in matches if match]


def stored(store: ScriptedStore, scope: Scope = ANA) -> list[tuple[str, str]]:
    return turns_in(store.document(scope.container_tag, scope.document_id))


def sent(store: ScriptedStore) -> list[list[str]]:
    """The words of each write, in the order they were started."""
    return [[words for _, words in turns_in(call.arguments["text"])] for call in store.called("append")]
