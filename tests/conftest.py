"""Fixtures for every test. Every loop is a `VirtualLoop`: a normal one until a test asks for `clock`."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable

import pytest

from tests.support.clock import VirtualClock, VirtualLoop, let_chat_items_follow_time, virtual_time

let_chat_items_follow_time()


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture(autouse=True)
def _no_cache_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the cache of the person who runs it."""
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[VirtualClock]:
    """Virtual time for this test: no wait takes real time, see `tests.support.clock`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    with virtual_time(loop, monkeypatch) as running:
        yield running
