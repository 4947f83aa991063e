"""One world for all tests of a module: starting a worker takes longer than a call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
import pytest_asyncio

from tests.e2e.network import NoNetwork
from tests.e2e.world import World, world


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="here")
async def _here(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[World]:
    """A world whose worker runs jobs as the module's `EXECUTOR` says."""
    try:
        async with world(tmp_path_factory.mktemp("calls"), executor=_executor(request)) as here:
            yield here
    except NoNetwork as reason:
        pytest.skip(f"LIVEKIT_URL is not set, and the double has no network: {reason}")


def _executor(request: pytest.FixtureRequest) -> str:
    return str(cast(Any, request).module.EXECUTOR)
