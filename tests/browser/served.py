"""`supermemory-livekit serve` as a process, and callers to look at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from supermemory_livekit.local import Engine, open_local

__all__ = ["BOGDAN", "INES", "KEY", "Served", "fill", "served"]

KEY = "key-of-the-test"


@dataclass(frozen=True)
class Served:
    """The running server and a client that has its key."""

    url: str
    http: httpx.Client

    def post(self, path: str, body: dict[str, object]) -> httpx.Response:
        answer = self.http.post(path, json=body)
        answer.raise_for_status()
        return answer


@contextmanager
def served(path: Path, *options: str) -> Generator[Served]:
    """A server on this file, with more options of the command."""
    command = [sys.executable, "-m", "supermemory_livekit.cli", "serve", "--port", "0", "--path", str(path)]
    command += options
    source = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "SUPERMEMORY_LOCAL_KEY": KEY, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Memory service:"), line or (process.stderr and process.stderr.read())
            url = line.split()[-1]
            with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30) as http:
                yield Served(url, http)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


async def fill(path: Path) -> None:
    """Two callers of a bicycle shop: one with three calls, a correction and a note, one with one call."""
    engine = Engine(path)
    async with open_local(engine=engine) as http:
        for name, at, turns in CALLS:
            stamps = range(4, 4 + 7 * len(turns), 7)
            lines = [
                f"[{at}:{second:02}.000Z] {who}: {text}"
                for second, (who, text) in zip(stamps, turns, strict=True)
            ]
            await post(
                http,
                "/v3/documents",
                {
                    "containerTag": INES,
                    "customId": f"lk-shop-{name}",
                    "content": "\n".join(lines),
                    "dreaming": "instant",
                    "metadata": {"channel": "voice"},
                },
            )
            assert await engine.settled(20)
        remembered = {"content": "Wants to be called after six in the evening.", "isStatic": True}
        await post(http, "/v4/memories", {"containerTag": INES, "memories": [remembered]})
        said = "[2026-09-03T07:30:00.000Z] Caller: My name is Bogdan and I ride a cargo bike."
        await post(http, "/v3/documents", {"containerTag": BOGDAN, "content": said, "dreaming": "instant"})
        assert await engine.settled(20)


async def post(http: httpx.AsyncClient, path: str, body: dict[str, object]) -> None:
    answer = await http.post(path, json=body)
    answer.raise_for_status()


INES = "rider_ines"
BOGDAN = "courier_7"

CALLS = [
    (
        "101",
        "2026-09-02T16:12",
        [
            ("Agent", "Spoke and Chain, good afternoon."),
            ("Caller", "Hello, my name is Ines and I live in Coimbra."),
            ("Agent", "Nice to meet you, Ines. What can we do for you?"),
            ("Caller", "My bike is a green Orbea and its rear brake squeals."),
            ("Agent", "We can look at it on Thursday at ten."),
            ("Caller", "Thursday is good. I'm allergic to latex, so no gloves near the grips please."),
            ("Agent", "I have noted that."),
        ],
    ),
    (
        "102",
        "2026-10-14T09:40",
        [
            ("Agent", "Welcome back, Ines. How is the brake?"),
            ("Caller", "Silent, thank you. I moved, I live in Aveiro now."),
            ("Agent", "Then our shop at the canal is nearer to you."),
            ("Caller", "Great. I need winter tyres for my trip to Norway in January."),
            ("Agent", "Studded ones, 42 millimetres. Shall I order them?"),
            ("Caller", "Yes please, order number 88213 was the last one."),
        ],
    ),
    (
        "103",
        "2026-11-20T18:05",
        [
            ("Agent", "Good evening, Ines. The studded tyres are here."),
            ("Caller", "Wonderful. My daughter Alba wants a bike as well, she is seven."),
            ("Agent", "We have a 20 inch one in red."),
            ("Caller", "I prefer blue. I work nights at the hospital, so call me in the evening."),
        ],
    ),
]
