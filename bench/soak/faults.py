"""What the service, or the network before it, does to a request. Pure: drawn from a seed, done by `proxy`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

__all__ = ["HOLD", "LATEST", "NONE", "TOO_LATE", "Fault", "Faults"]

LATEST = 1.5
"""Most seconds after its client has gone that a request is still carried out. The writer waits for two."""

TOO_LATE = 1.7
"""Seconds after its client has gone from which a request is not carried out any more: a machine that is busy must not
make late commits later than what is promised."""

HOLD = 3.0
"""Most seconds for which a client is left without an answer before its connection breaks and the request is carried
out late. Ends before the client would give up, so that the time from sending to storing is bounded as well."""

End = Literal["answer", "reset", "status", "garbage", "hang"]


@dataclass(frozen=True)
class Fault:
    """What happens to one request, in this order."""

    kind: str
    end: End
    """What the client gets."""
    delay: float = 0.0
    """Seconds before anything else."""
    commits: bool = True
    """Whether the service gets the request."""
    late: float | None = None
    """Seconds between the end for the client and the service getting the request; None for before the end."""
    status: int = 0
    retry_after: int | None = None


NONE = Fault("none", "answer")

_WEIGHTS: dict[str, float] = {
    "delay": 20,
    "reset before commit": 10,
    "reset after commit": 12,
    "late commit": 8,
    "late commit after a hang": 4,
    "hang": 3,
    "402": 4,
    "409": 4,
    "429": 5,
    "429 with Retry-After": 4,
    "500": 5,
    "500 after commit": 6,
    "503": 6,
    "garbage": 4,
    "garbage after commit": 5,
}


class Faults:
    """One fault, or none, for each request."""

    def __init__(self, seed: int, share: float) -> None:
        self._made = random.Random(f"{seed} faults")
        self._share = share

    def draw(self) -> Fault:
        made = self._made
        if made.random() >= self._share:
            return NONE
        kind = made.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        if kind == "delay":
            return Fault(kind, "answer", delay=made.uniform(0.05, LATEST))
        if kind == "reset before commit":
            return Fault(kind, "reset", commits=False)
        if kind == "reset after commit":
            return Fault(kind, "reset")
        if kind == "late commit":
            return Fault(kind, "reset", late=made.uniform(0.05, LATEST))
        if kind == "late commit after a hang":
            return Fault(kind, "reset", delay=made.uniform(0.5, HOLD), late=made.uniform(0.05, LATEST))
        if kind == "hang":
            return Fault(kind, "hang", commits=False)
        if kind.startswith("garbage"):
            return Fault(kind, "garbage", commits=kind.endswith("after commit"))
        retry_after = made.randint(1, 2) if kind.endswith("Retry-After") else None
        return Fault(kind, "status", 0.0, kind.endswith("after commit"), None, int(kind[:3]), retry_after)
