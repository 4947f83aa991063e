"""What a soak will do, drawn from its seed: calls, and which kill comes after how many turns. Pure."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = [
    "KillKind",
    "PlannedCall",
    "PlannedKill",
    "Size",
    "Task",
    "planned_calls",
    "planned_kills",
    "rings_again",
]

KillKind = Literal["service kill -9", "worker kill -9", "worker SIGTERM"]

_KINDS: tuple[KillKind, ...] = ("worker kill -9", "service kill -9", "worker SIGTERM")
_CALLS_OF_A_CALLER = 3
_FIRST_KILL, _LAST_KILL = 0.03, 0.85
"""Share of all turns between which the kills come."""


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    seed: int
    calls: int
    turns: int
    """Of all calls together; what either side says is one turn."""
    kills: int
    workers: int
    """Processes."""
    at_once: int
    """Calls at once in each of them."""
    pace: float
    """Mean pause between two exchanges, in seconds."""
    spool: bool


@dataclass(frozen=True)
class PlannedCall:
    """A call, or what is left of it for the next worker."""

    session_id: str
    caller: str
    others: tuple[str, ...]
    """Whom the call may be bound to in between."""
    turns: int


@dataclass(frozen=True)
class PlannedKill:
    kind: KillKind
    after: int
    """Turns that have been spoken before."""


@dataclass(frozen=True)
class Task:
    """What one worker process is told."""

    slot: int
    generation: int
    """How many processes had this slot before."""
    seed: int
    at_once: int
    pace: float
    truth: str
    """The file that takes what is spoken."""
    spool: str | None
    calls: tuple[PlannedCall, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Task:
        calls = tuple(PlannedCall(**{**call, "others": tuple(call["others"])}) for call in data.pop("calls"))
        return cls(**data, calls=calls)


def planned_calls(size: Size) -> list[list[PlannedCall]]:
    """The calls of each worker, in the order in which they ring. Their turns add up to `size.turns` or a few more."""
    made = random.Random(f"{size.seed} calls")
    callers = [f"caller_{number}" for number in range(max(3, size.calls // _CALLS_OF_A_CALLER))]
    each = -(-size.turns // size.calls)
    slots: list[list[PlannedCall]] = [[] for _ in range(size.workers)]
    for number in range(size.calls):
        caller, *others = made.sample(callers, 3)
        slots[number % size.workers].append(PlannedCall(f"room-{number}", caller, tuple(others), each))
    return slots


def planned_kills(size: Size) -> list[PlannedKill]:
    """All kills, the first to come first; of each kind as many as of the others, or one more."""
    made = random.Random(f"{size.seed} kills")
    kinds = [_KINDS[number % len(_KINDS)] for number in range(size.kills)]
    made.shuffle(kinds)
    moments = sorted(made.uniform(_FIRST_KILL, _LAST_KILL) for _ in kinds)
    return [
        PlannedKill(kind, round(size.turns * moment)) for kind, moment in zip(kinds, moments, strict=True)
    ]


def rings_again(call: PlannedCall, turns: int) -> PlannedCall:
    """The caller of a call that nobody goes on with rings once more, in another room."""
    return PlannedCall(f"{call.session_id}-again", call.caller, call.others, turns)
