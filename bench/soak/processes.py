"""The processes of a soak: the service, the proxy before it, and the workers. Started, killed, started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from .plan import PlannedCall, Size, Task
from .truth import events

__all__ = ["Proxy", "Service", "SoakError", "Worker", "flush_command", "service_key"]

_START = 60.0
"""Seconds for a process to be ready."""
_DRAIN = 40.0
"""Seconds for the proxy to carry out what is late, and for a worker to end after SIGTERM."""

service_key = "soak-key"


class SoakError(Exception):
    """The soak itself went wrong: nothing is known about the package."""


def environment(folder: Path, url: str | None = None) -> dict[str, str]:
    """What a process of the soak sees: nothing of LiveKit, OpenAI or Supermemory that is set up on this machine."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LIVEKIT_", "OPENAI_", "SUPERMEMORY_"))
    }
    where = {} if url is None else {"SUPERMEMORY_BASE_URL": url, "SUPERMEMORY_API_KEY": service_key}
    return {**kept, **where, "SUPERMEMORY_LIVEKIT_CACHE": str(folder / "cache")}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Process:
    """One process with a log of its own."""

    def __init__(self, folder: Path, name: str, command: Sequence[str], url: str | None = None) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command], env=environment(folder, url), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def ended(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def terminate(self, timeout: float = _DRAIN) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SoakError(f"{self.log.name}: the process did not end") from None


class Service:
    """`supermemory-livekit serve` on one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "supermemory_livekit.cli", "serve", "--port", str(self._port)]
        command += ["--path", str(self._folder / "memory.db"), "--api-key", service_key]
        self._process = Process(self._folder, "service", command)

    def ready(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + _START
        while not self._answers():
            if self._process.ended is not None or time.monotonic() > deadline:
                raise SoakError("the service does not start; see service.log")
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            return httpx.get(self.url + "/health", timeout=5, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        self._process.kill()


class Proxy:
    """`bench.soak.proxy`."""

    def __init__(self, folder: Path, service: Service, seed: int, share: float) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.log = folder / "requests.jsonl"
        command = [sys.executable, "-m", "bench.soak.proxy", str(self._port), service.url]
        self._process = Process(folder, "proxy", [*command, str(seed), str(share), str(self.log)])
        deadline = time.monotonic() + _START
        while "ready" not in self._process.log.read_text():
            if self._process.ended is not None or time.monotonic() > deadline:
                raise SoakError("the proxy does not start; see proxy.log")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it; what is to be carried out late is carried out first."""
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


class Worker:
    """One slot: a worker process, and after its death the next one with the calls that are left."""

    def __init__(self, folder: Path, slot: int, url: str, size: Size, calls: Sequence[PlannedCall]) -> None:
        self.slot = slot
        self.generation = 0
        self.deaths: dict[int, str] = {}
        """Generation -> how its process was ended."""
        self._folder = folder
        self._url = url
        self._size = size
        self._calls = tuple(calls)
        self._told: float | None = None
        """When it was told to stop."""
        self.start(self._calls)

    @property
    def truth(self) -> Path:
        return self._folder / f"truth-{self.slot}-{self.generation}.jsonl"

    def start(self, calls: Sequence[PlannedCall]) -> None:
        self._calls = tuple(calls)
        task = Task(
            slot=self.slot,
            generation=self.generation,
            seed=self._size.seed,
            at_once=self._size.at_once,
            pace=self._size.pace,
            truth=str(self.truth),
            spool=str(self._folder / "spool") if self._size.spool else None,
            calls=self._calls,
        )
        path = self._folder / f"task-{self.slot}-{self.generation}.json"
        path.write_text(json.dumps(task.to_json()))
        command = [sys.executable, "-m", "bench.soak.worker", str(path)]
        self._process = Process(self._folder, f"worker-{self.slot}", command, self._url)

    def next_generation(self, calls: Sequence[PlannedCall]) -> None:
        self.generation += 1
        self._told = None
        self.start(calls)

    @property
    def runs(self) -> bool:
        return self._process.ended is None

    @property
    def can_be_killed(self) -> bool:
        """Whether calls are under way and nobody has told it to stop."""
        return self.runs and self._told is None and bool(self.progress()[1])

    def end(self, number: signal.Signals) -> None:
        self.deaths[self.generation] = number.name
        self._told = time.monotonic()
        self._process.send(number)

    def look(self) -> bool:
        """Whether the process has ended; a `SoakError` when it failed, or does not end."""
        if self.runs:
            if self._told is not None and time.monotonic() - self._told > _DRAIN:
                raise SoakError(f"worker {self.slot} does not end after SIGTERM")
            return False
        if self._process.ended != 0 and self.generation not in self.deaths:
            raise SoakError(f"worker {self.slot} failed; see {self._process.log.name}")
        return True

    def progress(self) -> tuple[set[str], dict[str, int]]:
        """Calls that have ended, and how many turns were taken in each of the others that have begun."""
        ended: set[str] = set()
        turns: dict[str, int] = {}
        for event in events(self.truth):
            if event["event"] == "end":
                ended.add(event["session_id"])
                turns.pop(event["session_id"], None)
            elif event["event"] == "say":
                turns[event["session_id"]] = turns.get(event["session_id"], 0) + 1
        return ended, turns

    def left(self) -> tuple[list[PlannedCall], list[PlannedCall]]:
        """Calls that were under way, with the turns that are left of them, and calls that have not begun."""
        ended, turns = self.progress()
        going_on: list[PlannedCall] = []
        to_come: list[PlannedCall] = []
        for call in self._calls:
            if call.session_id in turns:
                # At least the goodbye is left: a call that was about to end is ended by its next worker.
                rest = max(1, call.turns - turns[call.session_id])
                going_on.append(PlannedCall(call.session_id, call.caller, call.others, rest))
            elif call.session_id not in ended:
                to_come.append(call)
        return going_on, to_come

    def kill(self) -> None:
        if self.runs:
            self._process.kill()


def flush_command(folder: Path, url: str) -> tuple[int, str]:
    """`supermemory-livekit flush` on the spool: its exit code, and what it printed."""
    command = [sys.executable, "-m", "supermemory_livekit.cli", "flush", "--spool-dir", str(folder / "spool")]
    done = subprocess.run(
        command, env=environment(folder, url), capture_output=True, text=True, timeout=600, check=False
    )
    with (folder / "flush.log").open("a") as log:
        log.write(done.stdout + done.stderr)
    return done.returncode, done.stdout
