"""`serve` as an operator meets it."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from supermemory import AsyncSupermemory, AuthenticationError

from .support import COMMAND, environment, run

pytestmark = pytest.mark.timeout(120)


@contextmanager
def serving(home: Path, *arguments: str, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server in a process of its own, and what it printed until it was ready."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, **settings),
    )
    assert process.stdout is not None
    printed = ""
    try:
        while "Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, f"the server ended: {process.communicate()}"
            printed += line
        yield process, printed
    finally:
        process.kill()
        process.communicate()


def setting(printed: str, name: str) -> str:
    found = re.search(rf"export {name}=(.*)", printed)
    assert found, printed
    return found[1]


def stopped(process: subprocess.Popen[str], by: signal.Signals) -> tuple[int, str]:
    process.send_signal(by)
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


async def ask(printed: str, key: str) -> list[str]:
    async with AsyncSupermemory(
        api_key=key, base_url=setting(printed, "SUPERMEMORY_BASE_URL"), max_retries=0
    ) as sdk:
        await sdk.add(content="Is allergic to nuts", container_tag="ana")
        found = await sdk.search.memories(q="nuts", container_tag="ana", threshold=0.0, search_mode="hybrid")
        return [hit.memory or hit.chunk or "" for hit in found.results]


async def test_the_printed_lines_are_all_a_worker_needs(tmp_path: Path) -> None:
    """Design 1: `serve` for several workers. The official SDK works with the address and key it prints."""
    with serving(tmp_path, "--path", str(tmp_path / "memory.db")) as (process, printed):
        found = await asyncio.wait_for(ask(printed, setting(printed, "SUPERMEMORY_API_KEY")), 30)
        with pytest.raises(AuthenticationError):
            await asyncio.wait_for(ask(printed, "sm_local_wrong"), 30)
        code, errors = await asyncio.to_thread(stopped, process, signal.SIGTERM)
    assert found == ["Is allergic to nuts"]
    assert (code, errors) == (0, "")
    assert str(tmp_path / "memory.db") in printed


def test_a_key_is_shown_once_and_then_where_it_lies(tmp_path: Path) -> None:
    """A key in every start's output would end in log files."""
    with serving(tmp_path) as (process, printed):
        key = setting(printed, "SUPERMEMORY_API_KEY")
        assert stopped(process, signal.SIGINT) == (0, "")
    with serving(tmp_path) as (process, printed):
        assert key not in printed
        command = setting(printed, "SUPERMEMORY_API_KEY")
        assert stopped(process, signal.SIGTERM) == (0, "")
    assert subprocess.check_output(["sh", "-c", f"printf %s {command}"], text=True) == key


async def test_a_key_of_ones_own_is_taken_from_the_environment_and_not_shown(tmp_path: Path) -> None:
    """Design 1: workers on one machine share a key that their operator chose."""
    with serving(tmp_path, SUPERMEMORY_LOCAL_KEY="my-own-key") as (_, printed):
        found = await asyncio.wait_for(ask(printed, "my-own-key"), 30)
    assert found == ["Is allergic to nuts"]
    assert "my-own-key" not in printed


def test_a_taken_port_or_a_foreign_file_is_one_plain_line(tmp_path: Path) -> None:
    """An operator needs the reason, not a stack trace."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", "--port", str(taken.getsockname()[1]), home=tmp_path)
    assert result.returncode == 1
    assert re.fullmatch(r"Cannot serve: .+\n", result.stderr)
    foreign = tmp_path / "foreign.db"
    foreign.write_text("this is no database" * 100)
    result = run("serve", "--port", "0", "--path", str(foreign), home=tmp_path)
    assert result.returncode == 1
    assert re.fullmatch(r"Cannot serve: .+\n", result.stderr)


def test_without_a_key_it_says_so_and_still_keeps_others_out(tmp_path: Path) -> None:
    """The key is switched off by name. Names that somebody made lead to this machine, and floods, are kept out."""
    with serving(tmp_path, "--no-key", "--allow-host", "memory.test", "--rate-limit", "0.01") as (_, printed):
        assert "none is asked for" in printed
        assert setting(printed, "SUPERMEMORY_API_KEY") == "any"
        url = setting(printed, "SUPERMEMORY_BASE_URL")
        named = [httpx.get(f"{url}/ns", headers={"host": name}) for name in ("memory.test", "evil.test")]
        assert [answer.status_code for answer in named] == [200, 403]
        flooded = httpx.get(f"{url}/ns")
    assert flooded.status_code == 429
    assert 1 <= int(flooded.headers["retry-after"]) <= 100


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "http://127.0.0.1:"), ("::", "http://[::1]:")])
async def test_on_all_interfaces_it_prints_an_address_that_can_be_opened(
    host: str, shown: str, tmp_path: Path
) -> None:
    """A stranger's remark: nobody can open the address that stands for all. It says so, and who is let in."""
    if host == "::" and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    with serving(tmp_path, "--host", host, SUPERMEMORY_LOCAL_KEY="my-own-key") as (_, printed):
        assert setting(printed, "SUPERMEMORY_BASE_URL").startswith(shown)
        assert await asyncio.wait_for(ask(printed, "my-own-key"), 30) == ["Is allergic to nuts"]
    assert "listens on all interfaces" in printed
    assert "Host names:      any; with --allow-host" in printed
    assert host not in printed.replace("[::1]", "")


def test_on_all_interfaces_with_names_it_says_which_and_admits_no_other(tmp_path: Path) -> None:
    """A stranger's remark: a proxy's name is refused, and the refusal has to say what to do. It repeats no header."""
    with serving(tmp_path, "--host", "0.0.0.0", "--allow-host", "memory.test") as (_, printed):
        url = setting(printed, "SUPERMEMORY_BASE_URL")
        answers = {
            name: httpx.get(f"{url}/health", headers={"host": name})
            for name in ("memory.test", "localhost", "0.0.0.0", "proxy.test")
        }
    assert "Host names:      localhost, 127.0.0.1, ::1, memory.test; --allow-host NAME adds one" in printed
    assert [answer.status_code for answer in answers.values()] == [200, 200, 403, 403]
    assert "--allow-host" in answers["proxy.test"].json()["details"]
    assert "proxy.test" not in answers["proxy.test"].text


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_an_open_address_without_a_key_is_refused(tmp_path: Path) -> None:
    """Everybody on the network could read what callers said."""
    ended = run("serve", "--no-key", "--host", "0.0.0.0", "--port", "0", home=tmp_path)
    assert ended.returncode == 1
    assert "loopback" in ended.stderr


def test_a_database_that_cannot_be_reached_is_one_plain_line_without_its_password(tmp_path: Path) -> None:
    """Issue, storage: `serve --database postgresql://…`, and no credentials in what is printed."""
    result = run(
        "serve", "--port", "0", "--database", "postgresql://ana:secret@127.0.0.1:1/app", home=tmp_path
    )
    assert result.returncode == 1
    assert re.fullmatch(r"Cannot serve: The PostgreSQL .+\n", result.stderr)
    assert "secret" not in result.stderr + result.stdout
