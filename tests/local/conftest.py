"""The embedded service under the official SDK, on a database of its own per test.

A module with `DATABASES = ("sqlite", "postgresql")` has its tests run on both; the others are about what comes
before the database, and run on SQLite.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from supermemory import AsyncSupermemory

from supermemory_livekit.local import Engine, create_app, open_local
from supermemory_livekit.local.inspector import inspector_routes

from .support import INSPECTOR_KEY, Inspected, KeepEverything, Service, drop_schema, word_model

Serve = Callable[..., Service]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server with pgvector: `$SUPERMEMORY_TEST_POSTGRES`, else one started here."""
    given = os.environ.get("SUPERMEMORY_TEST_POSTGRES")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its dependencies, about this machine's directories
        pgserver = pytest.importorskip("pgserver", reason="no wheel of a PostgreSQL server for this Python")
    # Not in pytest's directory, which only its owner may enter: started by root, the server has a user of its own.
    directory = tempfile.mkdtemp(prefix="supermemory-postgres-")
    try:
        server = pgserver.get_server(directory, cleanup_mode="delete")
    except Exception as error:  # noqa: BLE001 - whatever this machine lacks
        pytest.skip(f"no PostgreSQL server can be started here: {type(error).__name__}")
    # Tests kill clients, never the machine.
    server.psql("ALTER SYSTEM SET fsync=off; SELECT pg_reload_conf(); CREATE EXTENSION vector;")
    yield str(server.get_uri())
    server.cleanup()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "location" in metafunc.fixturenames and hasattr(metafunc.module, "DATABASES"):
        metafunc.parametrize("location", metafunc.module.DATABASES, indirect=True)


@pytest.fixture
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """An empty database: a path that is not there yet, or the address of a schema that is not."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield tmp_path / "data" / "memory.db"
        return
    address = str(request.getfixturevalue("postgres"))
    schema = f"test_{secrets.token_hex(8)}"
    yield f"{address}{'&' if '?' in address else '?'}schema={schema}"
    drop_schema(address, schema)


@pytest.fixture
async def serve(location: Path | str) -> AsyncIterator[Callable[..., Service]]:
    """Opens services, by default all on one database; closes them after the test. Words alone decide what is found."""
    async with AsyncExitStack() as stack:

        def opened(**options: object) -> Service:
            settings: dict[str, object] = {
                "path": location,
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


@pytest.fixture
async def inspect(serve: Callable[..., Service]) -> AsyncIterator[Callable[..., Inspected]]:
    """Opens services as `serve` does, with the inspector."""
    async with AsyncExitStack() as stack:

        def opened(**options: object) -> Inspected:
            service = serve(**options)
            app = create_app(
                service.engine, api_key=INSPECTOR_KEY, extra_routes=inspector_routes(service.engine)
            )
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            headers = {"Authorization": f"Bearer {INSPECTOR_KEY}"}
            client = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
            stack.push_async_callback(client.aclose)
            return Inspected(service, client)

        yield opened


@pytest.fixture
async def page(inspect: Callable[..., Inspected]) -> Inspected:
    return inspect()
