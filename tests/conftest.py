"""Fixtures for every test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import settings

from supermemory_livekit.testing import VirtualClock, virtual_time

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _no_cache_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the cache of the person who runs it."""
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")


@pytest.fixture
async def clock() -> AsyncIterator[VirtualClock]:
    """Virtual time for this test: no wait takes real time, see `supermemory_livekit.testing.clock`."""
    with virtual_time() as running:
        yield running
