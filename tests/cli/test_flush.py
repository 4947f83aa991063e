"""`flush`: what killed workers left is delivered, and only counts are printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from supermemory_livekit.scope import Scope
from supermemory_livekit.spool.spool import Spool
from supermemory_livekit.transcript import Turn
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
