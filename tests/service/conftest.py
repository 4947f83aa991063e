"""A service per test, and what holds in every test: privacy, the shape of requests, no error left lying about."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.privacy import assert_private

from .faults import ECHO
from .world import KEY, World

LOGGERS = ("supermemory_livekit", "supermemory", "httpx", "httpcore", "asyncio")
"""Ours, and those below us that we can influence."""

SECRETS = ("zanzibar", ECHO, KEY)
"""`zanzibar` is part of everything that is spoken, remembered or recalled here, and of every tag."""


@pytest.fixture(autouse=True)
def _private(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """Case P2, in every test of this directory: no words, memory, tag or key in a log message at DEBUG."""
    caplog.set_level(logging.DEBUG)
    yield
    caplog.handler.records[:] = caplog.get_records("call")
    assert caplog.records, "nothing was logged, so nothing was checked"
    for logger in LOGGERS:
        assert_private(caplog, SECRETS, logger=logger)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    loop = asyncio.get_running_loop()
    unhandled: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    world = World(tmp_path / "memory.db")
    try:
        yield world
    finally:
        await world.aclose()
        loop.set_exception_handler(None)
    assert unhandled == []
    world.check_requests()
    for request in world.wire.requests:
        # Routes that name a caller in their address, which is kept out of the log: see `unlogged`.
        if not request.path.startswith(("/v3/container-tags/", "/ns/")):
            assert not any(secret in request.url for secret in SECRETS)
