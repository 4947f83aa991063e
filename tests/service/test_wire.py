"""What leaves the process: one tag per request, and connections to the address that was given, to no other."""

# Runs in real time: a real server on the loopback answers.

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from supermemory_livekit import InputParams, SupermemoryLiveKit
from supermemory_livekit.local import create_app
from supermemory_livekit.testing import ToolCall
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

from .world import KEY, World, agent_over, echo, uses

TAG = "ana-zanzibar"


@dataclass
class Connections:
    """Every address that this process connects to or looks up while it listens."""

    listening: bool = False
    seen: set[tuple[object, object]] = field(default_factory=lambda: set[tuple[object, object]]())

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.listening:
            return
        if event == "socket.connect" and args[0].family in (socket.AF_INET, socket.AF_INET6):
            self.seen.add(tuple(args[1][:2]))
        elif event == "socket.getaddrinfo":
            self.seen.add((args[0], args[1]))

    @contextmanager
    def listen(self) -> Generator[None]:
        self.listening = True
        try:
            yield
        finally:
            self.listening = False


@pytest.fixture(scope="module")
def connections() -> Connections:
    connections = Connections()
    # Python's own report of every connection, whatever library makes it. It cannot be taken away, only ignored.
    sys.addaudithook(connections.hook)
    return connections


@pytest.fixture
async def port(world: World) -> AsyncGenerator[int]:
    """The embedded service of this test, listening on the loopback."""
    app = create_app(world.engine, api_key=KEY)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await asyncio.wait_for(serving, 20)


@pytest.mark.parametrize("slash", ["", "/"], ids=["without slash", "with slash"])
@pytest.mark.parametrize("by", ["argument", "environment"])
async def test_a_whole_call_talks_to_the_given_address_and_to_no_other(
    monkeypatch: pytest.MonkeyPatch,
    world: World,
    port: int,
    connections: Connections,
    by: str,
    slash: str,
) -> None:
    """Case P4: recall, capture, tools and closing included."""
    address = f"http://127.0.0.1:{port}{slash}"
    monkeypatch.setenv("SUPERMEMORY_API_KEY", KEY)
    if by == "environment":
        monkeypatch.setenv("SUPERMEMORY_BASE_URL", address)
    else:
        monkeypatch.delenv("SUPERMEMORY_BASE_URL", raising=False)
    await world.knows(TAG, "Likes zanzibar tea.")
    with connections.listen():
        memory = SupermemoryLiveKit(
            base_url=address if by == "argument" else None,
            container_tag=TAG,
            session_id="room-1",
            params=InputParams(recall_timeout=10.0),
        )
        model = uses(
            ToolCall("remember", {"memory": "Has a zanzibar parrot."}),
            ToolCall("search_memories", {"query": "zanzibar tea"}),
        )
        async with started(agent_over(memory), llm=model) as session:
            memory.attach(session)
            assert await say(session, "Hello from zanzibar.") == "Done."
            assert "Forgotten" in await memory.forget(memory_text="Likes zanzibar tea.")
        await memory.aclose()
    assert "Likes zanzibar tea." in model.seen[0].text
    assert await world.transcript(TAG) == ["Caller: Hello from zanzibar.", "Agent: Done."]
    assert "Likes zanzibar tea." not in await world.memory(TAG, "room-2").search("zanzibar tea")
    assert connections.seen == {("127.0.0.1", port)}
    connections.seen.clear()


async def test_every_operation_names_one_tag_as_one_string(clock: VirtualClock, world: World) -> None:
    """Case P8. The check itself runs after every test here; this one shows that each operation passes through it."""
    await world.knows(TAG, "Likes zanzibar tea.")
    memory = world.memory(TAG)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "Hello from zanzibar.")
        await memory.remember("Has a zanzibar parrot.")
        await world.settled()
        await memory.forget(memory_text="Has a zanzibar parrot.")
        await memory.forget(memory_text="Likes zanzibar tea.")
    await memory.aclose()
    sent = {f"{request.method} {request.path}" for request in world.wire.requests}
    assert {"POST /v3/documents", "POST /v4/profile", "POST /v4/search", "DELETE /v4/memories"} <= sent
    tags = [
        request.body.get("containerTag") or request.body["containerTags"][0]
        for request in world.wire.requests
        if request.body
    ]
    assert set(tags) == {TAG}
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in world.wire.requests)
