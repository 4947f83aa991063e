"""Fixtures for tests of agents with memory. pytest loads this module wherever supermemory-livekit is installed.

It stands beside the package, since importing anything inside the package imports LiveKit: seconds that a test run
without these fixtures must not pay. Each fixture imports what it needs when it is used.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from supermemory_livekit.testing import ScriptedStore, VirtualClock


@pytest.fixture
def supermemory_store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ScriptedStore]:
    """A `supermemory_livekit.testing.ScriptedStore`: it stands where Supermemory stands.

    After a test that passed it is verified: calls that `forbid` excluded, and scripted steps that were not used, fail
    the test. No cache of vectors is read or written.
    """
    from supermemory_livekit.testing import ScriptedStore

    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")
    store = ScriptedStore()
    failed_before = request.session.testsfailed
    yield store
    # A test that failed has said what is wrong.
    if request.session.testsfailed == failed_before:
        store.verify()


@pytest.fixture
def supermemory_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded memory service (extra `[local]`) on a file of this test's own; the fixture is its path.

    `SupermemoryLiveKit()` finds it by the environment, as it finds Supermemory in production. No cache of vectors
    is read or written.
    """
    path = tmp_path / "supermemory.db"
    monkeypatch.setenv("SUPERMEMORY_BASE_URL", "local")
    monkeypatch.setenv("SUPERMEMORY_LOCAL_PATH", str(path))
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")
    # Code that passes the key on finds one, and never that of the person who runs the test.
    monkeypatch.setenv("SUPERMEMORY_API_KEY", "unused")
    # Facts are drawn by rules, whatever model the machine is set up for.
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    return path


if importlib.util.find_spec("pytest_asyncio") is not None:
    import pytest_asyncio

    @pytest_asyncio.fixture
    async def supermemory_clock() -> AsyncIterator[VirtualClock]:
        """Virtual time for this test: a wait of ten seconds takes none. A `supermemory_livekit.testing.VirtualClock`.

        Name it before other fixtures that start something. The test has to run in an event loop of its own, as
        pytest-asyncio has it by default; in a loop that several tests share, use `virtual_time()` in the test.
        """
        from supermemory_livekit.testing import virtual_time

        with virtual_time() as clock:
            yield clock
