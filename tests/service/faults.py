"""Everything that a memory service, or what stands before it, may do to a request."""

from __future__ import annotations

from typing import Any

from supermemory_livekit.testing import Hang, Reset, Respond, WireStep

__all__ = ["ECHO", "FAULTS", "STORES_ALL_THE_SAME", "refusal"]

ECHO = "zanzibar-echo"
"""Stands in the body of every refusal, as a service may quote the request: no log line may hold it."""

_JSON = {"content-type": "application/json"}


def refusal(status: int, *, committed: bool = False, **headers: str) -> Respond:
    """An error answer as the service words it, quoting what it was sent."""
    body = {"error": f"Refused: {ECHO}", "details": f"containerTag {ECHO}, content {ECHO}"}
    return Respond(
        status, body, {name.replace("_", "-"): value for name, value in headers.items()}, 0, committed
    )


def _answer(body: Any, *, kind: str = "application/json", committed: bool = False) -> Respond:
    return Respond(200, body, {"content-type": kind}, 0, committed)


FAULTS: dict[str, WireStep] = {
    "hang": Hang(),
    "hang after commit": Hang(committed=True),
    "no connection": Reset(connected=False),
    "reset before commit": Reset(),
    "reset after commit": Reset(committed=True),
    "garbage body": _answer(b'\xff\x00{"id": "d'),
    "garbage body after commit": _answer(b'\xff\x00{"id": "d', committed=True),
    "HTML body": _answer(f"<html>{ECHO}</html>".encode(), kind="text/html"),
    "HTML body after commit": _answer(f"<html>{ECHO}</html>".encode(), kind="text/html", committed=True),
    "wrong JSON shape": _answer({"unforeseen": [1, {"x": None}]}),
    "wrong JSON types": _answer({"id": 7, "profile": "p", "results": 4, "forgotten": "f", "memories": 1}),
    "null JSON": _answer(b"null"),
    "null JSON after commit": _answer(b"null", committed=True),
    "401": refusal(401),
    "402": refusal(402),
    "403": refusal(403),
    "404": refusal(404),
    "409": refusal(409),
    "422": refusal(422),
    "429": refusal(429),
    "429 with Retry-After": refusal(429, retry_after="2"),
    "500": refusal(500),
    "500 after commit": refusal(500, committed=True),
    "503": refusal(503),
}

STORES_ALL_THE_SAME = frozenset(name for name in FAULTS if name.endswith("after commit"))
"""Faults under which the service does what it was asked although the client cannot know."""
