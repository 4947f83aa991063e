"""The official clients run against the service unchanged, each as a program in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Served
from .packages import CLIENTS, installed

# Installing counts, too, the first time.
pytestmark = pytest.mark.timeout(400)

PROGRAMS = Path(__file__).parent / "programs"


async def ran(name: str, step: str, served: Served) -> Any:
    """What the client's program saw in this step."""
    packages = await asyncio.to_thread(installed, name)
    program = PROGRAMS / CLIENTS[name].program
    command = ["node"] if CLIENTS[name].npm else [sys.executable, "-W", "ignore"]
    process = await asyncio.create_subprocess_exec(
        *command,
        str(program),
        step,
        *([served.url] if name in ("pipecat", "cartesia") else []),
        env={
            **os.environ,
            "PYTHONPATH": str(packages),
            "CLIENT_PACKAGES": str(packages),
            "SUPERMEMORY_BASE_URL": served.url,
            "SUPERMEMORY_API_KEY": served.key,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, errors.decode()
    return json.loads(output.splitlines()[-1])


async def both(name: str, served: Served) -> tuple[Any, Any]:
    """What the program saw when it wrote, and when it read afterwards."""
    written = await ran(name, "write", served)
    assert await served.engine.settled(20)
    return written, await ran(name, "read", served)


@pytest.mark.parametrize("name", ["python-3.48", "python-3.62", "npm-4.25"])
async def test_clients_of_v3_and_v4_run_unchanged(name: str, served: Served) -> None:
    """Brief: Python 3.x, the oldest allowed and the newest, and npm 4.25."""
    written, seen = await both(name, served)
    assert len(written["id"]) == 22
    assert (written["status"], written["batch"]) == ("queued", 1)
    assert name.partition("-")[2] in seen.pop("version")
    facts = [line.partition("] ")[2] for line in seen.pop("static") + seen.pop("dynamic")]
    assert sorted(facts) == ["I sail on weekends.", "Likes tea", "Plays chess"]
    assert "Likes tea" in seen.pop("recalled")
    assert any("sail" in text for text in seen.pop("found"))
    assert any("sail" in text for text in seen.pop("documents"))
    assert {"kind": "note"} in seen.pop("executed")
    assert seen == {
        "status": ["done", "done"],
        "listed": [2, 3],
        "updated": ["Plays go", 2],
        "forgotten": True,
        "deleted": 2,
    }


async def test_the_client_of_v5_runs_unchanged(served: Served) -> None:
    """Brief: Python 5.x."""
    written, seen = await both("python-5.0", served)
    assert written == {"version": "5.0.1", "id": "call/1", "status": "queued", "batch": [1, 0]}
    facts = [line.partition("] ")[2] for line in seen.pop("static") + seen.pop("dynamic")]
    assert sorted(facts) == ["I sail on weekends.", "Likes tea", "Plays chess"]
    assert any("sail" in text for text in seen.pop("found"))
    assert seen == {
        "version": "5.0.1",
        "status": ["done", "done"],
        "made": ["I sail on weekends."],
        "pieces": True,
        "listed": [2, 3],
        "filtered": ["Likes tea"],
        "memory": ["Likes tea", True],
        "dry": ["Likes tea"],
        "forgotten": [1, ["none"]],
        "updated": "b",
        "namespaces": ["tenant:ana"],
        "described": "A sailor",
        "deleted": 1,
        "retired": "deleted",
    }


async def test_a_pipecat_pipeline_remembers_its_caller(served: Served) -> None:
    """Brief: `supermemory-pipecat`, with the frames and the context of Pipecat itself."""
    written, seen = await both("pipecat", served)
    assert "user_memories" not in json.dumps(written)
    (system, question) = seen["messages"]
    assert "<user_memories>" in system["content"]
    assert "I live in Bergen" in system["content"]
    assert "I sail on weekends" in system["content"]
    assert "role" not in system["content"], "the text of a call was taken for a fact"
    assert question == {"role": "user", "content": "Where do I sail?"}


async def test_a_cartesia_agent_remembers_its_caller(served: Served) -> None:
    """Brief: `supermemory-cartesia`, with the events of Line itself."""
    written, seen = await both("cartesia", served)
    assert written["given"][0] is None
    (given,) = seen["given"]
    assert "I live in Bergen" in given
    assert "I sail on weekends" in given
