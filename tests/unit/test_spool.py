"""What was said outlives a process that is killed, and is delivered once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.clock import VirtualClock
from tests.unit.capturing import ANA, Call, stored

from supermemory_livekit.params import InputParams
from supermemory_livekit.spool.directory import SpoolDirectory
from supermemory_livekit.spool.file import take_over
from supermemory_livekit.spool.recovery import recover
from supermemory_livekit.testing import Hang, ScriptedStore


def left_behind(directory: Path) -> list[Path]:
    return SpoolDirectory(directory).files()


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks of POSIX")


def spooled(store: ScriptedStore, directory: Path) -> Call:
    return Call(store, params=InputParams(spool_dir=directory))


async def test_an_acknowledged_turn_leaves_the_spool(tmp_path: Path) -> None:
    """Issue: each turn leaves the spool once acknowledged, and the file with the last one."""
    store = ScriptedStore()
    call = spooled(store, tmp_path)
    call.say("caller", "secret words")
    (path,) = left_behind(tmp_path)
    assert b"secret words" in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert await call.capture.flush(8) == 0
    assert b"secret words" not in path.read_bytes()
    await call.capture.aclose(8)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("committed", [True, False])
async def test_what_a_process_left_is_delivered_once(
    committed: bool, tmp_path: Path, clock: VirtualClock
) -> None:
    """Issue: settled first, so that a last write which was stored is not doubled."""
    store = ScriptedStore().script("append", Hang(committed=committed))
    call = spooled(store, tmp_path)
    call.exchange(1)
    await asyncio.sleep(0.1)
    call.say("caller", "question 2")
    await call.capture.aclose(0)
    result = await recover(store, tmp_path)
    assert (result.delivered, result.left) == (3, 0)
    assert stored(store) == call.said[ANA]
    assert left_behind(tmp_path) == []


async def test_a_torn_last_record_loses_nothing_else(tmp_path: Path) -> None:
    """Issue: a torn last record loses nothing else."""
    store = ScriptedStore()
    call = spooled(store, tmp_path)
    call.say("caller", "whole")
    call.say("caller", "torn")
    await call.capture.aclose(0)
    (path,) = left_behind(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    result = await recover(store, tmp_path)
    assert (result.delivered, result.damaged) == (1, 1)
    assert stored(store) == [("caller", "whole")]


async def test_the_file_of_a_live_call_is_left_alone(tmp_path: Path) -> None:
    """Issue: only files of dead processes are taken over."""
    call = spooled(ScriptedStore(), tmp_path)
    call.say("caller", "still here")
    (path,) = left_behind(tmp_path)
    assert take_over(path) is None
    await call.capture.aclose(8)


async def test_an_unknown_version_is_left_alone(tmp_path: Path) -> None:
    """Issue: unknown version or foreign file is left alone and reported."""
    path = tmp_path / "other.spool"
    path.write_bytes(b"not ours\n")
    path.chmod(0o600)
    assert (await recover(ScriptedStore(), tmp_path)).foreign == 1
    assert path.read_bytes() == b"not ours\n"


KILLED = """
import os, signal, sys
from supermemory_livekit.params import InputParams
from tests.unit.capturing import Call
from supermemory_livekit.testing import ScriptedStore
call = Call(ScriptedStore(), params=InputParams(spool_dir=sys.argv[1]))
call.say("caller", "last words")
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_the_words_of_a_killed_process_are_delivered_by_the_next_call(tmp_path: Path) -> None:
    """Issue: the next worker delivers what a dead process left; a real process, and kill -9."""
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, str(tmp_path)],
        timeout=60,
        check=False,
        env={**os.environ},
    )
    assert killed.returncode == -signal.SIGKILL
    store = ScriptedStore()
    call = spooled(store, tmp_path)
    call.capture.bound(ANA)
    for _ in range(200):
        if stored(store):
            break
        await asyncio.sleep(0.05)
    assert stored(store) == [("caller", "last words")]
    await call.capture.aclose(8)
