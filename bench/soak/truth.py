"""What was spoken, on disk before and after it is given to `Capture`, so that no kill can make it wrong.

A turn is announced before `Capture.record` is called, and confirmed when that has returned. A turn that is announced
alone, because its process was killed in between, may be stored or not; it must not be stored twice.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the proxy and the count start faster without the package
    from supermemory_livekit.capture.capture import Capture
    from supermemory_livekit.scope import Scope
    from supermemory_livekit.transcript import Role

__all__ = ["Spoken", "TruthFile", "events", "spoken_turns", "tokens_in", "truth_files"]

_TOKEN = re.compile(r"\bw\d+g\d+n\d+\b")
"""Worker, generation and number: each turn begins with a word that no other turn has."""


def tokens_in(body: bytes | str) -> list[str]:
    """The turns that a request or a document carries."""
    return _TOKEN.findall(body.decode("utf-8", "replace") if isinstance(body, bytes) else body)


@dataclass(frozen=True)
class Spoken:
    """A turn as `Capture` was given it."""

    token: str
    tag: str
    document: str
    role: str
    text: str
    at: float
    """When it was said, by the session."""
    order: int
    """When `Capture` got it, on the clock that all processes share."""
    confirmed: bool
    worker: tuple[int, int]
    """Slot and generation of the process."""
    session_id: str


class TruthFile:
    """The truth of one worker process."""

    def __init__(self, path: Path, slot: int, generation: int) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._name = f"w{slot}g{generation}"
        self._numbers = itertools.count()

    def token(self) -> str:
        return f"{self._name}n{next(self._numbers)}"

    def note(self, event: str, **more: Any) -> None:
        """One `write`, which a kill does not cut in two."""
        os.write(self._fd, json.dumps({"event": event, **more}).encode() + b"\n")

    def watch(self, capture: Capture, session_id: str, taken: Callable[[], object]) -> None:
        """Note down what this object is given from now on. `taken` is called after each turn."""
        record = capture.record

        def noted(
            role: Role,
            text: str,
            *,
            at: datetime | None = None,
            scope: Scope | None,
            interrupted: bool = False,
        ) -> None:
            token = next(iter(tokens_in(text)), None)
            if token is None or scope is None or at is None:  # a reply that was cut before its first word
                record(role, text, at=at, scope=scope, interrupted=interrupted)
                return
            self.note(
                "say",
                token=token,
                tag=scope.container_tag,
                document=scope.document_id,
                role=role.capitalize() + (" (interrupted)" if interrupted else ""),
                text=text.strip(),
                at=at.timestamp(),
                order=time.monotonic_ns(),
                session_id=session_id,
            )
            record(role, text, at=at, scope=scope, interrupted=interrupted)
            self.note("said", token=token, session_id=session_id)
            taken()

        capture.record = noted  # type: ignore[method-assign]


def events(path: Path) -> Iterable[dict[str, Any]]:
    """What a worker noted down so far."""
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)


def truth_files(folder: Path) -> Iterator[tuple[tuple[int, int], Path]]:
    """The files of all workers, by slot and generation."""
    for path in sorted(folder.glob("truth-*.jsonl")):
        slot, generation = path.stem.split("-")[1:]
        yield (int(slot), int(generation)), path


def spoken_turns(folder: Path) -> dict[str, Spoken]:
    """All turns of all workers, by token."""
    turns: dict[str, Spoken] = {}
    for worker, path in truth_files(folder):
        noted = list(events(path))
        confirmed = {event["token"] for event in noted if event["event"] == "said"}
        for event in noted:
            if event["event"] == "say":
                del event["event"]
                token = event["token"]
                turns[token] = Spoken(**event, confirmed=token in confirmed, worker=worker)
    return turns
