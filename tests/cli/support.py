"""Running the command as a person does: in a process of its own, with nothing of this machine's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["COMMAND", "environment", "run"]

COMMAND = [sys.executable, "-m", "supermemory_livekit.cli"]


def environment(home: Path, **settings: str) -> dict[str, str]:
    """No key, no model, no address but those in `settings`; data go below `home`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(
            ("OPENAI_", "SUPERMEMORY_", "LIVEKIT_", "FORCE_COLOR", "COLUMNS", "PYTHONWARNINGS")
        )
    }
    return {**kept, "HOME": str(home), "XDG_DATA_HOME": str(home), **settings}


def run(
    *arguments: str, home: Path, stdin: str = "", timeout: float = 150, **settings: str
) -> subprocess.CompletedProcess[str]:
    """The command from start to end, through pipes."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(home, **settings),
        check=False,
    )
