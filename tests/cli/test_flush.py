"""`flush`: what killed workers left is delivered, and only counts are printed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from supermemory_livekit.cli.flush import deliver
from supermemory_livekit.erasure.erasure import erase_everywhere
from supermemory_livekit.errors import ServiceUnavailable
from supermemory_livekit.scope import Scope
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.spool.spool import Spool
from supermemory_livekit.testing import Fail, ScriptedStore
from supermemory_livekit.transcript import Turn
from tests.support.clock import VirtualClock
from tests.unit.capturing import START

from .support import environment, run


def test_it_delivers_what_is_left_and_prints_counts(tmp_path: Path) -> None:
    """Issue: exit code 0 when all is delivered; the words are not printed."""
    spool = Spool(tmp_path / "spool")
    spool.turns([Turn("caller", "secret words", START)], Scope("ana", "room", "lk-room"))
    spool.close()
    result = run(
        "flush",
        "--spool-dir",
        str(tmp_path / "spool"),
        "--base-url",
        f"local:{tmp_path / 'db.sqlite'}",
        home=tmp_path,
    )
    assert result.returncode == 0
    assert "Delivered:         1 turn\n" in result.stdout
    assert "secret" not in result.stdout + result.stderr
    assert list((tmp_path / "spool").iterdir()) == []


def test_it_runs_without_the_extra(tmp_path: Path) -> None:
    """Issue: workers have the core install, and their host has to be able to deliver."""
    (tmp_path / "spool").mkdir()
    modules = ("typer", "rich", "uvicorn", "starlette")
    without = f"import sys; sys.modules.update(dict.fromkeys({modules!r}))"
    done = subprocess.run(
        [
            *[sys.executable, "-c", f"{without}; from supermemory_livekit.cli import main; main()"],
            *["flush", "--spool-dir", str(tmp_path / "spool")],
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(tmp_path, SUPERMEMORY_API_KEY="unused"),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Not delivered:     0 turns\n" in done.stdout


def test_it_says_what_is_wrong_with_its_setup(tmp_path: Path) -> None:
    """Exit code 2, apart from words that could not be delivered."""
    missing = run("flush", "--spool-dir", str(tmp_path / "none"), home=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "is no directory" in missing.stderr
    (tmp_path / "spool").mkdir()
    keyless = run("flush", "--spool-dir", str(tmp_path / "spool"), home=tmp_path)
    assert (keyless.returncode, keyless.stdout) == (2, "")
    assert keyless.stderr.startswith("Wrong set-up: neither a key nor an address is set. ")


def _left_of_ana(directory: Path) -> None:
    spool = Spool(directory)
    spool.turns([Turn("caller", "secret words", START)], Scope("ana", "room", "lk-room"))
    spool.close()


async def test_it_delivers_nothing_of_a_caller_who_is_erased_while_it_waits(
    clock: VirtualClock, tmp_path: Path
) -> None:
    """Issue: nothing that was on its way lands after an erasure, also not what an outage made wait."""
    _left_of_ana(tmp_path)
    store = ScriptedStore().always("append", Fail(ServiceUnavailable("append answered 503", status=503)))
    flushing = asyncio.ensure_future(deliver(store, tmp_path))
    await asyncio.sleep(1)
    erasing = asyncio.ensure_future(erase_everywhere(store, "ana", spool_dir=tmp_path, timeout=60))
    await asyncio.sleep(0.1)
    store.always("append", None)
    done = await erasing
    result = await flushing
    assert done.clean, done
    assert store.documents == {}
    assert (result.delivered, result.left) == (0, 0)
    assert SpoolDirectory(tmp_path).files() == []


class QueuesWrites(ScriptedStore):
    """Does what it is asked to write some seconds later, and answers then."""

    async def append(self, *args: Any, **options: Any) -> str | None:
        await asyncio.sleep(8)
        return await super().append(*args, **options)


async def test_what_it_was_just_delivering_is_read_back_and_deleted(
    clock: VirtualClock, tmp_path: Path
) -> None:
    """Decision 0017: a request under way in another process cannot be stopped. Who erases waits for its file, and
    looks again."""
    _left_of_ana(tmp_path)
    store = QueuesWrites()
    flushing = asyncio.ensure_future(deliver(store, tmp_path))
    await asyncio.sleep(1)
    done = await erase_everywhere(store, "ana", spool_dir=tmp_path, timeout=60)
    assert (await flushing).delivered == 1
    assert done.clean, done
    assert done.documents == 1
    assert store.documents == {}
