"""The embedded service under the official SDK, on a file of its own per test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from supermemory import AsyncSupermemory

from supermemory_livekit.local import Engine, open_local

from .support import KeepEverything, Service, word_model

Serve = Callable[..., Service]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., Service]]:
    """Opens services, by default all on one file; closes them after the test. Words alone decide what is found."""
    async with AsyncExitStack() as stack:

        def opened(**options: object) -> Service:
            settings: dict[str, object] = {
                "path": tmp_path / "data" / "memory.db",
                "extractor": KeepEverything(),
                "load": lambda: None,
                "drain": 0.0,
                **options,
            }
            engine = Engine(**settings)  # type: ignore[arg-type]
            http = open_local(engine=engine)
            sdk = AsyncSupermemory(
                api_key="none", base_url="http://local", http_client=http, max_retries=0, timeout=30
            )
            stack.push_async_callback(sdk.close)
            return Service(engine, http, sdk)

        yield opened


@pytest.fixture
async def service(serve: Callable[..., Service]) -> Service:
    return serve()


@pytest.fixture
async def sdk(service: Service) -> AsyncSupermemory:
    return service.sdk


@pytest.fixture
async def http(service: Service) -> httpx.AsyncClient:
    return service.http


@pytest.fixture
async def meaning(serve: Callable[..., Service]) -> Service:
    """A service with a model, a very small one."""
    return serve(load=word_model)
