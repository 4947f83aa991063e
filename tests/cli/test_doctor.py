"""`doctor` where the service is not what SDK and settings take it for: each finding names its likeliest cause."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from supermemory_livekit.local import Engine, create_app
from tests.clients.packages import installed

from .support import COMMAND, environment

# Installing the SDK 5.x counts, too, the first time.
pytestmark = pytest.mark.timeout(400)

KEY = "sm-doctor-key"


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(
            uvicorn.Config(app, access_log=False, log_level="warning", lifespan="off", ws="none")
        )
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def service(
    path: Path,
    *,
    without: Collection[str] = (),
    hosts: Collection[str] | None = None,
    key: str | None = KEY,
) -> AsyncIterator[str]:
    """The embedded service without the routes below some addresses, as a server of one generation of the API."""
    engine = Engine(path / "memory.db", load=lambda: None, drain=0)
    whole = create_app(engine, api_key=key, hosts=hosts)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        known = not str(scope["path"]).startswith(tuple(without)) if without else True
        answer = whole if known else JSONResponse({"error": "Not found"}, 404)
        await answer(scope, receive, send)

    try:
        async with listening(app) as url:
            yield url
    finally:
        await engine.aclose()


async def doctor(
    home: Path, url: str, *arguments: str, key: str = KEY, packages: Path | None = None
) -> tuple[int, dict[str, str], str]:
    """Its exit code, the first line of each check that failed by name, and all it printed."""
    settings = {"SUPERMEMORY_BASE_URL": url, "SUPERMEMORY_API_KEY": key, "SUPERMEMORY_LIVEKIT_CACHE": "off"}
    if packages is not None:
        settings["PYTHONPATH"] = str(packages)
    done = await asyncio.to_thread(
        subprocess.run,
        [*COMMAND, "doctor", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(home, **settings),
        check=False,
    )
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines() if line.startswith("failed")]
    return done.returncode, {name: found for _, name, found in rows}, done.stdout + done.stderr


OLD, NEW = ("/ns", "/namespaces"), ("/v3", "/v4")
"""What a server without v5, and one with nothing else, has not."""


@pytest.mark.parametrize("without", [OLD, (*OLD, "/v4")], ids=["v3 and v4", "v3 alone"])
async def test_a_server_without_v5_is_told_with_the_command_that_helps(
    tmp_path: Path, without: tuple[str, ...]
) -> None:
    """A doubt of ours: a fresh install takes the SDK 5.x, which a self-hosted server of v3/v4 does not understand."""
    packages = installed("python-5.0")
    async with service(tmp_path, without=without) as url:
        code, failed, printed = await doctor(tmp_path, url, packages=packages)
    assert code == 1
    assert failed == {"api": "the service speaks v3/v4 of the API, the installed supermemory 5.0.1 v5 alone"}
    assert '-> pip install "supermemory<5"\n' in printed
    assert "doctor-" not in printed


async def test_with_the_sdk_5_a_server_of_v5_is_well_and_another_program_is_not_taken_for_an_old_one(
    tmp_path: Path,
) -> None:
    """The command is printed when it helps, and only then. The clock is looked at with this SDK, too."""
    packages = installed("python-5.0")
    async with service(tmp_path, without=NEW) as url:
        code, failed, printed = await doctor(tmp_path, url, packages=packages)
    assert (code, failed) == (0, {})
    assert "ok       clock" in printed
    async with listening(PlainTextResponse("no such page", 404)) as url:
        code, failed, printed = await doctor(tmp_path, url, packages=packages)
    assert (code, list(failed)) == (1, ["reach"])
    assert "-> pip" not in printed


async def test_a_server_of_v5_alone_is_told_to_the_sdk_3(tmp_path: Path) -> None:
    """The same the other way round."""
    async with service(tmp_path, without=NEW) as url:
        code, failed, printed = await doctor(tmp_path, url)
    assert (code, list(failed)) == (1, ["api"])
    assert '-> pip install "supermemory>=5,<6"\n' in printed


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (
            PlainTextResponse("no such page", 404),
            "what answers there is no Supermemory: it has no route of the API (404)",
        ),
        (PlainTextResponse("no POST here", 501), "what answers has no such route (501)"),
        (
            PlainTextResponse("<html>Welcome!</html>"),
            "what answers is not understood: it may be another program",
        ),
        (RedirectResponse("https://elsewhere.test/"), "what answers points to another address (307)"),
        (PlainTextResponse("down", 502), "the service, or a proxy before it, is out of order (502)"),
    ],
    ids=["404", "501", "a page", "redirect", "502"],
)
async def test_another_program_is_a_matter_of_the_address_and_not_of_the_key(
    tmp_path: Path, answer: ASGIApp, found: str
) -> None:
    """A stranger's remark: doctor blamed the key when the address was wrong."""
    async with listening(answer) as url:
        code, failed, printed = await doctor(tmp_path, url)
    assert (code, failed) == (1, {"reach": found})
    assert "SUPERMEMORY_BASE_URL" in printed or "Look at its log" in printed
    assert "Set SUPERMEMORY_API_KEY" not in printed
    assert "elsewhere" not in printed
    assert "Welcome" not in printed


async def test_a_path_in_the_address_is_named(tmp_path: Path) -> None:
    """The addresses in the documentation of an API often have one."""
    async with service(tmp_path) as url:
        _, failed, printed = await doctor(tmp_path, f"{url}/v4")
    assert list(failed) == ["reach"]
    assert "-> Leave the path /v4 out of --base-url" in printed


async def test_a_refused_host_name_is_not_taken_for_a_refused_key(tmp_path: Path) -> None:
    """A stranger's remark: `serve` answers 403 to a name that it is not called by, whatever the key."""
    async with service(tmp_path, hosts=["memory.test"]) as url:
        code, failed, printed = await doctor(tmp_path, url)
    assert (code, list(failed)) == (1, ["reach"])
    assert "start it with --allow-host 127.0.0.1." in printed
    assert "Set SUPERMEMORY_API_KEY" not in printed


@pytest.mark.parametrize(
    ("address", "found"),
    [
        (lambda url: url.replace("http:", "https:"), "what listens there speaks no TLS"),
        (lambda _: "http://no-such-host.invalid", "no host of this name is known here"),
    ],
    ids=["TLS", "name"],
)
async def test_what_keeps_it_from_the_service_is_told(
    tmp_path: Path, address: Callable[[str], str], found: str
) -> None:
    """One sentence for all of them sends people in the wrong direction."""
    async with service(tmp_path) as url:
        code, failed, _ = await doctor(tmp_path, address(url))
    assert (code, failed) == (1, {"reach": found})


async def test_a_database_of_the_embedded_service_that_cannot_be_used_is_no_matter_of_the_network(
    tmp_path: Path,
) -> None:
    """It answers 503 like a server behind a proxy; a firewall has nothing to do with it."""
    (tmp_path / "file").write_text("no directory")
    code, failed, printed = await doctor(tmp_path, f"local:{tmp_path / 'file' / 'memory.db'}", key="")
    assert (code, failed) == (1, {"reach": "the embedded service cannot use its database (503)"})
    assert "local:PATH or SUPERMEMORY_LOCAL_PATH names another file" in printed
    assert "ok       key         the embedded service needs none\n" in printed


async def test_a_service_that_asks_for_no_key_is_well(tmp_path: Path) -> None:
    """`serve --no-key`: a key that is missing is no fault there."""
    async with service(tmp_path, key=None) as url:
        code, failed, printed = await doctor(tmp_path, url, "--no-round-trip", key="")
    assert (code, failed) == (0, {})
    assert "ok       key         none is set, and none is asked for\n" in printed
