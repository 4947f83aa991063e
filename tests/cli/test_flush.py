"""`flush`: what killed workers left is delivered, and only counts are printed."""

from __future__ import annotations

from pathlib import Path

from supermemory_livekit.scope import Scope
from supermemory_livekit.spool import Spool
from supermemory_livekit.transcript import Turn
from tests.unit.capturing import START

from .support import run


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
