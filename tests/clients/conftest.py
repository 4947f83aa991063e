"""The service over real HTTP, in this process, so that a test can wait until everything stored has become memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn

from supermemory_livekit.local import Engine, create_app

KEY = "sm_local_clients"


@dataclass
class Served:
    """A running server."""

    url: str
    key: str
    engine: Engine


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    # No delay: the voice integrations leave it to the service when a call becomes memories.
    engine = Engine(tmp_path / "memory.db", dynamic_delay=0.0, drain=0.0)
    app = create_app(engine, api_key=KEY, hosts=["127.0.0.1"], rate=1000)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(app, access_log=False, log_level="warning", ws="none")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", KEY, engine)
        finally:
            server.should_exit = True
            await running
